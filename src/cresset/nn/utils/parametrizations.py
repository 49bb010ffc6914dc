"""Ready-made parametrizations: a weight as direction and length, with largest singular value one, or orthogonal."""

import cresset

from ..functional import normalize
from ..module import Module
from .parametrize import register_parametrization
from .spectral_norm import as_matrix, improve, transposed_kinds

__all__ = ["orthogonal", "spectral_norm", "weight_norm"]


class _WeightNorm(Module):
    def __init__(self, dim=0):
        super().__init__()
        self.dim = -1 if dim is None else dim

    def forward(self, weight_g, weight_v):
        return weight_v * (weight_g / cresset.norm_except_dim(weight_v, 2, self.dim))

    def right_inverse(self, weight):
        return cresset.norm_except_dim(weight, 2, self.dim), weight


def weight_norm(module, name="weight", dim=0):
    """Learn a weight's direction and its length apart, a length for each slice along `dim`.

    >>> layer = nn.utils.parametrizations.weight_norm(nn.Linear(3, 2))
    >>> layer.parametrizations.weight.original0.shape
    torch.Size([2, 1])
    """
    register_parametrization(module, name, _WeightNorm(dim), unsafe=True)

    def from_older_form(state_dict, prefix, *_):
        for old, new in (("_g", 0), ("_v", 1)):
            key = f"{prefix}{name}{old}"
            if key in state_dict:
                state_dict[f"{prefix}parametrizations.{name}.original{new}"] = state_dict.pop(key)

    module._register_load_state_dict_pre_hook(from_older_form)
    return module


class _SpectralNorm(Module):
    def __init__(self, weight, n_power_iterations=1, dim=0, eps=1e-12):
        super().__init__()
        ndim = weight.ndim
        if dim >= ndim or dim < -ndim:
            raise IndexError(f"Dimension out of range (expected to be in range of [-{ndim}, {ndim - 1}] but got {dim})")
        if n_power_iterations <= 0:
            raise ValueError(
                f"Expected n_power_iterations to be positive, but got n_power_iterations={n_power_iterations}"
            )
        self.dim, self.eps = dim if dim >= 0 else dim + ndim, eps
        if ndim > 1:
            self.n_power_iterations = n_power_iterations
            matrix = as_matrix(weight, self.dim)
            u, v = (normalize(matrix.new_empty(size).normal_(0, 1), dim=0, eps=eps) for size in matrix.shape)
            self.register_buffer("_u", u)
            self.register_buffer("_v", v)
            improve(matrix.mH, v, u, 15, eps)  # of the adjoint: `u` first, while the older form begins with `v`

    def forward(self, weight):
        if weight.ndim == 1:
            return normalize(weight, dim=0, eps=self.eps)
        matrix = as_matrix(weight, self.dim)
        if self.training:
            improve(matrix.mH, self._v, self._u, self.n_power_iterations, self.eps)
        return weight / cresset.vdot(self._u.clone(), matrix.mv(self._v.clone()))

    def right_inverse(self, value):
        return value


