"""Derivatives as functions: grad, vjp and jacrev go backward, jvp and jacfwd forward.

Note [Differentiated arguments]: the function is called with fresh tensors in place of the arguments, at the level of
the innermost vmap (see batching.py), so that what happens to them belongs to this derivative alone. A result that
nobody outside can differentiate is cut from the graph.
"""

import contextlib
import functools
import threading

import cresset
from cresset import _native
from cresset._native import Tensor, batch_of, detach_raw, level_of, sample_of
from cresset.autograd import forward_ad
from cresset.autograd.grad_mode import enable_grad
from cresset.overrides import DisableTorchFunction
from cresset.pytree import tree_flatten, tree_leaves, tree_map, tree_unflatten

from .batching import frames, top_level
from .vmapping import check_randomness, vmap


class _Running(threading.local):
    depth = 0  # how many derivatives this thread is inside of


_running = _Running()


@contextlib.contextmanager
def refusing_writes(*given):
    """A block in which a function runs that a derivative is taken of: what it has not made, and was not given, is not
    changed in place.
    """
    tensors = tuple(x for x in tree_leaves(given) if isinstance(x, Tensor) and not hasattr(type(x), "_recorded"))
    before = _native.enter_function(tensors)
    try:
        yield
    finally:
        _native.leave_function(before)


def inside_a_transform():
    """Whether this thread runs a function that vmap or a derivative of this package calls."""
    return _running.depth > 0 or bool(frames())


def grad(func, argnums=0, has_aux=False):
    """The gradient of a function with one number as its result, by the arguments `argnums`.

    Args:
        argnums: which argument (then the gradient has its structure), or a tuple of them.
        has_aux: `func` gives `(result, aux)`, and the new function `(gradient, aux)`.

    >>> cresset.func.grad(lambda x: x**3)(cresset.tensor(2.0))
    tensor(12.)
    >>> cresset.vmap(cresset.func.grad(cresset.sin))(cresset.zeros(2))
    tensor([1., 1.])
    """

    @functools.wraps(func, updated=())
    def gradient(*args, **kwargs):
        slopes, value = grad_and_value(func, argnums, has_aux)(*args, **kwargs)
        return (slopes, value[1]) if has_aux else slopes

    return gradient


def grad_and_value(func, argnums=0, has_aux=False):
    """As `grad`, with the value: `(gradient, value)`, or `(gradient, (value, aux))`.

    >>> cresset.func.grad_and_value(lambda x: x**3)(cresset.tensor(2.0))
    (tensor(12.), tensor(8.))
    """

    @functools.wraps(func, updated=())
    def gradient(*args, **kwargs):
        with Reverse() as reverse:
            args, chosen = reverse.tracked_arguments(args, argnums)
            with refusing_writes(reverse.beside, kwargs):
                result = func(*args, **kwargs)
            output, aux = split_aux(result, has_aux, "grad_and_value(f)(*args)")
            if not isinstance(output, Tensor):
                raise RuntimeError(
                    f"grad_and_value(f)(*args): Expected f(*args) to return a Tensor, got {type(output)}"
                )
            if output.dim():
                raise RuntimeError(
                    "grad_and_value(f)(*args): Expected f(*args) to return a scalar Tensor, got tensor with "
                    f"{output.dim()} dims. "
                    "Maybe you wanted to use the vjp or jacrev APIs instead?"
                )
            if output.requires_grad and not output.is_floating_point():
                raise RuntimeError(
                    f"grad can be implicitly created only for real scalar outputs but got {output.dtype}"
                )
            leaves, spec = tree_flatten(chosen)
            slopes = tree_unflatten(reverse.pull([output], leaves, [cresset.ones_like(output)]), spec)
            slopes, output, aux = reverse.released((slopes, output, aux))
        return slopes, ((output, aux) if has_aux else output)

    return gradient


