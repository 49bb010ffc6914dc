"""Observers: modules that look at the tensors that pass and find the scale and the zero point which suit them."""

import abc
import functools
import warnings

import cresset
from cresset import nn
from cresset.tensors.quantized import held_by

__all__ = [
    "FixedQParamsObserver", "HistogramObserver", "MinMaxObserver", "MovingAverageMinMaxObserver",
    "MovingAveragePerChannelMinMaxObserver", "NoopObserver", "ObserverBase", "PerChannelMinMaxObserver",
    "PlaceholderObserver", "RecordingObserver", "ReuseInputObserver", "UniformQuantizationObserverBase",
    "default_affine_fixed_qparams_observer", "default_debug_observer", "default_dynamic_quant_observer",
    "default_fixed_qparams_range_0to1_observer", "default_fixed_qparams_range_neg1to1_observer",
    "default_float_qparams_observer", "default_float_qparams_observer_4bit", "default_histogram_observer",
    "default_observer", "default_per_channel_weight_observer", "default_placeholder_observer",
    "default_reuse_input_observer", "default_symmetric_fixed_qparams_observer", "default_weight_observer",
    "get_observer_state_dict", "load_observer_state_dict", "per_channel_weight_observer_range_neg_127_to_127",
    "weight_observer_range_neg_127_to_127",
]  # fmt: skip

EPS = cresset.finfo(cresset.float32).eps
PLAIN = (cresset.int8, cresset.uint8, cresset.int16, cresset.int32, cresset.uint16)  # integers that are no tensor's


def _bounds(dtype):
    """The least and the greatest integer of a dtype that numbers are quantized to."""
    if dtype in PLAIN:
        return cresset.iinfo(dtype).min, cresset.iinfo(dtype).max
    try:
        return held_by(dtype, "observer")[1:]
    except RuntimeError:
        allowed = ("qint8", "quint8", "quint4x2", "qint32", *(str(plain)[6:] for plain in PLAIN))
        raise AssertionError(f"Default Observer only works for {', '.join(allowed)}, got {dtype}") from None


class _Later:
    """A class with some of its arguments: makes an instance when called."""

    def __init__(self, kind, **kwargs):
        self.p = functools.partial(kind, **kwargs)

    def __call__(self, *args, **kwargs):
        return self.p(*args, **kwargs)

    def __repr__(self):
        return repr(self.p)

    def with_args(self, **kwargs):
        """The same with further arguments."""
        return _Later(self.p, **kwargs)

    with_callable_args = with_args


class ObserverBase(nn.Module, abc.ABC):
    """The base of observers: `forward(x)` looks at x and returns it, `calculate_qparams()` gives (scale,
    zero_point)."""

    def __init__(self, dtype, is_dynamic=False):
        super().__init__()
        self.dtype, self.is_dynamic = dtype, is_dynamic

    @classmethod
    def with_args(cls, **kwargs):
        """The class with some of its arguments, to be called with the rest."""
        return _Later(cls, **kwargs)

    with_callable_args = with_args

    @abc.abstractmethod
    def forward(self, x):
        """Look at x, and give it back."""

    @abc.abstractmethod
    def calculate_qparams(self, **kwargs):
        """(scale, zero_point) of what was seen."""


