"""Named results of functions that return several tensors, seen as `torch.return_types`."""

from collections import namedtuple


def return_type(name, fields):
    """A named tuple that is made (of the parts, or of one sequence of them) and printed as PyTorch's are.

    >>> return_type("pair", "first second")([1, 2])
    torch.return_types.pair(
    first=1,
    second=2)
    """
    fields = fields.split()

    def __new__(cls, *values):
        values = tuple(values[0]) if len(values) == 1 else values
        if len(values) != len(fields):
            raise TypeError(
                f"torch.return_types.{name}() takes a {len(fields)}-sequence ({len(values)}-sequence given)"
            )
        return tuple.__new__(cls, values)

    def __repr__(self):
        parts = ",\n".join(f"{field}={value!r}" for field, value in zip(self._fields, self))
        return f"torch.return_types.{name}(\n{parts})"

    body = {
        "__new__": __new__, "__repr__": __repr__, "__slots__": (), "__module__": __name__, "__qualname__": name,
        "n_fields": len(fields), "n_sequence_fields": len(fields), "n_unnamed_fields": 0,
    }  # fmt: skip
    return type(name, (namedtuple(name, fields),), body)


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
