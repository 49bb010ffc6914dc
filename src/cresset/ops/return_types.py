"""Named results of functions that return several tensors, seen as `torch.return_types`."""

from cresset import _native


def return_type(name, fields):
    """A type of named results, such as native operators have: made of one sequence, and printed a field a line.

    >>> return_type("pair", "first second")([1, 2])
    torch.return_types.pair(
    first=1,
    second=2)
    """
    return _native.named_results(name, tuple(fields.split()))


frexp = return_type("frexp", "mantissa exponent")
histogram = return_type("histogram", "hist bin_edges")
histogramdd = return_type("histogramdd", "hist bin_edges")
geqrf = return_type("geqrf", "a tau")
linalg_cholesky_ex = return_type("linalg_cholesky_ex", "L info")
linalg_eig = return_type("linalg_eig", "eigenvalues eigenvectors")
linalg_eigh = return_type("linalg_eigh", "eigenvalues eigenvectors")
linalg_inv_ex = return_type("linalg_inv_ex", "inverse info")
linalg_ldl_factor = return_type("linalg_ldl_factor", "LD pivots")
linalg_ldl_factor_ex = return_type("linalg_ldl_factor_ex", "LD pivots info")
linalg_lstsq = return_type("linalg_lstsq", "solution residuals rank singular_values")
linalg_lu = return_type("linalg_lu", "P L U")
linalg_lu_factor = return_type("linalg_lu_factor", "LU pivots")
linalg_lu_factor_ex = return_type("linalg_lu_factor_ex", "LU pivots info")
linalg_qr = return_type("linalg_qr", "Q R")
linalg_slogdet = return_type("linalg_slogdet", "sign logabsdet")
linalg_solve_ex = return_type("linalg_solve_ex", "result info")
linalg_svd = return_type("linalg_svd", "U S Vh")
lu_unpack = return_type("lu_unpack", "P L U")
qr = return_type("qr", "Q R")
slogdet = return_type("slogdet", "sign logabsdet")
svd = return_type("svd", "U S V")
triangular_solve = return_type("triangular_solve", "solution cloned_coefficient")
