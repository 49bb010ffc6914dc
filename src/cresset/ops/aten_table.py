"""`torch.ops.aten`: our operators under PyTorch's names and schemas.

`aten_schemas.txt` has PyTorch's schemas of what programs in its files call, one a line (`tools/aten_schemas.py` prints
it). Tracing, scripting, files of programs and exported programs all look here: which overloads a name has, what their
arguments are, and what runs them. `aten_tags.txt` (`tools/aten_tags.py`) has what is said of them in a word.
"""

import functools
import re
from pathlib import Path

from .. import _native
from . import aten_forms
from .namespaces import OpOverload, OpOverloadPacket, Schema
from .registry import functions, methods
from .tags import Tag

TABLE = Path(__file__).with_name("aten_schemas.txt")
TAGS = Path(__file__).with_name("aten_tags.txt")

# Operators that take a number where the schema says Tensor; PyTorch's functions do not offer their overloads for
# numbers.
NUMBERS_AS_TENSORS = {"add", "sub", "mul", "div", "add_", "sub_", "mul_", "div_"}


@functools.cache
def _lines():
    """{name: the lines of its overloads}, in PyTorch's order."""
    found = {}
    for line in TABLE.read_text().splitlines():
        found.setdefault(re.match(r"[\w:]+", line)[0], []).append(line)
    return found


def names():
    """The names under aten that can be called."""
    return [name[6:] for name in _lines() if name.startswith("aten::") and function(name[6:]) is not None]


@functools.cache
def overloads(name):
    """The Schemas of "aten::add" or "prim::min", in PyTorch's order; none if there is no such name."""
    return tuple(map(Schema, _lines().get(name, ())))


@functools.cache
def find(qualified):
    """The Schema of "aten::add.Tensor", or of "aten::relu", whose overload has no name. A KeyError if there is none."""
    name, _, overload = qualified.partition(".")
    for schema in overloads(name):
        if schema.overload_name == ("" if overload == "default" else overload):
            return schema
    raise KeyError(
        f"aten: there is no operator {qualified!r}; {name} has the overloads "
        f"{[s.overload_name for s in overloads(name)]}"
    )


@functools.cache
def function(name):
    """What runs `aten::<name>` here, called with the schema's arguments; None if nothing does."""
    own = aten_forms.forms.get(name)
    return own or functions.get(name) or methods.get(name) or _native.operators().get(name) or aten_forms.function(name)


@functools.cache
def _tags():
    """{"add.Tensor": its tags}, but for the one that all have."""
    found = {}
    for line in TAGS.read_text().splitlines():
        tag, *tagged = line.split()
        for name in tagged:
            found.setdefault(name, []).append(Tag[tag])
    return found


def tags_of(schema):
    """What is said of a Schema in a word."""
    return _tags().get(f"{schema.op}.{schema.overload_name}".rstrip("."), ())


def _run(operator, args, kwargs):
    """Run what an operator of torch.ops stands for. What is no tensor and answers for itself, as a value that torch.fx
    traces does, is asked for the operator itself.
    """
    if "self" in kwargs:  # PyTorch's name of the first argument
        args = (kwargs.pop("self"), *args)
    for value in args if not kwargs else (*args, *kwargs.values()):
        if type(value) not in _PLAIN:
            asked = [leaf for leaf in (value if type(value) in (list, tuple) else (value,)) if _stands_for_tensor(leaf)]
            if asked:
                from ..overrides import handle_torch_function

                return handle_torch_function(operator, asked, *args, **kwargs)
    return operator._run(*args, **kwargs)


_PLAIN = frozenset({_native.Tensor, int, float, bool, type(None), str})


def _stands_for_tensor(value):
    return hasattr(type(value), "__torch_function__") and not isinstance(value, _native.Tensor)


class AtenPacket(OpOverloadPacket):
    """`torch.ops.aten.<name>`: the overloads of one of our operators. A call finds out by its arguments which is
    meant."""

    def __init__(self, name, run):
        self.__name__, self._run, self._overloads = name, run, {}
        self._qualified_op_name = f"aten::{name}"
        self.__doc__ = getattr(run, "__doc__", None)
        self.__module__ = "torch.ops.aten"

    def __call__(self, /, *args, **kwargs):
        return _run(self, args, kwargs)

    def overloads(self):
        """The names of the overloads."""
        return [schema.overload_name or "default" for schema in overloads(self._qualified_op_name)] or ["default"]

    def __getattr__(self, overload):
        if overload.startswith("__"):
            raise AttributeError(f"'OpOverloadPacket' object has no attribute '{overload}'")
        made = self.__dict__.get("_overloads", {})
        if overload not in made:
            if overload not in self.overloads():
                raise AttributeError(f"The underlying op of 'aten.{self.__name__}' has no overload name '{overload}'")
            known = overloads(self._qualified_op_name)
            made[overload] = AtenOverload(
                self,
                find(f"{self._qualified_op_name}.{overload}")
                if known
                else Schema(f"aten::{self.__name__}(...) -> Tensor"),
            )
        return made[overload]


class AtenOverload(OpOverload):
    """`torch.ops.aten.<name>.<overload>`: one of our operators with one of PyTorch's schemas."""

    def __init__(self, packet, schema):
        super().__init__(schema, [*tags_of(schema), Tag.pt2_compliant_tag])
        self.overloadpacket, self._run = packet, packet._run
        self.__doc__ = packet.__doc__

    def __call__(self, /, *args, **kwargs):
        return _run(self, args, kwargs)


# PyTorch's kernels of attention, which programs name to choose what is kept for backward.
KERNELS = (
    {f"{name}{way}" for name in ("_efficient_attention", "_flash_attention") for way in ("_forward", "_backward")}
    | {
        f"_scaled_dot_product_{kind}_attention{way}"
        for kind in ("efficient", "flash", "cudnn")
        for way in ("", "_backward")
    }
    | {"_scaled_dot_product_flash_attention_for_cpu", "_scaled_dot_product_fused_attention_overrideable"}
)


def _not_run(name):
    def refuse(*args, **kwargs):
        raise NotImplementedError(
            f"aten::{name} is a kernel of PyTorch's that is only named here; "
            "torch.nn.functional.scaled_dot_product_attention runs ours"
        )

    return refuse


@functools.cache
def packet(name):
    """`torch.ops.aten.<name>`; None if nothing here runs it, and it is no kernel that programs name."""
    run = function(name) or (_not_run(name) if name in KERNELS else None)
    return None if run is None else AtenPacket(name, run)
