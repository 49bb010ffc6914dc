"""QConfig: which observers (or imitations) a layer's activations and weights get."""

import functools
from collections import namedtuple

import cresset

from . import fake_quantize as fake
from . import observer as watch

__all__ = [
    "QConfig", "QConfigDynamic", "default_activation_only_qconfig", "default_debug_qconfig",
    "default_dynamic_qat_qconfig", "default_dynamic_qconfig", "default_embedding_qat_qconfig",
    "default_embedding_qat_qconfig_4bit", "default_per_channel_qconfig",
    "default_per_channel_symmetric_qnnpack_qat_qconfig", "default_per_channel_symmetric_qnnpack_qconfig",
    "default_qat_qconfig", "default_qat_qconfig_v2", "default_qconfig", "default_quint8_weight_qconfig",
    "default_reuse_input_qconfig", "default_symmetric_qnnpack_qat_qconfig", "default_symmetric_qnnpack_qconfig",
    "default_weight_only_qconfig", "float16_dynamic_qconfig", "float16_static_qconfig",
    "float_qparams_weight_only_qconfig", "float_qparams_weight_only_qconfig_4bit", "get_default_qat_qconfig",
    "get_default_qconfig", "per_channel_dynamic_qconfig", "qconfig_equals",
]  # fmt: skip


class QConfig(namedtuple("QConfig", ["activation", "weight"])):
    """The classes (with their arguments) that look at a layer's results and at its weight.

    >>> q = cresset.ao.quantization
    >>> q.QConfig(activation=q.MinMaxObserver, weight=q.default_weight_observer).activation.__name__
    'MinMaxObserver'
    """

    __slots__ = ()

    def __new__(cls, activation, weight):
        if isinstance(activation, cresset.nn.Module) or isinstance(weight, cresset.nn.Module):
            raise ValueError(
                "QConfig received observer instance, please pass observer class instead. Use "
                "MyObserver.with_args(x=1) to override arguments to constructor if needed"
            )
        return super().__new__(cls, activation, weight)


class QConfigDynamic(QConfig):
    """The old name of a QConfig for dynamic quantization."""


default_qconfig = QConfig(activation=watch.default_observer, weight=watch.default_weight_observer)
default_per_channel_qconfig = QConfig(
    activation=watch.default_observer, weight=watch.default_per_channel_weight_observer
)
default_dynamic_qconfig = QConfig(activation=watch.default_dynamic_quant_observer, weight=watch.default_weight_observer)
per_channel_dynamic_qconfig = QConfig(
    activation=watch.default_dynamic_quant_observer, weight=watch.default_per_channel_weight_observer
)
float16_dynamic_qconfig = QConfig(
    activation=watch.PlaceholderObserver.with_args(dtype=cresset.float16, is_dynamic=True),
    weight=watch.PlaceholderObserver.with_args(dtype=cresset.float16),
)
float16_static_qconfig = QConfig(
    activation=watch.PlaceholderObserver.with_args(dtype=cresset.float16),
    weight=watch.PlaceholderObserver.with_args(dtype=cresset.float16),
)
float_qparams_weight_only_qconfig = QConfig(
    activation=watch.default_placeholder_observer, weight=watch.default_float_qparams_observer
)
float_qparams_weight_only_qconfig_4bit = QConfig(
    activation=watch.default_placeholder_observer, weight=watch.default_float_qparams_observer_4bit
)
default_debug_qconfig = QConfig(activation=watch.default_debug_observer, weight=watch.default_weight_observer)
default_reuse_input_qconfig = QConfig(activation=watch.default_reuse_input_observer, weight=watch.NoopObserver)
default_quint8_weight_qconfig = QConfig(activation=watch.HistogramObserver, weight=watch.MinMaxObserver)
default_symmetric_qnnpack_qconfig = QConfig(
    activation=watch.HistogramObserver.with_args(dtype=cresset.qint8, reduce_range=False, eps=2**-12),
    weight=watch.weight_observer_range_neg_127_to_127,
)
default_per_channel_symmetric_qnnpack_qconfig = QConfig(
    activation=watch.HistogramObserver.with_args(dtype=cresset.qint8, reduce_range=False, eps=2**-12),
    weight=watch.per_channel_weight_observer_range_neg_127_to_127,
)
default_qat_qconfig = QConfig(activation=fake.default_fake_quant, weight=fake.default_weight_fake_quant)
default_qat_qconfig_v2 = QConfig(activation=fake.default_fused_act_fake_quant, weight=fake.default_fused_wt_fake_quant)
default_dynamic_qat_qconfig = QConfig(activation=fake.default_dynamic_fake_quant, weight=fake.default_weight_fake_quant)
default_weight_only_qconfig = QConfig(activation=cresset.nn.Identity, weight=fake.default_weight_fake_quant)
default_activation_only_qconfig = QConfig(activation=fake.default_fake_quant, weight=cresset.nn.Identity)
default_embedding_qat_qconfig = QConfig(
    activation=watch.NoopObserver.with_args(dtype=cresset.float32), weight=fake.default_embedding_fake_quant
)
default_embedding_qat_qconfig_4bit = QConfig(
    activation=watch.NoopObserver.with_args(dtype=cresset.float32), weight=fake.default_embedding_fake_quant_4bit
)
_SYMMETRIC = fake.FusedMovingAvgObsFakeQuantize.with_args(
    observer=watch.MovingAverageMinMaxObserver,
    quant_min=-128,
    quant_max=127,
    dtype=cresset.qint8,
    reduce_range=False,
    eps=2**-12,
)
default_symmetric_qnnpack_qat_qconfig = QConfig(
    activation=_SYMMETRIC, weight=fake.fused_wt_fake_quant_range_neg_127_to_127
)
default_per_channel_symmetric_qnnpack_qat_qconfig = QConfig(
    activation=_SYMMETRIC, weight=fake.fused_per_channel_wt_fake_quant_range_neg_127_to_127
)