class UniformQuantizationObserverBase(ObserverBase):
    """Observers that find evenly spaced values.

    Args:
        qscheme: affine, or symmetric: zero is in the middle.
        reduce_range: use half of the integers, so that sums of products do not overflow on old processors.
        quant_min, quant_max: the integers to use, if not all.
    """

    _version = 3

    def __init__(
        self, dtype=cresset.quint8, qscheme=cresset.per_tensor_affine, reduce_range=False, quant_min=None,
        quant_max=None, factory_kwargs=None, eps=EPS,
        is_dynamic=False, **kwargs,
    ):  # fmt: skip
        super().__init__(dtype, is_dynamic)
        self.qscheme, self.reduce_range = qscheme, reduce_range
        self.register_buffer("eps", cresset.tensor([eps], **(factory_kwargs or {})))
        low, high = _bounds(dtype)
        self.has_customized_qrange = quant_min is not None and quant_max is not None
        if self.has_customized_qrange:
            if not low <= quant_min < quant_max <= high:
                raise AssertionError(
                    f"quant_min must be less than quant_max and both within [{low}, {high}] for {dtype}, got "
                    f"{quant_min} and {quant_max}"
                )
            low, high = quant_min, quant_max
        if reduce_range and (self.has_customized_qrange or high - low == 255):
            low, high = low // 2, high // 2
        self.quant_min, self.quant_max = low, high

    def _parameters_of(self, least, greatest):
        """Scale and zero point of the range from `least` to `greatest` (tensors, one entry for each channel)."""
        low, high = self.quant_min, self.quant_max
        seen = least, greatest
        least, greatest = least.clamp(max=0.0), greatest.clamp(min=0.0)
        eps = self.eps.to(least.dtype)
        if self.qscheme in (cresset.per_tensor_symmetric, cresset.per_channel_symmetric):
            scale = cresset.maximum(cresset.maximum(-least, greatest) / ((high - low) / 2), eps)
            middle = (low + high) // 2 if self.has_customized_qrange else 128
            middle = middle if self.dtype in (cresset.quint8, cresset.uint8) else 0
            middle = 2**15 if self.dtype is cresset.uint16 else middle
            zero = cresset.full(scale.shape, middle, dtype=cresset.int64)
        elif self.qscheme == cresset.per_channel_affine_float_qparams:  # from end to end, whether zero is inside or not
            scale = (seen[1] - seen[0]) / (high - low)
            scale = cresset.where(scale > eps, scale, 1.0)
            zero = -seen[0] / scale
        else:
            scale = cresset.maximum((greatest - least) / (high - low), eps)
            zero = (low - cresset.round(least / scale)).clamp(low, high).int()
        return scale, zero

    def reset_min_max_vals(self):
        """Forget what was seen."""
        raise NotImplementedError("Cannot reset min/max values in the given observer.")

    def _parameters_of_nothing(self):
        warnings.warn("must run observer before calling calculate_qparams. Returning default values.", stacklevel=3)
        return cresset.tensor([1.0]), cresset.tensor([0])


class MinMaxObserver(UniformQuantizationObserverBase):
    """Keeps the least and the greatest element seen.

    >>> observer = cresset.ao.quantization.MinMaxObserver()
    >>> _ = observer(cresset.tensor([0.0, 255.0]))
    >>> observer.calculate_qparams()
    (tensor([1.]), tensor([0], dtype=torch.int32))
    """

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.register_buffer("min_val", self.eps.new_tensor(float("inf")))
        self.register_buffer("max_val", self.eps.new_tensor(float("-inf")))

    def forward(self, x_orig):
        if x_orig.numel():
            x = x_orig.detach().to(self.min_val.dtype)
            self._see(*self._extremes(x))
        return x_orig

    def _extremes(self, x):
        return x.min(), x.max()

    def _see(self, least, greatest):
        self.min_val.copy_(cresset.minimum(least, self.min_val))
        self.max_val.copy_(cresset.maximum(greatest, self.max_val))

    @property
    def _has_seen(self):
        return self.min_val.numel() > 0 and bool((self.min_val <= self.max_val).all())

    def calculate_qparams(self):
        """(scale, zero_point) of what was seen."""
        if not self._has_seen:
            return self._parameters_of_nothing()
        return self._parameters_of(self.min_val.reshape(-1), self.max_val.reshape(-1))

    def extra_repr(self):
        return f"min_val={self.min_val}, max_val={self.max_val}"

    def reset_min_max_vals(self):
        """Forget what was seen."""
        self.min_val.fill_(float("inf"))
        self.max_val.fill_(float("-inf"))


class MovingAverageMinMaxObserver(MinMaxObserver):
    """Keeps running means of the least and the greatest element of each tensor seen."""

    def __init__(self, averaging_constant=0.01, *args, **kwargs):
        self.averaging_constant = averaging_constant
        super().__init__(*args, **kwargs)
        self.averaging_constant = averaging_constant

    def _see(self, least, greatest):
        if not self._has_seen:
            return super()._see(least, greatest)
        self.min_val += self.averaging_constant * (least - self.min_val)
        self.max_val += self.averaging_constant * (greatest - self.max_val)
        return None


