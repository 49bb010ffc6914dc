"""vmap: a function of one sample becomes a function of a batch of them."""

import functools

import cresset
from cresset._native import Tensor, batch_of, level_of, sample_of
from cresset.overrides import DisableTorchFunction
from cresset.pytree import _broadcast_to_and_flatten, tree_flatten, tree_unflatten

from .batching import opened, to_front

RANDOMNESS = ("error", "different", "same")


def vmap(func, in_dims=0, out_dims=0, randomness="error", *, chunk_size=None):
    """`func` for every sample of a batch at once.

    Inside, tensors have the shape of a sample; each operation is done once, for all samples.

    Args:
        in_dims: which dimension of each argument counts the samples; None: the argument is the same for all. One for
            all arguments, or a tuple that fits them, nested as they are.
            Arguments by name are the same for all.
        out_dims: where that dimension stands in the results.
        randomness: what random functions do: "error", the "same" numbers for all samples, or "different" ones.
        chunk_size: how many samples to do at a time; None: all.

    >>> cresset.vmap(cresset.dot)(cresset.tensor([[1.0, 2.0], [3.0, 4.0]]), cresset.ones(2, 2))
    tensor([3., 7.])
    """
    check_randomness(randomness)
    if not (chunk_size is None or chunk_size > 0):
        raise ValueError(f"vmap: chunk_size should be None or greater than 0. (got {chunk_size})")

    @functools.wraps(func, updated=())
    def batched(*args, **kwargs):
        size, dims, leaves, spec = _process_batched_inputs(in_dims, args, func)
        if chunk_size is None or chunk_size >= size:
            return apply(func, leaves, dims, spec, out_dims, randomness, size, kwargs)
        parts = []
        state = cresset.get_rng_state() if randomness == "same" else None
        for start in range(0, size, chunk_size):
            if state is not None:
                cresset.set_rng_state(state)  # the same numbers for the samples of all chunks
            length = min(chunk_size, size - start)
            some = [
                leaf if dim is None else leaf.narrow(dim, start, length) for leaf, dim in zip(leaves, dims, strict=True)
            ]
            results = apply(func, some, dims, spec, out_dims, randomness, length, kwargs)
            flat, out_spec = tree_flatten(results)
            parts.append(flat)
        where = flat_out_dims(func, out_dims, out_spec)
        joined = [
            items[0] if dim is None else cresset.cat(items, dim)
            for items, dim in zip(zip(*parts, strict=True), where, strict=True)
        ]
        return tree_unflatten(joined, out_spec)

    return batched


