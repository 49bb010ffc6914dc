"""Transform: an invertible function with a known Jacobian; its inverse, and transforms made of others."""

import math

import cresset

from . import constraints
from .utils import _sum_rightmost, lazy_property


class Transform:
    """A differentiable function y = f(x) with an inverse and log |det dy/dx|.

    A subclass gives `_call`, `_inverse`, `log_abs_det_jacobian`, and as attributes `domain`, `codomain`, `bijective`
    and, when f is monotone, `sign` (+1 or -1).

    Args:
        cache_size: 1 to remember the latest pair (x, y), so that the inverse of a fresh y costs nothing and is exact.

    >>> transform = cresset.distributions.ExpTransform()
    >>> transform.inv(transform(cresset.tensor([0.0, 1.0])))
    tensor([0., 1.])
    """

    bijective = False

    def __init__(self, cache_size=0):
        if cache_size not in (0, 1):
            raise ValueError(f"{self.__class__.__name__}: cache_size must be 0 or 1, got {cache_size!r}")
        self._cache_size = cache_size
        self._inv = None
        self._cached_x_y = None, None
        super().__init__()

    def __getstate__(self):
        return {**self.__dict__, "_inv": None}  # the inverse is made again when it is asked for

    @property
    def event_dim(self):
        """The dimensions of an event, when they are as many before as after."""
        if self.domain.event_dim != self.codomain.event_dim:
            raise ValueError(
                f"{self.__class__.__name__}: events have {self.domain.event_dim} dimensions before and "
                f"{self.codomain.event_dim} after; use .domain.event_dim or .codomain.event_dim"
            )
        return self.domain.event_dim

    @property
    def inv(self):
        """The inverse transform."""
        if self._inv is None:
            self._inv = _InverseTransform(self)
        return self._inv

    @property
    def sign(self):
        """The sign of dy/dx, for a monotone function of one number."""
        raise NotImplementedError(f"{self.__class__.__name__}: sign is not implemented")

    def with_cache(self, cache_size=1):
        """The same transform with the given cache size."""
        return self if self._cache_size == cache_size else self._with_cache(cache_size)

    def _with_cache(self, cache_size):
        if type(self).__init__ is not Transform.__init__:
            raise NotImplementedError(f"{self.__class__.__name__}: with_cache is not implemented")
        return type(self)(cache_size=cache_size)

    def __eq__(self, other):
        return self is other

    def __call__(self, x):
        """y = f(x)."""
        if self._cache_size and x is self._cached_x_y[0]:
            return self._cached_x_y[1]
        y = self._call(x)
        if self._cache_size:
            self._cached_x_y = x, y
        return y

    def _inv_call(self, y):
        if self._cache_size and y is self._cached_x_y[1]:
            return self._cached_x_y[0]
        x = self._inverse(y)
        if self._cache_size:
            self._cached_x_y = x, y
        return x

    def _call(self, x):
        raise NotImplementedError(f"{self.__class__.__name__}: the transform is not implemented")

    def _inverse(self, y):
        raise NotImplementedError(f"{self.__class__.__name__}: the inverse is not implemented")

    def log_abs_det_jacobian(self, x, y):
        """log |det dy/dx|, given both x and y = f(x)."""
        raise NotImplementedError(f"{self.__class__.__name__}: log_abs_det_jacobian is not implemented")

    def __repr__(self):
        return f"{self.__class__.__name__}()"

    def forward_shape(self, shape):
        """The shape of y for an x of the given shape."""
        return shape

    def inverse_shape(self, shape):
        """The shape of x for a y of the given shape."""
        return shape

    def _expect_dims(self, shape, dims):
        if len(shape) < dims:
            raise ValueError(
                f"{self.__class__.__name__}: expected at least {dims} dimensions, got shape {tuple(shape)}"
            )


