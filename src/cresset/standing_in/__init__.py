"""cresset in the place of PyTorch: after `install()`, `import torch` and every `torch.x.y` find cresset, under
PyTorch's names.

`cresset run` does it for one program, `cresset adopt` for an environment. torchvision and safetensors are the installed
packages; where they are missing, `torchvision` is cresset.vision and `safetensors.torch` is cresset.safetensors.
torchtext, which is no longer released, is cresset.text. functorch, which comes with PyTorch, is cresset.func under its
older names.

Note [Two names for a module]
A module is loaded once, as cresset.x.y, and is in `sys.modules` under both names. Then `__name__` and the `__module__`
of its classes are PyTorch's (homes.py knows where PyTorch keeps a class), so that reprs, pickles and `inspect` say
torch. `__spec__` and `__package__` stay cresset's: relative imports go by them.
"""

import importlib
import importlib.machinery
import importlib.util
import os
import sys

from . import homes
from .wheel_files import VERSION

# The releases whose API cresset follows.
VERSIONS = {"torch": VERSION, "torchvision": "0.28.0+cresset", "torchtext": "0.18.0+cresset"}
PLACES = {
    "torch": "cresset",
    "functorch": "cresset._functorch.package",
    "torchvision": "cresset.vision",
    "torchtext": "cresset.text",
    "safetensors.torch": "cresset.safetensors",
}
OF_PYTORCH = ("torch", "functorch")  # what its distribution installs, and so is never another's
PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
STAND_INS = os.path.join(PACKAGE, "cli", "stand_ins")
OWN = (
    "cresset.cli",
    "cresset.standing_in",
    "cresset.vision",
    "cresset.text",
    "cresset.safetensors",
    "cresset._native",
    "cresset.__main__",
)


def real_name(fullname):
    """Where cresset keeps what a program calls `fullname`; None for a name that is not PyTorch's."""
    for place, real in PLACES.items():
        if fullname == place or fullname.startswith(place + "."):
            return real + fullname.removeprefix(place)
    return None


def is_there(name):
    """Whether cresset has the module `name`."""
    if name in sys.modules:
        return True
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False


def is_installed(name):
    """Whether a package is installed beside the stand-ins."""
    beside = [folder for folder in sys.path if os.path.abspath(folder or ".") != STAND_INS]
    return importlib.machinery.PathFinder.find_spec(name, beside) is not None


# ---- modules of cresset, with PyTorch's names


def belongs_to_torch(name):
    """Whether a module of cresset is seen as one of PyTorch's."""
    return (name == "cresset" or name.startswith("cresset.")) and not name.startswith(OWN)


def rename(module):
    """Give a loaded module of cresset and its classes PyTorch's names; see Note [Two names for a module]."""
    name = module.__spec__.name if module.__spec__ is not None else module.__name__
    title = "torch" + name.removeprefix("cresset")
    module.__name__ = title
    sys.modules.setdefault(title, module)
    for value in list(vars(module).values()):
        if isinstance(value, type) and value.__module__ == name:
            value.__module__ = homes.home_of(name, value.__qualname__)
            if not is_there("cresset" + value.__module__.removeprefix("torch")):
                sys.modules.setdefault(value.__module__, module)  # a place that PyTorch has and cresset does not


waiting = []  # modules of packages that are still being loaded


def is_loading(name):
    spec = getattr(sys.modules.get(name), "__spec__", None)
    return spec is not None and getattr(spec, "_initializing", False)


def load_and_rename(load, module):
    """Load a module of cresset; it is renamed as soon as the package in which it lies is whole."""
    load(module)
    name = module.__spec__.name
    package = ".".join(name.split(".")[:2])
    waiting.append(module)
    if is_loading("cresset") or (name != package and is_loading(package)):
        return
    ready = [other for other in waiting if (other.__spec__.name + ".").startswith(package + ".")]
    waiting[:] = [other for other in waiting if other not in ready]
    for other in ready:
        rename(other)
    for name, made in list(sys.modules.items()):  # modules that have no file of their own: torch.nn.modules.linear
        if name.startswith(package + ".") and made.__spec__ is None and made.__name__ == name:
            rename(made)