def chunk_vmap(func, in_dims=0, out_dims=0, randomness="error", chunks=2):
    """vmap in `chunks` parts one after the other, which takes less memory.

    >>> cresset.func.chunk_vmap(cresset.sin, chunks=2)(cresset.zeros(4))
    tensor([0., 0., 0., 0.])
    """
    check_randomness(randomness)
    if chunks == 1:
        return vmap(func, in_dims, out_dims, randomness)

    @functools.wraps(func, updated=())
    def batched(*args, **kwargs):
        size = _process_batched_inputs(in_dims, args, func)[0]
        return vmap(func, in_dims, out_dims, randomness, chunk_size=max(-(-size // chunks), 1))(*args, **kwargs)

    return batched


def apply(func, leaves, dims, spec, out_dims, randomness, size, kwargs):
    """The results of one pass, with the batch where out_dims says. `kwargs` are the same for every sample."""
    with opened(size, randomness) as frame:
        args = _create_batched_inputs(dims, leaves, frame.number, spec)
        return _unwrap_batched(func(*args, **kwargs), out_dims, frame.number, size, func)


def restore_vmap(func, in_dims, batch_size, randomness):
    """`func` for samples that vmap has already become batches: its results as batches, and where the batch stands in
    each, None where it is the same for every sample. What an autograd.Function's own vmap rule may call.

    >>> from cresset._functorch.vmap import restore_vmap
    >>> restore_vmap(lambda x, y: (x * y, y), (0, None), 2, "error")(cresset.arange(2), 3)
    ((tensor([0, 3]), 3), (0, None))
    """

    def restored(*args, **kwargs):
        leaves, spec = tree_flatten(args)
        dims = _broadcast_to_and_flatten(in_dims, spec)
        if dims is None:
            raise ValueError(f"restore_vmap: in_dims {in_dims} do not fit arguments of the structure {spec}")
        with opened(batch_size, randomness) as frame:
            results = func(*_create_batched_inputs(dims, leaves, frame.number, spec), **kwargs)
            outputs, out_spec = tree_flatten(results)
            pairs = [batch_of(each) if level_of(each) == frame.number else (each, None) for each in outputs]
        values, where = zip(*pairs, strict=True) if pairs else ((), ())
        return tree_unflatten(list(values), out_spec), tree_unflatten(list(where), out_spec)

    return restored


# The three steps of a call have the names and arguments that PyTorch's have: packages put their own in their place, for
# collections of tensors that know how to become samples and batches (tensordict).


def _process_batched_inputs(in_dims, args, func):
    """(the batch's size, each leaf's batch dimension, the leaves, their structure) of a call's arguments."""
    leaves, spec = tree_flatten(args)
    dims = flat_in_dims(func, in_dims, leaves, spec)
    return batch_size(leaves, dims), dims, leaves, spec


def _create_batched_inputs(flat_in_dims, flat_args, vmap_level, args_spec):
    """The arguments with samples in the place of batches."""
    samples = [
        leaf if dim is None else _add_batch_dim(leaf, dim, vmap_level)
        for leaf, dim in zip(flat_args, flat_in_dims, strict=True)
    ]
    return tree_unflatten(samples, args_spec)


def _unwrap_batched(batched_outputs, out_dims, vmap_level, batch_size, func):
    """The results with batches in the place of samples."""
    outputs, spec = tree_flatten(batched_outputs)
    where = flat_out_dims(func, out_dims, spec)
    results = [
        _maybe_remove_batch_dim(name_of(func), output, vmap_level, batch_size, dim)
        for output, dim in zip(outputs, where, strict=True)
    ]
    return tree_unflatten(results, spec)


def _add_batch_dim(tensor, batch_dim, level):
    """The sample of `level` that stands for a batch, whose dimension `batch_dim` counts the samples."""
    return sample_of(tensor, batch_dim, level)


def _remove_batch_dim(output, level, batch_size, out_dim):
    """The batch that a tensor of `level` stands for, with the samples counted by `out_dim`; a tensor that is the same
    for every sample is repeated. Only a batch that is given back as it is has a class of its own.
    """
    value, batch_dim = batch_of(output) if level_of(output) == level else (output, None)
    rank = output.dim() + 1
    if not -rank <= out_dim < rank:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-rank}, {rank - 1}], but got {out_dim})"
        )
    place = out_dim % rank
    with DisableTorchFunction():
        if batch_dim is None:
            return value.unsqueeze(place).expand(*value.shape[:place], batch_size, *value.shape[place:])
        return value if batch_dim == place else to_front(value, batch_dim).movedim(0, place)


def _maybe_remove_batch_dim(name, batched_output, vmap_level, batch_size, out_dim):
    """The batch that a result stands for; with `out_dim` None the result must be the same for every sample."""
    if out_dim is None:
        if isinstance(batched_output, Tensor) and level_of(batched_output) == vmap_level:
            value, batch_dim = batch_of(batched_output)
            if batch_dim is not None:
                raise ValueError(f"vmap({name}, ...): `{name}` can not return a BatchedTensor when out_dim is None")
            return value
        return batched_output
    if not isinstance(batched_output, Tensor):
        raise ValueError(
            f"vmap({name}, ...): `{name}` must only return Tensors, got type {type(batched_output)}. Did "
            "you mean to set out_dims= to None for output?"
        )
    return _remove_batch_dim(batched_output, vmap_level, batch_size, out_dim)


def name_of(func):
    return getattr(func, "__name__", None) or repr(func)


_get_name = name_of  # PyTorch's name of it


def check_randomness(randomness):
    if randomness not in RANDOMNESS:
        raise RuntimeError(f"Only allowed values for randomness are 'error', 'different', or 'same'. Got {randomness}")


