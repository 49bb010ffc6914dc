"""python -m torch.distributed.launch: PyTorch's older command. The same as torchrun, which it calls."""

from .run import get_args_parser, run


def main(args=None):
    """The command: as torchrun's, with --use-env accepted, which is how it always works here."""
    parser = get_args_parser()
    parser.prog = "launch"
    parser.add_argument(
        "--use-env", "--use_env", action="store_true", help="accepted: ranks are in the environment (LOCAL_RANK)"
    )
    run(parser.parse_args(args))


if __name__ == "__main__":
    main()
