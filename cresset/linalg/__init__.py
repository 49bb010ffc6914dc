"""torch.linalg: norms, products, factorizations, equations and eigenvalues of matrices and batches of them."""

from .checking import LinAlgError
from .norms import cond, matrix_norm, norm, vector_norm
from .products import cross, diagonal, matmul, matrix_power, multi_dot, vander, vecdot

__all__ = [
    "LinAlgError", "cond", "cross", "diagonal", "matmul", "matrix_norm", "matrix_power", "multi_dot", "norm", "vander", "vecdot", "vector_norm",
]  # fmt: skip
