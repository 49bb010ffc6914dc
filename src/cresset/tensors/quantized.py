"""Quantized tensors: integers that stand for (integer - zero_point) * scale, with one scale for all or one for each
channel.

A quantized tensor is an interpreted one: see Note [Interpreted tensors] in cresset/tensors/interpreted.py. Rules that
    only move elements move the
integers; everything else is said in floating point, by `dequantize()`.
"""

import cresset
from cresset import _native

from ..backends.determinism import alert_not_deterministic
from .interpreted import InterpretedTensor, make, resize

HELD = {"torch.qint8": "int8", "torch.quint8": "uint8", "torch.qint32": "int32"}  # the dtype that holds the integers


class qscheme:  # noqa: N801  PyTorch's name
    """How integers stand for numbers: torch.per_tensor_affine and its relatives."""

    def __init__(self, name):
        self.name = name

    def __repr__(self):
        return f"torch.{self.name}"

    def __reduce__(self):
        return _scheme, (self.name,)


def _scheme(name):
    return schemes[name]


schemes = {
    name: qscheme(name)
    for name in (
        "per_tensor_affine",
        "per_channel_affine",
        "per_tensor_symmetric",
        "per_channel_symmetric",
        "per_channel_affine_float_qparams",
    )
}
globals().update(schemes)
rules = {}


class QuantizedTensor(InterpretedTensor):
    """Integers with a scale and a zero point. Made by `quantize_per_tensor` and `quantize_per_channel`."""

    rules = rules
    kind = "quantized"
    instead = "dequantize()"
    is_quantized = True

    @property
    def dtype(self):
        return self._dtype

    @property
    def _recorded(self):
        return self._integers

    def _with(self, recorded):
        return quantized(recorded, self._dtype, self._scale, self._zero_point, self._axis)

    def _become(self, other):
        for name in ("_integers", "_dtype", "_scale", "_zero_point", "_axis"):
            self.__dict__[name] = other.__dict__[name]

    def dequantize(self):
        """The numbers that the integers stand for, in float32."""
        return dequantized(self)

    def int_repr(self):
        """The integers."""
        return self._integers.clone()

    def qscheme(self):
        """Whether there is one scale for all or one for each channel."""
        return schemes["per_tensor_affine" if self._axis is None else "per_channel_affine"]

    def _need(self, name, per_channel):
        if (self._axis is not None) != per_channel:
            raise RuntimeError(
                f"{name}: expected a tensor with one scale for {'each channel' if per_channel else 'all'}, got "
                f"{self.qscheme()}"
            )

    def q_scale(self):
        """The scale."""
        self._need("q_scale", False)
        return self._scale

    def q_zero_point(self):
        """The integer that stands for zero."""
        self._need("q_zero_point", False)
        return self._zero_point

    def q_per_channel_scales(self):
        """The scale of each channel."""
        self._need("q_per_channel_scales", True)
        return self._scale

    def q_per_channel_zero_points(self):
        """The integer of each channel that stands for zero."""
        self._need("q_per_channel_zero_points", True)
        return self._zero_point

    def q_per_channel_axis(self):
        """The dimension of the channels."""
        self._need("q_per_channel_axis", True)
        return self._axis

    def is_contiguous(self, memory_format=None):
        """Whether the integers lie in order."""
        return (
            self._integers.is_contiguous()
            if memory_format is None
            else self._integers.is_contiguous(memory_format=memory_format)
        )

    def stride(self, dim=None):
        """The strides of the integers."""
        return self._integers.stride() if dim is None else self._integers.stride(dim)

    def element_size(self):
        """Bytes of one element."""
        return self._integers.element_size()

    @property
    def itemsize(self):
        return self._integers.itemsize

    def resize_(self, *size, memory_format=None):
        """Another shape, in place; what is in new elements is not defined."""
        self._need("resize_", False)
        if memory_format not in (None, cresset.contiguous_format, cresset.preserve_format):
            raise RuntimeError(f"resize_: Unsupported memory format for quantized tensor resize {memory_format}")
        alert_not_deterministic("quantized_resize_cpu_")
        size = size[0] if len(size) == 1 and not isinstance(size[0], int) else size
        resize(self, size)
        resized = cresset.empty(size, dtype=self._integers.dtype, device=self.device).view(-1)
        kept = self._integers.reshape(-1)[: resized.numel()]
        resized[: kept.numel()] = kept
        self._integers = resized.view(size)
        return self

    def tolist(self):
        """The numbers that the integers stand for, as nested lists."""
        return dequantized(self).tolist()

    def item(self):
        """The only element as a Python number."""
        return dequantized(self).item()

    def __getitem__(self, index):
        if self._axis is not None:
            raise RuntimeError(
                "index: a tensor with one scale for each channel cannot be indexed; call dequantize() first"
            )
        return self._with(self._integers[index])

    def __iter__(self):
        return iter(self[i] for i in range(self.shape[0]))

    def __repr__(self, *, tensor_contents=None):
        from ..show.printing import described

        suffixes = [
            f"size={tuple(self.shape)}", f"dtype={self._dtype}", f"quantization_scheme={self.qscheme()}",
            f"scale={self._scale}",
            f"zero_point={self._zero_point}",
        ]  # fmt: skip
        return described(dequantized(self), suffixes if self._axis is None else [*suffixes, f"axis={self._axis}"])

    def __deepcopy__(self, memo):
        return memo.setdefault(id(self), self._with(self._integers.clone()))

    def __reduce_ex__(self, protocol):
        return rebuild_quantized, (self._integers, str(self._dtype)[6:], self._scale, self._zero_point, self._axis)