def vjp(func, *primals, has_aux=False):
    """The result of `func` and the function that multiplies a vector with its Jacobian: `(result, vjp_fn)`, or with
    `aux` behind.

    >>> _, pull = cresset.func.vjp(lambda x: x**2, cresset.tensor([1.0, 2.0]))
    >>> pull(cresset.tensor([1.0, 10.0]))
    (tensor([ 2., 40.]),)
    """
    return _vjp(func, primals, has_aux)


def _vjp(func, primals, has_aux, argnums=None):
    with Reverse() as reverse:
        args, chosen = reverse.tracked_arguments(primals, tuple(range(len(primals))) if argnums is None else argnums)
        with refusing_writes(reverse.beside):
            result = func(*args)
        output, aux = split_aux(result, has_aux, "vjp(f, *primals)")
        outputs, out_spec = flat_tensors(output, "vjp(f, *primals)")
        released, aux = reverse.released((output, aux))
    leaves, in_spec = tree_flatten(chosen)

    def pull(*cotangents, retain_graph=True, create_graph=None):
        if len(cotangents) == 1:
            cotangents = cotangents[0]
        given, spec = tree_flatten(cotangents)
        if spec != out_spec:
            raise RuntimeError(
                "Expected pytree structure of cotangents to be the same as pytree structure of outputs to the "
                f"function. cotangents: {spec}, primal output: {out_spec}"
            )
        with Reverse(reverse.leaves) as again:
            slopes = again.pull(outputs, leaves, given, retain_graph, create_graph)
            return again.released(tree_unflatten(slopes, in_spec))

    return (released, pull, aux) if has_aux else (released, pull)


# What hooks pack has no tangents and no level, so that a derivative of this one would be wrong.
NO_HOOKS = (
    "torch.func.{grad, vjp, jacrev, hessian} don't support saved tensor hooks: take the hooks (save_on_cpu, "
    "checkpoint) off around the transform and the function"
)


class Reverse:
    """One reverse-mode derivative: its fresh arguments, and what may be cut afterwards."""

    def __init__(self, leaves=()):
        self.leaves = list(leaves)  # fresh tensors without a history
        self.beside = []  # the arguments that are not differentiated
        self.classed = {}  # arguments by the fresh tensors in their place, which have no class of their own

    def __enter__(self):
        self.hooks = _native.disable_saved_hooks(NO_HOOKS)
        self.recording = _native.is_grad_enabled()
        self.inference = _native.set_inference_mode(False)  # in which nothing is recorded
        self.keeps_inference = _native.set_keeps_inference(True)
        self.mode = enable_grad()
        self.mode.__enter__()
        _running.depth += 1
        return self

    def __exit__(self, *details):
        _running.depth -= 1
        self.mode.__exit__(*details)
        _native.set_keeps_inference(self.keeps_inference)
        _native.set_inference_mode(self.inference)
        _native.disable_saved_hooks(self.hooks)

    def tracked_arguments(self, args, argnums):
        """The arguments with the differentiated ones replaced by fresh tensors; and these, in the structure of
        `argnums`.
        """
        places = checked_argnums(argnums, len(args))
        args = list(args)
        for place in places:
            args[place] = tree_map(self.tracked, args[place])
        self.beside = [arg for place, arg in enumerate(args) if place not in places]
        return args, args[places[0]] if isinstance(argnums, int) else tuple(args[place] for place in places)

    def tracked(self, tensor):
        if hasattr(type(tensor), "_recorded"):  # made of others; see Note [Interpreted tensors]
            return tensor._with(self.tracked(tensor._recorded))
        given, tensor = tensor, lifted(tensor)
        if tensor.requires_grad:
            with DisableTorchFunction():
                fresh = tensor.view_as(tensor)
        else:
            fresh = with_tangents_of(tensor, detach_raw(tensor)).requires_grad_()
            self.leaves.append(fresh)
        if type(fresh) is not type(given):
            self.classed[fresh] = given
        return fresh

    def pull(self, outputs, inputs, cotangents, retain_graph=None, create_graph=None):
        """The gradients, zeros where there is none."""
        recorded = [(o, c) for o, c in zip(outputs, cotangents, strict=True) if o.requires_grad]
        for k, (output, cotangent) in enumerate(zip(outputs, cotangents, strict=True)):
            if output.shape != cotangent.shape:
                raise RuntimeError(
                    f"Mismatch in shape: grad_output[{k}] has a shape of {cotangent.shape} and output[{k}] has a "
                    f"shape of {output.shape}."
                )
        if not recorded or not inputs:
            return [zeros_of(x) for x in inputs]
        if create_graph is None:
            create_graph = self.recording and (
                any(map(level_of, outputs))  # what the samples' batches are made of may be recorded below
                or any(is_recorded(c) for _, c in recorded)
                or not all(_native.depends_only_on(o, tuple(self.leaves)) for o, _ in recorded)
            )
        found = cresset.autograd.grad(
            [o for o, _ in recorded],
            inputs,
            [c for _, c in recorded],
            retain_graph=retain_graph,
            create_graph=create_graph,
            allow_unused=True,
        )
        return [zeros_of(x) if slope is None else slope for x, slope in zip(inputs, found, strict=True)]

    def released(self, tree):
        """Results without what only this derivative could use. An argument of a class that is given back is itself."""
        return tree_map(self._released, tree)

    def _released(self, result):
        if not isinstance(result, Tensor):
            return result
        if result in self.classed:
            return self.classed[result]
        if hasattr(type(result), "_recorded"):
            return result._with(self._released(result._recorded)) if result.requires_grad else result
        if not result.requires_grad:
            return result
        if self.recording and not _native.depends_only_on(result, tuple(self.leaves)):
            return result
        return with_tangents_of(result, detach_raw(result))


