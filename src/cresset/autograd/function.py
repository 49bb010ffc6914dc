"""autograd.Function: an operation with a forward and a backward of the user's own.

    class Cube(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return grad * 3 * x**2

    y = Cube.apply(x)

The context of a call, `ctx`, is the call's node in the graph: it is `y.grad_fn`, an object of the class `CubeBackward`.
"""

import contextlib
import functools
import inspect
import warnings

import cresset
from cresset import _native
from cresset._native import Tensor

from . import engine, forward_ad

__all__ = [
    "BackwardCFunction",
    "Function",
    "FunctionCtx",
    "FunctionMeta",
    "InplaceFunction",
    "once_differentiable",
]

FREED = (
    "Trying to backward through the graph a second time (or directly access saved tensors after they have already "
    "been freed). "
    "Saved intermediate values of the graph are freed when you call .backward() or autograd.grad(). Specify "
    "retain_graph=True if "
    "you need to backward through the graph a second time or if you need to access saved tensors after calling "
    "backward."
)


class FunctionCtx:
    """What forward may tell backward, and what backward may ask."""

    # Defaults of a call; forward writes over them in the instance.
    to_save = ()
    saved_for_forward = None
    dirty_tensors = ()
    non_differentiable = ()
    materialize_grads = True
    _materialize_non_diff_grads = True  # False: None instead of zeros for the gradients of outputs that have none

    def save_for_backward(self, *tensors):
        """Keep tensors (inputs, outputs or others; None is fine) for backward, which finds them in `ctx.saved_tensors`.

        Unlike attributes of ctx, they are freed after backward and checked not to have been changed in place.
        """
        self.to_save = tensors

    def save_for_forward(self, *tensors):
        """Keep tensors for `jvp`, which finds them in `ctx.saved_tensors`."""
        for tensor in tensors:
            if not (tensor is None or isinstance(tensor, Tensor)):
                raise AssertionError(
                    "save_for_forward expects all arguments to be tensors; you should save non-tensors as attributes "
                    "on ctx."
                )
        self.saved_for_forward = tensors

    def mark_dirty(self, *args):
        """Say which inputs forward has changed in place. Each of them must be returned."""
        self.dirty_tensors = args

    def mark_non_differentiable(self, *args):
        """Say which outputs have no gradient. Their place in backward's arguments remains, with zeros."""
        self.non_differentiable = args

    def set_materialize_grads(self, value):
        """Whether backward gets zeros (the default) or None for the gradient of an output nobody used."""
        self.materialize_grads = value

    def mark_shared_storage(self, *pairs):
        """Was needed once; does nothing."""
        warnings.warn(
            "mark_shared_storage is deprecated. Tensors with shared storages are automatically tracked.",
            FutureWarning,
            stacklevel=2,
        )

    needs_input_grad = ()  # for each argument of apply, whether its gradient is wanted
    _kept = None  # what backward needs: a SavedTensor each; before forward is over and after backward, nothing
    _freed = False

    @property
    def saved_tensors(self):
        """What save_for_backward has kept."""
        if self._kept is None:
            if self._freed:
                raise RuntimeError(FREED)
            return self.saved_for_forward or self.to_save
        return tuple([saved.unpack(self) for saved in self._kept])

    @property
    def saved_variables(self):
        """The old name of `saved_tensors`."""
        warnings.warn("'saved_variables' is deprecated; use 'saved_tensors'", DeprecationWarning, stacklevel=2)
        return self.saved_tensors


