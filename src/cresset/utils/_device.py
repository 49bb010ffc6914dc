"""torch.utils._device: a default device for the calls of a function."""

from .. import device as _device
from ..autograd.grad_mode import run_inside


def set_device(device):
    """A decorator: in every call of the function (every step of a generator), tensors are made on `device`.

    >>> from cresset.utils._device import set_device
    >>> @set_device("meta")
    ... def made():
    ...     return cresset.empty(2)
    >>> made().device
    device(type='meta')
    """
    return lambda function: run_inside(lambda: _device(device), function)
