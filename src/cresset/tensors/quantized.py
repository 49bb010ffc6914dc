"""Quantized tensors: integers that stand for (integer - zero_point) * scale, with one scale for all or one for each
channel.

A quantized tensor is an interpreted one: see Note [Interpreted tensors] in cresset/tensors/interpreted.py. What calls
on it do is in quantized_rules.py.

Note [Rounding of quantized numbers]
PyTorch's kernels round in three ways, which differ where a number lies (almost) in the middle of two integers, and so
do ours: `quantize_per_tensor` to 8 bits rounds x / scale + zero_point after one rounding to float32 (a fused
multiply-add), `quantize_per_channel` and 32 bits after two, and operators on quantized tensors round x / scale and add
the zero point to the integer. x / scale is always a product with 1 / scale in float32.
"""

from collections import OrderedDict

import cresset
from cresset import _native
from cresset.storage import TypedStorage

from ..backends.determinism import alert_not_deterministic
from .interpreted import InterpretedTensor, make, resize

# The dtype that holds the integers.
HELD = {"torch.qint8": "int8", "torch.quint8": "uint8", "torch.qint32": "int32", "torch.quint4x2": "uint8"}


class qscheme:  # noqa: N801  PyTorch's name
    """How integers stand for numbers: torch.per_tensor_affine and its relatives."""

    __module__ = "cresset"  # where each is found by its name, in pickles as well

    def __init__(self, name):
        self.name = name

    def __repr__(self):
        return f"torch.{self.name}"

    def __reduce__(self):
        return self.name


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
        """The integers; of torch.quint4x2 two in a byte, the first in the lower half."""
        return packed_in_halves(self._integers) if self._dtype == _native.quint4x2 else self._integers.clone()

    def qscheme(self):
        """Whether there is one scale for all or one for each channel."""
        if self._axis is None:
            return schemes["per_tensor_affine"]
        return schemes[f"per_channel_affine{'_float_qparams' if self._zero_point.is_floating_point() else ''}"]

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

    def untyped_storage(self):
        """The memory of the integers."""
        if self._dtype == _native.quint4x2:  # integers lie one in a byte here, and two in PyTorch's memory
            return super().untyped_storage()
        return self._integers.untyped_storage()

    def storage(self):
        """The integers as a typed storage."""
        return TypedStorage(wrap_storage=self.untyped_storage(), dtype=self._dtype, _internal=True)

    def storage_offset(self):
        """Where the first integer is in the memory."""
        return self._integers.storage_offset()

    def data_ptr(self):
        """The address of the first integer."""
        return self.untyped_storage().data_ptr() + self.storage_offset() * self.itemsize

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
        if self._axis == 0 and isinstance(index, int):  # one channel, with one scale
            scale, zero_point = self._scale[index].item(), self._zero_point[index].item()
            return quantized(self._integers[index], self._dtype, scale, zero_point)
        if self._axis is not None:
            raise RuntimeError(
                "index: a tensor with one scale for each channel cannot be indexed; call dequantize() first"
            )
        return self._with(self._integers[index])

    def __setitem__(self, index, value):
        """Numbers are rounded to what the tensor can hold."""
        if self._axis is not None:
            raise RuntimeError("index: a tensor with one scale for each channel is not assigned to")
        value = dequantized(value) if isinstance(value, QuantizedTensor) else cresset.as_tensor(value)
        self._integers[index] = quantize_per_tensor(value.float(), self._scale, self._zero_point, self._dtype)._integers

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
        from .._utils import _rebuild_qtensor

        integers = self.int_repr() if self._dtype == _native.quint4x2 else self._integers
        storage = TypedStorage(wrap_storage=integers.untyped_storage(), dtype=self._dtype)
        stride = self.stride() if integers is self._integers else self._integers.contiguous().stride()
        parameters = (
            (self._scale, self._zero_point) if self._axis is None else (self._scale, self._zero_point, self._axis)
        )
        place = (storage, integers.storage_offset(), tuple(self.shape), stride)
        return _rebuild_qtensor, (*place, (self.qscheme(), *parameters), False, OrderedDict())


def quantized(integers, dtype, scale, zero_point, axis=None):
    """A quantized tensor of parts that are known to fit."""
    new = make(QuantizedTensor, integers.shape, integers.dtype, integers.device)
    new._integers, new._dtype, new._scale, new._zero_point, new._axis = integers, dtype, scale, zero_point, axis
    return new