class BackwardCFunction(_native.Node, FunctionCtx):
    """The node of a call of a Function; each Function has its own subclass, named after it."""

    _forward_cls = None  # the Function

    _tensor_places = ()  # which arguments of apply were tensors
    _argument_count = 0
    _whole_places = ()  # which arguments are made of others; see Note [Interpreted tensors]
    _wholes = None  # the outputs that are made of others, None in place of the rest
    _result_infos = ()  # shape, dtype and device of each output, None for one that is no tensor

    def apply(self, *grads):
        """What backward gives for these gradients, outside of a backward."""
        return self._forward_cls._backward()(self, *grads)

    @property
    def _raw_saved_tensors(self):
        """What save_for_backward has kept, each as it is kept."""
        if self._freed:
            raise RuntimeError(FREED)
        return tuple(self._kept or ())

    def _keep(self, outputs):
        """Turn what forward asked to save into checked references."""
        saved, self.to_save = self.to_save, ()  # also where a hook stops it: an output would hold itself by its node
        kept = []
        for place, tensor in enumerate(saved):
            if tensor is None:
                kept.append(_native.save_tensor(None))
                continue
            if not isinstance(tensor, Tensor):
                raise TypeError(
                    f"save_for_backward can only save variables, but argument {place} is of type "
                    f"{type(tensor).__name__}"
                )
            index = next((i for i, output in enumerate(outputs) if output is tensor and tensor.grad_fn is self), None)
            kept.append(_native.save_tensor(tensor, index is not None, index or 0))
        self._kept = kept

    # Called by the engine.

    def _run_backward(self, *grads):
        if self._freed:
            raise RuntimeError(FREED)
        if self._wholes is not None:
            grads = [
                grad if whole is None else self._gradient_of(whole, grad)
                for grad, whole in zip(grads, self._wholes, strict=True)
            ]
        if self.materialize_grads:
            grads = [
                cresset.zeros(info[0], dtype=info[1], device=info[2]) if grad is None and info is not None else grad
                for grad, info in zip(grads, self._result_infos, strict=True)
            ]
        results = self._forward_cls._backward()(self, *grads)
        if not isinstance(results, tuple):
            results = (results,)
        expected = self._argument_count
        if len(results) != expected and (len(results) < expected or any(r is not None for r in results[expected:])):
            raise RuntimeError(
                f"function {self.name()} returned an incorrect number of gradients (expected {expected}, got "
                f"{len(results)})"
            )
        for place, result in enumerate(results[:expected]):
            if result is not None and place not in self._tensor_places:
                raise RuntimeError(
                    f"function {self.name()} returned a gradient different from None at position {place + 1}, "
                    "but the corresponding forward input was not a Variable"
                )
        if self._whole_places:
            results = [engine.recorded(r) if k in self._whole_places else r for k, r in enumerate(results)]
        return tuple(results[place] for place in self._tensor_places)

    def _gradient_of(self, whole, grad):
        if grad is None and self.materialize_grads:
            grad = cresset.zeros_like(whole._recorded)
        return None if grad is None else whole._as_gradient(grad)

    def _release_saved(self):
        if self._kept:  # what kept nothing can run again
            self._kept, self._freed = None, True


class FunctionMeta(type):
    """Gives each Function the class of its nodes."""

    def __init__(cls, name, bases, attrs):
        super().__init__(name, bases, attrs)
        node = attrs.get("_node_name", name + "Backward")  # PyTorch's, if it has an operator with this derivative
        cls._backward_cls = type(
            node, (BackwardCFunction,), {"_forward_cls": cls, "__module__": "torch.autograd.function"}
        )


