"""torch.classes: classes that compiled libraries register with PyTorch. None can be here: such a library holds
PyTorch's C++ classes (docs/ecosystem.md).
"""

import sys
import types

from .ops.namespaces import load_library


class _ClassNamespace(types.ModuleType):
    def __init__(self, name):
        super().__init__("torch.classes." + name)
        self.name = name

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        raise RuntimeError(
            f"Tried to instantiate class '{self.name}.{name}', but it does not exist! Libraries compiled for PyTorch, "
            "which register such classes, cannot be loaded by cresset"
        )


class _Classes(types.ModuleType):
    __file__ = __file__
    loaded_libraries = frozenset()

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        space = _ClassNamespace(name)
        setattr(self, name, space)
        return space

    def load_library(self, path):
        """Refused: see `torch.ops.load_library`."""
        load_library(path)


classes = _Classes("torch.classes")
sys.modules[f"{__package__}.classes"] = classes
