"""Between dense tensors that are filled up and nested ones, as the layers of transformers need it.

Nested tensors themselves are in cresset/nested, which loads at the first call.
"""

import cresset

from .registry import function


@function
def _nested_tensor_from_mask(t, mask, mask_check=True):
    """The rows of a dense batch, each as long as the mask is True, as a nested tensor.

    >>> mask = cresset.tensor([[True, True], [True, False]])
    >>> [row.tolist() for row in cresset._nested_tensor_from_mask(cresset.ones(2, 2, 1), mask).unbind()]
    [[[1.0], [1.0]], [[1.0]]]
    """
    if t.dim() != 3 or mask.dim() != 2 or mask.dtype != cresset.bool or t.shape[:2] != mask.shape:
        raise RuntimeError(
            f"_nested_tensor_from_mask: expected a tensor of 3 dimensions and a mask of bool of its first two, got "
            f"{tuple(t.shape)} and {tuple(mask.shape)} of {mask.dtype}"
        )
    if mask_check and not _nested_tensor_from_mask_left_aligned(t, mask):
        raise RuntimeError("_nested_tensor_from_mask: Expected mask to be left-aligned: True before False in each row")
    lengths = mask.sum(1).tolist()
    rows = [row[:n] for row, n in zip(t.detach().unbind(0), lengths, strict=True)]
    return cresset.nested.nested_tensor(rows)


@function
def _nested_tensor_from_mask_left_aligned(t, mask):
    """Whether each row of a mask is True up to some place, and False from there on.

    >>> cresset._nested_tensor_from_mask_left_aligned(cresset.ones(1, 2, 1), cresset.tensor([[False, True]]))
    False
    """
    if mask.dim() != 2 or t.shape[:2] != mask.shape:
        raise RuntimeError(f"a mask of shape {tuple(t.shape[:2])} is needed, got {tuple(mask.shape)}")
    return bool((mask[:, 1:] <= mask[:, :-1]).all())


@function
def _nested_from_padded(padded, cpu_nested_shape_example, fuse_transform_0213=False):
    """The first elements of each row of a dense batch as a nested tensor; a matrix says which shapes they have.

    >>> nt = cresset._nested_from_padded(cresset.ones(2, 3), cresset.tensor([[1], [3]]))
    >>> [row.tolist() for row in nt.unbind()]
    [[1.0], [1.0, 1.0, 1.0]]
    """
    if fuse_transform_0213:
        padded = padded.permute(0, 2, 1, 3).flatten(2)
    shapes = cpu_nested_shape_example.tolist()
    rows = [row[tuple(slice(n) for n in shape)] for row, shape in zip(padded.unbind(0), shapes, strict=True)]
    return cresset.nested.as_nested_tensor(rows)


@function
def _nested_from_padded_and_nested_example(padded, nt_example):
    """The same, with the shapes of another nested tensor.

    >>> example = cresset.nested.nested_tensor([cresset.ones(1), cresset.ones(2)])
    >>> [row.tolist() for row in cresset._nested_from_padded_and_nested_example(cresset.zeros(2, 2), example)]
    [[0.0], [0.0, 0.0]]
    """
    return _nested_from_padded(padded, nt_example._nested_tensor_size())


@function
def _jagged_to_padded_dense_forward(values, offsets, max_lengths, padding_value=0.0):
    """Packed values as a dense batch of rows, filled up or cut to one length.

    >>> cresset._jagged_to_padded_dense_forward(cresset.tensor([1.0, 2.0, 3.0]), [cresset.tensor([0, 1, 3])], [2])
    tensor([[1., 0.],
            [2., 3.]])
    """
    (begins,), (longest,) = _one("offsets", offsets), _one("max_lengths", max_lengths)
    which, place = _places(begins)
    kept = place < longest
    rows = values.new_full((begins.numel() - 1, longest, *values.shape[1:]), padding_value)
    return rows.index_put((which[kept], place[kept]), values[: which.numel()][kept])


@function
def _padded_dense_to_jagged_forward(dense, offsets, total_L=None):
    """The inverse: the first elements of each row, packed.

    >>> cresset._padded_dense_to_jagged_forward(cresset.tensor([[1.0, 0.0], [2.0, 3.0]]), [cresset.tensor([0, 1, 3])])
    tensor([1., 2., 3.])
    """
    (begins,) = _one("offsets", offsets)
    which, place = _places(begins)
    if total_L is not None and total_L != which.numel():
        raise RuntimeError(
            "_padded_dense_to_jagged_forward: final offset should match total_L value: it is "
            f"{which.numel()}, total_L {total_L}"
        )
    if dense.dim() < 2:
        raise RuntimeError(
            f"_padded_dense_to_jagged_forward: expected padded dim >= 2, but padded.dim() == {dense.dim()}"
        )
    longest = int(begins.diff().max()) if begins.numel() > 1 else 0
    if longest > dense.shape[1]:
        raise RuntimeError(
            f"_padded_dense_to_jagged_forward: found batch item of length {longest} when max length specified by "
            f"padded input is {dense.shape[1]}"
        )
    return dense[which, place]


def _one(name, values):
    if len(values) != 1:
        raise RuntimeError(f"{name}: only a single jagged dim is supported, got {len(values)}")
    return values


def _places(begins):
    """For each packed value its row and its place there."""
    if begins.dim() != 1:
        raise RuntimeError(f"expected 1D offsets, but got offsets.dim() == {begins.dim()}")
    lengths = begins[1:] - begins[:-1]
    which = cresset.arange(lengths.numel(), device=begins.device).repeat_interleave(lengths)
    return which, cresset.arange(which.numel(), device=begins.device) - begins[:-1][which]
