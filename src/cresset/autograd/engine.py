"""Running the graph backward: `backward` adds gradients to the leaves, `grad` returns them; and hooks on tensors."""

import warnings
from collections import OrderedDict
from collections.abc import Mapping

import cresset
from cresset import _native
from cresset._native import Tensor

from ..overrides import handle_torch_function, has_torch_function
from .graph import GradientEdge
from .hooks import RemovableHandle


def backward(tensors, grad_tensors=None, retain_graph=None, create_graph=False, grad_variables=None, inputs=None):
    """Add to each leaf's `.grad` the gradient of the tensors' sum, weighted by `grad_tensors`.

    Args:
        tensors: where to start: tensors or gradient edges.
        grad_tensors: the gradient of each; None is fine for one of a single element.
        retain_graph: keep what backward needs for another one. By default as `create_graph`.
        create_graph: record backward itself, for higher derivatives.
        inputs: only these get their gradient added; by default all leaves.

    >>> x = cresset.ones(2, requires_grad=True)
    >>> cresset.autograd.backward([x * 2, x * 3], [cresset.ones(2), cresset.ones(2)])
    >>> x.grad
    tensor([5., 5.])
    """
    if grad_variables is not None:
        warnings.warn("`grad_variables` is deprecated. Use `grad_tensors` instead.", FutureWarning, stacklevel=2)
        if grad_tensors is not None:
            raise RuntimeError(
                "`grad_tensors` and `grad_variables` (deprecated) arguments both passed to `backward()`. Please only "
                "use `grad_tensors`."
            )
        grad_tensors = grad_variables
    roots = [recorded(root) for root in as_list(tensors)]
    if has_torch_function(roots):
        words = {"retain_graph": retain_graph, "create_graph": create_graph, "inputs": inputs}
        return handle_torch_function(backward, roots, tensors, grad_tensors, **words)
    return add_gradients(tensors, grad_tensors, retain_graph, create_graph, inputs)


def add_gradients(tensors, grad_tensors=None, retain_graph=None, create_graph=False, inputs=None):
    """backward, once nobody answers for it."""
    roots = as_list(tensors)
    if inputs is not None:
        inputs = [recorded(t) for t in as_list(list(inputs.values()) if isinstance(inputs, dict) else inputs)]
        if not inputs:
            raise RuntimeError("`inputs` argument to `backward()` cannot be empty.")
        for t in inputs:
            if isinstance(t, Tensor) and t.requires_grad:
                t.retain_grad()  # of a result, the gradient is kept as of a leaf
        inputs = tuple(inputs)
    roots, grads = start(roots, listed(grad_tensors, len(roots)))
    if create_graph:
        warn_of_cycle()
    _native.run_backward(
        roots, grads, create_graph if retain_graph is None else retain_graph, create_graph, inputs, True
    )


def grad(
    outputs,
    inputs,
    grad_outputs=None,
    retain_graph=None,
    create_graph=False,
    only_inputs=True,
    allow_unused=None,
    is_grads_batched=False,
    materialize_grads=False,
):
    """The gradients of the outputs' sum, weighted by `grad_outputs`, by each of `inputs`; nobody's `.grad` changes.

    Args:
        outputs, inputs: tensors or gradient edges; a dict of inputs gives a dict of gradients.
        grad_outputs: the gradient of each output; None is fine for one of a single element.
        retain_graph: keep what backward needs for another one. By default as `create_graph`.
        create_graph: record backward itself, for higher derivatives.
        allow_unused: give None for an input that was not used instead of an error.
        is_grads_batched: `grad_outputs` have a further first dimension; the results have too. It is one
            backward for all entries, inside vmap.
        materialize_grads: give zeros for an input that was not used.

    >>> x = cresset.tensor(3.0, requires_grad=True)
    >>> (slope,) = cresset.autograd.grad(x**3, x, create_graph=True)
    >>> cresset.autograd.grad(slope, x)
    (tensor(18.),)
    """
    if materialize_grads and allow_unused is False:
        raise ValueError(
            "Expected allow_unused to be True or not passed when materialize_grads=True, but got: allow_unused=False."
        )
    if not only_inputs:
        warnings.warn(
            "only_inputs argument is deprecated and is ignored now (defaults to True). To accumulate gradient for "
            "other parts of "
            "the graph, please use torch.autograd.backward.",
            FutureWarning,
            stacklevel=2,
        )
    names = None
    if isinstance(inputs, Mapping) and type(inputs) is not dict:
        raise TypeError(
            f"`inputs` argument to `grad()` must be a dict, not {type(inputs).__name__}. Other Mapping types are not "
            "supported."
        )
    if isinstance(inputs, dict):
        names, inputs = list(inputs), list(inputs.values())
    inputs, outputs = tuple(as_list(inputs)), tuple(as_list(outputs))
    relevant = [t for t in (*outputs, *inputs) if recorded(t) is t]
    if has_torch_function(relevant):
        found = handle_torch_function(
            grad, relevant, outputs, inputs, grad_outputs=grad_outputs, retain_graph=retain_graph,
            create_graph=create_graph, only_inputs=only_inputs, allow_unused=allow_unused,
            is_grads_batched=is_grads_batched, materialize_grads=materialize_grads,
        )  # fmt: skip
        return found if names is None else dict(zip(names, found, strict=True))
    if not inputs:
        raise RuntimeError("`inputs` argument to `grad()` cannot be empty.")
    wholes, inputs = inputs, tuple(recorded(t) for t in inputs)
    given = listed(grad_outputs, len(outputs))
    keep = create_graph if retain_graph is None else retain_graph
    if is_grads_batched:
        found = all_at_once(outputs, inputs, given, keep, create_graph)
    else:
        roots, grads = start(outputs, given)
        found = _native.run_backward(roots, grads, keep, create_graph, inputs, False)
    unused = next((place for place, g in enumerate(found) if g is None), None)
    if unused is not None and not (allow_unused or materialize_grads):
        raise RuntimeError(
            f"The differentiated Tensor at index {unused} appears to not have been used in the graph. "
            "Set allow_unused=True if this is the desired behavior."
        )
    if materialize_grads:
        if any(g is None and isinstance(t, GradientEdge) for g, t in zip(found, inputs, strict=True)):
            raise RuntimeError("materialize_grads cannot be used when the given input is a GradientEdge")
        found = tuple(
            cresset.zeros_like(t, requires_grad=create_graph) if g is None else g
            for g, t in zip(found, inputs, strict=True)
        )
    found = tuple(
        g if g is None or recorded(whole) is whole else whole._as_gradient(g)
        for whole, g in zip(wholes, found, strict=True)
    )
    return found if names is None else dict(zip(names, found, strict=True))


