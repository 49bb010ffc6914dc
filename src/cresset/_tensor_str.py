"""torch._tensor_str: how PyTorch's names call the parts of a tensor's text, which cresset.show.printing writes."""

from .show import printing
from .show.printing import PRINT_OPTS, get_printoptions, printoptions, set_printoptions

__all__ = ["PRINT_OPTS", "get_printoptions", "printoptions", "set_printoptions"]


def _tensor_str(self, indent):
    """The elements as text; lines after the first are indented by so many spaces.

    >>> cresset._tensor_str._tensor_str(cresset.tensor([1.0, 2.5]), 0)
    '[1.0000, 2.5000]'
    """
    return printing._contents(self, indent)


def _add_suffixes(tensor_str, suffixes, indent, force_newline):
    """`tensor_str` followed by the suffixes, on new lines where they do not fit, and the closing parenthesis."""
    return printing._append(tensor_str, suffixes, indent, force_newline) + ")"


def _str_intern(inp, *, tensor_contents=None):
    """The text of a tensor without looking at its class's __torch_function__."""
    return printing.tensor_repr(inp, tensor_contents=tensor_contents)


def _str(self, *, tensor_contents=None):
    """The text of a tensor."""
    return printing.tensor_repr(self, tensor_contents=tensor_contents)
