"""torch.nn.quantized: the names of torch.ao.nn.quantized at their old place."""

from . import dynamic  # noqa: F401


def __getattr__(name):
    from cresset.ao.nn import quantized  # upward: PyTorch shows these layers under nn as well

    return getattr(quantized, name)


def __dir__():
    from cresset.ao.nn import quantized  # upward: PyTorch shows these layers under nn as well

    return list(quantized.__all__)