def recorded(tensor):
    """The tensor that the graph knows: of one that is made of others (sparse, nested), its values."""
    return tensor._recorded if hasattr(type(tensor), "_recorded") else tensor


def all_at_once(outputs, inputs, given, keep, create_graph):
    """The gradients for each entry of batched `grad_outputs`: backward inside vmap over them."""
    for output, g in zip(outputs, given, strict=True):
        if g is None or isinstance(output, GradientEdge):
            continue
        if g.ndim == 0:
            raise IndexError("grad: with is_grads_batched, a grad_output has a first dimension, but one has none")
        if g.shape[1:] != output.shape:
            raise RuntimeError(
                "grad: If `is_grads_batched=True`, we interpret the first dimension of each grad_output as the batch "
                f"dimension; the others are those of its output, but they are {tuple(g.shape)} and "
                f"{tuple(output.shape)}"
            )
    sizes = {g.shape[0] for g in given if g is not None}
    if len(sizes) != 1:
        raise RuntimeError(
            "grad: with is_grads_batched, grad_outputs must have one first dimension in common, got sizes "
            f"{sorted(sizes)}"
        )
    (count,) = sizes
    if not count:
        return tuple(cresset.zeros_like(t).new_empty((0, *t.shape)) for t in inputs)
    from cresset.func import batching, vmapping

    with batching.opened(count, "error") as frame:
        roots, grads = start(outputs, [None if g is None else _native.sample_of(g, 0, frame.number) for g in given])
        found = _native.run_backward(roots, grads, keep, create_graph, inputs, False)
        return tuple(None if g is None else vmapping._remove_batch_dim(g, frame.number, count, 0) for g in found)


def as_list(tensors):
    """One tensor (or what stands for one: an edge of the graph, an object with __torch_function__) or several."""
    one = isinstance(tensors, (Tensor, GradientEdge)) or hasattr(type(tensors), "__torch_function__")
    return [tensors] if one else list(tensors)


def listed(grads, count):
    """The given gradients, one for each root."""
    grads = [None] * count if grads is None else [grads] if isinstance(grads, Tensor) else list(grads)
    if len(grads) != count:
        raise RuntimeError(f"got {count} tensors and {len(grads)} gradients")
    return grads


def start(roots, grads):
    """The roots and their gradients, checked against each other; a missing one becomes 1."""
    grads = [
        root._backward_start(g) if hasattr(type(root), "_backward_start") else _given(root, g)
        for root, g in zip(roots, grads, strict=True)
    ]
    roots = [recorded(root) for root in roots]
    return tuple(roots), tuple(
        first_grad(place, root, g) for place, (root, g) in enumerate(zip(roots, grads, strict=True))
    )


_SPARSE = (_native.sparse_coo, _native.sparse_csr, _native.sparse_csc, _native.sparse_bsr, _native.sparse_bsc)


def _given(root, grad):
    """A gradient as the graph takes it: a sparse one of a dense root is itself, of others the values count."""
    made_of_others = hasattr(type(grad), "_recorded")
    dense = isinstance(root, Tensor) and not hasattr(type(root), "_recorded")
    return grad if made_of_others and dense and grad.layout in _SPARSE else recorded(grad)