class Function(FunctionCtx, metaclass=FunctionMeta):
    """A differentiable operation defined by static methods; it is called with `apply`.

    `forward(ctx, *args)` computes, without being recorded, or `forward(*args)` does and `setup_context(ctx, inputs,
    output)` says what to keep. `backward(ctx, *grads)` gets a gradient for each output and returns one for each
    argument of forward, None for those without. `jvp(ctx, *tangents)` is the same for forward mode.

    >>> class Cube(Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         ctx.save_for_backward(x)
    ...         return x**3
    ...
    ...     @staticmethod
    ...     def backward(ctx, grad):
    ...         (x,) = ctx.saved_tensors
    ...         return grad * 3 * x**2
    >>> x = cresset.tensor(2.0, requires_grad=True)
    >>> Cube.apply(x).backward()
    >>> x.grad
    tensor(12.)
    """

    generate_vmap_rule = False
    boxed_grads_call = False  # True: backward(ctx, grads) gets one list, which it may empty
    # The context is a node; these are its members, named here as in PyTorch.
    metadata, name, next_functions = _native.Node.metadata, _native.Node.name, _native.Node.next_functions
    register_hook, register_prehook = _native.Node.register_hook, _native.Node.register_prehook

    def __init__(self, *args, **kwargs):
        warnings.warn(
            f"{type(self)} should not be instantiated. Methods on autograd functions are all static, so you should "
            "invoke them on "
            "the class itself. Instantiating an autograd function will raise an error in a future version.",
            DeprecationWarning,
            stacklevel=2,
        )

    def __call__(self, *args, **kwargs):
        raise RuntimeError(
            "Legacy autograd function with non-static forward method is deprecated. "
            "Please use new-style autograd function with static forward method, and call it with apply."
        )

    @staticmethod
    def forward(*args, **kwargs):
        raise NotImplementedError("You must implement the forward function for custom autograd.Function.")

    @staticmethod
    def setup_context(ctx, inputs, output):
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(ctx, *grad_outputs):
        raise NotImplementedError(
            "You must implement either the backward or vjp method for your custom autograd.Function to use it with "
            "backward mode AD."
        )

    vjp = backward

    @staticmethod
    def jvp(ctx, *grad_inputs):
        raise NotImplementedError(
            "You must implement the jvp function for custom autograd.Function to use it with forward mode AD."
        )

    @staticmethod
    def vmap(info, in_dims, *args):
        raise NotImplementedError(
            "To use autograd.Function with vmap, you must either override the vmap staticmethod or set "
            "generate_vmap_rule=True."
        )

    @classmethod
    def _backward(cls):
        if cls.vjp is Function.vjp:
            return _boxed(cls.backward) if cls.boxed_grads_call else cls.backward
        if cls.backward is not Function.backward:
            raise RuntimeError(
                "Implementing both 'backward' and 'vjp' for a custom Function is not allowed. You should only "
                "implement one of them."
            )
        return _boxed(cls.vjp) if cls.boxed_grads_call else cls.vjp

    @classmethod
    def apply(cls, *args, **kwargs):
        """Run forward on the arguments and record the call."""
        split = cls.setup_context is not Function.setup_context
        if split:
            args = bound(cls, args, kwargs)
        elif kwargs:
            args = placed(cls, args, kwargs)
        for arg in args:
            if _native.level_of(arg):
                from cresset.func import custom

                return custom.apply(cls, args, split)
        return cls._applied(args, split)

    @classmethod
    def _applied(cls, args, split, kept=None):
        """The call itself. `kept`: a list to which the context, the raw results and what was saved are added."""
        ctx = cls._backward_cls()
        tensors = [arg for arg in args if isinstance(arg, Tensor)]
        ctx.needs_input_grad = tuple(isinstance(arg, Tensor) and arg.requires_grad for arg in args)
        recorded = True in ctx.needs_input_grad and _native.is_grad_enabled()
        numbers = forward_ad.levels_of(tensors) if forward_ad.Level.depth >= 0 else None
        before = _native.set_grad_mode(False)
        try:
            if numbers:
                with forward_ad.paused(tensors):
                    result = cls._run_forward(ctx, args, split)
            else:
                result = cls._run_forward(ctx, args, split)
        finally:
            _native.set_grad_mode(before)
        outputs = result if isinstance(result, tuple) else (result,)
        if kept is not None:
            kept.append((ctx, outputs, ctx.to_save))
        seen = [place_of_viewed(ctx, args, output) for output in outputs] if numbers else None
        outputs = cls._attach(ctx, args, tensors, outputs, recorded)
        for number in numbers or ():
            cls._push_tangents(ctx, forward_ad.tangents_of(args, number), outputs, number, seen)
        return outputs if isinstance(result, tuple) else outputs[0]

    @classmethod
    def _run_forward(cls, ctx, args, split):
        if not split:
            return cls.forward(ctx, *args)
        result = cls.forward(*args)
        cls.setup_context(ctx, args, result)
        for kept in (*ctx.to_save, *(ctx.saved_for_forward or ())):
            returned = isinstance(kept, Tensor) and holds(result if isinstance(result, tuple) else (result,), kept)
            if returned and holds(args, kept) and not holds(ctx.dirty_tensors, kept):
                raise RuntimeError(
                    "An input that has been returned as-is as output is being saved for backward, which setup_context "
                    "cannot tell from the output. Return and save a view of it, x.view_as(x), or save it in a forward "
                    "that takes ctx"
                )
        return result

    @classmethod
    def _attach(cls, ctx, args, tensors, outputs, recorded):
        """Make `ctx` the node of the outputs. An input that is returned as it is becomes a view, to have a history of
        its own.
        """
        dirty, constant = ctx.dirty_tensors, ctx.non_differentiable
        for tensor in dirty:
            _native.bump_version(tensor)
            if not holds(outputs, tensor):
                raise RuntimeError(
                    "Some elements marked as dirty during the forward method were not returned as output. "
                    "The inputs that are modified inplace must all be outputs of the Function."
                )
            if not holds(tensors, tensor):
                if tensor._is_view():
                    raise RuntimeError(
                        "mark_dirty received a tensor that was not an input. It is a view, so that what it is a view "
                        "of was changed as well: only inputs of the Function can be marked as dirty"
                    )
                warnings.warn(
                    "Only input Tensors should be given to ctx.mark_dirty(). If a Tensor is not an input, there is no "
                    "need to pass it "
                    "to mark_dirty().",
                    stacklevel=3,
                )
            elif recorded and tensor.is_leaf and tensor.requires_grad:
                raise RuntimeError("a leaf Variable that requires grad has been used in an in-place operation.")
        results, attached = [], []
        for output in outputs:
            mode = "new"
            if isinstance(output, Tensor):
                is_input = holds(tensors, output)
                if holds(constant, output) or not is_differentiable(output):
                    mode = "constant"
                    if is_input or output.requires_grad:
                        output = output.detach()
                elif not recorded and output.requires_grad:  # an input stays as it is, what forward made does not
                    if is_input:
                        output = output.detach()
                    elif not output._is_view():
                        output.detach_()
                elif is_input and holds(dirty, output):
                    mode = "dirty"
                elif is_input:
                    with cresset.no_grad():
                        output = output.view_as(output)
            if not recorded and _native.is_grad_enabled():
                _native.made_in_function(output)
            results.append(output)
            attached.append((engine.recorded(output), mode))
        if recorded:
            wholes = [None if o is part else o for o, (part, _) in zip(results, attached, strict=True)]
            if any(whole is not None for whole in wholes):
                ctx._wholes = [None if whole is None else whole.detach() for whole in wholes]
            ctx._tensor_places = tuple(i for i, arg in enumerate(args) if isinstance(arg, Tensor))
            ctx._argument_count = len(args)
            ctx._result_infos = [(o.shape, o.dtype, o.device) if isinstance(o, Tensor) else None for o in results]
            if not ctx._materialize_non_diff_grads:
                for place, (_, mode) in enumerate(attached):
                    if mode == "constant":
                        ctx._result_infos[place] = None
            parts = tuple(map(engine.recorded, tensors))
            if any(part is not tensor for part, tensor in zip(parts, tensors, strict=True)):
                ctx._whole_places = tuple(i for i, arg in enumerate(args) if engine.recorded(arg) is not arg)
            _native.attach_function(ctx, cls._backward_cls.__name__, parts, tuple(attached))
            ctx._keep(results)  # last: an output that is saved must know its node
        return tuple(results)

    @classmethod
    def _push_tangents(cls, ctx, tangents, outputs, number, seen):
        if cls.jvp is Function.jvp:
            if cls.backward is Function.backward and cls.vjp is Function.vjp:
                cls.jvp(ctx)  # says what is missing
            pushed = cls._tangents_from_backward(ctx, tangents, outputs, number)
        else:
            with forward_ad.paused([arg for arg, _ in tangents if arg is not None], number), only_for_forward(ctx):
                given = [
                    cresset.zeros_like(arg) if t is None and arg is not None and is_differentiable(arg) else t
                    for arg, t in tangents
                ]
                versions = [None if t is None or t.is_inference() else t._version for t in given]
                pushed = cls.jvp(ctx, *(given if ctx.materialize_grads else [t for _, t in tangents]))
            pushed = pushed if isinstance(pushed, tuple) else (pushed,)
            if len(pushed) == len(outputs):
                check_tangents(ctx, tangents, outputs, pushed, seen)
            for (arg, _), tangent, version in zip(tangents, given, versions, strict=True):
                if version is not None and holds(ctx.dirty_tensors, arg) and tangent._version == version:
                    raise RuntimeError(
                        f"{cls.__name__}: forward changes an input in place, so the jvp function must modify the "
                        "corresponding gradient inplace, and return it"
                    )
        if len(pushed) != len(outputs):
            raise RuntimeError(
                f"{cls.__name__}.jvp: expected to return {len(outputs)} tangents, one for each output of forward, got "
                f"{len(pushed)}"
            )
        for output, tangent in zip(outputs, pushed, strict=True):
            if isinstance(output, Tensor) and tangent is not None:
                forward_ad.set_tangent(output, tangent, number)
        for kept in ctx._kept or ():
            if (of := kept.output()) is not None and pushed[of[1]] is not None:
                forward_ad.set_tangent(of[0], pushed[of[1]], number)

    @classmethod
    def _tangents_from_backward(cls, ctx, tangents, outputs, number):
        """Without a jvp, what backward says: it is linear in the gradients, and its derivative by them is the
        Jacobian."""

        def backward(grads):
            grads = [
                cresset.zeros_like(o) if g is None and ctx.materialize_grads and isinstance(o, Tensor) else g
                for g, o in zip(grads, outputs, strict=True)
            ]
            slopes = cls._backward()(ctx, *grads)
            return slopes if isinstance(slopes, tuple) else (slopes,)

        smooth = [
            isinstance(o, Tensor) and is_differentiable(o) and not holds(ctx.non_differentiable, o) for o in outputs
        ]
        needed = ctx.needs_input_grad
        ctx.needs_input_grad = tuple(tangent is not None for _, tangent in tangents)
        try:
            with forward_ad.paused([arg for arg, _ in tangents if arg is not None], number):
                return forward_ad.transposed(backward, outputs, smooth, tangents)
        finally:
            ctx.needs_input_grad = needed


