"""Operators that PyTorch writes with others before `make_fx` sees them, each with what it becomes there:
{"aten::name.overload": function}, as `AtenRecorder` takes them. `pre_dispatch=True` records without this table.
"""

import math
import threading

import cresset

from ...dispatch import handling

_entered = threading.local()  # its `recorder` is whose call is written with others now


class _Overload:
    """torch.ops.aten.name.overload, whose calls are recorded as they are."""

    def __init__(self, name, overload):
        self.name, self.overload = name, overload

    def __call__(self, *args, **kwargs):
        operator = getattr(getattr(cresset.ops.aten, self.name), self.overload)
        return _entered.recorder.exactly(operator, args, kwargs)


class _Name:
    def __init__(self, name):
        self.name = name

    def __getattr__(self, overload):
        return _Overload(self.name, overload)


class _Namespace:
    def __getattr__(self, name):
        return _Name(name)


aten = _Namespace()


def _view(x, shape):
    """A view if there is one, else a copy."""
    missing = [axis for axis, size in enumerate(shape) if size == -1]
    if missing:
        known = math.prod(size for size in shape if size != -1)
        shape = [x.numel() // max(known, 1) if size == -1 else size for size in shape]
    try:
        return aten.view.default(x, list(shape))
    except RuntimeError:
        return aten._unsafe_view.default(aten.clone.default(x, memory_format=cresset.contiguous_format), list(shape))


def _flatten(x, start=0, end=-1):
    if x.dim() == 0:
        return _view(x, [1])
    start, end = start % x.dim(), end % x.dim()
    return x if start == end else _view(x, [*x.shape[:start], -1, *x.shape[end + 1 :]])


def _broadcast(a, b):
    """The sizes of both: numbers, which no operator makes."""
    rank = max(len(a), len(b))
    a, b = [1] * (rank - len(a)) + a, [1] * (rank - len(b)) + b
    return [other if size == 1 else size for size, other in zip(a, b, strict=True)]


def _matmul(a, b):
    ranks = (a.dim(), b.dim())
    if ranks == (1, 1):
        return aten.dot.default(a, b)
    if ranks == (2, 1):
        return aten.mv.default(a, b)
    if ranks == (1, 2):
        return aten.squeeze_.dim(aten.mm.default(aten.unsqueeze.default(a, 0), b), 0)
    if ranks == (2, 2):
        return aten.mm.default(a, b)
    if a.dim() >= 3 and b.dim() <= 2:
        rows = _view(a, [-1, a.shape[-1]])
        product = aten.mm.default(rows, b) if b.dim() == 2 else aten.mv.default(rows, b)
        return aten._unsafe_view.default(product, [*a.shape[:-1], *b.shape[1:]])
    if min(ranks) == 0:
        raise RuntimeError(f"matmul: both tensors need at least 1 dimension, but they have {a.dim()} and {b.dim()}")
    if a.dim() == 1:
        return aten.squeeze_.dim(_matmul(aten.unsqueeze.default(a, 0), b), -2)
    batch = _broadcast(list(a.shape[:-2]), list(b.shape[:-2]))
    count = math.prod(batch)
    parts = [_view(aten.expand.default(x, [*batch, *x.shape[-2:]]), [count, *x.shape[-2:]]) for x in (a, b)]
    return aten._unsafe_view.default(aten.bmm.default(*parts), [*batch, a.shape[-2], b.shape[-1]])


def _linear(x, weight, bias=None):
    if bias is None:
        return _matmul(x, aten.t.default(weight))
    if x.dim() == 2:
        return aten.addmm.default(bias, x, aten.t.default(weight))
    if x.is_contiguous():
        rows = aten.addmm.default(bias, _view(x, [-1, x.shape[-1]]), aten.t.default(weight))
        return aten.view.default(rows, [*x.shape[:-1], weight.shape[0]])
    return aten.add.Tensor(_matmul(x, aten.t.default(weight)), bias)


def _conv(dims):
    def conv(x, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
        stride, padding, dilation = (
            [given] * dims if isinstance(given, int) else list(given) * (dims if len(given) == 1 else 1)
            for given in (stride, padding, dilation)
        )
        return aten.convolution.default(x, weight, bias, stride, padding, dilation, False, [0] * dims, groups)

    return conv


def _softmax(operator):
    def softmax(x, dim, dtype=None):
        x = x if dtype is None or dtype == x.dtype else aten._to_copy.default(x, dtype=dtype)
        return operator(x, dim, False)

    return softmax


def _batch_norm(x, weight, bias, running_mean, running_var, training, momentum, eps, cudnn_enabled):
    return aten.native_batch_norm.default(x, weight, bias, running_mean, running_var, training, momentum, eps)[0]


def _group_norm(x, groups, weight=None, bias=None, eps=1e-5, cudnn_enabled=True):
    batch, channels = x.shape[0], x.shape[1]
    inner = x.numel() // max(batch * channels, 1)
    return aten.native_group_norm.default(x, weight, bias, batch, channels, inner, groups, eps)[0]


def _max_pool2d(x, kernel_size, stride=(), padding=0, dilation=1, ceil_mode=False):
    return aten.max_pool2d_with_indices.default(x, kernel_size, stride, padding, dilation, ceil_mode)[0]


def _adaptive_avg_pool2d(x, output_size):
    if list(output_size) == [1, 1]:
        return aten.mean.dim(x, [-1, -2], True)
    return aten._adaptive_avg_pool2d.default(x, output_size)


def _chunk(x, chunks, dim=0):
    size = x.shape[dim]
    step = -(-size // chunks)
    if step == 0:
        return aten.split_with_sizes.default(x, [0] * chunks, dim)
    return aten.split.Tensor(x, step, dim)


def _spread(operator):
    """var or std with the forms that old programs call, as the one that has a correction."""

    def spread(x, dim=None, unbiased=True, keepdim=False):
        if isinstance(dim, bool):
            dim, unbiased = None, dim
        settings = {"keepdim": True} if keepdim else {}
        return operator(x, dim, correction=1 if unbiased else 0, **settings)

    return spread


def _norm(x, p=2, dim=None, keepdim=False, dtype=None):
    p = 2 if p is None else p
    return aten.linalg_vector_norm.default(x, p, dim, keepdim, **({} if dtype is None else {"dtype": dtype}))


def _where(scalar_first, scalar_second):
    def where(condition, a, b):
        def tensor(value, other):
            dtype = other.dtype if isinstance(other, cresset.Tensor) else cresset.result_type(a, b)
            return aten.scalar_tensor.default(value, dtype=dtype)

        return aten.where.self(condition, tensor(a, b) if scalar_first else a, tensor(b, a) if scalar_second else b)

    return where


def _pad(x, pad, mode="constant", value=None):
    if mode != "constant":
        name = {"reflect": "reflection_pad", "replicate": "replication_pad"}.get(mode)
        if name is None or len(pad) > 6:
            raise NotImplementedError(f"make_fx: pad with mode {mode!r} is not written with simpler operators")
        return getattr(aten, f"{name}{len(pad) // 2}d").default(x, pad)
    return aten.constant_pad_nd.default(x, pad, *([] if value is None else [value]))


def _to(x, dtype=None, layout=None, device=None, pin_memory=None, non_blocking=False, copy=False, memory_format=None):
    place = None if device is None or cresset.device(device) == x.device else device
    kind = None if dtype is None or dtype == x.dtype else dtype
    if kind is None and place is None and not copy:
        return x
    asked = {"dtype": dtype if kind is not None or copy else None, "device": place, "memory_format": memory_format}
    return aten._to_copy.default(x, **{name: value for name, value in asked.items() if value is not None})


def _dropout(x, p, train):
    if not train or p == 0:
        return x
    return aten.native_dropout.default(x, p, True)[0]


def _loss(difference):
    def loss(x, target, reduction=1):
        found = difference(aten.sub.Tensor(x, target))
        return found if reduction == 0 else found.mean() if reduction == 1 else found.sum()

    return loss


def _nearest2d(x, output_size, scale_factors):
    if scale_factors is None:
        return aten.upsample_nearest2d.default(x, output_size)
    sizes = [math.floor(size * scale) for size, scale in zip(x.shape[2:], scale_factors, strict=True)]
    return aten.upsample_nearest2d.default(x, sizes, *scale_factors)


def table(recorder):
    """The table for one recorder."""

    def entered(function):
        def enter(*args, **kwargs):
            _entered.recorder = recorder
            return function(*args, **kwargs)

        return enter

    return {name: entered(function) for name, function in _all().items()}


class _ByHandlers:
    """Gives operators to the modes and classes that are responsible, and runs them where there is none."""

    @staticmethod
    def exactly(operator, args, kwargs):
        return handling.give_or_run(operator, args, kwargs)


def called(name, args, kwargs):
    """The result of an operator by those that it is written with here; handlers see those."""
    _entered.recorder = _ByHandlers
    return {"linear": _linear, "matmul": _matmul}[name](*args, **kwargs)


def _all():
    return {
        "aten::linear.default": _linear,
        "aten::matmul.default": _matmul,
        "aten::conv1d.default": _conv(1),
        "aten::conv2d.default": _conv(2),
        "aten::conv3d.default": _conv(3),
        "aten::softmax.int": _softmax(aten._softmax.default),
        "aten::log_softmax.int": _softmax(aten._log_softmax.default),
        "aten::layer_norm.default": lambda x, shape, weight=None, bias=None, eps=1e-5, cudnn_enable=False: (
            aten.native_layer_norm.default(x, shape, weight, bias, eps)[0]
        ),
        "aten::group_norm.default": _group_norm,
        "aten::batch_norm.default": _batch_norm,
        "aten::max_pool2d.default": _max_pool2d,
        "aten::adaptive_avg_pool2d.default": _adaptive_avg_pool2d,
        "aten::reshape.default": _view,
        "aten::flatten.using_ints": _flatten,
        "aten::chunk.default": _chunk,
        "aten::var.default": lambda x, unbiased=True: _spread(aten.var.correction)(x, None, unbiased),
        "aten::var.dim": _spread(aten.var.correction),
        "aten::std.default": lambda x, unbiased=True: _spread(aten.std.correction)(x, None, unbiased),
        "aten::std.dim": _spread(aten.std.correction),
        "aten::norm.Scalar": _norm,
        "aten::norm.ScalarOpt_dim": _norm,
        "aten::where.ScalarOther": _where(False, True),
        "aten::where.ScalarSelf": _where(True, False),
        "aten::where.Scalar": _where(True, True),
        "aten::pad.default": _pad,
        "aten::to.dtype": lambda x, dtype, *rest, **named: _to(x, dtype, None, None, None, *rest, **named),
        "aten::to.dtype_layout": _to,
        "aten::to.device": lambda x, device, dtype, *rest, **named: _to(x, dtype, None, device, None, *rest, **named),
        "aten::expand_as.default": lambda x, other: aten.expand.default(x, list(other.shape)),
        "aten::dropout.default": _dropout,
        "aten::outer.default": lambda a, b: aten.mul.Tensor(aten.view.default(a, [a.shape[0], 1]), b),
        "aten::upsample_nearest2d.vec": _nearest2d,
        "aten::l1_loss.default": _loss(lambda x: x.abs()),
    }