class AliasLoader:
    """Gives the module of cresset under PyTorch's name."""

    def __init__(self, target):
        self.target = target

    def create_module(self, _spec):
        module = importlib.import_module(self.target)
        self.spec = module.__spec__
        return module

    def exec_module(self, module):
        module.__spec__ = self.spec  # the import system has just overwritten it with the alias's
        if self.spec is not None:
            module.__package__ = self.spec.parent

    def get_code(self, _fullname):
        """For `python -m torch.x`."""
        return importlib.util.find_spec(self.target).loader.get_code(self.target)


class TorchFinder:
    """Finds PyTorch's modules in cresset. What cresset does not have is missing, even where a PyTorch is installed.

    Args:
        adopted: a distribution of the name torch is installed that hands over to cresset, and speaks for itself.
        renaming: whether modules and classes get PyTorch's names; without it they keep cresset's.
    """

    def __init__(self, adopted=False, renaming=True):
        self.adopted = adopted
        self.renaming = renaming

    def find_spec(self, fullname, path=None, _target=None):
        if self.renaming and belongs_to_torch(fullname):
            return self.find_own(fullname, path)
        if fullname == "safetensors" and not is_installed(fullname):
            return importlib.machinery.ModuleSpec(fullname, SafetensorsLoader(), is_package=True)
        real = real_name(fullname)
        if (
            real is None
            or (fullname.partition(".")[0] not in OF_PYTORCH and is_installed(fullname.partition(".")[0]))
            or not is_there(real)
        ):
            return None
        module = sys.modules.get(real)
        found = module.__spec__ if module is not None else importlib.util.find_spec(real)
        spec = importlib.machinery.ModuleSpec(fullname, AliasLoader(real), origin=found.origin if found else None)
        if found is not None:
            spec.submodule_search_locations = found.submodule_search_locations
            spec.has_location = found.has_location
        return spec

    def find_own(self, fullname, path):
        """A module of cresset, which gets PyTorch's names when it has been loaded."""
        spec = importlib.machinery.PathFinder.find_spec(fullname, path)
        if spec is not None and isinstance(spec.loader, importlib.machinery.SourceFileLoader):
            load = spec.loader.exec_module
            spec.loader.exec_module = lambda module: load_and_rename(load, module)
        return spec

    def find_distributions(self, context=None):
        from .distributions import find

        return find(context, but=("torch",) if self.adopted else ())


class SafetensorsLoader:
    """The package `safetensors` where it is not installed: what of it is about PyTorch's tensors."""

    def create_module(self, _spec):
        return None

    def exec_module(self, module):
        from cresset import safetensors

        module.safe_open, module.SafetensorError = safetensors.safe_open, safetensors.SafetensorError


def install(adopted=False, renaming=True):
    """Let this process find cresset where it looks for PyTorch; `adopted` and `renaming`: see TorchFinder."""
    if any(isinstance(finder, TorchFinder) for finder in sys.meta_path):
        return
    sys.meta_path.insert(0, TorchFinder(adopted, renaming))
    cresset = importlib.import_module("cresset")
    # A program written for PyTorch asks torch.__version__ what it can expect; cresset.version keeps cresset's own.
    cresset.__version__ = importlib.import_module("cresset.torch_version").TorchVersion(VERSIONS["torch"])
    for name, module in list(sys.modules.items()):
        if renaming and belongs_to_torch(name) and module is not None:
            rename(module)
    sys.modules["torch"] = cresset


def install_for_processes():
    """The same for the Python processes that this one starts. They read no finder, but they read the path: stand_ins/
    has a torch.py that installs one.
    """
    package = os.path.dirname(PACKAGE)
    if STAND_INS not in sys.path:
        sys.path.insert(1, STAND_INS)  # behind the program's own folder, before the installed packages
    known = [part for part in os.environ.get("PYTHONPATH", "").split(os.pathsep) if part]
    os.environ["PYTHONPATH"] = os.pathsep.join(
        [STAND_INS, *(p for p in known if p != STAND_INS), *([] if package in known else [package])]
    )
