"""A few extreme eigenpairs of a symmetric matrix by products with it: the locally optimal block preconditioned
conjugate gradient method (Knyazev, 2001).

Each step takes the best vectors of the space of the present ones X, their residuals W, and the last step's direction P.
"""

import cresset

from .checking import check_floating

DEFAULT_TOLERANCE = {cresset.float32: 1.2e-07**0.5, cresset.float64: 2.23e-16**0.5}
STEPS = 1000


def eigenpairs(A, B, X, n, iK, niter, tol, largest):
    """(E, X): the `n` largest or smallest E with A X = B X E, for a matrix or each of a batch."""
    batch = A.shape[:-2]
    if not batch:
        return _of_one(A, B, X, n, iK, niter, tol, largest)
    flat = [None if t is None else t.reshape(-1, *t.shape[-2:]) for t in (A, B, X, iK)]
    found = []
    for i in range(len(flat[0])):
        one = [None if t is None else t[i] for t in flat]
        found.append(_of_one(*one[:3], n, one[3], niter, tol, largest))
    return tuple(cresset.stack(part).reshape(*batch, *part[0].shape) for part in zip(*found, strict=True))


def _of_one(A, B, X, n, iK, niter, tol, largest):
    def weighted(vectors):
        return vectors if B is None else B @ vectors

    def best(space):
        """The n extreme pairs of A in the space of orthonormal columns."""
        values, mixed = cresset.linalg.eigh(_symmetric(space.mH @ (A @ space)))
        values, mixed = (values.flip(0), mixed.flip(1)) if largest else (values, mixed)
        return values[:n], space @ mixed[:, :n]

    if X is None:
        X = cresset.randn(A.shape[-2], n, dtype=A.dtype, device=A.device)
    E, X = best(_orthonormal(X, weighted))
    sizes = (A @ X).norm() / X.norm(), weighted(X).norm() / X.norm()
    P = X[:, :0]
    for _ in range(niter):
        residual = A @ X - weighted(X) * E
        relative = residual.norm(dim=0) / (X.norm(dim=0) * (sizes[0] + E.abs() * sizes[1]))
        if bool((relative < tol).all()):
            break
        W = residual if iK is None else iK @ residual
        others = cresset.cat([W, P], 1)
        for _ in range(2):  # once more, for what rounding has left
            others = others - X @ (X.mH @ weighted(others))
        others = _orthonormal(others, weighted)
        before = X
        E, X = best(cresset.cat([before, others], 1))
        P = X - before @ (before.mH @ weighted(X))
    return E, X


def _symmetric(matrix):
    return (matrix + matrix.mH) / 2


def _orthonormal(vectors, weighted):
    """A basis of the space of the columns, orthonormal in the product xᴴ B y; directions that are next to nothing leave
    (Stathopoulos and Wu, 2002).
    """
    for _ in range(2):
        lengths = (vectors.conj() * weighted(vectors)).sum(0).real.clamp_min(0).sqrt()
        vectors = vectors[:, lengths > 0] / lengths[lengths > 0]
        if not vectors.shape[1]:
            break
        values, turned = cresset.linalg.eigh(_symmetric(vectors.mH @ weighted(vectors)))
        kept = values > values[-1] * cresset.finfo(values.dtype).eps * 10
        vectors = vectors @ turned[:, kept] / values[kept].sqrt()
    return vectors


def differentiable_eigenpairs(A, B, n, largest):
    """The same by a whole decomposition, which has derivatives."""
    if B is None:
        E, X = cresset.linalg.eigh(A)
    else:  # with B = L Lᴴ, the pairs of L⁻¹ A L⁻ᴴ
        L = cresset.linalg.cholesky(B)
        inner = cresset.linalg.solve_triangular(L, A, upper=False)
        inner = cresset.linalg.solve_triangular(L, inner.mH, upper=False)
        E, X = cresset.linalg.eigh(_symmetric(inner))
        X = cresset.linalg.solve_triangular(L.mH, X, upper=True)
    return (E.flip(-1)[..., :n], X.flip(-1)[..., :n]) if largest else (E[..., :n], X[..., :n])


def check(A, B, X, n, method):
    """Refuse what cannot be iterated."""
    check_floating("lobpcg", A)
    if A.ndim < 2:
        raise IndexError(f"lobpcg: A must be a matrix or a batch of matrices, got shape {A.shape}")
    m = A.shape[-2]
    if A.shape[-1] != m:
        raise AssertionError(f"lobpcg: A must be square, got shape {A.shape}")
    if method not in (None, "basic", "ortho"):
        raise ValueError(f"lobpcg: method is 'basic' or 'ortho', got {method!r}")
    if n < 1:
        raise ValueError(f"lobpcg: at least one eigenpair is to be asked for, got {n}")
    if m < 3 * n:
        raise ValueError(
            f"LOBPCG algorithm is not applicable when the number of A rows (={m}) is smaller than 3 x the number of "
            f"requested eigenpairs (={n})"
        )
    for name, t, shape in (("B", B, A.shape), ("X", X, (*A.shape[:-2], m, n))):
        if t is not None and t.shape != shape:
            raise AssertionError(f"lobpcg: {name} shape mismatch: got {t.shape}, expected {tuple(shape)}")
