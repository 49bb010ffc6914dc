"""The words that random programs use beside a library's own: values without rounding, hooks that keep a diary, threads,
files in memory.

`vocabulary(t)` gives the names for one library `t`. A printed program carries the text of this file, so that it runs by
itself.
"""

import copy
import ctypes
import gc
import io
import pickle
import threading

import numpy as np


def vocabulary(t):
    """The names in which a program for the library `t` runs; its diary is `diary`."""
    diary = []
    F = t.nn.functional

    def plain(value):
        """A value of Python's own that says all about `value` that both libraries should agree on."""
        if isinstance(value, t.Tensor):
            return (
                "tensor",
                str(value.dtype).split(".")[-1],
                tuple(value.shape),
                value.requires_grad,
                value.detach().tolist(),
            )
        if isinstance(value, np.ndarray):
            idle = [n == 1 or value.size == 0 for n in value.shape]  # strides that lead nowhere
            strides = tuple(0 if i else s for i, s in zip(idle, value.strides))
            return ("array", str(value.dtype), value.shape, strides, value.tolist())
        if isinstance(value, (list, tuple)):
            return tuple(plain(v) for v in value)
        if isinstance(value, t.dtype):
            return str(value).split(".")[-1]
        return value

    def say(*values):
        diary.append(plain(values))

    def values(shape, dtype, seed=0):
        """A tensor of quarters between -2 and 2 (integers between -5 and 5), whose sums and products need no
        rounding."""
        count = int(np.prod(shape))
        dtype = getattr(t, dtype)
        steps = [(i * 7 + seed * 13 + i * i * (seed % 3)) % 17 for i in range(count)]
        if dtype == t.bool:
            steps = [s % 2 == 0 for s in steps]
        elif dtype.is_complex:
            steps = [complex((s - 8) / 4, (s * 5 % 17 - 8) / 4) for s in steps]
        elif dtype.is_floating_point:
            steps = [(s - 8) / 4 for s in steps]
        else:
            steps = [s % 11 - (5 if dtype.is_signed else 0) for s in steps]
        return t.tensor(steps, dtype=dtype).reshape(shape).clone()  # no view

    def hook(name, does="say"):
        """A hook for tensors that writes down what it was given, and leaves, doubles, or refuses it."""

        def run(grad):
            say(name, grad)
            if does == "double":
                return grad * 2
            if does == "clone":
                return grad.clone()
            if does == "refuse":
                raise ValueError(name)
            if does == "spoil":
                return grad.sum()
            return None

        return run

    def node_hook(name, does="say"):
        """A hook for grad_fn: of one list of gradients, or of two."""

        def run(*grads):
            say(name, grads)
            if does == "double":
                return tuple(None if g is None else g * 2 for g in grads[0])
            if does == "refuse":
                raise ValueError(name)
            return None

        return run

    def after(name, does="say"):
        """A hook for after a gradient was added up."""

        def run(leaf):
            say(name, leaf.grad)
            if does == "drop":
                leaf.grad = None
            if does == "step":
                with t.no_grad():
                    leaf.sub_(leaf.grad, alpha=0.5)

        return run

    def in_thread(work):
        """Do the work in a thread of its own, and give or raise what it gave or raised."""
        outcome = []

        def run():
            try:
                outcome.append((work(), None))
            except Exception as error:
                outcome.append((None, error))

        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
        result, error = outcome[0]
        if error is not None:
            raise error
        return result

    def together(*works):
        """Do all the work at the same time, each in a thread of its own; the first error of the list is raised."""
        outcomes = [None] * len(works)

        def run(i):
            try:
                outcomes[i] = (works[i](), None)
            except Exception as error:
                outcomes[i] = (None, error)

        threads = [threading.Thread(target=run, args=(i,)) for i in range(len(works))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for _, error in outcomes:
            if error is not None:
                raise error
        return [result for result, _ in outcomes]

    def through_file(value, **options):
        """`value` saved and loaded again."""
        file = io.BytesIO()
        t.save(value, file)
        file.seek(0)
        return t.load(file, **options)

    def through_pickle(value):
        return pickle.loads(pickle.dumps(value))

    def grown(tensor, change):
        """Let `change` resize the tensor's memory, and fill what is new with zeros."""
        before = tensor.untyped_storage().nbytes()
        try:
            change()
        finally:
            storage = tensor.untyped_storage()
            if storage.nbytes() > before:
                ctypes.memset(storage.data_ptr() + before, 0, storage.nbytes() - before)
        return tensor

    def sorting(tensor, **options):
        """The sorted values, and those that the places lead to: which of equal elements comes first is free."""
        found, places = t.sort(tensor, **options)
        say(found, t.take_along_dim(tensor, places, options.get("dim", -1)) if tensor.dim() else tensor)
        return found

    class Scaled(t.autograd.Function):
        """x * factor, with a derivative that writes down that it was called."""

        @staticmethod
        def forward(ctx, x, factor):
            ctx.factor = factor
            ctx.save_for_backward(x)
            return x * factor

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            say("Scaled", x.shape == grad.shape, grad)
            return grad * ctx.factor, None

    class DoubledInPlace(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            return x.mul_(2)

        @staticmethod
        def backward(ctx, grad):
            return grad * 2

    class Two(t.autograd.Function):
        """Two results, of which one may have no gradient."""

        @staticmethod
        def forward(ctx, x, y):
            ctx.save_for_backward(x, y)
            return x * y, x + y

        @staticmethod
        def backward(ctx, first, second):
            x, y = ctx.saved_tensors
            say("Two", first, second)
            return first * y + second, first * x + second

    def module_hook(name, does=None):
        """A hook for modules, before or after a call or its gradients, that writes down what it was given."""

        def run(module, *given):
            say(name, type(module).__name__, given)
            return given[-1] * 2 if does == "double" and isinstance(given[-1], t.Tensor) else None

        return run

    def descend(optimizer):
        """One step towards zero of all parameters."""

        def loss():
            optimizer.zero_grad()
            squares = [(p * p).sum().float() for group in optimizer.param_groups for p in group["params"]]
            total = sum(squares[1:], squares[0])
            total.backward()
            return total

        say(optimizer.step(loss))

    def forward_mode(function, x, tangent):
        """The tangent of function(x)."""
        with t.autograd.forward_ad.dual_level():
            dual = t.autograd.forward_ad.make_dual(x, tangent)
            return t.autograd.forward_ad.unpack_dual(function(dual)).tangent

    class Tagged(t.Tensor):
        """A subclass without rules of its own."""

        def new_empty(self, *given, **named):  # copy.deepcopy asks for it
            return super().new_empty(*given, **named).as_subclass(Tagged)

    class Viewed(t.autograd.Function):
        """A view of what was given."""

        @staticmethod
        def forward(ctx, x):
            return x.view(-1)

        @staticmethod
        def backward(ctx, grad):
            return grad.sum().expand(grad.shape)

    class Itself(t.autograd.Function):
        """What was given, with a derivative of its own."""

        @staticmethod
        def forward(ctx, x):
            return x

        @staticmethod
        def backward(ctx, grad):
            say("Itself", grad)
            return grad * 3

    class Once(t.autograd.Function):
        """A square whose derivative has none."""

        @staticmethod
        def forward(x):
            return x * x

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs, output)

        @staticmethod
        @t.autograd.function.once_differentiable
        def backward(ctx, grad):
            x, _ = ctx.saved_tensors
            return 2 * x * grad

    class Sparing(t.autograd.Function):
        """Two results: one without a gradient, and gradients that are None where there are none."""

        generate_vmap_rule = True

        @staticmethod
        def forward(x):
            return x * 2, x > 0

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.mark_non_differentiable(output[1])
            ctx.set_materialize_grads(False)

        @staticmethod
        def backward(ctx, first, second):
            say("Sparing", first is None, second is None, ctx.needs_input_grad)
            return None if first is None else first * 2

    names = dict(locals())
    names.update(copy=copy, gc=gc, np=np, nan=float("nan"), inf=float("inf"))
    return names
