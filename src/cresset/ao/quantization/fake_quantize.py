"""FakeQuantize: quantization imitated in floating point, so that a model learns to live with it."""

import cresset
from cresset import nn

from . import observer as watch_
from .observer import FixedQParamsObserver, MovingAverageMinMaxObserver, MovingAveragePerChannelMinMaxObserver, _Later

__all__ = [
    "FakeQuantize", "FakeQuantizeBase", "FixedQParamsFakeQuantize", "FusedMovingAvgObsFakeQuantize",
    "default_affine_fixed_qparams_fake_quant", "default_dynamic_fake_quant", "default_embedding_fake_quant",
    "default_embedding_fake_quant_4bit", "default_fake_quant", "default_fixed_qparams_range_0to1_fake_quant",
    "default_fixed_qparams_range_neg1to1_fake_quant", "default_fused_act_fake_quant",
    "default_fused_per_channel_wt_fake_quant", "default_fused_wt_fake_quant", "default_histogram_fake_quant",
    "default_per_channel_weight_fake_quant", "default_symmetric_fixed_qparams_fake_quant",
    "default_weight_fake_quant", "disable_fake_quant", "disable_observer", "enable_fake_quant", "enable_observer",
    "fused_per_channel_wt_fake_quant_range_neg_127_to_127", "fused_wt_fake_quant_range_neg_127_to_127",
]  # fmt: skip


class FakeQuantizeBase(nn.Module):
    """The base of modules that imitate quantization; both the imitation and the observer can be turned off."""

    def __init__(self):
        super().__init__()
        self.register_buffer("fake_quant_enabled", cresset.tensor([1], dtype=cresset.uint8))
        self.register_buffer("observer_enabled", cresset.tensor([1], dtype=cresset.uint8))

    def enable_fake_quant(self, enabled=True):
        """Imitate (or no longer)."""
        self.fake_quant_enabled[0] = 1 if enabled else 0

    def disable_fake_quant(self):
        """Let tensors pass as they are."""
        self.enable_fake_quant(False)

    def enable_observer(self, enabled=True):
        """Go on (or stop) finding the scale."""
        self.observer_enabled[0] = 1 if enabled else 0

    def disable_observer(self):
        """Keep the scale."""
        self.enable_observer(False)

    @classmethod
    def with_args(cls, **kwargs):
        """The class with some of its arguments, to be called with the rest."""
        return _Later(cls, **kwargs)


class FakeQuantize(FakeQuantizeBase):
    """Finds a scale with an observer, and gives what quantizing with it and back gives.

    Args:
        observer: the class that finds the scale; `observer_kwargs` go to it.

    >>> fake = cresset.ao.quantization.FakeQuantize(quant_min=0, quant_max=255)
    >>> fake(cresset.tensor([0.0, 100.4, 255.0]))
    tensor([  0., 100., 255.])
    """

    def __init__(
        self, observer=MovingAverageMinMaxObserver, quant_min=None, quant_max=None, is_dynamic=False, **observer_kwargs
    ):
        super().__init__()
        if quant_min is not None and quant_max is not None:
            observer_kwargs |= {"quant_min": quant_min, "quant_max": quant_max}
        self.activation_post_process = observer(**observer_kwargs)
        watch = self.activation_post_process
        self.quant_min, self.quant_max, self.dtype, self.qscheme = (
            watch.quant_min,
            watch.quant_max,
            watch.dtype,
            watch.qscheme,
        )
        self.ch_axis = getattr(watch, "ch_axis", -1)
        self.is_per_channel = self.qscheme in (
            cresset.per_channel_affine, cresset.per_channel_symmetric, cresset.per_channel_affine_float_qparams
        )  # fmt: skip
        self.is_dynamic = is_dynamic
        floats = self.qscheme == cresset.per_channel_affine_float_qparams
        self.register_buffer("scale", cresset.tensor([1.0]))
        self.register_buffer("zero_point", cresset.tensor([0], dtype=cresset.float if floats else cresset.int))

    def calculate_qparams(self):
        """(scale, zero_point) of what the observer saw."""
        return self.activation_post_process.calculate_qparams()

    def forward(self, X):
        if self.observer_enabled[0] == 1:
            self.activation_post_process(X.detach())
            scale, zero_point = self.calculate_qparams()
            self.scale.resize_(scale.shape).copy_(scale)  # the buffers stay the same tensors
            self.zero_point.resize_(zero_point.shape).copy_(zero_point)
        if self.fake_quant_enabled[0] == 1:
            if self.is_per_channel:
                return cresset.fake_quantize_per_channel_affine(
                    X, self.scale, self.zero_point, self.ch_axis, self.quant_min, self.quant_max
                )
            return cresset.fake_quantize_per_tensor_affine(
                X, self.scale, self.zero_point, self.quant_min, self.quant_max
            )
        return X

    def extra_repr(self):
        return (
            f"fake_quant_enabled={self.fake_quant_enabled}, observer_enabled={self.observer_enabled}, "
            f"quant_min={self.quant_min}, "
            f"quant_max={self.quant_max}, dtype={self.dtype}, qscheme={self.qscheme}, ch_axis={self.ch_axis}, "
            f"scale={self.scale}, zero_point={self.zero_point}"
        )