class BatchFunction(Function):
    """A Function of tensors whose leading dimensions are a batch, which vmap may add to. Its forward takes `ctx`."""


class InplaceFunction(Function):
    """The base class of older programs' in-place functions."""

    def __init__(self, inplace=False):
        super().__init__()
        self.inplace = inplace


def holds(items, item):
    """Whether this very object is among the items."""
    for other in items:  # noqa: SIM110 (a generator would cost more than the loop)
        if other is item:
            return True
    return False


def is_differentiable(tensor):
    before = _native.set_answering(0)  # it is no question of the program's
    found = tensor.is_floating_point() or tensor.is_complex()
    _native.set_answering(before)
    return found


def bound(function, args, kwargs):
    """All arguments of forward by position, defaults filled in."""
    signature = vars(function).get("_signature")
    if signature is None:
        signature = function._signature = inspect.signature(function.forward)
    arguments = signature.bind(*args, **kwargs)
    arguments.apply_defaults()
    for name, value in arguments.kwargs.items():
        if isinstance(value, _native.Tensor) and any(map(_native.level_of, (value, *arguments.args))):
            raise NotImplementedError(
                f"{function.__name__}: vmap of an autograd.Function with kwarg-only Tensor args is not possible; make "
                f"{name!r} an argument that has a place"
            )
        raise TypeError(f"forward() got an unexpected keyword argument '{name}'")
    return arguments.args


