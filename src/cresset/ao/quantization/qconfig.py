"""QConfig: which observers (or imitations) a layer's activations and weights get."""

from collections import namedtuple

import cresset

from . import fake_quantize as fake
from . import observer as watch


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
default_qat_qconfig = QConfig(activation=fake.default_fake_quant, weight=fake.default_weight_fake_quant)

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