def spectral_norm(module, name="weight", n_power_iterations=1, eps=1e-12, dim=None):
    """Divide a weight by its largest singular value, estimated by power iteration.

    Args:
        dim: the dimension of the outputs: 0, or 1 for transposed convolutions.
    """
    if not hasattr(module, name):
        raise ValueError(f"Module '{module}' has no attribute with name '{name}'")
    weight = getattr(module, name)
    if not isinstance(weight, cresset.Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    if dim is None:
        dim = 1 if isinstance(module, transposed_kinds()) else 0
    register_parametrization(module, name, _SpectralNorm(weight, n_power_iterations, dim, eps))
    return module


class _Orthogonal(Module):
    """An orthogonal matrix as a function of any matrix X, times a fixed orthogonal matrix, `base`, for where to start.

    matrix_exp: exp(A - A^H) of the lower triangle A; cayley: (I - S/2)^-1 (I + S/2) with S = A - A^H. householder: the
        product of the
    reflections whose vectors stand below the diagonal of X, with the signs that stand on it.
    """

    def __init__(self, weight, orthogonal_map, *, use_trivialization=True):
        super().__init__()
        if weight.is_complex() and orthogonal_map == "householder":
            raise ValueError("The householder parametrization does not support complex tensors.")
        self.shape, self.orthogonal_map = weight.shape, orthogonal_map
        if use_trivialization:
            self.register_buffer("base", None)

    def forward(self, x):
        tall = _tall(x)
        n, k = tall.shape[-2:]
        if self.orthogonal_map == "householder":
            vectors = tall.tril(-1)
            lengths = 2 / (1 + (vectors * vectors).sum(-2))
            q = cresset.linalg.householder_product(vectors, lengths)
            q = q * tall.diagonal(dim1=-2, dim2=-1).int().unsqueeze(-2)
        else:
            a = tall.tril()
            if n != k:
                a = cresset.cat([a, a.new_zeros(n, n - k).expand(*a.shape[:-2], -1, -1)], -1)
            a = a - a.mH
            if self.orthogonal_map == "cayley":
                identity = cresset.eye(n, dtype=a.dtype, device=a.device)
                q = cresset.linalg.solve(identity.sub(a, alpha=0.5), identity.add(a, alpha=0.5))
            else:
                q = cresset.linalg.matrix_exp(a)
            q = q[..., :k]
        if hasattr(self, "base"):
            q = self.base @ q
        return q.mT if x.size(-2) < x.size(-1) else q

    def right_inverse(self, q):
        if q.shape != self.shape:
            raise ValueError(
                f"Expected a matrix or batch of matrices of shape {self.shape}. Got a tensor of shape {q.shape}."
            )
        tall = _tall(q)
        n, k = tall.shape[-2:]
        if hasattr(self, "base"):
            if n != k:
                tall = cresset.cat([tall, tall.new_empty(*tall.shape[:-2], n, n - k).normal_()], -1)
            self.base = tall.clone() if n == k and _is_orthogonal(tall) else _made_orthogonal(tall)
            # Here every map gives the identity: the skew part is zero, and the reflections of zero vectors and the
            # signs cancel.
            start = cresset.zeros_like(q)
            start.diagonal(dim1=-2, dim2=-1).fill_(-1)
            return start
        if self.orthogonal_map != "householder":
            raise NotImplementedError(
                "It is not possible to assign to the matrix exponential or the Cayley parametrizations when "
                "use_trivialization=False."
            )
        reflections, lengths = cresset.geqrf(tall)
        signs = reflections.diagonal(dim1=-2, dim2=-1)
        # Where geqrf reflects nothing its length is 0; `forward` reflects there, with length 2, so the sign turns.
        signs.copy_(cresset.where(lengths == 0, -signs.sign(), signs.sign()))
        return reflections.mT if q.size(-2) < q.size(-1) else reflections


def _made_orthogonal(x):
    """The orthogonal factor of `x`, with the signs that make an orthogonal `x` come back."""
    reflections, lengths = cresset.geqrf(x)
    return cresset.linalg.householder_product(reflections, lengths) * reflections.diagonal(
        dim1=-2, dim2=-1
    ).sgn().unsqueeze(-2)


def _is_orthogonal(q):
    """Whether the columns are orthonormal, up to rounding."""
    identity = cresset.eye(q.size(-1), dtype=q.dtype, device=q.device)
    eps = 10 * q.size(-2) * cresset.finfo(q.dtype).eps
    return cresset.allclose(q.mH @ q, identity, atol=eps)


def _tall(x):
    return x.mT if x.size(-2) < x.size(-1) else x


def orthogonal(module, name="weight", orthogonal_map=None, *, use_trivialization=True):
    """Keep a matrix orthogonal (or its rows or columns orthonormal, if it is not square).

    Args:
        orthogonal_map: "matrix_exp", "cayley" or "householder". By default matrix_exp for square and complex matrices,
            else householder.
        use_trivialization: start at, and allow assigning, any orthogonal matrix.

    >>> layer = nn.utils.parametrizations.orthogonal(nn.Linear(3, 2))
    >>> cresset.allclose(layer.weight @ layer.weight.T, cresset.eye(2), atol=1e-6)
    True
    """
    weight = getattr(module, name, None)
    if not isinstance(weight, cresset.Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    if weight.ndim < 2:
        raise ValueError(f"Expected a matrix or batch of matrices. Got a tensor of {weight.ndim} dimensions.")
    if orthogonal_map is None:
        orthogonal_map = "matrix_exp" if weight.size(-2) == weight.size(-1) or weight.is_complex() else "householder"
    if orthogonal_map not in ("matrix_exp", "cayley", "householder"):
        raise ValueError(
            f'orthogonal_map has to be one of "matrix_exp", "cayley", "householder". Got: {orthogonal_map}'
        )
    made = _Orthogonal(weight, orthogonal_map, use_trivialization=use_trivialization)
    register_parametrization(module, name, made, unsafe=True)
    return module
