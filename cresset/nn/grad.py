"""The gradients of convolutions as functions of their own, for those who write a backward by hand."""

import cresset


def _input_gradient(rank, input_size, weight, grad_output, options):
    input = grad_output.new_empty(1).expand(tuple(input_size))
    return _gradients(rank, grad_output, input, weight, options, (True, False, False))[0]


def _weight_gradient(rank, input, weight_size, grad_output, options):
    weight = grad_output.new_empty(1).expand(tuple(weight_size))
    return _gradients(rank, grad_output, input, weight, options, (False, True, False))[1]


def _gradients(rank, grad_output, input, weight, options, needed):
    stride, padding, dilation, groups = options
    each = lambda value: [value] * rank if isinstance(value, int) else list(value)  # noqa: E731
    return cresset.convolution_backward(
        grad_output, input, weight, None, each(stride), each(padding), each(dilation), False, [0] * rank, groups, list(needed)
    )


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
