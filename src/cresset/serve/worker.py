"""A worker: a process that loads one model and answers batches of requests until the front closes the line.

Started as `python -m cresset.serve.worker FD`, with a socket to the front. The first message from the front has the
settings; the first answer says what the model is, or why it cannot be loaded.
"""

import contextlib
import gc
import os
import resource
import signal
import socket
import sys
import traceback

import cresset

from . import frames, placement, sources
from .settings import ModelSettings, SettingsError


class Request:
    """One request as the front passes it on."""

    __slots__ = ("body", "content_type", "headers", "identity", "json_length", "kind")

    def __init__(self, kind, json_length, content_type, identity, headers, body):
        self.kind, self.json_length, self.content_type = kind, json_length, content_type
        self.identity, self.headers, self.body = identity, headers, body


def make_runner(settings, device):
    """What answers requests to the model, ready to compute."""
    from .batches import ProgramRunner
    from .handlers import HandlerRunner

    model = sources.load(settings, device)
    if isinstance(model, type):
        return HandlerRunner(model, settings, device)
    runner = ProgramRunner(model, settings)
    if device.type == "cuda":
        placement.warm_up(model, settings.batch if runner.joins else 1)
    return runner


def data_size():
    """Bytes of memory that this process can write to."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[5]) * os.sysconf("SC_PAGE_SIZE")


def bound_memory(megabytes):
    """From here on, at most so much more memory: a request that needs more gets a MemoryError, not the machine."""
    if megabytes and os.path.exists("/proc/self/statm"):
        _, hard = resource.getrlimit(resource.RLIMIT_DATA)
        limit = data_size() + (megabytes << 20)
        resource.setrlimit(resource.RLIMIT_DATA, (limit if hard == resource.RLIM_INFINITY else min(limit, hard), hard))


def serve(line):
    """Answer messages until the line ends."""
    incoming = line.makefile("rb", buffering=1 << 16)
    header, _ = frames.read(incoming)
    settings = ModelSettings(**header["settings"])
    threads = header["threads"]
    cresset.set_num_threads(threads)
    try:
        device = placement.choose(settings.device, header["place"])
        runner = make_runner(settings, device)
    except SettingsError as error:  # a sentence for who started the server
        line.sendall(frames.pack({"failed": str(error)}))
        return
    except Exception as error:
        if settings.is_code:
            traceback.print_exc()
        line.sendall(frames.pack({"failed": f"{type(error).__name__}: {error}"}))
        return
    gc.collect()
    gc.freeze()  # the model stays: no need to look through it again and again
    bound_memory(settings.memory)
    placement.bound_memory(device, settings.memory)
    line.sendall(frames.pack({"ready": runner.metadata(), "device": str(device)}))
    while (message := frames.read(incoming)) is not None:
        header, body = message
        if header["threads"] != threads:  # else it is what a handler has made of it
            threads = header["threads"]
            cresset.set_num_threads(threads)
        entries = header["requests"]
        bodies = frames.split(body, [entry[-1] for entry in entries])
        requests = [Request(*entry[:-1], part) for entry, part in zip(entries, bodies)]
        answers, seconds = runner.answer(requests)
        parts, described = [], []
        for status, kind, headers, content in answers:
            part = content.encode("utf-8", "backslashreplace") if kind is None else content
            parts.append(part)
            described.append([status, kind, headers, len(part)])
        reply = {"id": header["id"], "answers": described, "seconds": seconds}
        context = getattr(runner, "context", None)
        if context is not None and context.metrics.found:
            reply["metrics"], context.metrics.found = context.metrics.found, {}
        line.sendall(frames.pack(reply, parts))


def main():
    for number in (signal.SIGINT, signal.SIGTERM):  # the front decides when a worker has done its work
        signal.signal(number, signal.SIG_IGN)
    line = socket.socket(fileno=int(sys.argv[1]))
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # the front is gone
        serve(line)


if __name__ == "__main__":
    main()
