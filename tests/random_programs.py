"""What generators of random programs share: a program as a module of its own, and the command that tries many."""

import argparse
import importlib.util
import os
import sys
import tempfile


def load(name, text, folder):
    """The module of a text, from a file of its own: what compiles a program reads its source."""
    path = os.path.join(folder, f"{name}.py")
    with open(path, "w") as file:
        file.write(text)
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def command(about, text_of, findings):
    """Try the programs that the command line names; the exit status.

    Args:
        text_of: the source of the program of a number.
        findings: findings(number, folder) gives what is wrong with it, as lines; None if it does not run.
    """
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--show", type=int)
    options = parser.parse_args()
    if options.show is not None:
        print(text_of(options.show))
        return 0
    ran, wrong = 0, 0
    with tempfile.TemporaryDirectory() as folder:
        for number in range(options.first, options.first + options.count):
            found = findings(number, folder)
            ran += found is not None
            for line in found or ():
                wrong += 1
                print(f"{number}, {line}", flush=True)
    print(f"{ran} of {options.count} run, {wrong} differences")
    return int(wrong > 0)
