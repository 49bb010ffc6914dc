"""python -m cresset script.py [arguments]: run a PyTorch program unmodified; there `import torch` finds cresset."""

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import os
import runpy
import sys


class _Alias(importlib.abc.Loader):
    """Gives the module of cresset under torch's name."""

    def __init__(self, target):
        self.target = target

    def create_module(self, spec):
        module = importlib.import_module(self.target)
        self.spec = module.__spec__
        return module

    def exec_module(self, module):
        module.__spec__ = self.spec  # the import system has just overwritten it with the alias's


class TorchFinder(importlib.abc.MetaPathFinder):
    """Finds torch and torch.xxx in cresset. What cresset does not have is missing, even where a PyTorch is installed."""

    def find_spec(self, fullname, path=None, target=None):
        if fullname != "torch" and not fullname.startswith("torch."):
            return None
        real = "cresset" + fullname.removeprefix("torch")
        if real not in sys.modules and importlib.util.find_spec(real) is None:
            raise ModuleNotFoundError(f"cresset has no module {real!r} (imported as {fullname!r})", name=fullname)
        return importlib.machinery.ModuleSpec(fullname, _Alias(real))


def main():
    if len(sys.argv) < 2 or sys.argv[1] in ("-h", "--help"):
        print(__doc__)
        return 0 if len(sys.argv) > 1 else 2
    sys.meta_path.insert(0, TorchFinder())
    sys.modules["torch"] = importlib.import_module("cresset")
    sys.argv = sys.argv[1:]
    if sys.argv[0] == "-m":
        sys.argv = sys.argv[1:]
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
    else:
        sys.path[0] = os.path.dirname(os.path.abspath(sys.argv[0]))
        runpy.run_path(sys.argv[0], run_name="__main__")
    return 0


if __name__ == "__main__":
    sys.exit(main())