class PerChannelMinMaxObserver(MinMaxObserver):
    """Keeps the least and the greatest element of each channel."""

    def __init__(self, ch_axis=0, dtype=cresset.quint8, qscheme=cresset.per_channel_affine, *args, **kwargs):
        super().__init__(dtype, qscheme, *args, **kwargs)
        self.ch_axis = ch_axis
        self.min_val, self.max_val = cresset.tensor([]), cresset.tensor([])

    def _extremes(self, x):
        rows = x.movedim(self.ch_axis, 0).flatten(1) if x.dim() > 1 else x.reshape(-1, 1)
        return rows.amin(1), rows.amax(1)

    def _see(self, least, greatest):
        if self.min_val.numel() == 0:
            self.min_val.resize_(least.shape).copy_(least)  # the buffers stay the same tensors
            self.max_val.resize_(greatest.shape).copy_(greatest)
        else:
            super()._see(least, greatest)

    def reset_min_max_vals(self):
        """Forget what was seen."""
        self.min_val, self.max_val = cresset.tensor([]), cresset.tensor([])

    def _load_from_state_dict(self, state_dict, prefix, *args):
        for name in ("min_val", "max_val"):
            if prefix + name in state_dict:
                setattr(self, name, cresset.empty_like(state_dict[prefix + name]))
        super()._load_from_state_dict(state_dict, prefix, *args)


