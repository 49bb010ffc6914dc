"""Between dequantize and quantize, layers and operators of integers take the place of those of floating point."""

import operator

import cresset
import cresset.nn.functional as F
from cresset import nn
from cresset.fx import Node

from ...nn import intrinsic, quantized
from ..quantization_mappings import DEFAULT_DYNAMIC_QUANT_MODULE_MAPPINGS as _DYNAMIC
from ..quantization_mappings import DEFAULT_STATIC_QUANT_MODULE_MAPPINGS as _STATIC
from . import match_utils
from .prepare import is_number
from .tracing import replace_module

__all__ = ["lower"]

_OPERATORS = cresset.ops.quantized
_STATIC_HERE = {**_STATIC, nn.Softmax: quantized.Softmax}
_WITH_RELU = {
    quantized.Linear: intrinsic.quantized.LinearReLU,
    **{getattr(quantized, f"Conv{n}d"): getattr(intrinsic.quantized, f"ConvReLU{n}d") for n in (1, 2, 3)},
}
_BINARY = {
    operator.add: "add", cresset.add: "add", operator.mul: "mul", cresset.mul: "mul", cresset.matmul: "matmul",
}  # fmt: skip
_WEIGHTED = {
    F.linear: "linear",
    **{getattr(F, f"conv{n}d"): f"conv{n}d" for n in (1, 2, 3)},
    **{getattr(F, f"conv_transpose{n}d"): f"conv_transpose{n}d" for n in (1, 2, 3)},
}
# What computes on quantized tensors, and gives its result in the scale of its input or in one that is always the same.
_DIRECT = {
    nn.AdaptiveAvgPool2d, nn.AdaptiveAvgPool3d, nn.AvgPool2d, nn.AvgPool3d, nn.Hardsigmoid, nn.Hardtanh, nn.Identity,
    nn.MaxPool1d, nn.MaxPool2d, nn.MaxPool3d, nn.PixelShuffle, nn.PixelUnshuffle, nn.ReLU, nn.ReLU6, nn.Sigmoid,
    nn.Tanh, F.adaptive_avg_pool2d, F.adaptive_avg_pool3d, F.avg_pool2d, F.avg_pool3d, F.hardsigmoid, F.hardtanh,
    F.max_pool1d, F.max_pool2d, F.max_pool3d, F.pixel_shuffle, F.pixel_unshuffle, F.relu, F.relu6, cresset.cat,
    cresset.clamp, cresset.flatten, cresset.mean, cresset.sigmoid,
    cresset.squeeze, cresset.stack, cresset.tanh, cresset.transpose, cresset.unsqueeze, "clamp", "contiguous",
    "detach", "hardsigmoid", "mean", "permute", "relu", "repeat", "reshape", "sigmoid", "squeeze", "tanh",
    "transpose", "unsqueeze", "view",
}  # fmt: skip


class _Known:
    """In the place of an observer: a scale that was found before."""

    def __init__(self, scale, zero_point):
        self.found = scale, zero_point

    def calculate_qparams(self):
        return self.found


def is_dequantized(node):
    """Whether a node makes floating-point numbers of integers."""
    return isinstance(node, Node) and node.op == "call_method" and node.target == "dequantize"


def lower(model, nodes, found, modules):
    """Compute a pattern with integers; False: nothing here does, and it stays as it is."""
    root, last = nodes[0], nodes[-1]
    if found.is_dynamic:
        if root.target is F.linear:
            return _lower_weighted(model, nodes, None)
        return _lower_dynamic(model, root, modules)
    inside = set(nodes)
    values = [value for node in nodes for value in node.all_input_nodes if value not in inside]
    values = [value for value in values if value.op != "get_attr" and not is_number(value)]
    quantizes = [user for user in last.users if user.target is cresset.quantize_per_tensor]
    shared = found.shared and not quantizes  # a result that is passed on as it came
    if not values or not all(map(is_dequantized, values)) or not (shared or len(last.users) == len(quantizes) == 1):
        return False
    quantize = None if shared else quantizes[0]
    scale = _constants(model, quantize) if quantize is not None else None
    kind = match_utils.kind_of(root, modules)
    if root.op == "call_module" and kind in _STATIC_HERE and not shared:
        return _lower_module(model, nodes, found, modules, quantize, scale)
    if kind in _BINARY and not shared:
        return _lower_binary(model, nodes, quantize)
    if kind in _WEIGHTED and not shared:
        return _lower_weighted(model, nodes, quantize)
    if kind in _OWN_SCALE and not shared:
        arguments = _OWN_SCALE[kind](*root.args, **root.kwargs)
        return _put(model, root, quantize, arguments, quantize.args[1:3])
    if kind in _DIRECT and len(nodes) == 1:
        _take_integers(root)
        if quantize is not None:
            _replace(model, quantize, last)
        return True
    return False


def _constants(model, quantize):
    return tuple(_attribute(model, node) for node in quantize.args[1:3])


def _attribute(model, node):
    value = model
    for name in node.target.split("."):
        value = getattr(value, name)
    return value


def _take_integers(node):
    """Let a node take the integers themselves."""
    for value in node.all_input_nodes:
        if is_dequantized(value):
            node.replace_input_with(value, value.args[0])


def _replace(model, quantize, node):
    """Let a node of integers stand for what was computed in floating point and quantized."""
    quantize.replace_all_uses_with(node, lambda user: user is not node)
    model.graph.erase_node(quantize)


def _drop(model, nodes):
    for node in reversed(nodes):
        if not node.users:
            model.graph.erase_node(node)