def zeros_of(tensor):
    return cresset.zeros_like(tensor.detach() if hasattr(type(tensor), "_recorded") else detach_raw(tensor))


def is_recorded(tensor):
    """Whether a tensor, or the batch it stands for, has a history."""
    while not tensor.requires_grad and level_of(tensor):
        tensor, _ = batch_of(tensor)
    return tensor.requires_grad


def lifted(tensor):
    """A tensor at the level of the innermost vmap, where it counts as an argument of its own."""
    if not isinstance(tensor, Tensor):
        raise ValueError(f"Thing passed to transform API must be Tensor, got {type(tensor)}")
    if tensor.is_inference():
        tensor = with_tangents_of(tensor, detach_raw(tensor))
    level = top_level()
    return tensor if level_of(tensor) == level else sample_of(tensor, None, level)


def plain(tensor):
    """A tensor without a class of its own, where nobody's rules see the calls."""
    return tensor if type(tensor) is Tensor or _native.is_dispatched(tensor) else tensor.view_as(tensor)


def with_tangents_of(tensor, fresh):
    for number in forward_ad.levels_of([tensor]):
        forward_ad.set_tangent(fresh, forward_ad.tangent_of(tensor, number), number)
    return fresh


def checked_argnums(argnums, count):
    if not isinstance(argnums, (int, tuple)):
        raise RuntimeError(f"argnums must be int or Tuple[int, ...], got: {type(argnums)}")
    for number in argnums if isinstance(argnums, tuple) else ():
        if not isinstance(number, int):
            raise RuntimeError(f"argnums: each must be int, got {number} of {type(number)}; an int or Tuple[int, ...]")
    places = (argnums,) if isinstance(argnums, int) else argnums
    if not places:
        raise RuntimeError("argnums must be non-empty")
    found = []
    for place in places:
        if not -count <= place < count:
            raise RuntimeError(f"Got argnum={place}, but only {count} positional inputs")
        found.append(place % count)
    if len(set(found)) != len(found):
        raise RuntimeError(f"argnums elements must be unique, got {argnums}")
    return found


