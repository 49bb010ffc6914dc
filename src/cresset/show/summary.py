"""What a model is made of: one run on shapes alone, without data, and `summary`, the table of it."""

import html
import inspect
import math

import cresset
from cresset import nn


class Layer:
    """A module that was called: where it is, what came in and went out, and what it costs."""

    def __init__(self, path, module):
        self.path, self.module = path, module
        self.inputs, self.outputs = [], []
        self.parent, self.depth, self.is_leaf = None, 0, True  # among the modules that were called

    @property
    def kind(self):
        return type(self.module).__name__

    @property
    def name(self):
        """The path from the nearest module above that was called."""
        start = len(self.parent.path) + 1 if self.parent is not None and self.parent.path else 0
        return self.path[start:]

    @property
    def parameters(self):
        """How many, of its own; and of the modules inside, when those were not called themselves."""
        return sum(p.numel() for p in self.module.parameters(recurse=self.is_leaf))

    @property
    def output_bytes(self):
        return sum(math.prod(t.shape) * t.dtype.itemsize for t in self.outputs)

    @property
    def multiply_adds(self):
        """Products of one output element, times the elements; None for layers that have no such number."""
        module, outputs = self.module, self.outputs
        if not outputs:  # it refused its input, or gave no tensor
            return None
        if isinstance(module, nn.Linear):
            return math.prod(outputs[0].shape) * module.in_features
        if isinstance(module, nn.modules.conv._ConvNd):
            kernel = math.prod(module.kernel_size)
            if module.transposed:
                return math.prod(self.inputs[0].shape) * kernel * module.out_channels // module.groups
            return math.prod(outputs[0].shape) * kernel * module.in_channels // module.groups
        if isinstance(module, nn.RNNBase):
            return math.prod(outputs[0].shape[:-1]) * sum(p.numel() for p in module.parameters() if p.dim() == 2)
        if isinstance(module, nn.MultiheadAttention):
            query, key = self.inputs[0], self.inputs[1 if len(self.inputs) > 1 else 0]
            long = -2 if query.dim() == 2 else 1 if module.batch_first else 0
            tokens, width = math.prod(query.shape[:-1]), module.embed_dim
            others = math.prod(key.shape[:-1])
            return (
                2 * tokens * width * width
                + others * width * (module.kdim + module.vdim)
                + 2 * tokens * key.shape[long] * width
            )
        return None


def tensors_of(value):
    if isinstance(value, cresset.Tensor):
        return [value]
    if isinstance(value, dict):
        value = value.values()
    if isinstance(value, (list, tuple)) or not isinstance(value, (str, bytes)) and hasattr(value, "__iter__"):
        return [t for item in value for t in tensors_of(item)]
    return []


def check_model(model, who):
    """A model is an instance: a class in its place is said at once, and not by what happens to miss something."""
    if inspect.isclass(model) or not isinstance(model, nn.Module):
        given = f"the class {model.__name__}" if inspect.isclass(model) else type(model).__name__
        raise TypeError(f"{who}: model should be a Module, an instance of {nn.Module.__name__}, got {given}")


def record(model, args, kwargs=None, after=None):
    """The modules of `model` in the order of their first calls, from one run on the meta device, where tensors are made
    that the model makes itself.

    `after(layer, inputs, outputs)` is called with the tensors of each call, if given.
    """
    layers = {module: Layer(path, module) for path, module in model.named_modules()}
    order, running = [], []

    def begin(module, inputs, keywords):
        layer = layers[module]
        if layer not in order:
            order.append(layer)
            if running:
                layer.parent, layer.depth = running[-1], running[-1].depth + 1
                running[-1].is_leaf = False
        running.append(layer)

    def end(module, inputs, keywords, result):
        layer = running.pop()
        layer.inputs, layer.outputs = tensors_of((inputs, keywords)), tensors_of(result)
        if after is not None:
            after(layer, layer.inputs, layer.outputs)

    handles = []
    for module in layers:
        handles.append(module.register_forward_pre_hook(begin, with_kwargs=True))
        handles.append(module.register_forward_hook(end, with_kwargs=True))
    was_training = {module: module.training for module in layers}
    state = {
        name: t.detach().to("meta").requires_grad_(t.requires_grad)
        for name, t in (*model.named_parameters(), *model.named_buffers())
    }
    try:
        model.eval()
        with cresset.device("meta"):
            nn.utils.stateless._functional_call(model, state, tuple(args), kwargs or {})
    finally:
        for handle in handles:
            handle.remove()
        for module, training in was_training.items():
            module.training = training
    return order


def meta_inputs(input_size, input_data, dtypes):
    """What the model is called with: tensors of the given sizes, or like the given ones, without data."""
    if input_data is not None:
        given = input_data if isinstance(input_data, (list, tuple)) else [input_data]
        return [t.to("meta") if isinstance(t, cresset.Tensor) else t for t in given]
    if not _is_shape(input_size) and not (isinstance(input_size, (list, tuple)) and all(map(_is_shape, input_size))):
        raise TypeError(
            "summary: input_size should be the shape of the input with its batch dimension, such as (32, 4), or a list "
            f"of shapes, got {input_size!r}"
        )
    sizes = [input_size] if _is_shape(input_size) else list(input_size)
    dtypes = dtypes if isinstance(dtypes, (list, tuple)) else [dtypes or cresset.get_default_dtype()] * len(sizes)
    return [cresset.empty(tuple(size), dtype=dtype, device="meta") for size, dtype in zip(sizes, dtypes, strict=True)]