def flat_in_dims(func, in_dims, leaves, spec):
    """The batch dimension of each leaf of the arguments, from the front; None for none."""
    where = f"vmap({name_of(func)}, in_dims={in_dims}, ...)(<inputs>): "
    if not isinstance(in_dims, (int, tuple)):
        raise ValueError(
            where + "expected `in_dims` to be int or a (potentially nested) tuple matching the structure of inputs, "
            f"got: {type(in_dims)}."
        )
    if not leaves:
        raise ValueError(
            f"vmap({name_of(func)})(<inputs>): got no inputs. Maybe you forgot to add inputs, or you are trying to "
            "vmap over a function with no inputs. "
            "The latter is unsupported."
        )
    dims = _broadcast_to_and_flatten(in_dims, spec)
    if dims is None:
        raise ValueError(
            where + "in_dims is not compatible with the structure of `inputs`. in_dims has structure "
            f"{tree_flatten(in_dims)[1]} but inputs has structure {spec}."
        )
    found = []
    for leaf, dim in zip(leaves, dims, strict=True):
        if dim is not None and not isinstance(dim, int):
            raise ValueError(
                where + f"Got in_dim={dim} for an input but in_dim must be either an integer dimension or None."
            )
        if dim is not None and not isinstance(leaf, Tensor):
            raise ValueError(
                where + f"Got in_dim={dim} for an input but the input is of type {type(leaf)}. We cannot vmap over "
                "non-Tensor arguments, please use None as the respective in_dim"
            )
        if dim is not None and not -leaf.dim() <= dim < leaf.dim():
            raise ValueError(
                where + f"Got in_dim={dim} for some input, but that input is a Tensor of dimensionality {leaf.dim()} "
                f"so expected in_dim to satisfy -{leaf.dim()} <= in_dim < {leaf.dim()}."
            )
        found.append(dim if dim is None else dim % leaf.dim())
    return found


def flat_out_dims(func, out_dims, spec):
    """Where the batch goes in each leaf of the results."""
    where = f"vmap({name_of(func)}, ..., out_dims={out_dims})(<inputs>): "
    if isinstance(out_dims, int) or out_dims is None:
        return [out_dims] * spec.num_leaves
    if spec.is_leaf() and isinstance(out_dims, tuple) and len(out_dims) == 1:
        out_dims = out_dims[0]
    dims = _broadcast_to_and_flatten(out_dims, spec)
    if dims is None:
        raise ValueError(
            where + "out_dims is not compatible with the structure of `outputs`. out_dims has structure "
            f"{tree_flatten(out_dims)[1]} but outputs has structure {spec}."
        )
    for dim in dims:
        if dim is not None and not isinstance(dim, int):
            raise ValueError(
                where + "`out_dims` must be an int, None or a python collection of ints representing where in the "
                f"outputs the vmapped dimension should appear, got {dim!r}."
            )
    return dims


def batch_size(leaves, dims):
    sizes = [leaf.size(dim) for leaf, dim in zip(leaves, dims, strict=True) if dim is not None]
    if not sizes:
        raise ValueError("vmap: at least one Tensor with an in_dim that is not None must be among the inputs")
    if len(set(sizes)) > 1:
        raise ValueError(
            f"vmap: Expected all tensors to have the same size in the mapped dimension, got sizes {sizes} for the "
            "mapped dimension"
        )
    return sizes[0]


def debug_unwrap(tensor, *, recurse=True):
    """What a tensor inside vmap stands for, to look at while debugging; another tensor is given as it is.

    >>> def look(x):
    ...     print(cresset.func.debug_unwrap(x))
    ...     return x
    >>> _ = cresset.vmap(look)(cresset.arange(2))
    tensor([0, 1])
    """
    while level_of(tensor):
        tensor, _ = batch_of(tensor)
        if not recurse:
            break
    return tensor


def functionalize(func, *, remove="mutations"):
    """`func`, of which make_fx records no writes: what a write in place changes is a new tensor, and what an argument
    is at the end is copied to it last.

    Args:
        remove: "mutations", or "mutations_and_views", which records copies in place of views.

    >>> def doubled(x):
    ...     y = x.clone()
    ...     y.mul_(2)
    ...     return y
    >>> made = cresset.fx.experimental.proxy_tensor.make_fx(cresset.func.functionalize(doubled))(cresset.ones(2))
    >>> [str(node.target) for node in made.graph.nodes if node.op == "call_function"]
    ['aten.clone.default', 'aten.mul.Tensor']
    """
    if remove not in ("mutations", "mutations_and_views"):
        raise RuntimeError(
            f"functionalize(f, remove='mutations'): received invalid argument for remove={remove}. Valid options are: "
            "remove='mutations' or remove='mutations_and_views'"
        )

    @functools.wraps(func, updated=())
    def functionalized(*args, **kwargs):
        return func(*args, **kwargs)

    functionalized._removes = remove  # asked by make_fx
    return functionalized