class _InverseTransform(Transform):
    """The inverse of a transform, which it keeps as `_inv`."""

    def __init__(self, transform):
        super().__init__(cache_size=transform._cache_size)
        self._inv = transform

    def __getstate__(self):
        return self.__dict__  # here `_inv` is what the object is made of

    @constraints.dependent_property(is_discrete=False)
    def domain(self):
        return self._inv.codomain

    @constraints.dependent_property(is_discrete=False)
    def codomain(self):
        return self._inv.domain

    @property
    def bijective(self):
        return self._inv.bijective

    @property
    def sign(self):
        return self._inv.sign

    @property
    def inv(self):
        return self._inv

    def with_cache(self, cache_size=1):
        return self._inv.with_cache(cache_size).inv

    def __eq__(self, other):
        return isinstance(other, _InverseTransform) and self._inv == other._inv

    def __repr__(self):
        return f"{self.__class__.__name__}({self._inv!r})"

    def __call__(self, x):
        return self._inv._inv_call(x)

    def log_abs_det_jacobian(self, x, y):
        return -self._inv.log_abs_det_jacobian(y, x)

    def forward_shape(self, shape):
        return self._inv.inverse_shape(shape)

    def inverse_shape(self, shape):
        return self._inv.forward_shape(shape)


# ---------------------------------------------------------------- transforms made of others


class ComposeTransform(Transform):
    """Several transforms, one after the other.

    >>> D = cresset.distributions
    >>> D.ComposeTransform([D.ExpTransform(), D.AffineTransform(1.0, 2.0)])(cresset.zeros(1))
    tensor([3.])
    """

    def __init__(self, parts, cache_size=0):
        super().__init__(cache_size)
        self.parts = [part.with_cache(cache_size) for part in parts] if cache_size else parts

    def _with_cache(self, cache_size):
        return ComposeTransform(self.parts, cache_size)

    def __eq__(self, other):
        return isinstance(other, ComposeTransform) and self.parts == other.parts

    @constraints.dependent_property(is_discrete=False)
    def domain(self):
        if not self.parts:
            return constraints.real
        # Backward through the parts: how many dimensions of x does one event of y come from?
        event_dim = self.parts[-1].codomain.event_dim
        for part in reversed(self.parts):
            event_dim = max(event_dim + part.domain.event_dim - part.codomain.event_dim, part.domain.event_dim)
        return _with_event_dim(self.parts[0].domain, event_dim)

    @constraints.dependent_property(is_discrete=False)
    def codomain(self):
        if not self.parts:
            return constraints.real
        event_dim = self.parts[0].domain.event_dim
        for part in self.parts:
            event_dim = max(event_dim + part.codomain.event_dim - part.domain.event_dim, part.codomain.event_dim)
        return _with_event_dim(self.parts[-1].codomain, event_dim)

    @lazy_property
    def bijective(self):
        return all(part.bijective for part in self.parts)

    @lazy_property
    def sign(self):
        return math.prod(part.sign for part in self.parts)

    @property
    def inv(self):
        if self._inv is None:
            self._inv = ComposeTransform([part.inv for part in reversed(self.parts)])
            self._inv._inv = self
        return self._inv

    def __call__(self, x):
        for part in self.parts:
            x = part(x)
        return x

    def log_abs_det_jacobian(self, x, y):
        if not self.parts:
            return cresset.zeros_like(x)
        total, event_dim = 0, self.domain.event_dim
        for index, part in enumerate(self.parts):
            after = y if index == len(self.parts) - 1 else part(x)
            total = total + _sum_rightmost(part.log_abs_det_jacobian(x, after), event_dim - part.domain.event_dim)
            event_dim += part.codomain.event_dim - part.domain.event_dim
            x = after
        return total

    def forward_shape(self, shape):
        for part in self.parts:
            shape = part.forward_shape(shape)
        return shape

    def inverse_shape(self, shape):
        for part in reversed(self.parts):
            shape = part.inverse_shape(shape)
        return shape

    def __repr__(self):
        parts = ",\n    ".join(map(repr, self.parts))
        return f"{self.__class__.__name__}(\n    {parts}\n)"


def _with_event_dim(constraint, event_dim):
    missing = event_dim - constraint.event_dim
    assert missing >= 0, f"an event of {event_dim} dimensions is smaller than the constraint's {constraint.event_dim}"
    return constraints.independent(constraint, missing) if missing else constraint


