"""Tensors whose elements lie in other tensors: sparse, nested and quantized ones. Their class interprets every call.

Note [Interpreted tensors]
An interpreted tensor is an object of a subclass of Tensor that has a shape, a dtype and a device, and no memory of its
own. What it is made of are ordinary tensors, its parts. A call of an operator on it goes to the operator's rule in the
table of its class; what has no rule is an error. One part is the recorded one (the values): autograd sees only it. So
rules are made of ordinary differentiable operators on the parts, nothing is differentiated twice, and `requires_grad`,
`grad` and `backward` of the whole are those of that part, seen in the whole's layout. See
docs/decisions/0007-tensors-that-interpret.md.
"""

import copy

import cresset

from .. import _native
from .._native import Tensor


class InterpretedTensor(Tensor):
    """The base of tensors that are made of others. A subclass has `rules`, `kind` and the methods that raise
    NotImplementedError here.
    """

    rules = {}  # operator name -> rule(*args, **kwargs)
    factories: tuple[str, ...] = ()  # rules that take `layout`, and make what an interpreted `out` becomes
    kind = "interpreted"  # what messages call it
    instead = "to_dense()"  # the way out

    # ---- to be defined by subclasses

    @property
    def _recorded(self):
        """The part that autograd sees."""
        raise NotImplementedError

    def _with(self, recorded):
        """A tensor of the same kind with another recorded part."""
        raise NotImplementedError

    def _as_gradient(self, recorded):
        """The gradient of the whole, from that of the recorded part."""
        return self._with(recorded)

    def _become(self, other):
        """Take over the parts of another tensor of the same class: what an in-place call does."""
        raise NotImplementedError

    # ---- calls

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        if hasattr(func, "call_overload"):  # a library's operator, whose overloads say themselves what they take
            return func.call_overload(*args, **kwargs)
        name = _native.function_behind(func).__name__
        out = kwargs.pop("out", None)
        if cls is InterpretedTensor:  # a layout is asked for, of a function of dense tensors or of none
            cls = cresset.sparse.SparseTensor
            if name not in cls.rules:
                raise NotImplementedError(f"{name}: not implemented for layout={_layout_in(args, kwargs)}")
            if out is not None and out.layout != _layout_in(args, kwargs):
                raise RuntimeError(
                    f"{name}: layout {_layout_in(args, kwargs)} does not match layout of out parameter ({out.layout})"
                )
        rule = cls.rules.get(name)
        if isinstance(out, InterpretedTensor) and name in cls.factories:
            result = rule(*args, **{"layout": out.layout, "dtype": out.dtype, **kwargs})
        elif (
            out is not None and _kind_in((args, list(kwargs.values()))) is None
        ):  # only the place of the result is interpreted
            result = func(*args, **kwargs)
        elif rule is None and name.endswith("_") and not name.endswith("__") and name[:-1] in cls.rules:
            if not isinstance(args[0], InterpretedTensor):
                raise NotImplementedError(
                    f"{name}: a dense tensor cannot be changed in place by a {_kind_in(args)} one; call {cls.instead} "
                    "first"
                )
            result, out = cls.rules[name[:-1]](*args, **kwargs), args[0]
        elif rule is None:
            raise NotImplementedError(
                f"{name}: not implemented for {_kind_in((args, list(kwargs.values())))} tensors; call {cls.instead} "
                "first"
            )
        else:
            result = rule(*args, **kwargs)
        return result if out is None else stored(name, out, result)

    # ---- autograd: that of the recorded part

    @property
    def requires_grad(self):
        return self._recorded.requires_grad

    @requires_grad.setter
    def requires_grad(self, on):
        self._recorded.requires_grad = on

    def requires_grad_(self, requires_grad=True):
        """Want (or no longer want) gradients for this leaf."""
        self._recorded.requires_grad_(requires_grad)
        return self

    @property
    def grad_fn(self):
        return self._recorded.grad_fn

    @property
    def is_leaf(self):
        return self._recorded.is_leaf

    @property
    def grad(self):
        """The gradient of the values, in the layout of the tensor: what was assigned, and what backward has added."""
        grad, given = self._recorded.grad, self.__dict__.get("_grad_given")
        if grad is None:
            return given
        if given is not None:
            return given + self._as_gradient(grad)
        of, seen = self.__dict__.get("_grad_seen", (None, None))
        if of is not grad:
            seen = self._as_gradient(grad)
            self.__dict__["_grad_seen"] = grad, seen
        return seen

    @grad.setter
    def grad(self, value):
        if value is not None and type(value) is not type(self):
            raise TypeError(f"assigned grad expected to be a {self.kind} tensor or None but got {type(value).__name__}")
        if value is not None and value.shape != self.shape:
            raise RuntimeError(
                f"assigned grad has data of a different size: {list(value.shape)} for a tensor of size "
                f"{list(self.shape)}"
            )
        self.__dict__.pop("_grad_seen", None)
        self.__dict__["_grad_given"], self._recorded.grad = value, None

    def _copy_grad_given(self, other, memo):
        """Take a copy of the gradient that was assigned to `other`: a part of a deep copy."""
        if (given := other.__dict__.get("_grad_given")) is not None:
            self.__dict__["_grad_given"] = copy.deepcopy(given, memo)

    @property
    def data(self):
        return self.detach()

    def detach_(self):
        """Forget the history, in place."""
        self._become(self.detach())
        return self

    def backward(self, gradient=None, retain_graph=None, create_graph=False, inputs=None):
        """Add to each leaf's `.grad` the gradient of this tensor, weighted by `gradient`, a tensor of the same kind."""
        if isinstance(gradient, InterpretedTensor):
            gradient = gradient._recorded
        cresset.autograd.backward(self._recorded, gradient, retain_graph, create_graph, inputs=inputs)

    def retain_grad(self):
        """Keep the gradient of this result in its `.grad`, as of a leaf."""
        self._recorded.retain_grad()

    @property
    def retains_grad(self):
        return self._recorded.retains_grad

    def register_hook(self, hook):
        """Call `hook(grad)` whenever the gradient is computed; what it returns replaces the gradient."""

        def on_values(grad):
            changed = hook(None if grad is None else self._as_gradient(grad))
            return changed._recorded if isinstance(changed, InterpretedTensor) else changed

        return self._recorded.register_hook(on_values)

    def __repr__(self, *, tensor_contents=None):
        from ..show.printing import tensor_repr

        return tensor_repr(self, tensor_contents=tensor_contents)

    # ---- memory, which there is none of

    def data_ptr(self):
        """Refused: the elements have no place in memory."""
        raise RuntimeError("Cannot access data pointer of Tensor that doesn't have storage")

    def untyped_storage(self):
        """Refused: the elements have no place in memory."""
        raise NotImplementedError(f"Cannot access storage of a {self.kind} tensor; its parts have one")

    storage = untyped_storage

    def is_contiguous(self, memory_format=None):
        """False: the elements have no place in memory, whatever its format."""
        return False

    def numpy(self, *, force=False):
        """Refused: call `to_dense()` first."""
        raise TypeError(f"can't convert {self.kind} tensor to numpy. Use Tensor.{self.instead} first.")

    __array__ = numpy

    def __dlpack__(self, **_):
        why = "Can't export tensors with layout other than torch.strided"
        if self.layout == cresset.strided:
            why = f"{str(self.dtype)[6:]} types are not supported by dlpack"
        raise BufferError(f"{why}: this tensor is {self.kind}; call {self.instead} first")

    def tolist(self):
        """Refused: call `to_dense()` first."""
        raise RuntimeError(f"tolist: not implemented for {self.kind} tensors; call {self.instead} first")

    def item(self):
        """The only element as a Python number."""
        if self.numel() != 1:
            raise RuntimeError(f"a Tensor with {self.numel()} elements cannot be converted to Scalar")
        return self.to_dense().item()

    def __bool__(self):
        if self.numel() != 1:
            raise RuntimeError(
                f"Boolean value of Tensor with {'more than one value' if self.numel() else 'no values'} is ambiguous"
            )
        return bool(self.item())

    def __float__(self):
        return float(self.item())

    def __int__(self):
        return int(self.item())

    def __setitem__(self, index, value):
        raise TypeError(f"Cannot assign to a {self.kind} tensor; call {self.instead} first")

    def is_shared(self):
        """Whether the memory of the parts can be seen by other processes."""
        return self._recorded.is_shared()


