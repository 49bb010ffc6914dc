"""Products, norms, embeddings and attention of nested tensors."""

import cresset
from cresset import _native

from .rules import mapped, operand_items, rule
from .tensor import NestedTensor, component_shapes, from_items, items, nested

_operators = _native.operators()


@rule("linear")
def linear(input, weight, bias=None):
    """input @ weight.T + bias along the last dimension."""
    if isinstance(weight, NestedTensor):
        raise RuntimeError("Linear does not support nested weight when input is a nested tensor.")
    if input._layout == cresset.strided:
        check_strided_linear(input, weight)
    if input.is_flat or input._ragged == input.dim() - 1:
        return mapped(input, lambda item: cresset.linear(item, weight, bias))
    return input._with(cresset.linear(input._packed, weight, bias))


def check_strided_linear(input, weight):
    """Refuse what does not fit a linear layer of a nested tensor of the strided layout."""
    if input.dim() < 3 or weight.dim() != 2:
        raise RuntimeError(
            "Linear requires nested_tensor.dim == 3 and dense_matrix.dim == 2. Nested tensor dim: "
            f"{input.dim()}. Dense tensor dim: {weight.dim()}"
        )
    last = {shape[-1] for shape in component_shapes(input)}
    if len(last) > 1:
        raise RuntimeError(
            "Expected all tensors in nested tensor to have the same trailing dimension, instead last dimension equals: "
            f"{sorted(last)}"
        )
    if last and last != {weight.shape[1]}:
        raise RuntimeError(
            "Shape mismatch for NestedTensor Linear: Expected input's (a nested tensor) 'last_dim' to equal "
            f"'weight.size(1), but got: last_dim = {last.pop()}, and weight.size(1) = {weight.shape[1]}"
        )


@rule("matmul")
def matmul(input, other):
    """Each component times a dense matrix, or times the component of another nested tensor."""
    if isinstance(input, NestedTensor) and isinstance(other, NestedTensor):
        if input.size(0) != other.size(0):
            raise RuntimeError(f"matmul: expected batches of one size, got {input.size(0)} and {other.size(0)}")
        products = [a @ b for a, b in zip(items(input), items(other), strict=True)]
        layout = input._layout
        if layout == cresset.jagged and len({tuple(p.shape) for p in products}) == 1:
            return cresset.stack(products)
        try:
            return from_items(products, layout)
        except RuntimeError:
            shapes = [tuple(p.shape) for p in products]
            raise RuntimeError(
                "matmul(): not supported for nested tensors of layout torch.jagged whose products differ in two "
                f"dimensions: {shapes}; use torch.strided"
            ) from None
    if isinstance(input, NestedTensor):
        if other.dim() == 2 and not input.is_flat and input._ragged != input.dim() - 1:
            return input._with(input._packed @ other)
        right = operand_items(other, input.size(0), input.dim())
        return from_items([a @ b for a, b in zip(items(input), right, strict=True)], input._layout, input._ragged)
    left = operand_items(input, other.size(0), other.dim())
    return from_items([a @ b for a, b in zip(left, items(other), strict=True)], other._layout, other._ragged)


@rule("bmm")
def bmm(input, mat2):
    """The products of two batches of matrices, of which at least one is nested."""
    for name, batch in (("batch1", input), ("batch2", mat2)):
        if batch.dim() != 3:
            raise RuntimeError(f"bmm: {name} must be a 3D tensor, got {batch.dim()} dimensions")
    if input.size(0) != mat2.size(0):
        raise RuntimeError(
            f"bmm: Expected size for the 1st dimension of batch2 tensor to be: {input.size(0)} but got: {mat2.size(0)}."
        )
    for place, (a, b) in enumerate(zip(input.unbind(), mat2.unbind(), strict=True)):
        if a.size(1) != b.size(0):
            raise RuntimeError(
                f"bmm: {place}-th nested matrices in batch cannot be multiplied "
                f"({'x'.join(map(str, a.shape))} and {'x'.join(map(str, b.shape))})"
            )
    return matmul(input, mat2)


@rule("native_layer_norm")
def native_layer_norm(input, normalized_shape, weight, bias, eps):
    """Layer norm over trailing dimensions; over the ragged one, of each component by itself."""
    count, rank = len(normalized_shape), input.dim()
    if input._layout == cresset.strided and (input.is_flat or input._ragged > rank - 1 - count):
        raise RuntimeError(
            "layer_norm(): normalized_shape extends into irregular dimensions for the nested tensor, it is "
            f"{tuple(normalized_shape)}"
        )
    if input._layout == cresset.strided:
        for place, (wanted, n) in enumerate(zip(normalized_shape, input._packed.shape[-count:], strict=True)):
            if wanted != n:
                raise RuntimeError(
                    f"layer_norm(): The shape at dimension {place} of normalized_shape is {wanted}, that of the nested "
                    f"tensor is {n}"
                )
    elif rank <= 2:
        raise RuntimeError("layer_norm(): not supported for NestedTensor objects with 2 or fewer dimensions")
    elif count >= rank:
        raise RuntimeError("layer_norm(): not supported when normalizing over the batch dimension for NestedTensor")
    elif input._ragged >= rank - count:
        if input._lengths is not None:
            raise RuntimeError(
                "layer_norm(): not supported where lengths is not None if operating on the ragged dimension for "
                "NestedTensor"
            )
        if weight is not None or bias is not None:
            raise RuntimeError("layer_norm(): weight and bias have no size for a ragged dimension")
        parts = [cresset.native_layer_norm(item, item.shape[-count:], None, None, eps) for item in items(input)]
        results, means, spreads = zip(*parts, strict=True)
        return from_items(results, input._layout, input._ragged), cresset.stack(means), cresset.stack(spreads)
    result, mean, rstd = cresset.native_layer_norm(input._packed, normalized_shape, weight, bias, eps)
    return input._with(result), mean, rstd


@rule("_rms_norm")
def rms_norm(input, normalized_shape, *args):
    """RMS norm over trailing dimensions that are regular."""
    result, *statistics = _operators["_rms_norm"](input._packed, normalized_shape, *args)
    return input._with(result), *statistics


@rule("embedding")
def embedding(weight, indices, *args, **kwargs):
    """Rows of a table for ragged indices."""
    rows = cresset.embedding(weight, indices._recorded, *args, **kwargs)
    if indices.is_flat:
        return nested(
            rows.reshape(-1), indices._layout, shapes=[(*shape, weight.shape[1]) for shape in indices._shapes]
        )
    return nested(rows, indices._layout, indices._offsets, indices._ragged, indices._lengths)


@rule("_attention")
def attention(query, key, value, attn_mask=None, is_causal=False, scale=None, enable_gqa=False):
    """Attention of each sequence to itself alone."""
    if attn_mask is not None:
        raise RuntimeError(
            "scaled_dot_product_attention: nested tensors are not supported when an explicit attn_mask is set; each "
            "sequence sees itself alone"
        )
    rows = zip(items(query), items(key), items(value), strict=True)
    results = [cresset._attention(q, k, v, None, is_causal, scale, enable_gqa)[0] for q, k, v in rows]
    return from_items(results, query._layout, query._ragged), None


@rule("equal")
def equal(input, other):
    """Whether two nested tensors have the same components."""
    return component_shapes(input) == component_shapes(other) and bool((input._recorded == other._recorded).all())
