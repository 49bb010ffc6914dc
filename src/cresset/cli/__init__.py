"""The command line: `cresset train digits`, `run`, `profile`, `adopt`, `doctor`, `inspect`, `report`, `serve`,
`bench-serve`. Each command lives in its own file and loads when it is used.

Exit status: 0 done, 1 it failed (one line on standard error says why), 2 the arguments are wrong, 130 interrupted.
"""

import argparse
import os
import sys

__all__ = ["CommandError", "main"]

COMMANDS = ("train", "run", "profile", "adopt", "doctor", "inspect", "report", "serve", "bench-serve")


class CommandError(Exception):
    """A user's mistake or something missing on this machine: shown as one line, without a traceback."""


def positive(text):
    """An argument that must be a whole number above zero."""
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"expected a whole number above zero, got {text!r}")
    return number


def positive_seconds(text):
    """An argument that must be a time above zero."""
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < 1e9:
        raise argparse.ArgumentTypeError(f"expected seconds above zero, got {text!r}")
    return number


def rate(text):
    """Requests a second, or a part of the capacity: 500 or 80%."""
    try:
        number = float(text.removesuffix("%"))
    except ValueError:
        number = 0.0
    if not 0 < number < 1e9:
        raise argparse.ArgumentTypeError(f"expected a number above zero or a percentage such as 80%, got {text!r}")
    return text


class Parser(argparse.ArgumentParser):
    """A command's arguments. One that it does not know is told with its own usage, not with that of `cresset`."""

    def parse_known_args(self, args=None, namespace=None):
        found, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return found, unknown


def make_parser():
    parser = Parser(
        prog="cresset",
        description="Deep learning with PyTorch's API. Start with: cresset train digits",
        epilog=(
            "`cresset COMMAND --help` tells more. `python -m cresset script.py` is short for `cresset run script.py`."
        ),
    )
    parser.add_argument("--version", action="store_true", help="print the version")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    add_train(commands)
    command = commands.add_parser(
        "run",
        help="run a program written for PyTorch, unmodified",
        description="Run a program written for PyTorch, unmodified: in it, torch, torchvision and safetensors.torch "
        "are cresset. "
        "Everything behind the script's name belongs to the script.",
    )
    add_program(command)
    add_profile(commands)
    command = commands.add_parser(
        "adopt",
        help="put cresset in the place of PyTorch in this environment",
        description="Put a distribution `torch` into this environment whose package hands over to cresset: every "
        "`import torch` finds cresset, and pip sees "
        "the requirement torch met. Refused where PyTorch is installed.",
    )
    command.add_argument("--undo", action="store_true", help="take it out again")
    command = commands.add_parser(
        "doctor",
        help="what this machine offers, what is missing, how to get it",
        description=(
            "Look at this machine: processor, threads, memory, optional packages, GPU. Exit status 1 if "
            "something that cresset needs does not work."
        ),
    )
    command.add_argument("--json", action="store_true", help="print the findings as JSON")
    command = commands.add_parser(
        "inspect",
        help="the tensors in a .pt, .safetensors, .npz or .npy file",
        description=(
            "List names, shapes, dtypes and sizes of the tensors in a file. Only descriptions are read, no "
            "data; nothing in the file is run."
        ),
    )
    command.add_argument("file", metavar="FILE")
    command.add_argument("--json", action="store_true", help="print the list as JSON")
    command = commands.add_parser(
        "report",
        help="a page with the curves of a training run",
        description="Write a self-contained HTML page with the curves of a run.",
    )
    command.add_argument("run", metavar="RUN", help="the run's JSONL file, or its folder")
    command.add_argument("--out", metavar="FILE", help="where the page goes (default: report.html beside the record)")
    add_serve(commands)
    return parser


def add_program(command):
    """The program to run, and its arguments."""
    command.add_argument(
        "-m", dest="module", action="store_true", help="SCRIPT is the name of a module, as in python -m"
    )
    command.add_argument("script", metavar="SCRIPT")
    command.add_argument("arguments", metavar="ARGS", nargs=argparse.REMAINDER).required = False