def placed(function, args, kwargs):
    """The arguments of a forward that takes a context, named ones at their places; what comes after the last one that
    is given keeps its default, and is no argument of the call.
    """
    names = list(inspect.signature(function.forward).parameters)[1:]
    found = list(args)
    for name in kwargs:
        if name not in names:
            raise TypeError(f"forward() got an unexpected keyword argument '{name}'")
        if name in names[: len(args)]:
            raise TypeError(f"forward() got multiple values for argument '{name}'")
    for place in range(len(args), 1 + max(map(names.index, kwargs))):
        if names[place] not in kwargs:
            raise TypeError(f"forward() missing required argument: '{names[place]}' (position {place})")
        found.append(kwargs[names[place]])
    return tuple(found)


def _boxed(backward):
    """A backward that takes its gradients as one list, which it may empty: `boxed_grads_call`."""

    def unboxed(ctx, *grads):
        return backward(ctx, list(grads))

    return unboxed


class NotTwice(Function):
    """The identity, with a backward that refuses."""

    @staticmethod
    def forward(ctx, *tensors):
        ctx.mark_non_differentiable(*(tensor for tensor in tensors if not tensor.requires_grad))
        return tuple(tensor.clone() for tensor in tensors)

    @staticmethod
    def backward(ctx, *grads):
        raise RuntimeError("trying to differentiate twice a function that was marked with @once_differentiable")


