"""How the tests of a device compare: the same program on the CPU and on the device."""

import cresset as torch


def moved(value, device):
    if isinstance(value, torch.Tensor):
        return value.to(device)
    if isinstance(value, (list, tuple)):
        return type(value)(moved(v, device) for v in value)
    return value


def results(value):
    return list(value) if isinstance(value, (list, tuple)) else [value]


def agree(program, *arguments, tolerance=0):
    """The program gives the same tensors on both; nan is equal to nan."""
    expected, got = results(program(*arguments)), results(program(*moved(arguments, "cuda")))
    assert len(expected) == len(got)
    for e, g in zip(expected, got, strict=True):
        assert g.is_cuda and g.dtype == e.dtype and g.shape == e.shape
        torch.testing.assert_close(g.cpu(), e, rtol=tolerance, atol=tolerance, equal_nan=True)


def agree_with_gradients(program, *arguments, tolerance=0):
    """Also the gradients of the floating arguments, for a fixed gradient of the result."""

    def whole(*arguments):
        leaves = [
            a.detach().requires_grad_() if isinstance(a, torch.Tensor) and a.is_floating_point() else a
            for a in arguments
        ]
        out = program(*leaves)
        grad = ((torch.arange(out.numel()) % 7) - 3.0).reshape(out.shape).to(out.dtype)
        out.backward(grad.to(out.device))
        return [out.detach(), *(a.grad for a in leaves if isinstance(a, torch.Tensor) and a.requires_grad)]

    agree(whole, *arguments, tolerance=tolerance)
