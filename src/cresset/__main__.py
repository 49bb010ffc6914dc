"""`python -m cresset`: the command line, and `python -m cresset script.py ARGS` for `cresset run script.py ARGS`."""

import sys

from . import cli


def main():
    arguments = sys.argv[1:]
    if arguments and arguments[0] not in cli.COMMANDS and (arguments[0] == "-m" or not arguments[0].startswith("-")):
        arguments.insert(0, "run")
    return cli.main(arguments)


if __name__ == "__main__":
    sys.exit(main())
