"""torchrun: start the processes of a job on this machine, watch them, and start them again when one fails.

    torchrun --standalone --nproc-per-node 2 train.py --epochs 3
    torchrun --nnodes 2 --node-rank 0 --master-addr 10.0.0.1 --master-port 29500 --nproc-per-node 8 train.py
    torchrun --nnodes 1:4 --rdzv-backend c10d --rdzv-endpoint 10.0.0.1:29400 --max-restarts 3 train.py

Every option can also be set by an environment variable: PET_NPROC_PER_NODE for --nproc-per-node, and so on.
"""

import argparse
import os
import sys

from .elastic import agent
from .elastic.agent import Agent, Settings
from .elastic.errors import ChildFailedError


class _Option(argparse.Action):
    """An option whose default may come from PET_<NAME>."""

    def __init__(self, dest, default=None, **kwargs):
        super().__init__(dest=dest, default=os.environ.get(f"PET_{dest.upper()}", default), **kwargs)

    def __call__(self, parser, namespace, values, option_string=None):
        setattr(namespace, self.dest, values)


class _Switch(argparse.Action):
    """A switch that PET_<NAME>=1 turns on."""

    def __init__(self, dest, **kwargs):
        super().__init__(
            dest=dest, nargs=0, default=os.environ.get(f"PET_{dest.upper()}", "0") not in ("0", ""), **kwargs
        )

    def __call__(self, parser, namespace, values, option_string=None):
        setattr(namespace, self.dest, True)


def get_args_parser():
    """The parser of torchrun's command line."""
    first, rest = __doc__.split("\n", 1)
    layout = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(prog="torchrun", description=first, epilog=rest, formatter_class=layout)

    def add(action, name, text, short=(), **kwargs):
        names = dict.fromkeys([*short, f"--{name}", f"--{name.replace('-', '_')}"])
        parser.add_argument(*names, action=action, help=text, **kwargs)

    add(_Option, "nnodes", "machines: a number, or MIN:MAX", default="1:1")
    add(_Option, "nproc-per-node", "processes on this machine: a number, 'cpu', 'gpu' or 'auto'", default="1")
    add(_Option, "rdzv-backend", "how machines meet: static (--node-rank numbers them) or c10d", default="static")
    add(_Option, "rdzv-endpoint", "where: HOST or HOST:PORT", default="")
    add(_Option, "rdzv-id", "the job's name", default="none")
    add(_Option, "rdzv-conf", "settings of the meeting: join_timeout=600,last_call_timeout=30", default="")
    add(_Switch, "standalone", "one machine, any free port")
    add(_Option, "max-restarts", "how often to start again after a failure", type=int, default=0)
    add(_Option, "monitor-interval", "seconds between two looks at the processes", type=float, default=0.1)
    methods = ["spawn", "fork", "forkserver"]
    add(_Option, "start-method", "accepted; a program is always started anew", default="spawn", choices=methods)
    add(_Option, "event-log-handler", "where events go: null or console", default="null")
    add(_Option, "role", "what these processes are called", default="default")
    add(_Switch, "module", "the program is a module, as in python -m", ["-m"])
    add(_Switch, "no-python", "the program is not Python: run it as it is")
    add(_Switch, "run-path", "accepted: the program runs as the main module in any case")
    add(_Option, "log-dir", "a folder for what the processes print")
    what = "0 nothing, 1 stdout, 2 stderr, 3 both; or RANK:WHAT,..."
    add(_Option, "redirects", f"what goes into the folder: {what}", ["-r"], default="0")
    add(_Option, "tee", "what goes both to the folder and here", ["-t"], default="0")
    add(_Option, "local-ranks-filter", "show only these processes: 0,1", default="")
    add(_Option, "node-rank", "which of the machines this is", type=int, default=0)
    add(_Option, "master-addr", "the address of machine 0", default="127.0.0.1")
    add(_Option, "master-port", "its port; 29500", type=int)
    add(_Option, "local-addr", "the address of this machine, for the others")
    signals = "SIGTERM,SIGINT,SIGHUP,SIGQUIT"
    add(_Option, "signals-to-handle", "signals that are handed to the processes", default=signals)
    add(_Option, "shutdown-timeout", "seconds between asking a process to end and killing it; 30", type=int)
    add(_Switch, "virtual-local-rank", "every process sees LOCAL_RANK=0 and its own GPU as the only one")
    parser.add_argument("training_script", help="the program")
    parser.add_argument("training_script_args", nargs=argparse.REMAINDER, help="its arguments")
    return parser