def rebuild(storage, dtype, offset, size, stride, parameters):
    """The inverse of pickling, of integers in a typed storage."""
    from .._utils import _rebuild_tensor

    scheme, scale, zero_point, *axis = parameters
    held_by(dtype, "rebuild")
    kinds = [type(part) for part in (scale, zero_point, *axis)]
    one, lists = schemes["per_tensor_affine"], (list, _native.Tensor)
    if kinds != [float, int] if scheme is one else not (
        scheme in schemes.values() and len(axis) == 1 and kinds[2] is int
        and isinstance(scale, lists) and isinstance(zero_point, lists)
    ):  # fmt: skip
        raise RuntimeError(f"rebuild: expected a scheme with its scale, zero point and axis, got {parameters!r}")
    if dtype == _native.quint4x2:
        halves = _rebuild_tensor(storage, offset, ((cresset.Size(size).numel() + 1) // 2,), (1,))
        integers = unpacked_from_halves(halves, tuple(size))
    else:
        integers = _rebuild_tensor(storage, offset, size, stride)
    if axis:
        scale, zero_point = (cresset.tensor(x) if isinstance(x, list) else x for x in (scale, zero_point))
        if not 0 <= axis[0] < len(size):
            raise ValueError(f"rebuild: axis {axis[0]} is out of range for the size {tuple(size)}")
        if not scale.numel() == zero_point.numel() == size[axis[0]]:
            raise ValueError(
                f"rebuild: scales/zero_points length: {scale.numel()} scales and {zero_point.numel()} zero points do "
                f"not fit the {size[axis[0]]} slices of axis {axis[0]}"
            )
    return quantized(integers, dtype, scale, zero_point, *axis)


def packed_in_halves(integers):
    """Numbers below 16, two in a byte."""
    flat = cresset.cat([integers.reshape(-1), integers.new_zeros(integers.numel() % 2)]).reshape(-1, 2)
    return flat[:, 0] | flat[:, 1] << 4


def unpacked_from_halves(halves, size):
    """The inverse of `packed_in_halves`."""
    count = cresset.Size(size).numel()
    return cresset.stack([halves & 15, halves >> 4], 1).reshape(-1)[:count].reshape(size)


def empty_quantized(
    size, *, dtype=None, layout=None, device=None, pin_memory=None, scale=1.0, zero_point=0, memory_format=None
):
    """A quantized tensor whose integers are not defined."""
    held, _, _ = held_by(dtype, "_empty_affine_quantized")
    settings = {"layout": layout, "device": device, "pin_memory": bool(pin_memory)}
    integers = cresset.empty(size, dtype=held, memory_format=memory_format or cresset.contiguous_format, **settings)
    return quantized(integers, dtype, float(scale), int(zero_point))


def empty_quantized_per_channel(
    size, *, scales, zero_points, axis, dtype=None, layout=None, device=None, pin_memory=None, memory_format=None
):
    """A quantized tensor with a scale for each place of dimension `axis`, whose integers are not defined."""
    if scales.numel() != zero_points.numel():
        raise RuntimeError("number of elements in scales and zero_points must match")
    if not 0 <= axis < len(size) or scales.numel() != size[axis]:
        raise RuntimeError(
            f"_empty_per_channel_affine_quantized: {scales.numel()} scales do not fit dimension {axis} of shape "
            f"{tuple(size)}"
        )
    settings = {"layout": layout, "device": device, "pin_memory": pin_memory, "memory_format": memory_format}
    integers = empty_quantized(size, dtype=dtype, **settings)._integers
    if zero_points.is_floating_point():
        return quantized(integers, dtype, scales.detach().float(), zero_points.detach().float(), axis)
    return quantized(integers, dtype, scales.detach().double(), zero_points.detach().long(), axis)


def held_by(dtype, who):
    """The dtype that holds the integers of a quantized one, with its bounds."""
    if str(dtype) not in HELD:
        raise RuntimeError(f"{who}: expected torch.qint8, torch.quint8 or torch.qint32, got {dtype}")
    if dtype == _native.quint4x2:
        return cresset.uint8, 0, 15
    held = getattr(cresset, HELD[str(dtype)])
    bounds = cresset.iinfo(held)
    return held, bounds.min, bounds.max


def along(parameter, rank, axis):
    """One number for each channel, in a shape that broadcasts."""
    shape = [1] * rank
    shape[axis] = -1
    return parameter.reshape(shape)


def inverse_of(scale):
    """1 / scale in float32, which kernels multiply by, as a number."""
    return float(1.0 / cresset.tensor(scale, dtype=cresset.float32))


def rounded(numbers, scale, zero_point, dtype):
    """A quantized tensor of float32 numbers as operators round: round(x / scale) + zero_point, within bounds."""
    held, low, high = held_by(dtype, "quantize")
    integers = cresset.round(numbers * inverse_of(scale)) + zero_point
    return quantized(integers.clamp(low, high).to(held), dtype, float(scale), int(zero_point))


def quantize_per_tensor(input, scale, zero_point, dtype):
    """See cresset.quantize_per_tensor."""
    if isinstance(input, (list, tuple)):
        return tuple(
            quantize_per_tensor(x, float(s), int(z), dtype) for x, s, z in zip(input, scale, zero_point, strict=True)
        )
    held, low, high = held_by(dtype, "quantize_per_tensor")
    scale, zero_point = float(scale), int(zero_point)
    check_float("quantize_per_tensor", input)
    if not scale:
        raise RuntimeError("quantize_per_tensor: scale must not be zero")
    if not low <= zero_point <= high:
        raise RuntimeError(
            f"quantize_per_tensor: zero_point {zero_point} is out of bounds for {dtype}, [{low}, {high}]"
        )
    inverse, input = inverse_of(scale), input.detach()
    if held == cresset.int32:
        shifted = (input * inverse + float(zero_point)).double()
    else:
        shifted = (input.double() * inverse + zero_point).float()  # products of two floats are exact in double
    integers = cresset.round(shifted).clamp(low, high).to(held)
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
    shifted = cresset.round(input.detach() * spread[0] + spread[1])
    integers = (shifted.double() if held == cresset.int32 else shifted).clamp(low, high).to(held)
    if zero_points.is_floating_point():  # then it is where zero lies, which need not be an integer
        return quantized(integers, dtype, scales.detach().float(), zero_points.detach().float(), axis)
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


def fused_numbers(tensor):
    """The same as PyTorch's loops over many elements have it: integer * scale - zero_point * scale, rounded once."""
    scale = cresset.tensor(tensor._scale, dtype=cresset.float32)
    return (tensor._integers.double() * scale.double() + (-tensor._zero_point * scale).double()).float()


LEAST_SCALE = float(cresset.tensor(6.1e-5, dtype=cresset.float32))  # a smaller one is taken for noise


def choose_parameters(least, greatest, low, high, symmetric=False):
    """The scale and the zero point with which the integers from `low` to `high` cover the numbers from `least` to
    `greatest`, and zero: those of PyTorch's dynamic quantization. `symmetric`: where zero is inside, it is the middle.
    """
    if not least <= greatest:
        raise RuntimeError(f"quantize: the least number must be at most the greatest, got {least} and {greatest}")
    symmetric = symmetric and least < 0.0 < greatest
    if symmetric:
        half = (high - low) // 2
        widest = max(-least / (half + 1), greatest / half)
        least, greatest = -widest * (half + 1), widest * half
    least, greatest = min(least, 0.0), max(greatest, 0.0)
    scale = (greatest - least) / (high - low)
    single = cresset.tensor(scale, dtype=cresset.float32)
    if not cresset.isfinite(1.0 / single):
        scale = 0.1
    if scale < LEAST_SCALE:
        if least == 0.0:
            greatest = LEAST_SCALE * (high - low)
        elif greatest == 0.0:
            least = -LEAST_SCALE * (high - low)
        else:
            least, greatest = least * (LEAST_SCALE / float(single)), greatest * (LEAST_SCALE / float(single))
        scale = LEAST_SCALE
    # Take the zero point from the end whose rounding error is smaller.
    from_least, from_greatest = low - least / scale, high - greatest / scale
    error_least, error_greatest = abs(low) - abs(least / scale), abs(high) - abs(greatest / scale)
    zero = from_least if error_least < error_greatest else from_greatest
    if symmetric:
        zero = (low + high) / 2
    return scale, int(min(max(round(zero), low), high)) if zero == zero else low


def quantize_per_tensor_dynamic(input, dtype, reduce_range):
    """See cresset.quantize_per_tensor_dynamic."""
    if dtype is cresset.float16:  # what PyTorch's dynamic quantization to half precision is: no integers at all
        return input.to(dtype)
    _, low, high = held_by(dtype, "quantize_per_tensor_dynamic")
    check_float("quantize_per_tensor_dynamic", input)
    if reduce_range:
        low, high = low // 2, high // 2
    scale, zero_point = choose_parameters(*extremes(input), low, high)
    return quantize_per_tensor(input, scale, zero_point, dtype)


def extremes(input):
    """The least and the greatest number of a tensor; zeros of an empty one."""
    return tuple(map(float, input.aminmax())) if input.numel() else (0.0, 0.0)


from . import quantized_rules  # noqa: E402, F401  (fills `rules` by being loaded)
