"""Functions by name, and values as data.

A function travels as `module:name`. The callee takes it from a module that it has imported itself; nothing of the
standard library but `math` and `operator`, so that a message cannot start programs or open files."""

import builtins
import io
import sys

import cresset

from ...pytree import tree_map
from ..errors import DistError

ALLOWED = ("math", "operator")
PLAIN = ("abs", "all", "any", "bool", "dict", "divmod", "float", "int", "len", "list", "max", "min", "pow", "range",
         "round", "sorted", "str", "sum", "tuple")  # fmt: skip


def name_of(function):
    """How a function is called in every process; ValueError if it has no such name."""
    module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", None)
    name = name or getattr(function, "__name__", None)
    for place in (module, "cresset", "cresset.nn.functional"):
        if place and name and _look_up(place, name) is function:
            return f"{place}:{name}"
    if name in PLAIN and getattr(builtins, name) is function:
        return f"builtins:{name}"
    raise ValueError(
        f"rpc: {function!r} cannot be called in another process: it must be a function or class at the top of "
        "a module, where the other process finds it by name (no lambda, no function inside of another)"
    )


def _look_up(module, name):
    found = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return found


def function_of(name):
    """The function that is called so here."""
    module, _, path = name.partition(":")
    root = module.partition(".")[0]
    if module == "builtins":
        allowed = path in PLAIN
    else:
        allowed = module == "__main__" or root not in sys.stdlib_module_names or module in ALLOWED
    if not allowed or any(part.startswith("_") and not part.endswith("__") for part in path.split(".")[:-1]):
        raise ValueError(f"rpc: {name} is not called for other processes")
    found = _look_up(module, path)
    if not callable(found):
        raise AttributeError(f"rpc: this process has no function {name}; import its module here, too")
    return found


class _Wrapped:
    """Marks a dictionary that stands for something else."""

    KEY = "cresset.rpc"


def to_bytes(value, who):
    """A value as data; DistError says what is not."""
    from .rref import RRef

    def known(item):
        if isinstance(item, RRef):
            return {_Wrapped.KEY: list(item._sent())}
        if isinstance(item, cresset.Tensor) and item.device.type != "cpu":
            raise DistError(f"{who}: a tensor on {item.device} cannot be sent; use .cpu()")
        return item.detach().requires_grad_(item.requires_grad) if isinstance(item, cresset.Tensor) else item

    file = io.BytesIO()
    try:
        cresset.save(tree_map(known, value, is_leaf=lambda v: isinstance(v, RRef)), file)
        file.seek(0)
        cresset.load(file, weights_only=True)
    except DistError:
        raise
    except Exception as error:
        raise DistError(
            f"{who}: other processes read data only (numbers, text, containers, tensors, RRefs), and something here is "
            f"none. {error}"
        ) from error
    return file.getvalue()


def from_bytes(data):
    """The value that was sent."""
    from .rref import RRef

    def is_wrapped(value):
        return isinstance(value, dict) and _Wrapped.KEY in value

    value = cresset.load(io.BytesIO(data), weights_only=True)
    return tree_map(lambda v: RRef._received(*v[_Wrapped.KEY]) if is_wrapped(v) else v, value, is_leaf=is_wrapped)
