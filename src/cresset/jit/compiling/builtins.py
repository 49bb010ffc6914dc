"""Which operator a Python function of ours is, and which definition in TorchScript stands for one that is none."""

import functools
import importlib
import pkgutil

import cresset
from cresset import nn

from ...ops import aten_table

# Functions of nn.functional that are operators of the same name.
_OF_FUNCTIONAL = (
    "conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d conv_tbc avg_pool1d avg_pool2d "
    "avg_pool3d adaptive_avg_pool1d gelu linear bilinear one_hot pad softplus "
    "softshrink hardshrink prelu pixel_shuffle pixel_unshuffle channel_shuffle native_channel_shuffle pdist "
    "cosine_similarity scaled_dot_product_attention relu_ celu_ elu_ selu_ leaky_relu_ hardtanh_ "
    "rrelu_ threshold_"
).split()
_OTHER_NAMES = {"logsigmoid": "log_sigmoid"}


@functools.cache
def _kinds():
    """{id of a function: the operator's kind}."""
    found = {}
    for prefix, module in (
        ("special_", cresset.special),
        ("linalg_", cresset.linalg),
        ("fft_", cresset.fft),
        ("", cresset),
    ):
        for name in list(aten_table._lines()):
            short = name.removeprefix("aten::")
            if not name.startswith("aten::") or not short.startswith(prefix):
                continue
            thing = getattr(module, short[len(prefix) :], None)
            if callable(thing) and not isinstance(thing, type):
                found[id(thing)] = name
    for name in _OF_FUNCTIONAL:
        thing = getattr(nn.functional, name, None)
        if thing is not None:
            found[id(thing)] = f"aten::{name}"
    for name, other in _OTHER_NAMES.items():
        found[id(getattr(nn.functional, name))] = f"aten::{other}"
    found[id(cresset.device)] = "aten::device"
    found[id(cresset.set_grad_enabled)] = "aten::set_grad_enabled"
    return found


def kind_of(thing):
    """The kind of the operator that a Python function is; None if it is none."""
    return _kinds().get(id(thing))


@functools.cache
def _definitions():
    """({id of a function or class: its definition}, {(class, method): its definition}, {method of tensors: its
    definition}, {id of what a with statement calls: its class}, {recurrent layer: its forward for a PackedSequence}).
    """
    from .. import functional

    by_id, methods, of_tensors, managers, packed = {}, {}, {}, {}, {}
    for found in pkgutil.iter_modules(functional.__path__):
        module = importlib.import_module(f"{functional.__name__}.{found.name}")
        for place, table in getattr(module, "STANDS_FOR", {}).items():
            if place == "methods":
                methods.update(table)
            elif place == "tensor":
                of_tensors.update(table)
            elif place == "packed":
                packed.update(table)
            elif place == "with":
                managers.update({id(thing): definition for thing, definition in table.items()})
            else:
                by_id.update({id(getattr(place, name)): definition for name, definition in table.items()})
    return by_id, methods, of_tensors, managers, packed


def definition_of(thing):
    """The TorchScript definition that stands for a function or class of ours; None without one."""
    return _definitions()[0].get(id(thing))


def method_definition(python_class, name):
    """The TorchScript definition that stands for a method of a class of ours; None without one."""
    for one in python_class.__mro__:
        found = _definitions()[1].get((one, name))
        if found is not None:
            return found
        if name in one.__dict__:
            return None
    return None


def tensor_definition(name):
    return _definitions()[2].get(name)


def packed_definition(python_class):
    """The forward of a recurrent layer for sequences without padding; None of other classes."""
    return next((found for one in python_class.__mro__ if (found := _definitions()[4].get(one))), None)


def manager_of(thing):
    """The class of what a with statement makes by calling `thing`, where that is not what a call is elsewhere."""
    return _definitions()[3].get(id(thing))