def _lower_module(model, nodes, found, modules, quantize, scale):
    root, module = nodes[0], modules[nodes[0].target]
    kind = _STATIC_HERE[type(module)]
    if len(nodes) > 1:  # a relu that was not fused, since the layer was fused with something else
        kind = _WITH_RELU.get(kind)
    if kind is None or len(nodes) > 2:
        return False
    module.qconfig, module.activation_post_process = found.qconfig, _Known(*scale)
    try:
        made = kind.from_float(module)
    finally:
        del module.activation_post_process
    replace_module(model, root.target, made.train(module.training))
    _take_integers(root)
    _replace(model, quantize, root)
    _drop(model, nodes[1:])
    return True


def _lower_dynamic(model, root, modules):
    if root.op != "call_module" or type(modules[root.target]) not in _DYNAMIC:
        return False
    made = _DYNAMIC[type(modules[root.target])].from_float(modules[root.target])
    replace_module(model, root.target, made)
    for value in root.all_input_nodes:
        if is_dequantized(value):
            root.replace_input_with(value, value.args[0].args[0])
    return True


def _lower_binary(model, nodes, quantize):
    root = nodes[0]
    relu = "_relu" if len(nodes) > 1 else ""
    function = getattr(_OPERATORS, _BINARY[root.target] + relu)
    _take_integers(root)
    of_tensors = all(isinstance(value, Node) for value in root.args[:2])
    scale = tuple(quantize.args[1:3]) if of_tensors else ()  # with a number the scale follows from that of the tensor
    with model.graph.inserting_before(quantize):
        made = model.graph.call_function(function, (*root.args[:2], *scale))
    _replace(model, quantize, made)
    _drop(model, nodes)
    return True


def _lower_weighted(model, nodes, quantize):
    """A function with a weight that is an attribute of the model: it is packed once. Without `quantize` its input
    becomes integers at each call, and its result none.
    """
    root, last = nodes[0], nodes[-1]
    name = _WEIGHTED[root.target]
    input, weight, bias, where = _SIGNATURES[name](*root.args, **root.kwargs)
    constant = is_dequantized(weight) and weight.args[0].args[0].op == "get_attr"
    if not constant or (bias is not None and bias.op != "get_attr") or (len(nodes) > 1 and "transpose" in name):
        return False
    call = weight.args[0]
    arguments = [_attribute(model, a) if isinstance(a, Node) else a for a in call.args]
    packed = getattr(_OPERATORS, f"{name}_prepack")(
        call.target(arguments[0].detach(), *arguments[1:]), None if bias is None else _attribute(model, bias), *where
    )
    number = 0
    while hasattr(model, f"_packed_weight_{number}"):
        number += 1
    setattr(model, f"_packed_weight_{number}", packed)
    function = name + ("_relu" if len(nodes) > 1 else "")
    with model.graph.inserting_before(last if quantize is None else quantize):
        holder = model.graph.get_attr(f"_packed_weight_{number}")
        if quantize is None:
            value = input.args[0].args[0]
            made = model.graph.call_function(getattr(_OPERATORS, f"{function}_dynamic"), (value, holder, True))
            last.replace_all_uses_with(made)
        else:
            scale = quantize.args[1:3]
            made = model.graph.call_function(getattr(_OPERATORS, function), (input.args[0], holder, *scale))
            _replace(model, quantize, made)
    _drop(model, nodes)
    return True


def _linear(input, weight, bias=None):
    return input, weight, bias, ()


def _conv(dims):
    def bound(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
        each = (_tuple(stride, dims), _tuple(padding, dims), _tuple(dilation, dims))
        return input, weight, bias, (*each, groups)

    return bound


def _turned(dims):
    def bound(input, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1):
        each = (_tuple(stride, dims), _tuple(padding, dims), _tuple(output_padding, dims), _tuple(dilation, dims))
        return input, weight, bias, (*each, groups)

    return bound


def _tuple(value, count):
    return list(value) if isinstance(value, (tuple, list)) else [value] * count


_SIGNATURES = {
    "linear": _linear,
    **{f"conv{n}d": _conv(n) for n in (1, 2, 3)},
    **{f"conv_transpose{n}d": _turned(n) for n in (1, 2, 3)},
}


def _put(model, root, quantize, arguments, scale):
    """A call of an operator with a scale for its result: (name, arguments before the scale, those behind it)."""
    name, before, behind = arguments
    before = [value.args[0] if is_dequantized(value) else value for value in before]
    with model.graph.inserting_before(quantize):
        made = model.graph.call_function(getattr(_OPERATORS, name), (*before, *scale, *behind))
    _replace(model, quantize, made)
    _drop(model, [root])
    return True


# Functions whose results have a scale of their own, by their arguments.
_OWN_SCALE = {
    F.hardswish: lambda input, inplace=False: ("hardswish", [input], []),
    F.elu: lambda input, alpha=1.0, inplace=False: ("elu", [input], [alpha]),
    F.leaky_relu: lambda input, negative_slope=0.01, inplace=False: (
        "leaky_relu", [input, negative_slope, inplace], []
    ),
    F.layer_norm: lambda input, normalized_shape, weight=None, bias=None, eps=1e-5: (
        "layer_norm", [input, normalized_shape, weight, bias, eps], []
    ),
    F.group_norm: lambda input, num_groups, weight=None, bias=None, eps=1e-5: (
        "group_norm", [input, num_groups, weight, bias, eps], []
    ),
    F.dropout: lambda input, p=0.5, training=True, inplace=False: ("dropout", [input], [p, training]),
}  # fmt: skip
