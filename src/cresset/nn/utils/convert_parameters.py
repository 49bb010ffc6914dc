"""Parameters as one vector, and back."""

import cresset


def _same_device(device, parameter):
    if device is not None and parameter.device != device:
        raise TypeError("Found two parameters on different devices, this is currently not supported.")
    return parameter.device


def parameters_to_vector(parameters):
    """All parameters one after the other.

    >>> nn.utils.parameters_to_vector([cresset.ones(2), cresset.zeros(1)])
    tensor([1., 1., 0.])
    """
    pieces, device = [], None
    for parameter in parameters:
        device = _same_device(device, parameter)
        pieces.append(parameter.reshape(-1))
    return cresset.cat(pieces)


def vector_to_parameters(vec, parameters):
    """Give the parameters the values in `vec`, as `parameters_to_vector` lays them out; they become views of it."""
    if not isinstance(vec, cresset.Tensor):
        raise TypeError(f"expected torch.Tensor, but got: {type(vec).__name__}")
    device, start = None, 0
    for parameter in parameters:
        device = _same_device(device, parameter)
        count = parameter.numel()
        parameter.data = vec[start : start + count].view_as(parameter).data
        start += count
