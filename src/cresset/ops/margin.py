"""The loss that asks for a margin between a sample's class and the others, of which `nn.functional.multi_margin_loss`
is made."""

import cresset

from .registry import batch, constant, operator

_multi_margin_loss = operator(
    "_multi_margin_loss",
    """For each row of scores the sum over the other classes i of max(0, margin - x[target] + x[i])^p, times the weight
    of the target over the number of classes.

    >>> cresset._multi_margin_loss(cresset.tensor([[1.0, 0.5, 3.0]]), cresset.tensor([0]), 1, 1.0, None)
    tensor([1.1667])
    """,
)


@_multi_margin_loss.derivative
@constant("target", "weight")
def _(grad, input, target, p, margin, weight):
    """Each other class within the margin gets the slope, and the target the sum of all slopes less."""
    if not cresset.is_grad_enabled():
        yield lambda: cresset._multi_margin_loss_backward(grad, input, target, p, margin, weight)
        return

    def by_input():
        place = target.unsqueeze(1)
        gap = (margin - input.gather(1, place) + input).clamp_min(0).scatter(1, place, 0.0)
        slopes = (gap > 0).to(input.dtype) if p == 1 else 2 * gap
        each = grad / input.size(1) if weight is None else grad * weight[target] / input.size(1)
        slopes = slopes * each.unsqueeze(1)
        return slopes.scatter(1, place, -slopes.sum(1, keepdim=True))

    yield by_input


# --- inside vmap: more rows ---


@batch("_multi_margin_loss", "_multi_margin_loss_backward")
def _(call):
    if call.dims[-1] is not None:
        return NotImplemented
    tensors = [call.full(k) for k in range(len(call.args) - 3)]
    result = call.run(*(t.flatten(0, 1) for t in tensors), *call.args[-3:])
    return result.unflatten(0, (call.size, -1))