def add_profile(commands):
    command = commands.add_parser(
        "profile",
        help="run a program and print its costliest lines, with time and memory",
        description="Run a program as `cresset run` does and print which of its lines cost most time and memory, also "
        "where it fails or is interrupted. Everything behind the script's name belongs to the script.",
    )
    command.add_argument("--lines", type=positive, default=10, metavar="N", help="how many lines (default: 10)")
    command.add_argument("--memory", action="store_true", help="the lines that hold most memory at the peak first")
    command.add_argument("--output", metavar="FILE", help="write the report there (default: standard output)")
    command.add_argument("--trace", metavar="FILE", help="also a trace of all calls, for chrome://tracing and Perfetto")
    command.add_argument("--flame", metavar="FILE.svg", help="also a flame graph")
    command.add_argument(
        "--memory-timeline", metavar="FILE.html", help="also a page with the memory over time, by what it was for"
    )
    add_program(command)


def add_train(commands):
    command = commands.add_parser(
        "train",
        help="train a small model on data that is here, and watch it learn",
        description="Train a small model on data that is here, and watch it learn.",
        epilog=(
            "`cresset train MODEL --help` has the options of each: how long, on which device, and where to record the "
            "run (--run DIR) for `cresset report DIR`. For a model of your own: cresset.train.fit."
        ),
    )
    models = command.add_subparsers(dest="model", metavar="MODEL", required=True)
    digits = models.add_parser(
        "digits",
        help="a convolutional network that reads handwritten digits",
        description=(
            "Teach a small convolutional network to read handwritten digits (1797 pictures that come with cresset)."
        ),
    )
    digits.add_argument("--epochs", type=positive, default=20, help="times through the pictures (default: 20)")
    digits.add_argument("--batch", type=positive, default=32, help="pictures a step (default: 32)")
    digits.add_argument("--seed", type=int, default=0, help="of the generators (default: 0)")
    digits.add_argument(
        "--threads",
        type=positive,
        default=1,
        help="how many threads work (default: 1; pictures this small gain nothing from more)",
    )
    add_where(digits)
    digits.add_argument("--png", metavar="FILE", help="also draw the curves and some predictions into this picture")
    digits.add_argument("--save", metavar="FILE", help="save the weights (.pt or .safetensors)")
    gpt = models.add_parser(
        "gpt",
        help="a transformer that writes Python, letter by letter",
        description="Train a character transformer on the sources of Python's standard library, then let it write.",
    )
    gpt.add_argument("--steps", type=positive, default=600, help="of the optimizer (default: 600)")
    gpt.add_argument("--batch", type=positive, default=16, help="texts a step (default: 16)")
    gpt.add_argument("--context", type=positive, default=64, help="letters it sees (default: 64)")
    gpt.add_argument("--width", type=positive, default=128, help="numbers for each letter (default: 128)")
    gpt.add_argument("--layers", type=positive, default=3, help="blocks of attention (default: 3)")
    gpt.add_argument("--letters", type=positive, default=1_000_000, help="how much text to read (default: 1000000)")
    gpt.add_argument("--sample", type=positive, default=400, help="letters to write at the end (default: 400)")
    gpt.add_argument("--temperature", type=float, default=0.7, help="0: always the likeliest letter (default: 0.7)")
    gpt.add_argument("--text", metavar="FILE", help="learn from this text instead (default: Python's standard library)")
    gpt.add_argument("--seed", type=int, default=0, help="of the generators (default: 0)")
    gpt.add_argument("--threads", type=positive, help="how many threads work (default: all processors)")
    add_where(gpt)
    gpt.add_argument("--save", metavar="FILE", help="save the weights (.pt or .safetensors)")


def add_where(command):
    """Where a model is trained, and where the record of it goes."""
    command.add_argument("--device", default="cpu", help="cpu, cuda or cuda:1 (default: cpu)")
    command.add_argument(
        "--run", metavar="DIR", help="record the run here, for `cresset report DIR` (default: no record)"
    )


