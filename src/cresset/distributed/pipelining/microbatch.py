"""A batch in microbatches, and what comes of them as one again."""

import cresset

from ...pytree import tree_flatten, tree_map, tree_unflatten

__all__ = ["TensorChunkSpec", "merge_chunks", "split_args_kwargs_into_chunks"]


class TensorChunkSpec:
    """A tensor is divided along a dimension.

    Args:
        split_dim: which.

    >>> str(cresset.distributed.pipelining.microbatch.TensorChunkSpec(1))
    'TensorChunkSpec(1)'
    """

    def __init__(self, split_dim):
        self.split_dim = split_dim

    def __repr__(self):
        return f"{type(self).__module__}.{type(self).__name__}({self.split_dim})"

    def __str__(self):
        return f"TensorChunkSpec({self.split_dim})"

    @staticmethod
    def from_tuple(chunk_dims):
        """A tuple of them, from dimensions."""
        return tree_map(TensorChunkSpec, chunk_dims)

    @staticmethod
    def from_dict(chunk_dims):
        """A dictionary of them, from dimensions."""
        return tree_map(TensorChunkSpec, chunk_dims)


class _Replicate:
    """A value that is the same in every microbatch."""


class _CustomReducer:
    """Values of microbatches become one by a function.

    Args:
        init_value: what the function begins with.
        reduce_fn: a function of what came so far and the next.
    """

    def __init__(self, init_value, reduce_fn):
        self.init_value, self.reduce_fn = init_value, reduce_fn


class _LossReducer(_CustomReducer):
    """Losses that are added up."""


sum_reducer = _LossReducer(cresset.tensor(0.0), lambda a, b: a + b)
DEFAULT_CHUNK_DIM = 0


def _pieces(value, spec, chunks, name):
    """The parts of a value, one for each microbatch."""
    if spec is _Replicate or isinstance(spec, _Replicate) or not isinstance(value, cresset.Tensor):
        return [value] * chunks
    if not isinstance(spec, TensorChunkSpec):
        raise TypeError(f"Unrecognized chunk spec: {spec}")
    if value.dim() == 0:
        raise ValueError(f"split_args_kwargs_into_chunks: {name} is a 0-d tensor, which cannot be divided")
    if value.shape[spec.split_dim] < chunks:
        raise RuntimeError(
            f"split_args_kwargs_into_chunks: {name} has {value.shape[spec.split_dim]} rows along dimension "
            f"{spec.split_dim}, too few for {chunks} microbatches"
        )
    return value.tensor_split(chunks, spec.split_dim)


def _split(values, spec, chunks, name):
    leaves, structure = tree_flatten(values)
    if spec is None:
        specs = [TensorChunkSpec(DEFAULT_CHUNK_DIM)] * len(leaves)
    else:
        specs, _ = tree_flatten(spec)
        if len(specs) == 1 and len(leaves) > 1:
            specs = specs * len(leaves)
        if len(specs) != len(leaves):
            raise ValueError(f"{name}: {len(leaves)} values and {len(specs)} chunk specs")
    divided = [_pieces(leaf, one, chunks, name) for leaf, one in zip(leaves, specs, strict=True)]
    return [tree_unflatten([parts[i] for parts in divided], structure) for i in range(chunks)]


def split_args_kwargs_into_chunks(args, kwargs, chunks, args_chunk_spec=None, kwargs_chunk_spec=None):
    """Divide positional and named arguments into microbatches.

    Args:
        chunks: how many.
        args_chunk_spec, kwargs_chunk_spec: a TensorChunkSpec for each tensor; by default along dimension 0.

    Returns: a list of tuples and a list of dictionaries.

    >>> args, _ = cresset.distributed.pipelining.microbatch.split_args_kwargs_into_chunks((cresset.arange(4),), None, 2)
    >>> args
    [(tensor([0, 1]),), (tensor([2, 3]),)]
    """
    kwargs = {} if kwargs is None else kwargs
    if args_chunk_spec is not None and len(args) != len(args_chunk_spec):
        raise ValueError(f"len(args) = {len(args)} and len(args_chunk_spec) = {len(args_chunk_spec)} must be the same")
    if kwargs_chunk_spec is not None and set(kwargs) != set(kwargs_chunk_spec):
        raise ValueError(f"kwargs {sorted(kwargs)} and kwargs_chunk_spec {sorted(kwargs_chunk_spec)} must be the same")
    args_spec = None if args_chunk_spec is None else tuple(args_chunk_spec)
    kwargs_spec = None if kwargs_chunk_spec is None else {key: kwargs_chunk_spec[key] for key in kwargs}
    return _split(tuple(args), args_spec, chunks, "args"), _split(kwargs, kwargs_spec, chunks, "kwargs")


def merge_chunks(chunks, chunk_spec):
    """Bring the results of microbatches together.

    Args:
        chunks: one for each, all of one structure.
        chunk_spec: a TensorChunkSpec or a reducer for each value; None joins tensors along dimension 0.
    """
    flat = [tree_flatten(chunk)[0] for chunk in chunks]
    structure = tree_flatten(chunks[0])[1]
    if chunk_spec is None:
        specs = [TensorChunkSpec(DEFAULT_CHUNK_DIM)] * len(flat[0])
    else:
        specs = tree_flatten(chunk_spec)[0]
        specs = specs * len(flat[0]) if len(specs) == 1 else specs
    merged = []
    for values, spec in zip(zip(*flat, strict=True), specs, strict=True):
        if isinstance(spec, TensorChunkSpec):
            is_tensor = isinstance(values[0], cresset.Tensor)
            merged.append(cresset.cat(values, spec.split_dim) if is_tensor else values[0])
        elif isinstance(spec, _CustomReducer):
            total = spec.init_value
            for value in values:
                total = spec.reduce_fn(total, value)
            merged.append(total)
        else:
            merged.append(values[0])
    return tree_unflatten(merged, structure)
