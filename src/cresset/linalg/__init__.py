"""torch.linalg: norms, products, factorizations, equations and eigenvalues of matrices and batches of them. What has
kernels of its own is native; its derivatives and documentation stand in ops/linalg_factors.py, linalg_equations.py and
linalg_values.py.
"""

import cresset as _cresset

from .. import _native
from ..ops import autocast as _autocast
from ..ops import registry as _registry
from ..show import missing_names as _missing_names
from .checking import LinAlgError
from .exponential import matrix_exp
from .norms import cond, matrix_norm, norm, vector_norm
from .products import cross, diagonal, matmul, matrix_power, multi_dot, vander, vecdot
from .solving import lstsq, matrix_rank, pinv, tensorinv, tensorsolve


def _operator(name):
    """A native operator by PyTorch's name for it."""
    return _native.face(getattr(_cresset, "linalg_" + name), "linalg_" + name, "torch._C._linalg")


cholesky, cholesky_ex = _operator("cholesky"), _operator("cholesky_ex")
det, slogdet = _operator("det"), _operator("slogdet")
eig, eigvals = _operator("eig"), _operator("eigvals")
eigh, eigvalsh = _operator("eigh"), _operator("eigvalsh")
householder_product = _operator("householder_product")
inv, inv_ex = _operator("inv"), _operator("inv_ex")
ldl_factor, ldl_factor_ex, ldl_solve = _operator("ldl_factor"), _operator("ldl_factor_ex"), _operator("ldl_solve")
lu, lu_factor, lu_factor_ex = _operator("lu"), _operator("lu_factor"), _operator("lu_factor_ex")
lu_solve = _operator("lu_solve")
qr = _operator("qr")
solve, solve_ex, solve_triangular = _operator("solve"), _operator("solve_ex"), _operator("solve_triangular")
svd, svdvals = _operator("svd"), _operator("svdvals")

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
