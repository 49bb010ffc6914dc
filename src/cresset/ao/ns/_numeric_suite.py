"""Where a quantized model loses: weights side by side, and results of layers side by side, of both models or of one
layer and its floating-point shadow on the same input.
"""

from cresset import nn

from ..nn import quantized
from ..quantization import QConfig, get_default_compare_output_module_list, prepare

__all__ = [
    "Logger", "OutputLogger", "Shadow", "ShadowLogger", "compare_model_outputs", "compare_model_stub",
    "compare_weights", "get_logger_dict", "get_matching_activations", "prepare_model_outputs",
    "prepare_model_with_stubs",
]  # fmt: skip

NON_LEAF_MODULE_TO_ADD_OBSERVER_ALLOW_LIST = {
    quantized.dynamic.Linear, quantized.Linear, quantized.dynamic.LSTM, nn.LSTM
}  # fmt: skip


def _of_float(known, name, ends):
    """The first of the known names that lies at the same place as `name`, or one module deeper: a layer that was fused
    is inside of another. None for names that do not end as asked.
    """
    *place, last = name.split(".")
    if last != ends:
        return None
    places = [place, place[:-1]] if ends == "_packed_params" and place[:-1] else [place]  # fc._packed_params: of fc
    for here in places:
        for key in known:
            own = key.split(".")
            if here in (own[:-1], own[:-2]):
                return key
    return None


def compare_weights(float_dict, quantized_dict):
    """The weights of two state dictionaries: {name: {"float": ..., "quantized": ...}}.

    >>> from cresset.ao.ns import _numeric_suite as suite
    >>> model = nn.Sequential(nn.Linear(2, 1))
    >>> small = cresset.ao.quantization.quantize_dynamic(model)
    >>> [sorted(pair) for pair in suite.compare_weights(model.state_dict(), small.state_dict()).values()]
    [['float', 'quantized']]
    """
    found = {}
    for name, value in quantized_dict.items():
        same = _of_float(float_dict, name, "weight")
        if same is not None:
            found[name] = {"float": float_dict[same], "quantized": value}
            continue
        packed = _of_float(float_dict, name, "_packed_params")
        if packed is not None:
            found[name] = {"float": float_dict[packed], "quantized": value[0]}
    return found


class Logger(nn.Module):
    """The base of modules that keep what passes, in `stats`."""

    def __init__(self):
        super().__init__()
        self.stats = {}

    def forward(self, x):
        """Look at x; a subclass says how."""


class ShadowLogger(Logger):
    """Keeps the results of a quantized layer and of its shadow."""

    def __init__(self):
        super().__init__()
        self.stats["float"], self.stats["quantized"] = [], []

    def forward(self, x, y):
        self.stats["quantized"].append(_first(x).detach())
        self.stats["float"].append(_first(y).detach())


def _first(value):
    return value[0] if len(value) > 1 else value


class OutputLogger(Logger):
    """Keeps results."""

    def __init__(self):
        super().__init__()
        self.stats["tensor_val"] = []

    def forward(self, x):
        self.stats["tensor_val"].append(x)
        return x


def get_logger_dict(mod, prefix=""):
    """What the loggers in a model kept: {"name.stats": stats}."""
    found = {}
    start = f"{prefix}." if prefix else ""
    for child in mod.children():
        if isinstance(child, Logger):
            found[f"{start}stats"] = child.stats
            break
    for name, child in mod.named_children():
        found.update(get_logger_dict(child, start + name))
    return found


def _floats(value):
    """The same with floating-point tensors in the place of quantized ones."""
    if isinstance(value, (tuple, list)):
        return type(value)(map(_floats, value))
    return value.dequantize() if getattr(value, "is_quantized", False) else value


