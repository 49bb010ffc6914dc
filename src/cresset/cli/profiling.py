"""`cresset profile script.py ARGS`: run a program as `cresset run` does, and tell which of its lines cost most."""

import importlib.util
import os
import shutil
import sys
import textwrap
import threading

from ..profiler import flame, lines, memory_timeline
from . import CommandError, running, terminal

NOTE = (
    "self: in the line and what it calls outside of your code; total: with your code that it calls. Operators are "
    "timed, Python is sampled. calls: of operators; memory: of tensors. Not counted: other processes, memory of "
    "Python's own objects."
)


class Watching:
    """The program runs inside; its threads are waited for, as Python does at its end."""

    def __init__(self, profile):
        self.profile, self.process, self.began = profile, os.getpid(), False

    def __enter__(self):
        self.began = True
        self.profile.start()

    def __exit__(self, *exception):
        if os.getpid() != self.process:  # a child that was forked: the report is its parent's
            return
        try:
            for thread in threading.enumerate():
                if thread is not threading.main_thread() and not thread.daemon:
                    thread.join()
        finally:
            self.profile.stop()


def folder_of(options):
    """The folder whose files are the program's own."""
    if not options.module:
        return os.path.dirname(os.path.abspath(options.script))
    try:
        spec = importlib.util.find_spec(options.script.partition(".")[0])
    except (ImportError, ValueError):
        spec = None
    if spec is None or not (spec.submodule_search_locations or spec.origin):
        return os.getcwd()
    return os.path.abspath(next(iter(spec.submodule_search_locations or ()), None) or os.path.dirname(spec.origin))


def run(options):
    for path in (options.trace, options.flame, options.memory_timeline, options.output):
        if path is not None and not os.path.isdir(os.path.dirname(os.path.abspath(path))):
            raise CommandError(f"profile: there is no folder for {path!r}")
    if options.flame is not None and not options.flame.endswith(".svg"):
        raise CommandError(f"profile: --flame draws an SVG file, got {options.flame!r}")
    paths = {
        name: os.path.abspath(path) if path is not None else None  # the program may go elsewhere
        for name, path in (
            ("trace", options.trace),
            ("flame", options.flame),
            ("memory", options.memory_timeline),
            ("output", options.output),
        )
    }
    profile = lines.LineProfile(
        keep_events=options.trace is not None or options.memory_timeline is not None,
        starter=getattr(sys.modules["__main__"], "__file__", None),
    )
    watching = Watching(profile)
    stream = sys.stdout
    try:
        status = running.run(
            options.script, options.arguments, module=options.module, command="profile", around=watching
        )
    finally:
        if watching.began and os.getpid() == watching.process:
            profile.attribute(folder_of(options))
            report(profile, options, paths, stream)
    return status


def report(profile, options, paths, stream):
    sys.stdout.flush()
    sys.stderr.flush()
    name = f"-m {options.script}" if options.module else os.path.basename(options.script)
    if paths["output"] is not None:
        with open(paths["output"], "w", encoding="utf-8") as file:
            file.write(text(profile, options, name, width=120, color=False))
    elif not stream.closed:
        width = shutil.get_terminal_size((120, 24)).columns
        stream.write("\n" + writable(text(profile, options, name, width, terminal.has_color(stream)), stream))
        stream.flush()
    if paths["trace"] is not None:
        profile.events.export_chrome_trace(paths["trace"])
    if paths["flame"] is not None:
        flame.write(paths["flame"], profile.flames(), f"{name}: {lines.time_text(profile.time)}")
    if paths["memory"] is not None:
        memory_timeline.export(paths["memory"], [profile.recording], profile.memory_device())


def text(profile, options, name, width, color):
    """The report: a sentence, the table, and what its columns mean."""
    summary, table = lines.summary(profile, name), lines.table(profile, options.lines, options.memory, width)
    note = wrapped(NOTE, width)
    if color:
        head, rule, *rows = table.splitlines()
        table = "\n".join([f"\x1b[1m{head}\x1b[0m", f"\x1b[2m{rule}\x1b[0m", *rows]) + "\n"
        note = f"\x1b[2m{note}\x1b[0m"
    return f"{wrapped(summary, width)}\n\n{table}\n{note}\n"


def wrapped(text, width):
    return textwrap.fill(text, max(width, 40))


def writable(text, stream):
    """Text without letters that the stream's encoding lacks."""
    encoding = getattr(stream, "encoding", None) or "utf-8"
    return text.encode(encoding, "backslashreplace").decode(encoding)
