"""Exchanging two tensors under their objects."""

import copyreg
import weakref

from .. import _native


def swap_tensors(t1, t2):
    """Exchange two tensors: each object has the class, the attributes and the data of the other from now on, and who
    holds the object sees it. Nothing else may refer to them: no weak references, views or graphs, but for a leaf's own
    node, which is an error in a later backward.

    >>> a, b = cresset.zeros(2), cresset.ones(3, dtype=cresset.int64)
    >>> cresset.utils.swap_tensors(a, b)
    >>> a, b
    (tensor([1, 1, 1]), tensor([0., 0.]))
    """
    for name, tensor in (("t1", t1), ("t2", t2)):
        if weakref.getweakrefs(tensor):
            raise RuntimeError(f"Cannot swap {name} because it has weakref associated with it")
    slots = set(copyreg._slotnames(t1.__class__))
    if slots != set(copyreg._slotnames(t2.__class__)):
        raise RuntimeError("Cannot swap t1 and t2 if they have different slots")
    for name, tensor in (("t1", t1), ("t2", t2)):
        _forbid_accumulation(name, tensor)
    for name in ("__class__", "__dict__"):
        mine, theirs = getattr(t1, name), getattr(t2, name)
        setattr(t1, name, theirs)
        setattr(t2, name, mine)
    for name in slots:
        mine, theirs = getattr(t1, name, _UNSET), getattr(t2, name, _UNSET)
        _put(t1, name, theirs)
        _put(t2, name, mine)
    _native.swap_tensors(t1, t2)


_UNSET = object()


def _put(tensor, slot, value):
    if value is not _UNSET:
        setattr(tensor, slot, value)
    elif hasattr(tensor, slot):
        delattr(tensor, slot)


def _forbid_accumulation(name, tensor):
    """Check that nothing but its own node holds a tensor, and make that node refuse to run."""
    count = _native.use_count(tensor)
    if count == 1:
        return
    node = None
    if count == 2 and tensor.is_leaf and tensor.requires_grad:
        from ..autograd.graph import get_gradient_edge  # upward: a leaf has a node only where somebody differentiates

        node = get_gradient_edge(tensor).node
        if _native.use_count(tensor) != 2:  # the node is new: somebody else held the tensor
            node = None
    if node is None:
        raise RuntimeError(
            f"Expected use_count of {name} to be 1 or 2 with an AccumulateGrad node but got {count}; make sure you "
            "are not holding references to the tensor in other places."
        )
    node.register_prehook(_refuse_swapped)


def _refuse_swapped(_grads):
    raise RuntimeError(
        "Trying to execute AccumulateGrad node that was poisoned by swap_tensors: backward reached a tensor that was "
        "swapped after the graph was recorded; swap (or convert, or load_state_dict) before forward"
    )