def quantized(integers, dtype, scale, zero_point, axis=None):
    """A quantized tensor of parts that are known to fit."""
    new = make(QuantizedTensor, integers.shape, integers.dtype, integers.device)
    new._integers, new._dtype, new._scale, new._zero_point, new._axis = integers, dtype, scale, zero_point, axis
    return new


def rebuild_quantized(integers, dtype, scale, zero_point, axis):
    """The inverse of pickling."""
    return quantized(integers, getattr(_native, dtype), scale, zero_point, axis)


def empty_quantized(
    size, *, dtype=None, layout=None, device=None, pin_memory=None, scale=1.0, zero_point=0, memory_format=None
):
    """A quantized tensor whose integers are not defined."""
    held, _, _ = held_by(dtype, "_empty_affine_quantized")
    settings = {"layout": layout, "device": device, "pin_memory": bool(pin_memory)}
    integers = cresset.empty(size, dtype=held, memory_format=memory_format or cresset.contiguous_format, **settings)
    return quantized(integers, dtype, float(scale), int(zero_point))


def held_by(dtype, who):
    """The dtype that holds the integers of a quantized one, with its bounds."""
    if str(dtype) not in HELD:
        raise RuntimeError(f"{who}: expected torch.qint8, torch.quint8 or torch.qint32, got {dtype}")
    held = getattr(cresset, HELD[str(dtype)])
    bounds = cresset.iinfo(held)
    return held, bounds.min, bounds.max


def along(parameter, rank, axis):
    """One number for each channel, in a shape that broadcasts."""
    shape = [1] * rank
    shape[axis] = -1
    return parameter.reshape(shape)


def to_integers(input, scale, zero_point, low, high, held):
    """round(x / scale) + zero_point, within bounds. The division is a product with 1 / scale, as PyTorch's kernels do
    it.
    """
    return (cresset.round(input * (1.0 / scale)) + zero_point).clamp(low, high).to(held)


def quantize_per_tensor(input, scale, zero_point, dtype):
    """See cresset.quantize_per_tensor."""
    if isinstance(input, (list, tuple)):
        return [
            quantize_per_tensor(x, float(s), int(z), dtype) for x, s, z in zip(input, scale, zero_point, strict=True)
        ]
    held, low, high = held_by(dtype, "quantize_per_tensor")
    scale, zero_point = float(scale), int(zero_point)
    check_float("quantize_per_tensor", input)
    if not scale > 0:
        raise RuntimeError(f"quantize_per_tensor: scale must be positive, got {scale}")
    if not low <= zero_point <= high:
        raise RuntimeError(
            f"quantize_per_tensor: zero_point {zero_point} is out of bounds for {dtype}, [{low}, {high}]"
        )
    work = cresset.float64 if held == cresset.int32 else cresset.float32
    inverse = (cresset.ones((), dtype=cresset.float32) / cresset.tensor(scale, dtype=cresset.float32)).to(work)
    integers = (cresset.round(input.detach().to(work) * inverse) + zero_point).clamp(low, high).to(held)
    return quantized(integers, dtype, scale, zero_point)


def check_float(who, input):
    if input.dtype != cresset.float32:
        raise RuntimeError(f"{who}: expected a float32 tensor, got {input.dtype}")


def quantize_per_channel(input, scales, zero_points, axis, dtype):
    """See cresset.quantize_per_channel."""
    held, low, high = held_by(dtype, "quantize_per_channel")
    check_float("quantize_per_channel", input)
    if not -input.dim() <= axis < input.dim():
        raise RuntimeError(
            f"quantize_per_channel: Channel axis out of range in per channel affine quantization: {axis} for "
            f"{input.dim()} dimensions"
        )
    axis %= input.dim()
    channels = input.shape[axis]
    if scales.numel() != channels or zero_points.numel() != channels:
        raise RuntimeError(
            f"quantize_per_channel: length of scales and zero_points must equal the {channels} channels, got "
            f"{scales.numel()} and {zero_points.numel()}"
        )
    spread = (along(1.0 / scales.float(), input.dim(), axis), along(zero_points.float(), input.dim(), axis))
    integers = (cresset.round(input.detach() * spread[0]) + spread[1]).clamp(low, high).to(held)
    return quantized(integers, dtype, scales.detach().double(), zero_points.detach().long(), axis)


