"""How functions of linalg are called: with out=, into which results are copied, and with or without derivatives."""

import cresset

from ..autograd import forward_ad
from ..ops.registry import _with_out


def with_out(definition):
    """Give a function the keyword out=."""
    return _with_out(definition, "linalg." + definition.__name__)


def is_differentiated(*tensors):
    """Whether a derivative of the result may be asked for. If not, a cheaper routine can do."""
    if cresset.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors):
        return True
    return forward_ad.Level.depth >= 0 and forward_ad.tangents_of(tensors) is not None


def identity_in_place_of(A):
    """Identity matrices of the shape of A that count as made from A: with a gradient, of zeros, if A has one."""
    identity = cresset.eye(A.size(-2), A.size(-1), dtype=A.dtype, device=A.device)
    return cresset.where(cresset.ones((), dtype=cresset.bool, device=A.device), identity, A)
