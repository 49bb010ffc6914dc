"""Linear and bilinear maps."""

import cresset

from ..._native import name_node
from ...ops.autocast import autocast

linear = cresset.linear  # the operator itself: a Python function around it would cost a third of a small call


@autocast(cuda="promote")
def bilinear(input1, input2, weight, bias=None):
    """x1 W[k] x2 + bias[k] for each output feature k, along the last dimensions.

    Args:
        input1: (..., in1).
        input2: (..., in2), with the same leading dimensions.
        weight: (out, in1, in2).

    >>> F.bilinear(cresset.tensor([1.0, 2.0]), cresset.tensor([3.0]), cresset.ones(1, 2, 1))
    tensor([9.])
    """
    if input1.ndim != input2.ndim or input1.shape[:-1] != input2.shape[:-1]:
        raise RuntimeError(
            f"bilinear: input batch dimensions do not match: {list(input1.shape)} and {list(input2.shape)}"
        )
    for number, input in enumerate((input1, input2), 1):
        if input.size(-1) != weight.size(number):
            raise RuntimeError(
                f"bilinear: input{number} size does not match weight size: got {input.size(-1)} but expected "
                f"{weight.size(number)}"
            )
    tensors = {"input1": input1, "input2": input2, "weight": weight, **({} if bias is None else {"bias": bias})}
    if any(tensor.dtype != input1.dtype for tensor in tensors.values()):
        dtypes = ", ".join(f"{name}: {tensor.dtype}" for name, tensor in tensors.items())
        raise RuntimeError(f"bilinear: All tensors must have the same dtype, got {dtypes}")
    if bias is not None and bias.size(0) != weight.size(0):
        raise RuntimeError(
            f"bilinear: bias size does not match weight size: got {bias.size(0)} but expected {weight.size(0)}"
        )
    # The first input applied to every slice of the weight gives (..., out, in2); then the second. Half precision is
    # rounded in between and at the end.
    applied = cresset.matmul(input1, weight.transpose(0, 1).flatten(1)).unflatten(-1, (weight.size(0), weight.size(2)))
    dtype = input1.dtype
    if dtype in (cresset.float16, cresset.bfloat16):
        applied, input2 = applied.float(), input2.float()
    result = (applied * input2.unsqueeze(-2)).sum(-1).to(dtype)
    return name_node(result, "ViewBackward0") if bias is None else result + bias