def dequantized(tensor):
    """(integer - zero_point) * scale in float32."""
    integers = tensor._integers
    if tensor._axis is None:
        return (
            integers.to(cresset.float32 if integers.itemsize == 1 else cresset.float64) - tensor._zero_point
        ).float() * tensor._scale
    rank = integers.dim()
    return (integers.float() - along(tensor._zero_point.float(), rank, tensor._axis)) * along(
        tensor._scale.float(), rank, tensor._axis
    )


def choose_parameters(least, greatest, low, high):
    """The scale and the zero point with which the integers from `low` to `high` cover the numbers from `least` to
    `greatest`, and zero.
    """
    least, greatest = min(float(least), 0.0), max(float(greatest), 0.0)
    scale = (greatest - least) / (high - low)
    single = float(cresset.tensor(scale, dtype=cresset.float32))
    if single == 0.0 or single < 1e-38:
        scale = 0.1
    # Take the zero point from the end whose rounding error is smaller.
    from_least, from_greatest = low - least / scale, high - greatest / scale
    error_least, error_greatest = abs(low) + abs(least / scale), abs(high) + abs(greatest / scale)
    zero = from_least if error_least < error_greatest else from_greatest
    return scale, int(min(max(round(zero), low), high))


def quantize_per_tensor_dynamic(input, dtype, reduce_range):
    """See cresset.quantize_per_tensor_dynamic."""
    if dtype is cresset.float16:  # what PyTorch's dynamic quantization to half precision is: no integers at all
        return input.to(dtype)
    _, low, high = held_by(dtype, "quantize_per_tensor_dynamic")
    check_float("quantize_per_tensor_dynamic", input)
    if reduce_range:
        low, high = low // 2, high // 2
    least, greatest = (float(input.min()), float(input.max())) if input.numel() else (0.0, 0.0)
    scale, zero_point = choose_parameters(least, greatest, low, high)
    return quantize_per_tensor(input, scale, zero_point, dtype)


# ---- rules: what moves elements moves the integers


def _moving(name):
    function = _native.operators()[name]

    def apply(input, *args, **kwargs):
        if input._axis is not None and name not in ("clone", "detach", "contiguous"):
            raise RuntimeError(
                f"{name}: not implemented for tensors with one scale for each channel; call dequantize() first"
            )
        return input._with(function(input._integers, *args, **kwargs))

    return apply


for _name in ("clone", "detach", "contiguous", "reshape", "view", "transpose", "permute", "t", "select", "narrow",
    "squeeze", "unsqueeze", "flatten", "index_select",
              "expand", "repeat", "flip", "cpu"):  # fmt: skip
    if _name in _native.operators():
        rules[_name] = _moving(_name)


def _compared(name):
    function = _native.operators()[name]
    return lambda *args: function(*(dequantized(a) if isinstance(a, QuantizedTensor) else a for a in args))


for _name in ("eq", "ne", "lt", "le", "gt", "ge", "max", "min", "mean", "amax", "amin", "argmax", "argmin", "isnan"):
    rules[_name] = _compared(_name)


def _relu(input):
    return input._with(
        input._integers.clamp(min=input._zero_point)
        if input._axis is None
        else cresset.maximum(
            input._integers, along(input._zero_point, input.dim(), input._axis).to(input._integers.dtype)
        )
    )


rules["relu"] = _relu


def _to(input, *args, **kwargs):
    wanted = [a for a in (*args, *kwargs.values()) if isinstance(a, cresset.dtype)]
    if any(dtype != input.dtype for dtype in wanted):
        raise RuntimeError(f"to: a quantized tensor stays {input.dtype}; call dequantize() and convert the result")
    return input


rules["to"] = _to
rules["float"] = dequantized


def _copy_(input, other, non_blocking=False):
    if not isinstance(input, QuantizedTensor):
        return input.copy_(dequantized(other))
    if isinstance(other, QuantizedTensor):
        other = dequantized(other)
    same = (
        quantize_per_tensor(other, input._scale, input._zero_point, input._dtype)
        if input._axis is None
        else quantize_per_channel(other, input._scale, input._zero_point, input._axis, input._dtype)
    )
    input._become(same)
    return input


rules["copy_"] = _copy_


def _cat(tensors, dim=0):
    first = tensors[0]
    if any(t._axis is not None for t in tensors):
        raise RuntimeError("cat: not implemented for tensors with one scale for each channel; call dequantize() first")
    joined = cresset.cat([dequantized(t) for t in tensors], dim)
    return quantize_per_tensor(joined, first._scale, first._zero_point, first._dtype)


rules["cat"] = _cat
