"""vmap: a function of one sample becomes a function of a batch of them."""

import functools

import cresset
from cresset._native import Tensor, batch_of, level_of, sample_of
from cresset.pytree import _broadcast_to_and_flatten, tree_flatten, tree_unflatten

from .batching import opened, to_front

RANDOMNESS = ("error", "different", "same")


def vmap(func, in_dims=0, out_dims=0, randomness="error", *, chunk_size=None):
    """`func` for every sample of a batch at once.

    Inside, tensors have the shape of a sample; each operation is done once, for all samples.

    Args:
        in_dims: which dimension of each argument counts the samples; None: the argument is the same for all. One for
            all arguments, or a tuple that fits them, nested as they are.
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
        leaves, spec = tree_flatten(args)
        dims = flat_in_dims(func, in_dims, leaves, spec)
        size = batch_size(leaves, dims)
        keywords, keyword_spec = tree_flatten(kwargs)
        dims += [0 if isinstance(value, Tensor) else None for value in keywords]
        leaves, spec = leaves + keywords, (spec, keyword_spec, len(leaves))
        batch_size(leaves, dims)
        if chunk_size is None or chunk_size >= size:
            results, out_spec = apply(func, leaves, dims, spec, out_dims, randomness, size)
            return tree_unflatten(results, out_spec)
        parts = []
        for start in range(0, size, chunk_size):
            length = min(chunk_size, size - start)
            some = [
                leaf if dim is None else leaf.narrow(dim, start, length) for leaf, dim in zip(leaves, dims, strict=True)
            ]
            results, out_spec = apply(func, some, dims, spec, out_dims, randomness, length)
            parts.append(results)
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
        leaves, spec = tree_flatten(args)
        size = batch_size(leaves, flat_in_dims(func, in_dims, leaves, spec))
        return vmap(func, in_dims, out_dims, randomness, chunk_size=max(-(-size // chunks), 1))(*args, **kwargs)

    return batched


def apply(func, leaves, dims, spec, out_dims, randomness, size):
    """The results of one pass: flat, with the batch where out_dims says, and their structure."""
    args_spec, kwargs_spec, count = spec
    with opened(size, randomness) as frame:
        samples = [
            leaf if dim is None else sample_of(leaf, dim, frame.number) for leaf, dim in zip(leaves, dims, strict=True)
        ]
        args, kwargs = tree_unflatten(samples[:count], args_spec), tree_unflatten(samples[count:], kwargs_spec)
        outputs, out_spec = tree_flatten(func(*args, **kwargs))
        where = flat_out_dims(func, out_dims, out_spec)
        return [gathered(func, output, dim, frame) for output, dim in zip(outputs, where, strict=True)], out_spec


def gathered(func, output, dim, frame):
    """The batch that a result stands for."""
    if not isinstance(output, Tensor):
        if dim is None:
            return output
        raise ValueError(
            f"vmap({name_of(func)}, ...): `{name_of(func)}` must only return Tensors, got type {type(output)}. Did "
            "you mean to set out_dims= to None for output?"
        )
    value, batch_dim = batch_of(output) if level_of(output) == frame.number else (output, None)
    if dim is None:
        if batch_dim is not None:
            raise ValueError(
                f"vmap({name_of(func)}, ...): `{name_of(func)}` can not return a BatchedTensor when out_dim is None"
            )
        return value
    rank = output.dim() + 1
    if not -rank <= dim < rank:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-rank}, {rank - 1}], but got {dim})")
    if batch_dim is None:
        return value.unsqueeze(dim).expand(*value.shape[: dim % rank], frame.batch_size, *value.shape[dim % rank :])
    return value if batch_dim == dim % rank else to_front(value, batch_dim).movedim(0, dim)


def name_of(func):
    return getattr(func, "__name__", None) or repr(func)


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
        raise ValueError("vmap: at least one input must be a Tensor with an in_dim that is not None")
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
    """A function with the same results as `func`.

    In PyTorch, a trace of it shows no in-place operations. Here it is `func` as it is: nothing is traced, and in-place
    operations work in all transforms.
    """
    if remove not in ("mutations", "mutations_and_views"):
        raise RuntimeError(
            f"functionalize(f, remove='mutations'): received invalid argument for remove={remove}. Valid options are: "
            "remove='mutations' or remove='mutations_and_views'"
        )
    return functools.wraps(func, updated=())(lambda *args, **kwargs: func(*args, **kwargs))