identity_transform = ComposeTransform([])


class IndependentTransform(Transform):
    """A transform whose last `reinterpreted_batch_ndims` batch dimensions belong to the event.

    >>> D = cresset.distributions
    >>> transform = D.IndependentTransform(D.ExpTransform(), 1)
    >>> transform.log_abs_det_jacobian(cresset.tensor([1.0, 2.0]), None)
    tensor(3.)
    """

    def __init__(self, base_transform, reinterpreted_batch_ndims, cache_size=0):
        super().__init__(cache_size)
        self.base_transform = base_transform.with_cache(cache_size)
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims

    def _with_cache(self, cache_size):
        return IndependentTransform(self.base_transform, self.reinterpreted_batch_ndims, cache_size)

    @constraints.dependent_property(is_discrete=False)
    def domain(self):
        return constraints.independent(self.base_transform.domain, self.reinterpreted_batch_ndims)

    @constraints.dependent_property(is_discrete=False)
    def codomain(self):
        return constraints.independent(self.base_transform.codomain, self.reinterpreted_batch_ndims)

    @property
    def bijective(self):
        return self.base_transform.bijective

    @property
    def sign(self):
        return self.base_transform.sign

    def _call(self, x):
        self._expect_dims(x.shape, self.domain.event_dim)
        return self.base_transform(x)

    def _inverse(self, y):
        self._expect_dims(y.shape, self.codomain.event_dim)
        return self.base_transform.inv(y)

    def log_abs_det_jacobian(self, x, y):
        return _sum_rightmost(self.base_transform.log_abs_det_jacobian(x, y), self.reinterpreted_batch_ndims)

    def __repr__(self):
        return f"{self.__class__.__name__}({self.base_transform!r}, {self.reinterpreted_batch_ndims})"

    def forward_shape(self, shape):
        return self.base_transform.forward_shape(shape)

    def inverse_shape(self, shape):
        return self.base_transform.inverse_shape(shape)


class ReshapeTransform(Transform):
    """The last dimensions of the value, which have `in_shape`, reshaped to `out_shape`.

    >>> cresset.distributions.ReshapeTransform((4,), (2, 2))(cresset.zeros(3, 4)).shape
    torch.Size([3, 2, 2])
    """

    bijective = True

    def __init__(self, in_shape, out_shape, cache_size=0):
        self.in_shape, self.out_shape = cresset.Size(in_shape), cresset.Size(out_shape)
        if self.in_shape.numel() != self.out_shape.numel():
            raise ValueError(
                f"ReshapeTransform: in_shape {tuple(in_shape)} and out_shape {tuple(out_shape)} have different "
                "numbers of elements"
            )
        super().__init__(cache_size)

    def _with_cache(self, cache_size):
        return ReshapeTransform(self.in_shape, self.out_shape, cache_size)

    @constraints.dependent_property
    def domain(self):
        return constraints.independent(constraints.real, len(self.in_shape))

    @constraints.dependent_property
    def codomain(self):
        return constraints.independent(constraints.real, len(self.out_shape))

    def _call(self, x):
        return x.reshape(x.shape[: x.dim() - len(self.in_shape)] + self.out_shape)

    def _inverse(self, y):
        return y.reshape(y.shape[: y.dim() - len(self.out_shape)] + self.in_shape)

    def log_abs_det_jacobian(self, x, y):
        return x.new_zeros(x.shape[: x.dim() - len(self.in_shape)])

    def _replaced(self, shape, old, new):
        self._expect_dims(shape, len(old))
        cut = len(shape) - len(old)
        if shape[cut:] != old:
            raise ValueError(f"ReshapeTransform: expected a shape that ends in {tuple(old)}, got {tuple(shape)}")
        return shape[:cut] + new

    def forward_shape(self, shape):
        return self._replaced(shape, self.in_shape, self.out_shape)

    def inverse_shape(self, shape):
        return self._replaced(shape, self.out_shape, self.in_shape)