class MovingAveragePerChannelMinMaxObserver(PerChannelMinMaxObserver):
    """Keeps running means of the least and the greatest element of each channel."""

    def __init__(self, averaging_constant=0.01, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.averaging_constant = averaging_constant

    def _see(self, least, greatest):
        if self.min_val.numel() == 0:
            self.min_val.resize_(least.shape).copy_(least)  # the buffers stay the same tensors
            self.max_val.resize_(greatest.shape).copy_(greatest)
        else:
            self.min_val += self.averaging_constant * (least - self.min_val)
            self.max_val += self.averaging_constant * (greatest - self.max_val)


class FixedQParamsObserver(ObserverBase):
    """Looks at nothing: the scale and the zero point are given."""

    def __init__(
        self,
        scale,
        zero_point,
        dtype=cresset.quint8,
        qscheme=cresset.per_tensor_affine,
        quant_min=0,
        quant_max=255,
        is_dynamic=False,
        **kwargs,
    ):
        super().__init__(dtype, is_dynamic)
        self.quant_min, self.quant_max, self.qscheme = quant_min, quant_max, qscheme
        self.register_buffer("scale", cresset.tensor([scale], dtype=cresset.float))
        self.register_buffer("zero_point", cresset.tensor([zero_point], dtype=cresset.int))

    def forward(self, X):
        return X

    def calculate_qparams(self):
        """(scale, zero_point) as given."""
        return self.scale, self.zero_point


class PlaceholderObserver(ObserverBase):
    """Looks at nothing: says only which dtype is wanted."""

    def __init__(
        self,
        dtype=cresset.float32,
        custom_op_name="",
        compute_dtype=None,
        quant_min=None,
        quant_max=None,
        qscheme=None,
        eps=None,
        is_dynamic=False,
    ):
        super().__init__(dtype, is_dynamic)
        self.custom_op, self.compute_dtype, self.eps = custom_op_name, compute_dtype, EPS if eps is None else eps
        self.quant_min, self.quant_max = quant_min, quant_max
        self.qscheme = qscheme or cresset.per_tensor_affine

    def forward(self, x):
        return x

    def calculate_qparams(self):
        """Refused: nothing was looked at."""
        raise RuntimeError("calculate_qparams should not be called for PlaceholderObserver")


class RecordingObserver(ObserverBase):
    """Keeps copies of all tensors seen."""

    tensor_val: list[cresset.Tensor]

    def __init__(self, dtype=cresset.quint8):
        super().__init__(dtype)
        self.tensor_val = []

    def forward(self, x):
        self.tensor_val.append(x.clone())
        return x

    def get_tensor_value(self):
        """The tensors seen."""
        return self.tensor_val

    def calculate_qparams(self):
        """Refused: only copies are kept."""
        raise RuntimeError("calculate_qparams should not be called for RecordingObserver")


class NoopObserver(ObserverBase):
    """Looks at nothing."""

    def __init__(self, dtype=cresset.float16, custom_op_name=""):
        super().__init__(dtype)
        self.custom_op = custom_op_name

    def forward(self, x):
        return x

    def calculate_qparams(self):
        """Refused: nothing was looked at."""
        raise RuntimeError("calculate_qparams should not be called for NoopObserver")


class ReuseInputObserver(ObserverBase):
    """Looks at nothing: for operators that keep numbers as they are, whose results have their input's observer."""

    def __init__(self):
        super().__init__(cresset.quint8)

    def forward(self, x):
        return x

    def calculate_qparams(self):
        """Refused: the input's observer has them."""
        raise Exception(  # noqa: TRY002  PyTorch's class
            "calculate_qparams should not be called for ReuseInputObserver"
        )


def get_observer_state_dict(mod):
    """The entries of a model's state dictionary that are observers'.

    >>> q = cresset.ao.quantization
    >>> model = q.prepare(nn.Sequential(q.QuantStub(q.default_qconfig)))
    >>> sorted(q.get_observer_state_dict(model))[1:]
    ['0.activation_post_process.max_val', '0.activation_post_process.min_val']
    """
    return {name: value for name, value in mod.state_dict().items() if "activation_post_process" in name}


def load_observer_state_dict(mod, obs_dict):
    """Give the observers of a model what get_observer_state_dict gave of another."""
    missing = set()
    for name, module in mod.named_modules():
        if not isinstance(module, ObserverBase):
            continue
        prefix = f"{name}."
        own = {key.removeprefix(prefix): value for key, value in obs_dict.items() if key.startswith(prefix)}
        found = module.load_state_dict(own, strict=False)
        missing.update(prefix + key for key in found.missing_keys)
    if missing:
        raise Exception(f"Missing keys for observer {missing} in state_dict")  # noqa: TRY002  PyTorch's class


from .histogram import HistogramObserver  # noqa: E402  (an observer of the classes above)

default_observer = MinMaxObserver.with_args(quant_min=0, quant_max=127)
default_weight_observer = MinMaxObserver.with_args(dtype=cresset.qint8, qscheme=cresset.per_tensor_symmetric)
default_histogram_observer = HistogramObserver.with_args(quant_min=0, quant_max=127)
default_per_channel_weight_observer = PerChannelMinMaxObserver.with_args(
    dtype=cresset.qint8, qscheme=cresset.per_channel_symmetric
)
default_dynamic_quant_observer = PlaceholderObserver.with_args(
    dtype=cresset.quint8, quant_min=0, quant_max=255, is_dynamic=True
)
default_placeholder_observer = PlaceholderObserver
default_debug_observer = RecordingObserver
weight_observer_range_neg_127_to_127 = MinMaxObserver.with_args(
    dtype=cresset.qint8, qscheme=cresset.per_tensor_symmetric, quant_min=-127, quant_max=127, eps=2**-12
)
per_channel_weight_observer_range_neg_127_to_127 = PerChannelMinMaxObserver.with_args(
    dtype=cresset.qint8, qscheme=cresset.per_channel_symmetric, quant_min=-127, quant_max=127, eps=2**-12
)
default_float_qparams_observer = PerChannelMinMaxObserver.with_args(
    dtype=cresset.quint8, qscheme=cresset.per_channel_affine_float_qparams, ch_axis=0
)
default_float_qparams_observer_4bit = PerChannelMinMaxObserver.with_args(
    dtype=cresset.quint4x2, qscheme=cresset.per_channel_affine_float_qparams, ch_axis=0
)
default_fixed_qparams_range_neg1to1_observer = FixedQParamsObserver.with_args(
    scale=2.0 / 256.0, zero_point=128, dtype=cresset.quint8, quant_min=0, quant_max=255
)
default_fixed_qparams_range_0to1_observer = FixedQParamsObserver.with_args(
    scale=1.0 / 256.0, zero_point=0, dtype=cresset.quint8, quant_min=0, quant_max=255
)
default_symmetric_fixed_qparams_observer = default_fixed_qparams_range_neg1to1_observer
default_affine_fixed_qparams_observer = default_fixed_qparams_range_0to1_observer
default_reuse_input_observer = ReuseInputObserver