def split_aux(result, has_aux, who):
    if not has_aux:
        return result, None
    if not (isinstance(result, tuple) and len(result) == 2):
        raise RuntimeError(f"{who}: output of function f should be a tuple: (output, aux) if has_aux is True")
    for leaf in tree_leaves(result[1]):
        if not isinstance(leaf, Tensor):
            raise RuntimeError(f"{who}: aux: Expected tensors, got unsupported type {type(leaf)}")
    return result


def flat_tensors(output, who):
    leaves, spec = tree_flatten(output)
    if not leaves or leaves == [None]:
        raise RuntimeError(f"{who}: Expected f to be a function that has non-empty output (got output = {leaves})")
    for leaf in leaves:
        if not isinstance(leaf, Tensor):
            raise RuntimeError(f"{who}: expected f(*primals) to return only tensors, got unsupported type {type(leaf)}")
    return leaves, spec


def jvp(func, primals, tangents, *, strict=False, has_aux=False):
    """The result of `func` and the product of its Jacobian with `tangents`: one pass forward.

    Args:
        strict: refuse a result that does not depend on the primals; else its tangent is zeros.

    >>> x = cresset.tensor([1.0, 2.0])
    >>> cresset.func.jvp(lambda x: x**2, (x,), (cresset.tensor([1.0, 10.0]),))
    (tensor([1., 4.]), tensor([ 2., 40.]))
    """
    if not isinstance(primals, tuple):
        raise RuntimeError(
            "jvp(f, primals, tangents): Expected primals to be a tuple. E.g. it should be valid to call f(*primals)."
        )
    return _jvp(func, primals, tangents, strict, has_aux)


def _jvp(func, primals, tangents, strict=False, has_aux=False, argnums=None):
    who = "jvp(f, primals, tangents)"
    places = range(len(primals)) if argnums is None else checked_argnums(argnums, len(primals))
    chosen = tuple(primals[place] for place in places)
    flat, spec = tree_flatten(chosen)
    flat_tangents, tangents_spec = tree_flatten(tangents)
    if spec != tangents_spec:
        raise RuntimeError(
            f"{who}: Expected primals and tangents to have the same python structure. For example, if primals is a "
            "tuple of 3 tensors, tangents also must be. "
            f"Got primals with structure {spec} and tangents with structure {tangents_spec}"
        )
    if not flat:
        raise RuntimeError(f"{who}: Expected primals to contain at least one Tensor.")
    for tree, values in (("primals", flat), ("tangents", flat_tangents)):
        for value in values:
            if not isinstance(value, Tensor):
                raise RuntimeError(f"{who}: Expected {tree} to only contain Tensors, got {type(value)}")
    inference = _native.set_inference_mode(False)  # in which tangents are not carried along
    forward_ad.enter_nested_level()
    carried, forward_ad.Level.enabled = forward_ad.Level.enabled, True  # whatever holds outside
    _running.depth += 1
    try:
        with DisableTorchFunction():  # as samples, duals have no class of their own
            pairs = [(lifted(x), plain(t)) for x, t in zip(flat, flat_tangents, strict=True)]
            duals = tree_unflatten([forward_ad.make_dual(x, t) for x, t in pairs], spec)
        args = list(primals)
        for place, dual in zip(places, duals, strict=True):
            args[place] = dual
        with refusing_writes(args, flat_tangents):
            result = func(*args)
        output, aux = split_aux(result, has_aux, who)
        outputs, out_spec = flat_tensors(output, who)
        pairs = [forward_ad.unpack_dual(item) for item in outputs]
        if strict and any(pair.tangent is None for pair in pairs):
            raise RuntimeError(
                f"{who}: The output of f is independent of the inputs. This is not allowed with strict=True."
            )
        values = [pair.primal for pair in pairs]
        slopes = [cresset.zeros_like(pair.primal) if pair.tangent is None else pair.tangent for pair in pairs]
        aux = tree_map(lambda x: forward_ad.unpack_dual(x).primal if isinstance(x, Tensor) else x, aux)
    finally:
        _running.depth -= 1
        forward_ad.Level.enabled = carried
        forward_ad.exit_dual_level()
        _native.set_inference_mode(inference)
    results = tree_unflatten(values, out_spec), tree_unflatten(slopes, out_spec)
    return (*results, aux) if has_aux else results


