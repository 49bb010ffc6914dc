"""The gradients of convolutions as functions of their own, for those who write a backward by hand."""

import cresset


def _input_gradient(rank, input_size, weight, grad_output, options):
    with cresset.enable_grad():
        input = cresset.zeros(tuple(input_size), dtype=weight.dtype, device=weight.device, requires_grad=True)
        result = _CONVOLUTIONS[rank](input, weight, None, *options)
    return cresset.autograd.grad(result, input, grad_output, create_graph=cresset.is_grad_enabled())[0]


def _weight_gradient(rank, input, weight_size, grad_output, options):
    with cresset.enable_grad():
        weight = cresset.zeros(tuple(weight_size), dtype=input.dtype, device=input.device, requires_grad=True)
        result = _CONVOLUTIONS[rank](input, weight, None, *options)
    return cresset.autograd.grad(result, weight, grad_output, create_graph=cresset.is_grad_enabled())[0]


_CONVOLUTIONS = {1: cresset.conv1d, 2: cresset.conv2d, 3: cresset.conv3d}


def conv1d_input(input_size, weight, grad_output, stride=1, padding=0, dilation=1, groups=1):
    """The gradient of conv1d with respect to its input, of shape `input_size`."""
    return _input_gradient(1, input_size, weight, grad_output, (stride, padding, dilation, groups))


def conv1d_weight(input, weight_size, grad_output, stride=1, padding=0, dilation=1, groups=1):
    """The gradient of conv1d with respect to its weight, of shape `weight_size`."""
    return _weight_gradient(1, input, weight_size, grad_output, (stride, padding, dilation, groups))


def conv2d_input(input_size, weight, grad_output, stride=1, padding=0, dilation=1, groups=1):
    """The gradient of conv2d with respect to its input, of shape `input_size`.

    >>> cresset.nn.grad.conv2d_input((1, 1, 2, 2), cresset.ones(1, 1, 2, 2), cresset.ones(1, 1, 1, 1)).flatten()
    tensor([1., 1., 1., 1.])
    """
    return _input_gradient(2, input_size, weight, grad_output, (stride, padding, dilation, groups))


def conv2d_weight(input, weight_size, grad_output, stride=1, padding=0, dilation=1, groups=1):
    """The gradient of conv2d with respect to its weight, of shape `weight_size`."""
    return _weight_gradient(2, input, weight_size, grad_output, (stride, padding, dilation, groups))


def conv3d_input(input_size, weight, grad_output, stride=1, padding=0, dilation=1, groups=1):
    """The gradient of conv3d with respect to its input, of shape `input_size`."""
    return _input_gradient(3, input_size, weight, grad_output, (stride, padding, dilation, groups))


def conv3d_weight(input, weight_size, grad_output, stride=1, padding=0, dilation=1, groups=1):
    """The gradient of conv3d with respect to its weight, of shape `weight_size`."""
    return _weight_gradient(3, input, weight_size, grad_output, (stride, padding, dilation, groups))
