"""torch.linalg: norms, products, factorizations, equations and eigenvalues of matrices and batches of them."""

from ..ops import autocast as _autocast
from ..ops import registry as _registry
from ..show import missing_names as _missing_names
from .checking import LinAlgError
from .determinants import det, slogdet
from .eigen import eig, eigh, eigvals, eigvalsh, svd, svdvals
from .exponential import matrix_exp
from .factorizations import (
    cholesky,
    cholesky_ex,
    householder_product,
    ldl_factor,
    ldl_factor_ex,
    lu,
    lu_factor,
    lu_factor_ex,
    qr,
)
from .norms import cond, matrix_norm, norm, vector_norm
from .products import cross, diagonal, matmul, matrix_power, multi_dot, vander, vecdot
from .solving import (
    inv,
    inv_ex,
    ldl_solve,
    lstsq,
    lu_solve,
    matrix_rank,
    pinv,
    solve,
    solve_ex,
    tensorinv,
    tensorsolve,
)
from .triangular import solve_triangular

__all__ = [
    "LinAlgError", "cholesky", "cholesky_ex", "cond", "cross", "det", "diagonal", "eig", "eigh", "eigvals", "eigvalsh",
    "householder_product", "inv", "inv_ex",
    "ldl_factor", "ldl_factor_ex", "ldl_solve", "lstsq", "lu", "lu_factor", "lu_factor_ex", "lu_solve", "matmul",
    "matrix_exp", "matrix_norm", "matrix_power",
    "matrix_rank", "multi_dot", "norm", "pinv", "qr", "slogdet", "solve", "solve_ex", "solve_triangular", "svd",
    "svdvals", "tensorinv", "tensorsolve", "vander",
    "vecdot", "vector_norm",
]  # fmt: skip

_autocast.apply(globals())
_registry.let_others_answer(globals(), "torch._C._linalg", "linalg_")
__getattr__ = _missing_names.of(__name__)