def _is_shape(value):
    return isinstance(value, (list, tuple)) and all(isinstance(size, int) and size >= 0 for size in value)


def bytes_text(count):
    for unit in ("B", "KB", "MB", "GB"):
        if count < 1024 or unit == "GB":
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024


def count_text(count):
    if count is None:
        return ""
    for limit, unit in ((1e12, "T"), (1e9, "G"), (1e6, "M")):
        if count >= limit:
            return f"{count / limit:.2f} {unit}"
    return f"{count:,}"


def shapes_text(tensors):
    return ", ".join(str(tuple(t.shape)) for t in tensors)


class Summary:
    """The table that `summary` returns: prints as text, shows as HTML in a notebook, and has the numbers as
    attributes."""

    def __init__(self, model, layers):
        self.model, self.layers = model, layers
        self.total_params = sum(p.numel() for p in model.parameters())
        self.trainable_params = sum(p.numel() for p in model.parameters() if p.requires_grad)
        self.parameter_bytes = sum(p.numel() * p.dtype.itemsize for p in (*model.parameters(), *model.buffers()))
        self.activation_bytes = sum(layer.output_bytes for layer in layers if layer.is_leaf)
        self.total_mult_adds = sum(layer.multiply_adds or 0 for layer in layers)

    HEADINGS = ("layer", "output shape", "parameters", "memory", "multiply-adds")

    def rows(self):
        for layer in self.layers:
            label = f"{layer.name}: {layer.kind}" if layer.depth else layer.kind
            shown = layer.parameters if layer.is_leaf or layer.parameters else None
            yield (
                layer.depth,
                label,
                shapes_text(layer.outputs),
                count_text(shown),
                bytes_text(layer.output_bytes),
                count_text(layer.multiply_adds),
            )

    def totals(self):
        frozen = self.total_params - self.trainable_params
        return [
            f"parameters      {self.total_params:,}"
            + (f" ({self.trainable_params:,} trainable, {frozen:,} frozen)" if frozen else "")
            + f", {bytes_text(self.parameter_bytes)}",
            f"activations     {bytes_text(self.activation_bytes)}",
            f"multiply-adds   {count_text(self.total_mult_adds)}",
        ]

    def __str__(self):
        table = [self.HEADINGS] + [("  " * depth + label, *rest) for depth, label, *rest in self.rows()]
        widths = [max(len(row[k]) for row in table) for k in range(len(self.HEADINGS))]
        lines = [
            "  ".join(
                cell.ljust(w) if k < 2 else cell.rjust(w) for k, (cell, w) in enumerate(zip(row, widths, strict=True))
            ).rstrip()
            for row in table
        ]
        rule = "─" * (sum(widths) + 2 * (len(widths) - 1))
        return "\n".join([lines[0], rule, *lines[1:], rule, *self.totals()])

    __repr__ = __str__

    def _repr_html_(self):
        cells = "".join(
            "<tr>"
            + f'<td style="text-align:left;padding-left:{8 + 16 * depth}px">{html.escape(label)}</td>'
            + "".join(
                f'<td style="text-align:{"left" if k == 0 else "right"}">{html.escape(c)}</td>'
                for k, c in enumerate(rest)
            )
            + "</tr>"
            for depth, label, *rest in self.rows()
        )
        heads = "".join(
            f'<th style="text-align:{"left" if k < 2 else "right"}">{h}</th>' for k, h in enumerate(self.HEADINGS)
        )
        totals = "<br>".join(html.escape(line) for line in self.totals())
        return (
            f'<table style="border-collapse:collapse;font-variant-numeric:tabular-nums"><thead><tr>{heads}</tr></thead>'
            f'<tbody>{cells}</tbody></table><p style="white-space:pre;font-family:monospace">{totals}</p>'
        )


def summary(model, input_size=None, *, input_data=None, dtypes=None):
    """A table of a model's layers: output shape, parameters, memory of the output, multiply-adds.

    Args:
        model: any Module; it is run once on shapes, so large models cost no memory.
        input_size: the shape of the input with its batch dimension, or a list of shapes; or the input itself, a tensor.
        input_data: tensors to take shapes and dtypes from instead.
        dtypes: of the inputs, for models that take integers.

    >>> print(cresset.summary(nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)), (32, 4)))
    layer        output shape  parameters  memory  multiply-adds
    ────────────────────────────────────────────────────────────
    Sequential   (32, 2)                    256 B
      0: Linear  (32, 8)               40  1.0 KB          1,024
      1: ReLU    (32, 8)                0  1.0 KB
      2: Linear  (32, 2)               18   256 B            512
    ────────────────────────────────────────────────────────────
    parameters      58, 232 B
    activations     2.2 KB
    multiply-adds   1,536
    """
    check_model(model, "summary")
    if isinstance(input_size, cresset.Tensor):
        input_size, input_data = None, input_size
    if input_size is None and input_data is None:
        raise TypeError("summary: give input_size, the shape of the input with its batch dimension, or input_data")
    inputs = meta_inputs(input_size, input_data, dtypes)
    try:
        with cresset.no_grad():
            return Summary(model, record(model, inputs))
    except RuntimeError as error:
        if input_data is None and dtypes is None:
            error.add_note(
                f"summary: the input was made of {inputs[0].dtype}; for a model that takes others give dtypes= or "
                "input_data="
            )
        raise
