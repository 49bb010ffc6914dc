"""Views of a tensor that it becomes itself: its sizes and strides change, its memory stays."""

from .. import _native
from .registry import function


def _become_view(who, input, view):
    if hasattr(type(input), "_become"):  # sparse, nested: its parts are those of the other
        input._become(view)
        return input
    return _native.become_view(who, input, view)


@function(method="only")
def transpose_(input, dim0, dim1):
    """Exchange two dimensions of this tensor itself.

    >>> cresset.zeros(2, 3).transpose_(0, 1).shape
    torch.Size([3, 2])
    """
    return _become_view("transpose_", input, input.transpose(dim0, dim1))


@function(method="only")
def t_(input):
    """Transpose this matrix itself.

    >>> cresset.zeros(2, 3).t_().shape
    torch.Size([3, 2])
    """
    return _become_view("t_", input, input.t())


@function(method="only")
def unsqueeze_(input, dim):
    """Insert a dimension of size one into this tensor itself.

    >>> cresset.zeros(3).unsqueeze_(0).shape
    torch.Size([1, 3])
    """
    return _become_view("unsqueeze_", input, input.unsqueeze(dim))


@function(method="only")
def squeeze_(input, *dim, **named):
    """Take the dimensions of size one (all, or those in `dim`) out of this tensor itself.

    >>> cresset.zeros(1, 3, 1).squeeze_().shape
    torch.Size([3])
    """
    return _become_view("squeeze_", input, input.squeeze(*dim, **named))


@function(method="only")
def as_strided_(input, size, stride, storage_offset=None):
    """Give this tensor itself other sizes and strides into its memory.

    >>> cresset.arange(6).as_strided_((2,), (3,))
    tensor([0, 3])
    """
    return _become_view("as_strided_", input, input.as_strided(size, stride, storage_offset))