_BACKENDS = ("fbgemm", "x86", "qnnpack", "onednn")


def _check_backend(backend):
    if backend not in _BACKENDS:
        raise ValueError(f"Quantization backend ({backend}) is not supported; it is one of {', '.join(_BACKENDS)}")


def _check_version(version, known, who):
    if version not in known:
        raise AssertionError(
            f"Version number: {version} in {who} is not supported. Version number must be "
            f"{' or '.join(map(str, known))}"
        )


def get_default_qconfig(backend="x86", version=0):
    """The observers for static quantization on a backend; `version` is 0, as PyTorch has no other."""
    _check_version(version, (0,), "get_default_qconfig")
    _check_backend(backend)
    if backend == "qnnpack":
        return QConfig(
            activation=watch.HistogramObserver.with_args(reduce_range=False), weight=watch.default_weight_observer
        )
    return QConfig(
        activation=watch.HistogramObserver.with_args(reduce_range=backend != "onednn"),
        weight=watch.default_per_channel_weight_observer,
    )


def get_default_qat_qconfig(backend="x86", version=1):
    """The imitations for training with quantization on a backend. Version 0 has FakeQuantize, version 1
    FusedMovingAvgObsFakeQuantize.
    """
    _check_version(version, (0, 1), "get_default_qat_qconfig")
    _check_backend(backend)
    imitation, weight, channels = {
        0: (fake.FakeQuantize, fake.default_weight_fake_quant, fake.default_per_channel_weight_fake_quant),
        1: (
            fake.FusedMovingAvgObsFakeQuantize,
            fake.default_fused_wt_fake_quant,
            fake.default_fused_per_channel_wt_fake_quant,
        ),
    }[version]
    activation = imitation.with_args(
        observer=watch.MovingAverageMinMaxObserver,
        quant_min=0,
        quant_max=255,
        reduce_range=backend in ("fbgemm", "x86"),
    )
    return QConfig(activation=activation, weight=weight if backend == "qnnpack" else channels)


def qconfig_equals(q1, q2):
    """Whether two configurations (or None) make observers of the same classes with the same arguments.

    >>> q = cresset.ao.quantization
    >>> q.qconfig_equals(q.get_default_qconfig("x86"), q.get_default_qconfig("fbgemm"))
    True
    """
    if q1 is None or q2 is None:
        return q1 is q2
    return _same_maker(q1.activation, q2.activation) and _same_maker(q1.weight, q2.weight)


def _same_maker(one, other):
    first, second = (getattr(maker, "p", maker) for maker in (one, other))
    if not (isinstance(first, functools.partial) and isinstance(second, functools.partial)):
        return first == second
    if (first.func, first.args) != (second.func, second.args) or first.keywords.keys() != second.keywords.keys():
        return False
    return all(_same_maker(value, second.keywords[name]) for name, value in first.keywords.items())


def remembers_nothing(observer):
    """Whether what an observer tells is of the last tensor it saw alone: then it looks at what goes into a layer, whose
    scale is found anew for each call.
    """
    return getattr(getattr(observer, "activation_post_process", observer), "averaging_constant", None) == 1