class Shadow(nn.Module):
    """A quantized layer with the floating-point one beside it: both get the same input, a logger gets both results.

    Args:
        q_module, float_module: the two layers.
        logger_cls: makes the logger.
    """

    def __init__(self, q_module, float_module, logger_cls):
        super().__init__()
        self.orig_module, self.shadow_module = q_module, float_module
        self.dequant, self.logger = quantized.DeQuantize(), logger_cls()

    def forward(self, *x):
        return self._both(self.orig_module, self.shadow_module, *x)

    def _both(self, quantized, shadow, *args):
        output = quantized(*args)
        self.logger(output, shadow(*map(_floats, args)))
        return output

    def _named(self, name, *args):
        return self._both(getattr(self.orig_module, name), getattr(self.shadow_module, name), *args)

    def add(self, x, y):
        """x + y, of a FloatFunctional."""
        return self._named("add", x, y)

    def add_scalar(self, x, y):
        """x + a number."""
        return self._named("add_scalar", x, y)

    def mul(self, x, y):
        """x * y."""
        return self._named("mul", x, y)

    def mul_scalar(self, x, y):
        """x * a number."""
        return self._named("mul_scalar", x, y)

    def cat(self, x, dim=0):
        """Tensors joined."""
        return self._named("cat", x, dim)

    def add_relu(self, x, y):
        """relu(x + y)."""
        return self._named("add_relu", x, y)


def prepare_model_with_stubs(float_module, q_module, module_swap_list, logger_cls):
    """Put shadows into the quantized model, at layers whose floating-point type is in `module_swap_list`."""
    plain = dict(float_module.named_children())
    for name, child in list(q_module.named_children()):
        if name not in plain:
            continue
        if type(plain[name]) not in module_swap_list:
            prepare_model_with_stubs(plain[name], child, module_swap_list, logger_cls)
        elif [type(m) for m in child.modules()] != [type(m) for m in plain[name].modules()]:
            q_module._modules[name] = Shadow(child, plain[name], logger_cls)


def compare_model_stub(float_model, q_model, module_swap_list, *data, logger_cls=ShadowLogger):
    """Run the quantized model with shadows; {"name.stats": {"float": [...], "quantized": [...]}}."""
    prepare_model_with_stubs(float_model, q_model, module_swap_list, logger_cls)
    q_model(*data)
    return get_logger_dict(q_model)


def prepare_model_outputs(float_module, q_module, logger_cls=OutputLogger, allow_list=None):
    """Let loggers keep the results of layers of both models, of the types in `allow_list`."""
    allowed = get_default_compare_output_module_list() if allow_list is None else allow_list
    for module in (float_module, q_module):
        module.qconfig = QConfig(activation=logger_cls, weight=None)
        parents = NON_LEAF_MODULE_TO_ADD_OBSERVER_ALLOW_LIST if module is q_module else None
        prepare(module, inplace=True, allow_list=allowed, observer_non_leaf_module_list=parents)


def get_matching_activations(float_module, q_module):
    """What loggers of both models kept at the same places."""
    floats, found = get_logger_dict(float_module), {}
    for name, stats in get_logger_dict(q_module).items():
        same = _of_float(sorted(floats, reverse=True), name, "stats") if stats["tensor_val"] else None
        if same is not None:
            found[name] = {"float": floats[same]["tensor_val"], "quantized": stats["tensor_val"]}
    return found


def compare_model_outputs(float_model, q_model, *data, logger_cls=OutputLogger, allow_list=None):
    """Run both models; the results of their layers: {"name.stats": {"float": [...], "quantized": [...]}}.

    >>> from cresset.ao.ns import _numeric_suite as suite
    >>> q = cresset.ao.quantization
    >>> model = q.QuantWrapper(nn.Linear(2, 1)).eval()
    >>> model.qconfig = q.default_qconfig
    >>> ready = q.prepare(model)
    >>> _ = ready(cresset.ones(1, 2))
    >>> sorted(suite.compare_model_outputs(model, q.convert(ready), cresset.ones(1, 2)))
    ['module.stats', 'quant.stats']
    """
    prepare_model_outputs(float_model, q_model, logger_cls, allow_list)
    float_model(*data)
    q_model(*data)
    return get_matching_activations(float_model, q_model)
