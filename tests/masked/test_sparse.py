"""Masked reductions of sparse tensors: as of dense ones, in the layout of the input."""

import pytest

import cresset

X = [[1.0, 0.0, 2.0], [0.0, 0.0, 0.0], [3.0, 4.0, 0.0]]
MASK = [[True, True, False], [False, False, False], [True, False, True]]


@pytest.mark.parametrize("name", ["sum", "prod", "amax", "amin"])
@pytest.mark.parametrize("dim", [None, 0, 1, (0, 1)])
@pytest.mark.parametrize("keepdim", [False, True])
@pytest.mark.parametrize("sparse_dims", [1, 2])
@pytest.mark.parametrize("dtype", [cresset.float32, cresset.int16, cresset.complex64])
def test_coordinates(name, dim, keepdim, sparse_dims, dtype):
    if dtype.is_complex and name in ("amax", "amin"):
        return
    x, mask = cresset.tensor(X).to(dtype), cresset.tensor(MASK)
    reduce = getattr(cresset.masked, name)
    result = reduce(x.to_sparse(sparse_dims), dim, keepdim=keepdim, mask=mask.to_sparse(sparse_dims))
    expected = reduce(x, dim, keepdim=keepdim, mask=mask)
    there = cresset.masked._output_mask(reduce, x, dim, keepdim=keepdim, mask=mask)
    assert result.layout is cresset.sparse_coo and result.dtype == expected.dtype and result.shape == expected.shape
    assert cresset.equal(result.to_dense()[there], expected[there])


@pytest.mark.parametrize("name", ["sum", "prod", "amax", "amin", "mean"])
@pytest.mark.parametrize("dim", [None, 0, 1])
@pytest.mark.parametrize("layout", ["to_dense", "to_sparse", "to_sparse_csr"])
def test_compressed_rows_with_a_mask_of_any_layout(name, dim, layout):
    x, mask = cresset.tensor(X), cresset.tensor(MASK)
    reduce = getattr(cresset.masked, name)
    result = reduce(x.to_sparse_csr(), dim, keepdim=True, mask=getattr(mask, layout)())
    expected = reduce(x, dim, keepdim=True, mask=mask)
    there = cresset.masked._output_mask(reduce, x, dim, keepdim=True, mask=mask)
    assert result.layout is cresset.sparse_csr
    assert cresset.equal(result.to_dense()[there], expected[there])


def test_a_mask_broadcasts_and_gradients_reach_the_values():
    x = cresset.tensor(X).to_sparse().requires_grad_()
    cresset.masked.sum(x, 0, mask=cresset.tensor([True, False, True])).to_dense().sum().backward()
    assert x.grad.to_dense().tolist() == [[1.0, 0.0, 1.0], [0.0, 0.0, 0.0], [1.0, 0.0, 0.0]]


@pytest.mark.parametrize(
    ("run", "error", "text"),
    [
        (
            lambda x: cresset.masked.prod(x.to_sparse(), 0),
            ValueError,
            "masked prod expects explicit mask for sparse_coo",
        ),
        (
            lambda x: cresset.masked.mean(x.to_sparse(), 0, mask=x > 0),
            ValueError,
            "expects strided or sparse_csr tensor",
        ),
        (lambda x: cresset.masked.softmax(x.to_sparse(), 0), ValueError, "masked softmax expects strided tensor"),
        (lambda x: cresset.masked.std(x.to_sparse(), 0), ValueError, "masked std/var expects strided tensor"),
        (lambda x: cresset.masked.sum(x.to_sparse_csr(), 0), RuntimeError, "CSR tensors with keepdim=False"),
        (lambda x: cresset.masked.sum(x, (0, 0)), RuntimeError, "dim=0 appears multiple times"),
        (
            lambda x: cresset.masked.sum(x, 5),
            IndexError,
            r"Dimension out of range \(expected to be in range of \[-2, 1\]",
        ),
        (lambda x: cresset.masked.mean(x.long()), ValueError, "Could not infer output dtype"),
        (lambda x: cresset.masked.sum(x, mask=cresset.ones(1, 3, 3).bool()), IndexError, "dimensionality higher than"),
    ],
)
def test_what_is_refused(run, error, text):
    with pytest.raises(error, match=text):
        run(cresset.tensor(X))


def test_where_specifies_what_is_under_a_true():
    mask = cresset.tensor(MASK).to_sparse()
    found = cresset.masked._where(mask, cresset.tensor(X).to_sparse(), cresset.tensor(9.0))
    assert found._nnz() == 4 and found.to_dense().tolist() == [[1.0, 0.0, 0.0], [0.0, 0.0, 0.0], [3.0, 0.0, 0.0]]


def test_a_number_alone_has_a_dimension_to_reduce():
    x = cresset.tensor(3.0).to_sparse()
    result = cresset.masked.prod(x, 0, mask=cresset.tensor(True).to_sparse())
    assert result.layout is cresset.sparse_coo and result.to_dense().item() == 3.0


@pytest.mark.parametrize("name", ["mean", "var", "sum"])
def test_dense_data_with_a_sparse_mask(name):
    x, mask = cresset.tensor(X), cresset.tensor(MASK)
    reduce = getattr(cresset.masked, name)
    expected = reduce(x, 0, mask=mask)
    for sparse in (mask.to_sparse(), mask.to_sparse_csr()):
        assert cresset.allclose(reduce(x, 0, mask=sparse), expected, equal_nan=True)


@pytest.mark.parametrize(("name", "expected"), [("prod", 1.0), ("amin", float("inf")), ("amax", -float("inf"))])
@pytest.mark.parametrize("keepdim", [False, True])
def test_of_no_unmasked_element_at_all_there_is_the_start_of_the_reduction(name, expected, keepdim):
    x, mask = cresset.ones(2, 2), cresset.zeros(2, 2, dtype=cresset.bool)
    found = getattr(cresset.masked, name)(x.to_sparse(), dim=(), keepdim=keepdim, mask=mask)
    assert found._nnz() == 1 and found.shape == ((1, 1) if keepdim else ())
    assert found.to_dense().item() == expected


def test_a_product_of_everything_that_is_zero_is_not_specified():
    x, mask = cresset.tensor([True, False]).to_sparse(), cresset.ones(2, dtype=cresset.bool)
    found = cresset.masked.prod(x, dim=(), mask=mask)
    assert found._nnz() == 0 and found.dtype == cresset.int64 and found.to_dense().item() == 0