def first_grad(place, root, grad):
    if isinstance(grad, Tensor):
        edge = isinstance(root, GradientEdge)
        shape, dtype = root.node._results()[root.output_nr][:2] if edge else (root.shape, root.dtype)
        if shape != grad.shape:
            raise RuntimeError(
                f"Mismatch in shape: grad_output[{place}] has a shape of {grad.shape} and output[{place}] has a shape "
                f"of {shape}."
            )
        if dtype.is_complex != grad.is_complex():
            raise RuntimeError(
                "For complex Tensors, both grad_output and output are required to have the same dtype. Mismatch in "
                "dtype: "
                f"grad_output[{place}] has a dtype of {grad.dtype} and output[{place}] has a dtype of {dtype}."
            )
        return grad if grad.dtype == dtype else grad.to(dtype)
    if grad is not None:
        raise TypeError(f"gradients can be either Tensors or None, but got {type(grad).__name__}")
    if isinstance(root, GradientEdge):
        shape, dtype, device = root.node._results()[root.output_nr]
        if shape.numel() != 1:
            raise RuntimeError(
                "grad can be implicitly created only for scalar outputs, but got a GradientEdge of shape "
                f"{tuple(shape)}"
            )
        return cresset.ones(shape, dtype=dtype, device=device)
    if root.requires_grad:
        if root.numel() != 1:
            raise RuntimeError(
                f"grad can be implicitly created only for scalar outputs, but got shape {tuple(root.shape)}"
            )
        if not root.is_floating_point():
            raise RuntimeError(f"grad can be implicitly created only for real scalar outputs but got {root.dtype}")
    return cresset.ones_like(root)  # a root without history is refused by the engine, with its place


warned_of_cycle = False


def warn_of_cycle():
    global warned_of_cycle
    if not warned_of_cycle:
        warned_of_cycle = True
        warnings.warn(
            "Using backward() with create_graph=True will create a reference cycle between the parameter and its "
            "gradient which can "
            "cause a memory leak. We recommend using autograd.grad when creating the graph to avoid this. If you have "
            "to use this "
            "function, make sure to reset the .grad fields of your parameters to None after use to break the cycle.",
            stacklevel=3,
        )


# ---- methods of Tensor


def tensor_backward(self, gradient=None, retain_graph=None, create_graph=False, inputs=None):
    """Add to each leaf's `.grad` the gradient of this tensor, weighted by `gradient`; see `cresset.autograd.backward`.

    >>> x = cresset.tensor(3.0, requires_grad=True)
    >>> (x**2).backward()
    >>> x.grad
    tensor(6.)
    """
    plain = not _native.is_dispatching() and not _native.is_dispatched(self)
    if gradient is None and inputs is None and not retain_graph and not create_graph and plain:
        _native.backward_scalar(self)
    else:
        add_gradients(self, gradient, retain_graph, create_graph, inputs)


def register_hook(self, hook):
    """Call `hook(grad)` whenever the gradient of this tensor is computed; a tensor it returns replaces the gradient.

    >>> x = cresset.ones(2, requires_grad=True)
    >>> handle = x.register_hook(lambda grad: grad * 10)
    >>> x.sum().backward()
    >>> x.grad
    tensor([10., 10.])
    """
    if not self.requires_grad:
        raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
    # The hooks of a result belong to the node that computed its value: after an in-place change there are new ones.
    node, hooks = self.grad_fn, self._backward_hooks
    sequence = None if node is None else node._sequence_nr()
    if hooks is None or getattr(hooks, "sequence", None) != sequence:
        hooks = self._backward_hooks = OrderedDict()
        if node is not None:
            hooks.sequence = sequence
        _native.add_tensor_hooks(self, hooks)
    handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    return handle


def register_post_accumulate_grad_hook(self, hook):
    """Call `hook(tensor)` whenever a gradient was added to the `.grad` of this leaf.

    >>> x = cresset.ones(2, requires_grad=True)
    >>> handle = x.register_post_accumulate_grad_hook(lambda t: print(t.grad))
    >>> x.sum().backward()
    tensor([1., 1.])
    """
    if not self.requires_grad:
        raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
    if self.grad_fn is not None:
        raise RuntimeError("post accumulate grad hooks cannot be registered on non-leaf tensors")
    hooks = getattr(self, "_post_accumulate_grad_hooks", None)
    if hooks is None:
        hooks = self._post_accumulate_grad_hooks = OrderedDict()
        _native.add_post_accumulate_hooks(self, hooks)
    handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    return handle


def retain_grad(self):
    """Keep the gradient of this result in its `.grad`, as of a leaf.

    >>> x = cresset.tensor(3.0, requires_grad=True)
    >>> y = x * 2
    >>> y.retain_grad()
    >>> (y * y).backward()
    >>> y.grad
    tensor(12.)
    """
    _native.retain_grad(self)
