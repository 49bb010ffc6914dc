"""Machines for tests: network namespaces on one host, each with its own address and name, on a bridge of their own."""

import contextlib
import itertools
import os
import shutil
import subprocess

numbers = itertools.count()


def why_not():
    """Why there can be no machines here, or ''."""
    if os.geteuid() != 0:
        return "making network namespaces needs root"
    for tool in ("ip", "unshare"):
        if shutil.which(tool) is None:
            return f"there is no {tool} here"
    try:
        with Machines(1):
            return ""
    except subprocess.CalledProcessError as error:
        return f"network namespaces are not permitted: {error.stderr.strip()}"


class Machines:
    """`count` machines, with the addresses 10.213.<network>.<1 ...>; a context manager."""

    def __init__(self, count):
        self.mark = f"c{os.getpid() % 100000}x{next(numbers)}"  # names of interfaces have at most 15 letters
        self.network = f"10.213.{os.getpid() % 250}"
        self.count, self.made = count, []

    def ip(self, *words):
        subprocess.run(["ip", *words], check=True, capture_output=True, text=True)

    def __enter__(self):
        try:
            self.ip("link", "add", f"{self.mark}b", "type", "bridge")
            self.made.append(("link", "del", f"{self.mark}b"))
            self.ip("link", "set", f"{self.mark}b", "up")
            for i in range(self.count):
                self.ip("netns", "add", f"{self.mark}n{i}")
                self.made.append(("netns", "del", f"{self.mark}n{i}"))
                inner = f"{self.mark}i{i}"
                self.ip("link", "add", self.cable(i), "type", "veth", "peer", "name", inner)
                self.made.append(("link", "del", self.cable(i)))
                self.ip("link", "set", inner, "netns", f"{self.mark}n{i}")
                self.ip("link", "set", self.cable(i), "master", f"{self.mark}b", "up")
                self.ip("-n", f"{self.mark}n{i}", "addr", "add", f"{self.address(i)}/24", "dev", inner)
                self.ip("-n", f"{self.mark}n{i}", "link", "set", inner, "up")
                self.ip("-n", f"{self.mark}n{i}", "link", "set", "lo", "up")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for words in reversed(self.made):
            with contextlib.suppress(subprocess.CalledProcessError):
                self.ip(*words)
        self.made = []

    def cable(self, i):
        return f"{self.mark}o{i}"

    def address(self, i):
        return f"{self.network}.{i + 1}"

    def cut(self, i):
        """Pull the cable of a machine."""
        self.ip("link", "set", self.cable(i), "down")

    def command(self, i, words):
        """The command that runs `words` on a machine."""
        named = ["sh", "-c", f'hostname machine{i}; exec "$@"', "sh", *words]
        return ["ip", "netns", "exec", f"{self.mark}n{i}", "unshare", "--uts", "--ipc", *named]