def unit_tangents(tensors):
    """For all elements of the tensors, one after another, tensors with a one there and zeros elsewhere: a batch for
    each tensor.
    """
    sizes = [tensor.numel() for tensor in tensors]
    total, start, found = sum(sizes), 0, []
    for tensor, size in zip(tensors, sizes, strict=True):
        block = cresset.zeros(total, size, dtype=tensor.dtype, device=tensor.device)
        block.diagonal(-start).fill_(1)
        found.append(block.reshape(total, *tensor.shape))
        start += size
    return found


def jacrev(func, argnums=0, *, has_aux=False, chunk_size=None, _preallocate_and_copy=False):
    """The Jacobian by reverse mode: a row for each element of the results. Its shape is that of the result, then of the
    argument.

    Args:
        chunk_size: how many rows to compute at a time; None: all; 1: one after another, without vmap.

    >>> cresset.func.jacrev(cresset.sin)(cresset.zeros(2))
    tensor([[1., 0.],
            [0., 1.]])
    """
    if not (chunk_size is None or chunk_size > 0):
        raise ValueError("jacrev: `chunk_size` should be greater than 0.")

    @functools.wraps(func, updated=())
    def jacobian(*args, **kwargs):
        _check_real("jacrev", "inputs", args)
        result = _vjp(functools.partial(func, **kwargs), args, has_aux, argnums)
        output, pull = result[:2]
        _check_real("jacrev", "outputs", output)
        outputs, out_spec = flat_tensors(output, "jacrev(f)(*args)")
        units = unit_tangents(outputs)
        total = len(units[0]) if units else 0
        rows = _in_chunks(lambda *unit: pull(tree_unflatten(unit, out_spec)), units, total, chunk_size)
        blocks, in_spec = tree_flatten(rows)
        by_output, start = [], 0
        for item in outputs:
            size = item.numel()
            parts = [block.narrow(0, start, size).reshape((*item.shape, *block.shape[1:])) for block in blocks]
            by_output.append(tree_unflatten(parts, in_spec))
            start += size
        jacobians = tree_unflatten(by_output, out_spec)
        return (jacobians, result[2]) if has_aux else jacobians

    return jacobian


def _check_real(who, what, tree):
    """Raise where a tensor is complex: one number is not the derivative by two, and of two."""
    for place, leaf in enumerate(tree_leaves(tree)):
        if isinstance(leaf, Tensor) and leaf.is_complex():
            raise RuntimeError(
                f"{who}: Expected all {what} to be real but received complex tensor at flattened input idx: {place}"
            )


def _in_chunks(function, batches, total, chunk_size):
    if chunk_size == 1:
        rows = [function(*(batch[i] for batch in batches)) for i in range(total)]
        return tree_map(lambda *items: cresset.stack(items), rows[0], *rows[1:])
    return vmap(function, chunk_size=chunk_size)(*batches)