NotTwice._backward_cls.__name__ = "Error"  # what PyTorch calls such a node


def once_differentiable(fn):
    """Decorator for a backward that is not made of differentiable operations: differentiating its results raises."""

    @functools.wraps(fn)
    def backward(ctx, *args):
        with cresset.no_grad():
            results = fn(ctx, *args)
        if not _native.is_grad_enabled() or not any(isinstance(arg, Tensor) and arg.requires_grad for arg in args):
            return results
        one = not isinstance(results, tuple)
        results = (results,) if one else results
        # A result that is None has an edge, too, which leads nowhere.
        given = [cresset.empty(0) if result is None else result.detach().requires_grad_() for result in results]
        guarded = NotTwice.apply(*given)
        guarded = tuple(None if r is None else g for r, g in zip(results, guarded, strict=True))
        return guarded[0] if one else guarded

    return backward


@contextlib.contextmanager
def only_for_forward(ctx):
    """For a block, `ctx.saved_tensors` are those of save_for_forward."""
    kept, saved = ctx._kept, ctx.to_save
    ctx._kept, ctx.to_save = None, ()
    try:
        yield
    finally:
        ctx._kept, ctx.to_save = kept, saved


def place_of_viewed(ctx, args, output):
    """Which argument an output of forward is a view of, or is as it came; None: no one."""
    if not isinstance(output, Tensor) or holds(ctx.dirty_tensors, output):
        return None
    base = output._base
    for place, arg in enumerate(args):
        if isinstance(arg, Tensor) and (arg is output or base is not None and (base is arg or base is arg._base)):
            return place
    return None


def check_tangents(ctx, tangents, outputs, pushed, seen):
    """That what jvp gives is to the tangents of the inputs what forward's outputs are to the inputs.

    Args:
        seen: for each output, the place of the argument that it is a view of, or None.
    """
    for place, (output, tangent) in enumerate(zip(outputs, pushed, strict=True)):
        if not isinstance(output, Tensor) or tangent is None:
            continue
        if holds(ctx.non_differentiable, output) or not is_differentiable(output):
            raise RuntimeError(
                f"jvp gives a tangent for output {place} of forward, which has no derivative. You should return None "
                "at that position instead"
            )
        if any(arg is output and given is not None and given is not tangent for arg, given in tangents):
            raise RuntimeError(
                "An inplace custom Function is not modifying the forward mode gradients inplace: its jvp must change "
                "the tangent it gets, and return it"
            )
        if seen[place] is not None and tangents[seen[place]][1] is not None:
            check_view(tangents[seen[place]][1], tangent)


def check_view(given, tangent):
    of = given if given._base is None else given._base
    if tangent._is_view() and tangent._base is of:
        return
    what = "a view"
    if tangent._is_view():
        what = "a view of the given tangent" if of is given else "a view of the same base as the given tangent"
    raise RuntimeError(
        "A custom Function's forward is returning a view (or an input as-is) but its jvp is not returning " + what
    )
