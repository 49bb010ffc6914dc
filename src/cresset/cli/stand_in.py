"""cresset in the place of PyTorch: after `install()`, `import torch` and every `torch.x.y` find cresset, torchvision finds cresset.vision, and
safetensors.torch finds cresset.safetensors. `importlib.util.find_spec` and `importlib.metadata.version` answer accordingly.
"""

import importlib
import importlib.abc
import importlib.machinery
import importlib.metadata
import importlib.util
import os
import sys
import types
from email.message import Message

# The releases whose API cresset follows.
VERSIONS = {"torch": "2.13.0", "torchvision": "0.28.0"}
PLACES = {"torch": "cresset", "torchvision": "cresset.vision", "safetensors.torch": "cresset.safetensors"}
STAND_INS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "stand_ins")


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


class AliasLoader(importlib.abc.Loader):
    """Gives the module of cresset under PyTorch's name."""

    def __init__(self, target):
        self.target = target

    def create_module(self, _spec):
        module = importlib.import_module(self.target)
        self.spec = module.__spec__
        return module

    def exec_module(self, module):
        module.__spec__ = self.spec  # the import system has just overwritten it with the alias's


class SafetensorsLoader(importlib.abc.Loader):
    """The installed safetensors package, if there is one, but for `safe_open` of PyTorch tensors, which is cresset's."""

    def __init__(self, installed):
        self.installed = installed

    def create_module(self, _spec):
        if self.installed is not None:
            return importlib.util.module_from_spec(self.installed)
        module = types.ModuleType("safetensors")
        module.__path__ = []
        return module

    def exec_module(self, module):
        from cresset import safetensors

        theirs = None
        if self.installed is not None:
            self.installed.loader.exec_module(module)
            theirs = module.safe_open

        def safe_open(filename, framework="pt", device="cpu", **others):
            """Open a file: with cresset for tensors, with the safetensors package for arrays of other frameworks."""
            if theirs is None or framework in ("pt", "torch", "pytorch"):
                return safetensors.safe_open(filename, framework, device)
            return theirs(filename, framework, device, **others)

        module.safe_open, module.SafetensorError = safe_open, safetensors.SafetensorError


class StandInDistribution(importlib.metadata.Distribution):
    """What `importlib.metadata` says about a package that cresset stands in for."""

    def __init__(self, name):
        self.title = name

    @property
    def metadata(self):
        message = Message()
        message["Metadata-Version"] = "2.1"
        message["Name"] = self.title
        message["Version"] = VERSIONS[self.title]
        message["Summary"] = "cresset in the place of " + self.title
        return message

    @property
    def name(self):
        return self.title

    @property
    def version(self):
        return VERSIONS[self.title]

    def read_text(self, filename):
        return self.metadata.as_string() if filename in ("METADATA", "PKG-INFO") else None

    def locate_file(self, path):
        return os.path.join(os.path.dirname(os.path.dirname(STAND_INS)), path)


class TorchFinder(importlib.abc.MetaPathFinder):
    """Finds PyTorch's modules in cresset. What cresset does not have is missing, even where a PyTorch is installed."""

    def find_spec(self, fullname, _path=None, _target=None):
        if fullname == "safetensors":
            return self.find_safetensors()
        real = real_name(fullname)
        if real is None or not is_there(real):
            return None
        module = sys.modules.get(real)
        found = module.__spec__ if module is not None else importlib.util.find_spec(real)
        spec = importlib.machinery.ModuleSpec(fullname, AliasLoader(real), origin=found.origin if found else None)
        if found is not None:
            spec.submodule_search_locations = found.submodule_search_locations
        return spec

    def find_safetensors(self):
        installed = importlib.machinery.PathFinder.find_spec("safetensors")
        spec = importlib.machinery.ModuleSpec("safetensors", SafetensorsLoader(installed), is_package=True)
        if installed is not None:
            spec.origin, spec.submodule_search_locations = installed.origin, installed.submodule_search_locations
        return spec

    def find_distributions(self, context=None):
        name = getattr(context, "name", None)
        for title in VERSIONS if name is None else [name.lower()]:
            if title in VERSIONS and is_there(PLACES[title]):
                yield StandInDistribution(title)


def install():
    """Let this process, and the Python processes it starts, find cresset where they look for PyTorch."""
    if any(isinstance(finder, TorchFinder) for finder in sys.meta_path):
        return
    sys.meta_path.insert(0, TorchFinder())
    cresset = importlib.import_module("cresset")
    # A program written for PyTorch asks torch.__version__ what it can expect; cresset.version keeps cresset's own.
    cresset.__version__ = importlib.import_module("cresset.torch_version").TorchVersion(VERSIONS["torch"])
    sys.modules["torch"] = cresset
    # Processes that are started by name read no finder, but they read the path: stand_ins/ has a torch.py that installs one.
    package = os.path.dirname(os.path.dirname(os.path.dirname(STAND_INS)))
    if STAND_INS not in sys.path:
        sys.path.insert(1, STAND_INS)  # behind the program's own folder, before the installed packages
    known = [part for part in os.environ.get("PYTHONPATH", "").split(os.pathsep) if part]
    os.environ["PYTHONPATH"] = os.pathsep.join([STAND_INS, *(p for p in known if p != STAND_INS), *([] if package in known else [package])])
