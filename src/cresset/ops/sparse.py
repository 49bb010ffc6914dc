"""Products with sparse matrices, and their derivatives. A matrix is given by its rows: where each begins, the columns,
the values.

With C = A B, A sparse: dA = dC Bᴴ at the places of A alone, and dB = Aᴴ dC. The two operators are each other's
derivatives.
"""

import cresset

from .registry import constant, operator

product = operator("sparse_product", """The product of a sparse matrix, given by its rows, and a dense one.""")
sampled_product = operator(
    "sparse_sampled_product", """left @ right.T at the places of a sparse matrix alone: one element for each place."""
)
sort_rows = operator(
    "sparse_sort_rows",
    """Where each of `count` rows begins when elements are put in the order of `rows`, and that order; equal ones stay
    in order.""",
)


def row_begins(rows, count):
    """Where each of `count` rows begins, of elements that are in the order of their rows."""
    return cresset.searchsorted(rows, cresset.arange(count + 1, device=rows.device))


def row_of_each(crow, count=None):
    """The row of each element: the inverse of compressing. With their `count` a device is not waited for."""
    crow = crow.long()
    rows = cresset.arange(crow.numel() - 1, device=crow.device)
    return rows.repeat_interleave(crow[1:] - crow[:-1], output_size=count)


def transposed(crow, col, columns):
    """The rows of the transpose: where each begins, the columns, and the order in which it takes the elements."""
    begin, order = sort_rows(col, columns)
    return begin, row_of_each(crow, col.numel())[order], order


@product.derivative
@constant("crow", "col")
def _(grad, crow, col, values, dense):
    yield lambda: sampled_product(crow, col, grad, dense.conj())

    def of_dense():
        begin, rows, order = transposed(crow, col, dense.shape[0])
        return product(begin, rows, values.conj()[order], grad)

    yield of_dense


@sampled_product.derivative
@constant("crow", "col")
def _(grad, crow, col, left, right):
    yield lambda: product(crow, col, grad, right.conj())

    def of_right():
        begin, rows, order = transposed(crow, col, right.shape[0])
        return product(begin, rows, grad[order], left.conj())

    yield of_right