def add_serve(commands):
    command = commands.add_parser(
        "serve",
        help="put models behind HTTP",
        description="Serve models: the Open Inference Protocol (KServe v2) and TorchServe's predictions and "
        "management. MODEL is [NAME[@VERSION]=]SOURCE, and SOURCE a .pt2 file (exported program), a "
        ".pt file (TorchScript), or file.py:Name or package.module:Name (a handler class as TorchServe "
        "has them, or a function that returns a module).",
    )
    command.add_argument("models", metavar="MODEL", nargs="*", help="[NAME[@VERSION]=]SOURCE")
    command.add_argument("--config", metavar="FILE", help="a TOML file with [server], [[model]] and [split.NAME]")
    command.add_argument("--host", help="the address to listen on (default: 127.0.0.1; others need a token)")
    command.add_argument("--port", type=int, help="0 takes a free one (default: 8080)")
    command.add_argument(
        "--token-file", metavar="FILE", help="the token that requests have to show (or: CRESSET_SERVE_TOKEN)"
    )
    command.add_argument("--store", metavar="DIR", help="models can be loaded from here at run time (default: none)")
    command.add_argument(
        "--device",
        help="cpu, cuda:1, or cuda: all GPUs, among which the workers of a model are divided (default: cpu)",
    )
    command.add_argument("--workers", type=positive, help="processes of each model (default: 1)")
    command.add_argument(
        "--threads",
        type=positive,
        help="of each worker (default: the processors, divided among them, less one while the front is busy)",
    )
    command.add_argument("--batch", type=positive, help="requests computed together (default: 1)")
    command.add_argument("--delay", type=float, metavar="MS", help="milliseconds to hold one back at most (default: 0)")
    command.add_argument("--queue", type=positive, help="requests that may wait; more are answered 429 (default: 256)")
    command.add_argument("--timeout", type=float, metavar="S", help="seconds a request may take (default: 30)")
    command.add_argument(
        "--memory", type=int, metavar="MB", help="memory the requests of a batch may take (default: 1024)"
    )
    command.add_argument("--max-request", type=float, metavar="MB", help="largest body of a request (default: 16)")
    command.add_argument("--max-connections", type=positive, help="at the same time (default: 1000)")
    command.add_argument(
        "--grace", type=float, metavar="S", help="seconds for running requests at the end (default: 30)"
    )
    command.add_argument(
        "--log-requests", action="store_true", default=None, help="log each request, not only failures and events"
    )
    command = commands.add_parser(
        "bench-serve",
        help="drive load against a server and print latency percentiles",
        description="Drive load against a server that speaks the Open Inference Protocol, compare each answer with the "
        "one its request got alone, and print latency percentiles: one request at a time, then as fast as clients that "
        "wait for their answers ask, or at a --rate. Exit status 1 if an answer was lost or wrong.",
    )
    command.add_argument("model", metavar="MODEL", help="the model's name")
    command.add_argument(
        "--url", default="http://127.0.0.1:8080", help="where the server is (default: http://127.0.0.1:8080)"
    )
    command.add_argument(
        "--seconds", metavar="S", type=positive_seconds, default=10.0, help="how long to drive (default: 10)"
    )
    command.add_argument(
        "--connections",
        metavar="N",
        type=positive,
        default=32,
        help="of clients that wait for their answers; at a rate 256 at least (default: 32)",
    )
    command.add_argument(
        "--rate",
        type=rate,
        action="append",
        help="requests a second, or a part of the capacity as 80%%, each at its time whether or not those before it "
        "are answered; may be given several times",
    )
    command.add_argument(
        "--capacity",
        action="store_true",
        help="find the highest rate at which requests may come for ever: for 10 seconds, or --seconds if less, none is "
        "refused and the backlog does not grow; takes about a minute",
    )
    command.add_argument(
        "--arrivals",
        choices=("even", "random"),
        default="even",
        help="requests at a rate come at equal distances, or at random as those of many independent clients (default: "
        "even)",
    )
    command.add_argument(
        "--different", metavar="N", type=positive, default=16, help="how many different requests (default: 16)"
    )
    command.add_argument(
        "--body", metavar="FILE", help="the body of a request, if the model does not say what it takes"
    )
    command.add_argument("--path", help="ask this path instead of the model's infer")
    command.add_argument("--token", help="what the server asks for")
    command.add_argument("--memory", action="store_true", help="with --rate: also the server's memory before and after")
    command.add_argument("--json", action="store_true", help="print the numbers as JSON")


def dispatch(options):
    """Run the chosen command; its exit status."""
    if options.command == "run":
        from . import running

        return running.run(options.script, options.arguments, module=options.module)
    if options.command == "profile":
        from . import profiling

        return profiling.run(options)
    if options.command == "adopt":
        return adopt(options)
    if options.command == "doctor":
        from . import doctor

        return doctor.run(options)
    if options.command == "inspect":
        from . import contents

        return contents.run(options)
    if options.command == "report":
        return report(options)
    if options.command == "serve":
        return serve(options)
    if options.command == "bench-serve":
        from cresset.serve import load

        try:
            return load.run(options)
        except load.LoadError as error:
            raise CommandError(str(error)) from None
    check_device(options.device)
    check_places(options)
    if options.model == "digits":
        from . import digits

        return digits.run(options)
    from . import gpt

    return gpt.run(options)