class FusedMovingAvgObsFakeQuantize(FakeQuantize):
    """FakeQuantize with running means of the extremes, in one call: `cresset.fused_moving_avg_obs_fake_quant`, which
    finds scale and zero point in double precision, as PyTorch's dynamic quantization does.

    Args:
        observer: MovingAverageMinMaxObserver or MovingAveragePerChannelMinMaxObserver; `observer_kwargs` go to it.

    >>> fake = cresset.ao.quantization.FusedMovingAvgObsFakeQuantize()
    >>> fake(cresset.tensor([0.0, 0.996, 2.55]))
    tensor([0.0000, 1.0000, 2.5500])
    """

    def __init__(self, observer=MovingAverageMinMaxObserver, quant_min=0, quant_max=255, **observer_kwargs):
        super().__init__(observer, quant_min, quant_max, **observer_kwargs)
        if not isinstance(
            self.activation_post_process, (MovingAverageMinMaxObserver, MovingAveragePerChannelMinMaxObserver)
        ):
            raise AssertionError(
                "Fused observer+fake_quant module only works with MovingAverageMinMaxObserver and "
                f"MovingAveragePerChannelMinMaxObserver, got {type(self.activation_post_process).__name__}"
            )
        self.register_buffer("fake_quant_enabled", cresset.tensor([1], dtype=cresset.long))
        self.register_buffer("observer_enabled", cresset.tensor([1], dtype=cresset.long))
        self.is_symmetric_quant = self.qscheme in (cresset.per_tensor_symmetric, cresset.per_channel_symmetric)

    def forward(self, X):
        watch = self.activation_post_process
        return cresset.fused_moving_avg_obs_fake_quant(
            X, self.observer_enabled, self.fake_quant_enabled, watch.min_val, watch.max_val, self.scale,
            self.zero_point, watch.averaging_constant, self.quant_min, self.quant_max, self.ch_axis,
            self.is_per_channel, self.is_symmetric_quant,
        )  # fmt: skip


class FixedQParamsFakeQuantize(FakeQuantize):
    """FakeQuantize with a given scale and zero point.

    Args:
        observer: makes a FixedQParamsObserver, which has them.

    >>> q = cresset.ao.quantization
    >>> q.default_fixed_qparams_range_0to1_fake_quant()(cresset.tensor([0.5, 2.0]))
    tensor([0.5000, 0.9961])
    """

    def __init__(self, observer):
        super().__init__(observer=observer)
        watch = self.activation_post_process
        if type(watch) is not FixedQParamsObserver:
            raise AssertionError(
                f"{type(self).__name__}'s observer must be a FixedQParamsObserver, got {type(watch).__name__}"
            )
        if self.qscheme not in (cresset.per_tensor_affine, cresset.per_tensor_symmetric):
            raise AssertionError(
                f"Only per tensor quantization is supported FixedQParamsFakeQuantize module, got qscheme:{self.qscheme}"
            )
        self._observer_ctr = observer
        self.scale, self.zero_point = watch.scale, watch.zero_point

    def calculate_qparams(self):
        """(scale, zero_point) as given."""
        return self.scale, self.zero_point