def parse_args(args):
    """The command line as a namespace."""
    return get_args_parser().parse_args(args)


def parse_min_max_nnodes(nnodes):
    """The least and the largest number of machines.

    >>> parse_min_max_nnodes("1:4")
    (1, 4)
    """
    parts = str(nnodes).split(":")
    numbers = [int(part) for part in parts] if all(part.isdigit() for part in parts) else []
    if len(numbers) not in (1, 2) or numbers[0] < 1 or numbers[0] > numbers[-1]:
        raise RuntimeError(f'nnodes={nnodes} is not in "MIN:MAX" format')
    return numbers[0], numbers[-1]


def determine_local_world_size(nproc_per_node):
    """How many processes this machine gets.

    >>> determine_local_world_size("2")
    2
    """
    text = str(nproc_per_node).lower()
    if text.isdigit() and int(text) > 0:
        return int(text)
    import cresset

    if text in ("gpu", "auto") and cresset.cuda.is_available():
        return cresset.cuda.device_count()
    if text in ("cpu", "auto"):
        return len(os.sched_getaffinity(0))
    if text == "gpu":
        raise ValueError("--nproc-per-node gpu: there is no GPU here")
    raise ValueError(f"Unsupported nproc_per_node value: {nproc_per_node}; a positive number, 'cpu', 'gpu' or 'auto'")


def meeting_place(args, most):
    """Host and port of the store."""
    if args.standalone:
        if most > 1:
            raise ValueError(f"--standalone is for one machine, but --nnodes is {args.nnodes}")
        return "127.0.0.1", 0
    return agent.meeting_place(args.rdzv_backend, args.rdzv_endpoint or "", most, args.master_addr, args.master_port)


def config_from_args(args):
    """The Settings of an Agent, from a command line."""
    if args.no_python and (args.module or args.run_path):
        raise ValueError("--no-python does not go with -m or --run-path: those are ways to start Python")
    least, most = parse_min_max_nnodes(args.nnodes)
    host, port = meeting_place(args, most)
    if least != most and args.rdzv_backend == "static" and not args.standalone:
        raise ValueError(f"--nnodes {args.nnodes}: machines that come and go need --rdzv-backend c10d")
    if args.event_log_handler not in ("null", "console"):
        raise ValueError(f"--event-log-handler {args.event_log_handler}: there are null and console")
    python = [] if args.no_python else [sys.executable, "-u", *(["-m"] if args.module else [])]
    conf = dict(pair.split("=", 1) for pair in args.rdzv_conf.split(",") if "=" in pair)
    return Settings(
        command=[*python, args.training_script, *args.training_script_args],
        least=least,
        most=most,
        processes=determine_local_world_size(args.nproc_per_node),
        node_rank=None if args.rdzv_backend == "c10d" or args.standalone else int(args.node_rank),
        host=host,
        port=port,
        job=args.rdzv_id,
        max_restarts=int(args.max_restarts),
        interval=float(args.monitor_interval),
        role=args.role,
        log_dir=args.log_dir,
        redirects=args.redirects,
        tee=args.tee,
        shown=[int(rank) for rank in args.local_ranks_filter.split(",") if rank],
        signals=[name for name in args.signals_to_handle.split(",") if name],
        patience=30.0 if args.shutdown_timeout is None else float(args.shutdown_timeout),
        virtual=args.virtual_local_rank,
        join=float(conf.get("join_timeout", conf.get("timeout", 600))),
        last_call=float(conf.get("last_call_timeout", 30)),
        says=args.event_log_handler == "console",
        address=args.local_addr,
    )


def run(args):
    """Run what a command line asks for; SystemExit when it fails."""
    try:
        Agent(config_from_args(args)).run()
    except ChildFailedError as error:
        print(error, file=sys.stderr, flush=True)
        raise SystemExit(1) from None


def main(args=None):
    """The command torchrun."""
    arguments = parse_args(args)
    try:
        run(arguments)
    except (RuntimeError, ValueError, OSError) as error:
        print(f"torchrun: {error}", file=sys.stderr)
        raise SystemExit(2) from None


if __name__ == "__main__":
    main()