def check_device(name):
    import cresset

    try:
        device = cresset.device(name)
    except RuntimeError:
        device = None
    if device is None or device.type not in ("cpu", "cuda"):
        raise CommandError(f"train: --device {name}: expected cpu, cuda or cuda:1")
    if device.type == "cuda" and not cresset.cuda.is_available():
        raise CommandError(f"train: --device {name}: there is no GPU that can be used; `cresset doctor` says why")


def check_places(options):
    """That what training makes can be written is seen before it, not after."""
    for option in ("save", "png"):
        path = getattr(options, option, None)
        if path is not None and os.path.isdir(path):
            raise CommandError(f"train: --{option} {path} is a folder; name a file in it")
        if path is not None and not os.path.isdir(os.path.dirname(os.path.abspath(path))):
            raise CommandError(f"train: --{option} {path}: there is no folder {os.path.dirname(path)}")
    if options.run is not None and os.path.exists(options.run) and not os.path.isdir(options.run):
        raise CommandError(f"train: --run {options.run} is a file; name a folder")


def adopt(options):
    from cresset.standing_in import adoption

    try:
        files = adoption.undo() if options.undo else adoption.adopt()
    except adoption.AdoptionError as error:
        raise CommandError(str(error)) from None
    if options.undo:
        print(
            f"removed torch {adoption.VERSION} ({len(files)} files in {adoption.site_packages()}); `import torch` "
            "finds nothing now"
        )
    else:
        print(
            f"wrote torch {adoption.VERSION} ({len(files)} files in {adoption.site_packages()}): `import torch` finds "
            "cresset now"
        )
        print("`cresset adopt --undo` or `pip uninstall torch` removes it")
        if adoption.pip_settings() in files:
            print(
                f"{adoption.pip_settings()} holds pip to it: packages come in the versions for this release of PyTorch"
            )
        else:
            print(
                f"{adoption.pip_settings()} is yours and stays; add `{adoption.constraint_setting()}` to its "
                "[install], "
                "or name packages tied to one release of PyTorch in the version for 2.13: pip install "
                '"torchvision==0.28.*"'
            )
    return 0


def report(options):
    try:
        from cresset.train.report import write_report
    except ModuleNotFoundError as error:
        if not (error.name or "").startswith("cresset.train"):
            raise
        raise CommandError("report: this cresset has no cresset.train.report") from None
    if options.out is not None and not os.path.isdir(os.path.dirname(os.path.abspath(options.out))):
        raise CommandError(f"report: --out {options.out}: there is no folder {os.path.dirname(options.out)}")
    try:
        print(f"wrote {write_report(options.run, options.out)}")
    except (ValueError, FileNotFoundError) as error:
        raise CommandError(f"report: {str(error).removeprefix('write_report: ')}") from None
    return 0


def serve(options):
    from cresset.serve import command

    try:
        return command.run(*command.from_options(options))
    except (command.SettingsError, ModuleNotFoundError) as error:
        raise CommandError(str(error)) from None


def complain(text):
    """One line on standard error. What files brought into it is escaped."""
    from cresset.serialization.quoting import printable

    print(f"cresset: {printable(text, 2000)}", file=sys.stderr)


def main(arguments=None):
    """Run the command line with these arguments (default: those of the process) and return the exit status."""
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    parser = make_parser()
    options = parser.parse_args(arguments)
    if options.version:
        from cresset.version import __version__

        print(f"cresset {__version__}")
        return 0
    if options.command is None:
        parser.print_help()
        return 2
    if options.command not in ("run", "profile"):
        for stream in (sys.stdout, sys.stderr):  # names in files can have letters that the terminal's encoding lacks
            if hasattr(stream, "reconfigure"):
                stream.reconfigure(errors="backslashreplace")
    try:
        return dispatch(options)
    except CommandError as error:
        complain(str(error))
        return 1
    except BrokenPipeError:  # the reader, say `head`, has seen enough; nothing can be said to it any more
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        if options.command in ("run", "profile"):
            raise
        what = f"{error.filename}: {error.strerror}" if error.filename is not None and error.strerror else str(error)
        complain(f"{options.command}: {what}")
        return 1
    except KeyboardInterrupt:
        print("\ncresset: interrupted", file=sys.stderr)
        return 130