default_fake_quant = FakeQuantize.with_args(
    observer=MovingAverageMinMaxObserver,
    quant_min=0,
    quant_max=255,
    dtype=cresset.quint8,
    qscheme=cresset.per_tensor_affine,
    reduce_range=True,
)
default_weight_fake_quant = FakeQuantize.with_args(
    observer=MovingAverageMinMaxObserver,
    quant_min=-128,
    quant_max=127,
    dtype=cresset.qint8,
    qscheme=cresset.per_tensor_symmetric,
    reduce_range=False,
)
default_per_channel_weight_fake_quant = FakeQuantize.with_args(
    observer=MovingAveragePerChannelMinMaxObserver,
    quant_min=-128,
    quant_max=127,
    dtype=cresset.qint8,
    qscheme=cresset.per_channel_symmetric,
    reduce_range=False,
    ch_axis=0,
)
default_fused_act_fake_quant = FusedMovingAvgObsFakeQuantize.with_args(
    observer=MovingAverageMinMaxObserver, quant_min=0, quant_max=255, dtype=cresset.quint8
)
default_fused_wt_fake_quant = FusedMovingAvgObsFakeQuantize.with_args(
    observer=MovingAverageMinMaxObserver,
    quant_min=-128,
    quant_max=127,
    dtype=cresset.qint8,
    qscheme=cresset.per_tensor_symmetric,
)
default_fused_per_channel_wt_fake_quant = FusedMovingAvgObsFakeQuantize.with_args(
    observer=MovingAveragePerChannelMinMaxObserver,
    quant_min=-128,
    quant_max=127,
    dtype=cresset.qint8,
    qscheme=cresset.per_channel_symmetric,
)
default_dynamic_fake_quant = FakeQuantize.with_args(
    observer=MovingAverageMinMaxObserver,
    quant_min=0,
    quant_max=255,
    is_dynamic=True,
    dtype=cresset.quint8,
    averaging_constant=1,
)
default_fixed_qparams_range_neg1to1_fake_quant = FixedQParamsFakeQuantize.with_args(
    observer=watch_.default_fixed_qparams_range_neg1to1_observer
)
default_fixed_qparams_range_0to1_fake_quant = FixedQParamsFakeQuantize.with_args(
    observer=watch_.default_fixed_qparams_range_0to1_observer
)
default_symmetric_fixed_qparams_fake_quant = default_fixed_qparams_range_neg1to1_fake_quant
default_affine_fixed_qparams_fake_quant = default_fixed_qparams_range_0to1_fake_quant
default_embedding_fake_quant = FakeQuantize.with_args(
    observer=MovingAveragePerChannelMinMaxObserver,
    qscheme=cresset.per_channel_affine_float_qparams,
    dtype=cresset.quint8,
    quant_min=0,
    quant_max=255,
    ch_axis=0,
    averaging_constant=1,
)
default_embedding_fake_quant_4bit = FakeQuantize.with_args(
    observer=MovingAveragePerChannelMinMaxObserver,
    qscheme=cresset.per_channel_affine_float_qparams,
    ch_axis=0,
    dtype=cresset.quint4x2,
    averaging_constant=1,
)
default_histogram_fake_quant = FakeQuantize.with_args(
    observer=watch_.HistogramObserver,
    quant_min=0,
    quant_max=255,
    dtype=cresset.quint8,
    qscheme=cresset.per_tensor_affine,
    reduce_range=True,
)
fused_wt_fake_quant_range_neg_127_to_127 = FusedMovingAvgObsFakeQuantize.with_args(
    observer=MovingAverageMinMaxObserver,
    quant_min=-127,
    quant_max=127,
    dtype=cresset.qint8,
    qscheme=cresset.per_tensor_symmetric,
    eps=2**-12,
)
fused_per_channel_wt_fake_quant_range_neg_127_to_127 = FusedMovingAvgObsFakeQuantize.with_args(
    observer=MovingAveragePerChannelMinMaxObserver,
    quant_min=-127,
    quant_max=127,
    dtype=cresset.qint8,
    qscheme=cresset.per_channel_symmetric,
    eps=2**-12,
)


def _for_each(method):
    def apply(mod):
        if isinstance(mod, FakeQuantizeBase):
            getattr(mod, method)()

    apply.__name__ = method
    apply.__doc__ = f"`{method}` of a module that imitates quantization, others are left alone: model.apply({method})."
    return apply


enable_fake_quant, disable_fake_quant = _for_each("enable_fake_quant"), _for_each("disable_fake_quant")
enable_observer, disable_observer = _for_each("enable_observer"), _for_each("disable_observer")