_native.set_interpreted_type(InterpretedTensor)


def _kind_in(values):
    """What the first interpreted tensor among (nested) arguments is called; None if there is none."""
    for value in values:
        found = (
            value.kind
            if isinstance(value, InterpretedTensor)
            else _kind_in(value)
            if isinstance(value, (tuple, list))
            else None
        )
        if found:
            return found
    return None


def _layout_in(args, kwargs):
    return next(v for v in (*args, *kwargs.values()) if isinstance(v, _native.layout) and v != _native.strided)


def make(cls, size, dtype, device):
    """An object of an interpreted class: a shape, a dtype and a device, on a single element that nobody reads."""
    with cresset.no_grad():
        return _native.make_subclass(cls, cresset.empty((), dtype=dtype, device=device).expand(tuple(size)))


def resize(tensor, size):
    """Give an interpreted tensor another shape, in place."""
    one = cresset.empty(tensor.itemsize, dtype=cresset.uint8)
    _native.set_storage(tensor, one, 0, tuple(size), (0,) * len(size))


def stored(name, out, result):
    """`out`, which takes over the result of a call."""
    if isinstance(out, InterpretedTensor):
        if type(result) is not type(out):
            raise RuntimeError(
                f"{name}: the result is not {out.kind} as the tensor it is to be stored in; call {out.instead} first"
            )
        _native.check_cast(name, result.dtype, out.dtype)
        out._become(result if result.dtype == out.dtype else result.to(out.dtype))
        return out
    if out.shape != result.shape:
        out.resize_(result.shape)
    return out.copy_(result.to_dense() if isinstance(result, InterpretedTensor) else result)