def jacfwd(func, argnums=0, has_aux=False, *, randomness="error"):
    """The Jacobian by forward mode: a column for each element of the arguments. The same result as jacrev; better when
    there are fewer elements in than out.

    >>> cresset.func.jacfwd(cresset.sin)(cresset.zeros(2))
    tensor([[1., 0.],
            [0., 1.]])
    """
    check_randomness(randomness)

    @functools.wraps(func, updated=())
    def jacobian(*args, **kwargs):
        _check_real("jacfwd", "inputs", args)
        places = checked_argnums(argnums, len(args))
        chosen, in_spec = tree_flatten(tuple(args[place] for place in places))
        for tensor in chosen:
            if not isinstance(tensor, Tensor):
                raise RuntimeError(
                    f"jvp(f, primals, tangents): Expected primals to contain only Tensors, got {type(tensor)}"
                )
        units = unit_tangents(chosen)

        def push(*unit):
            result = _jvp(
                functools.partial(func, **kwargs),
                args,
                tree_unflatten(unit, in_spec),
                has_aux=has_aux,
                argnums=tuple(places),
            )
            _check_real("jacfwd", "outputs", result[0])
            return (result[1], result[2]) if has_aux else result[1]

        columns = vmap(push, randomness=randomness, out_dims=(0, None) if has_aux else 0)(*units)
        columns, aux = columns if has_aux else (columns, None)
        blocks, out_spec = tree_flatten(columns)
        found = []
        for block in blocks:
            parts, start = [], 0
            for tensor in chosen:
                part = block.narrow(0, start, tensor.numel())
                parts.append(part.movedim(0, -1).reshape((*block.shape[1:], *tensor.shape)))
                start += tensor.numel()
            tree = tree_unflatten(parts, in_spec)
            found.append(tree[0] if isinstance(argnums, int) else tree)
        jacobians = tree_unflatten(found, out_spec)
        return (jacobians, aux) if has_aux else jacobians

    return jacobian


def hessian(func, argnums=0):
    """The second derivatives of a function with one number as its result: forward mode over reverse mode.

    >>> cresset.func.hessian(lambda x: (x**3).sum())(cresset.tensor([1.0, 2.0]))
    tensor([[ 6.,  0.],
            [ 0., 12.]])
    """
    return jacfwd(jacrev(func, argnums), argnums)


def linearize(func, *primals):
    """The result of `func`, and the function that multiplies its Jacobian at `primals` with tangents. `func` runs once.

    >>> output, push = cresset.func.linearize(lambda x: x**2, cresset.tensor([1.0, 2.0]))
    >>> push(cresset.tensor([1.0, 10.0]))
    tensor([ 2., 40.])
    """
    with Reverse() as reverse:
        with DisableTorchFunction():  # of no class of their own, as those of jvp
            primals = tree_map(lambda x: plain(x) if isinstance(x, Tensor) else x, primals)
        args, chosen = reverse.tracked_arguments(primals, tuple(range(len(primals))))
        output = func(*args)
        outputs, out_spec = flat_tensors(output, "linearize(f, *primals)")
        leaves, in_spec = tree_flatten(chosen)
        # What vjp gives is linear in its vector, so that its derivative by the vector, anywhere, is the Jacobian.
        vectors = [cresset.ones_like(detach_raw(item)).requires_grad_() for item in outputs]
        pulled = reverse.pull(outputs, leaves, vectors, retain_graph=True, create_graph=True)
        released = reverse.released(output)

    def push(*tangents):
        given, spec = tree_flatten(tangents)
        if spec != in_spec:
            raise RuntimeError(
                f"linearize: Expected the tangents {spec} to have the same argspec as the primals {in_spec}"
            )
        for tangent, leaf in zip(given, leaves, strict=True):
            if tangent.shape != leaf.shape:
                raise RuntimeError(
                    f"linearize: Expected a tangent with the primal's shape {tuple(leaf.shape)}, got "
                    f"{tuple(tangent.shape)}"
                )
            if tangent.dtype != leaf.dtype:
                raise RuntimeError(
                    f"linearize: Expected a tangent with the primal's dtype {leaf.dtype}, got {tangent.dtype}"
                )
        with Reverse([*reverse.leaves, *vectors]) as again:
            return again.released(tree_unflatten(again.pull(pulled, vectors, given, retain_graph=True), out_spec))

    return released, push
