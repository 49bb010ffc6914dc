"""Which dimensions of the inputs are free, read from `dynamic_axes` or `dynamic_shapes`."""

import cresset

from ..pytree import tree_leaves


def free_sizes(inputs, dynamic_axes, dynamic_shapes, output_names):
    """({(input name, axis): symbol}, {(output name, axis): symbol}). The same symbol is the same size."""
    if dynamic_axes and dynamic_shapes:
        raise ValueError(f"{inputs.front.name}: give dynamic_axes or dynamic_shapes, not both")
    if dynamic_shapes:
        return from_shapes(inputs, dynamic_shapes), {}
    free, of_outputs = {}, {}
    for name, axes in (dynamic_axes or {}).items():
        is_input = name in inputs.names
        if not is_input and name not in (output_names or ()):
            raise ValueError(
                f"{inputs.front.name}: dynamic_axes names {name!r}, which is no input ({inputs.names}) and no output "
                f"({list(output_names or [])})"
            )
        if not hasattr(axes, "items"):
            axes = {axis: f"{name}_dynamic_axes_{k + 1}" for k, axis in enumerate(axes)}
        for axis, symbol in axes.items():
            if is_input:
                free[name, _axis(inputs, name, axis)] = str(symbol)
            else:
                of_outputs[name, axis] = str(symbol)
    return free, of_outputs


def _axis(inputs, name, axis):
    rank = inputs.tensors[inputs.names.index(name)].ndim
    if not isinstance(axis, int) or not -rank <= axis < rank:
        raise ValueError(f"{inputs.front.name}: dimension {axis} of {name!r} cannot be free; it has {rank} dimensions")
    return axis % rank


def from_shapes(inputs, shapes):
    """dynamic_shapes follows the structure of the arguments: by the names of the model's parameters, or in their
    order."""
    by_name = shapes if isinstance(shapes, dict) else dict(zip(inputs.bound, shapes, strict=False))
    unknown = [name for name in by_name if name not in inputs.bound]
    if unknown:
        raise ValueError(
            f"{inputs.front.name}: dynamic_shapes names {unknown}, which the model does not take: {list(inputs.bound)}"
        )
    free, position = {}, 0
    for name, value in inputs.bound.items():
        tensors = [leaf for leaf in tree_leaves(value) if isinstance(leaf, cresset.Tensor)]
        specs = list(_specs(value, by_name.get(name)))
        for spec in specs:
            input_name = inputs.names[position]
            pairs = spec.items() if isinstance(spec, dict) else enumerate(spec or ())
            for axis, dimension in pairs:
                symbol = _symbol(dimension, f"{input_name}_dim_{axis}")
                if symbol is not None:
                    free[input_name, _axis(inputs, input_name, axis)] = symbol
            position += 1
        assert len(specs) == len(tensors)
    return free


def _specs(value, spec):
    """The description of each tensor in an argument."""
    if isinstance(value, cresset.Tensor):
        yield spec
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _specs(item, None if spec is None else spec.get(key))
    elif isinstance(value, (tuple, list)):
        for k, item in enumerate(value):
            yield from _specs(item, None if spec is None else spec[k])


def _symbol(dimension, default):
    """The name of a free dimension: a text, or an object with a name (torch.export.Dim); None for a fixed one."""
    if dimension is None or isinstance(dimension, int) and not isinstance(dimension, bool):
        return None
    if isinstance(dimension, str):
        return dimension
    name = getattr(dimension, "__name__", None) or getattr(dimension, "name", None)
    if name in ("STATIC",):
        return None
    return default if name is None or name in ("AUTO", "DYNAMIC") else name
