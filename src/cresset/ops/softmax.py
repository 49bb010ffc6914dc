"""Softmax and its logarithm: documentation and derivatives. The gradient is one fused kernel, and has a derivative of
its own.
"""

import cresset

from .registry import batch, onnx, operator, placement

softmax = operator("softmax", """exp(x) / sum(exp(x)) along `dim`: positive numbers that sum to one.

    Args:
        dtype: convert the elements first, for instance from half precision.

    >>> cresset.softmax(cresset.tensor([0.0, 0.0]), dim=0)
    tensor([0.5000, 0.5000])
    """, autocast={"cuda": "accumulate"})  # fmt: skip

log_softmax = operator("log_softmax", """log(softmax(x)) along `dim`, computed without overflow.

    >>> cresset.log_softmax(cresset.tensor([0.0, 0.0]), dim=0)
    tensor([-0.6931, -0.6931])
    """, autocast={"cuda": "accumulate"})  # fmt: skip


@softmax.derivative
def _(grad, output, dim):
    yield lambda: cresset._softmax_backward_data(grad, output, dim)


@log_softmax.derivative
def _(grad, output, dim):
    yield lambda: cresset._log_softmax_backward_data(grad, output, dim)


_softmax_backward_data = operator("_softmax_backward_data", """With y = softmax(x): dx = y (dy - sum(dy y)).""")
_log_softmax_backward_data = operator(
    "_log_softmax_backward_data", """With y = log_softmax(x): dx = dy - exp(y) sum(dy)."""
)


@_softmax_backward_data.derivative
def _(grad, grad_output, output, dim):
    yield lambda: cresset._softmax_backward_data(grad, output, dim)
    yield (
        lambda: (
            grad * (grad_output - (grad_output * output).sum(dim, keepdim=True))
            - grad_output * (grad * output).sum(dim, keepdim=True)
        )
    )


@_log_softmax_backward_data.derivative
def _(grad, grad_output, output, dim):
    yield lambda: grad - (grad * output.exp()).sum(dim, keepdim=True)
    yield lambda: -grad * output.exp() * grad_output.sum(dim, keepdim=True)


# --- inside vmap ---

batch("softmax", "log_softmax")("along")


@batch("_softmax_backward_data", "_log_softmax_backward_data")
def _(call):
    grad, output = call.full(0), call.full(1)
    if call.rank():
        return call.run(grad, output, call.dim(call.args[2]), call.args[3])
    return call.run(grad.unsqueeze(1), output.unsqueeze(1), 1, call.args[3]).squeeze(1)


# --- as ONNX ---


@onnx("softmax", "log_softmax")
def _(g, input, dim):
    x = g.cast(input, input.dtype, g.result.dtype)
    if not input.shape:
        x = g.unsqueeze(x, [0])
    kind = "Softmax" if g.call.name == "softmax" else "LogSoftmax"
    found = g.op(kind, x, axis=dim % max(len(input.shape), 1))
    return found if input.shape else g.squeeze(found, [0])


# How they lie on several processes: words of distributed/tensor/words.py.
placement("softmax", "log_softmax")("along")
