"""A process of a job, with the files that take what it prints."""

import os
import string
import subprocess
import sys
import tempfile
import threading


def chosen(text, local):
    """What of a process goes where: 0 nothing, 1 stdout, 2 stderr, 3 both; "0:3,1:1" says it for each.

    >>> chosen("3", 0), chosen("0:1,1:2", 1), chosen("0:1", 5)
    (3, 2, 0)
    """
    if ":" not in text:
        return int(text)
    return int(dict(pair.split(":") for pair in text.split(",")).get(str(local), 0))


def log_path(settings, generation, local, name):
    """The file for what a process prints, in a folder that is there."""
    base = settings.log_dir or tempfile.gettempdir()
    folder = os.path.join(base, settings.job, f"attempt_{generation}", str(local))
    os.makedirs(folder, exist_ok=True)
    return os.path.join(folder, f"{name}.log")


def prefix_of(settings, local, rank):
    """What stands before a line of a process that is shown here."""
    template = string.Template(settings.prefix or "[${role_name}${local_rank}]:")
    return template.safe_substitute(role_name=settings.role, local_rank=local, rank=rank)


class Process:
    """A process that an agent started."""

    def __init__(self, settings, local, rank, errors, environment, generation):
        self.local, self.rank, self.errors, self.files, self.threads = local, rank, errors, [], []
        redirects, tee = chosen(settings.redirects, local), chosen(settings.tee, local)
        hidden = bool(settings.shown) and local not in settings.shown
        streams, copies = [], []
        for bit, name in ((1, "stdout"), (2, "stderr")):
            file, both = None, bool(tee & bit) and not hidden
            if (redirects | tee) & bit:
                file = open(log_path(settings, generation, local, name), "wb")  # noqa: SIM115
                self.files.append(file)
                streams.append(subprocess.PIPE if both else file)
            else:
                streams.append(subprocess.DEVNULL if hidden else None)
            copies.append(file if both else None)
        self.process = subprocess.Popen(settings.command, env=environment, stdout=streams[0], stderr=streams[1])
        pipes = (self.process.stdout, self.process.stderr)
        for pipe, file, out in zip(pipes, copies, (sys.stdout, sys.stderr), strict=True):
            if file is not None:
                prefix = prefix_of(settings, local, rank)
                thread = threading.Thread(target=self.copy, args=(pipe, file, out, prefix), daemon=True)
                thread.start()
                self.threads.append(thread)

    def copy(self, pipe, file, out, prefix):
        """Write what comes to a file and here."""
        for line in pipe:
            file.write(line)
            out.write(prefix + line.decode(errors="replace"))
            out.flush()

    def close(self):
        """The process has ended: close its files."""
        for thread in self.threads:
            thread.join(5)
        for file in self.files:
            file.close()
        self.threads, self.files = [], []
