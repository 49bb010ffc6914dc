"""The compressed layouts: CSR, CSC, BSR, BSC."""

import pickle

import pytest

import cresset

DENSE = [[0.0, 0.0, 3.0, 0.0], [4.0, 0.0, 5.0, 6.0]]
LAYOUTS = [cresset.sparse_coo, cresset.sparse_csr, cresset.sparse_csc, cresset.sparse_bsr, cresset.sparse_bsc]


def in_layout(layout, dense=DENSE):
    blocks = {"blocksize": (1, 2)} if layout in LAYOUTS[3:] else {}
    return cresset.tensor(dense).to_sparse(layout=layout, **blocks)


def test_rows_and_columns_are_where_they_should_be():
    csr = in_layout(cresset.sparse_csr)
    assert csr.crow_indices().tolist() == [0, 1, 4] and csr.col_indices().tolist() == [2, 0, 2, 3]
    assert csr.values().tolist() == [3.0, 4.0, 5.0, 6.0] and csr.is_sparse_csr and csr._nnz() == 4
    csc = in_layout(cresset.sparse_csc)
    assert csc.ccol_indices().tolist() == [0, 1, 1, 3, 4] and csc.row_indices().tolist() == [1, 0, 1, 1]
    bsr = in_layout(cresset.sparse_bsr)
    assert bsr.crow_indices().tolist() == [0, 1, 3] and bsr.col_indices().tolist() == [1, 0, 1]
    assert bsr.values().tolist() == [[[3.0, 0.0]], [[4.0, 0.0]], [[5.0, 6.0]]]
    with pytest.raises(
        RuntimeError, match="crow_indices expected sparse row compressed tensor layout but got SparseCsc"
    ):
        csc.crow_indices()


@pytest.mark.parametrize("there", LAYOUTS, ids=str)
@pytest.mark.parametrize("here", LAYOUTS, ids=str)
def test_every_layout_becomes_every_other(here, there):
    blocks = {"blocksize": (2, 1)} if there in LAYOUTS[3:] else {}
    result = in_layout(here).to_sparse(layout=there, **blocks)
    assert result.layout == there and result.to_dense().tolist() == DENSE


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
class TestEveryLayout:
    def test_products(self, layout):
        s, right = in_layout(layout), cresset.arange(8.0).reshape(4, 2)
        expected = (cresset.tensor(DENSE) @ right).tolist()
        assert (s @ right).tolist() == expected
        assert (s @ right[:, 1]).tolist() == [row[1] for row in expected]
        assert (right.t() @ s.t()).tolist() == cresset.tensor(expected).t().tolist()

    def test_elementwise(self, layout):
        s = in_layout(layout)
        for result, factor in ((s + s, 2), (s * 3, 3), (-s, -1), (s / 2, 0.5)):
            assert result.layout == layout
            assert result.to_dense().tolist() == (cresset.tensor(DENSE) * factor).tolist()
        assert (s * s).to_dense().tolist() == (cresset.tensor(DENSE) ** 2).tolist()
        assert (cresset.ones(2, 4) + s).tolist() == (cresset.tensor(DENSE) + 1).tolist()
        assert s.sum().item() == 18.0

    def test_transposing_copying_and_pickling(self, layout):
        s = in_layout(layout)
        assert s.t().to_dense().tolist() == cresset.tensor(DENSE).t().tolist()
        assert pickle.loads(pickle.dumps(s)).to_dense().tolist() == DENSE
        assert s.clone().layout == s.double().layout == layout
        assert str(layout) in repr(s)

    def test_gradients(self, layout):
        x = cresset.tensor(DENSE, requires_grad=True)
        right = cresset.ones(4, 1, requires_grad=True)
        blocks = {"blocksize": (1, 2)} if layout in LAYOUTS[3:] else {}
        (x.to_sparse(layout=layout, **blocks) @ right).sum().backward()
        kept = cresset.tensor(DENSE) != 0
        assert x.grad[kept].tolist() == [1.0] * 4
        assert right.grad.flatten().tolist() == [4.0, 0.0, 8.0, 6.0]


@pytest.mark.parametrize(
    "crow, col, words",
    [
        ([0, 1, 3], [0, 1], r"== nnz"),
        ([1, 1, 2], [0, 1], r"\[..., 0\] == 0"),
        ([0, 1, 2], [0, 5], "0 <= col_indices < ncols"),
        ([0, 2], [0, 1], r"number of rows \+ 1"),
    ],
)
def test_rows_that_do_not_fit_are_refused(crow, col, words):
    with pytest.raises(RuntimeError, match=words):
        cresset.sparse_csr_tensor(crow, col, [1.0, 2.0], (2, 2))


def test_order_within_a_row_is_checked_when_asked_for():
    assert cresset.sparse_csr_tensor([0, 2], [1, 0], [1.0, 2.0], (1, 2)).to_dense().tolist() == [[2.0, 1.0]]
    with pytest.raises(RuntimeError, match="sorted and distinct"):
        cresset.sparse_csr_tensor([0, 2], [1, 0], [1.0, 2.0], (1, 2), check_invariants=True)
    with cresset.sparse.check_sparse_tensor_invariants(), pytest.raises(RuntimeError, match="sorted and distinct"):
        cresset.sparse_csr_tensor([0, 2], [1, 0], [1.0, 2.0], (1, 2))
    assert not cresset.sparse.check_sparse_tensor_invariants.is_enabled()


def test_a_batch_has_one_number_of_values_for_all():
    batch = cresset.stack([cresset.eye(2), 2 * cresset.eye(2).flip(0)])
    csr = batch.to_sparse_csr()
    assert tuple(csr.crow_indices().shape) == (2, 3) and csr.to_dense().tolist() == batch.tolist()
    assert (csr @ cresset.ones(2, 2, 1)).flatten().tolist() == [1.0, 1.0, 2.0, 2.0]
    assert csr.to_sparse_coo().to_dense().tolist() == batch.tolist()
    with pytest.raises(RuntimeError, match="same number"):
        cresset.stack([cresset.eye(2), cresset.ones(2, 2)]).to_sparse_csr()


def test_a_product_at_some_places():
    places = cresset.tensor([[1.0, 0.0], [0.0, 1.0]]).to_sparse_csr()
    a, b = cresset.tensor([[1.0, 2.0], [3.0, 4.0]]), cresset.tensor([[1.0, 1.0], [1.0, 2.0]])
    result = cresset.sparse.sampled_addmm(places, a, b, beta=10.0, alpha=2.0)
    assert result.to_dense().tolist() == [[16.0, 0.0], [0.0, 32.0]]
    with pytest.raises(RuntimeError, match="SparseCsr"):
        cresset.sparse.sampled_addmm(cresset.eye(2), a, b)


@pytest.mark.parametrize(
    "dtype", [cresset.float16, cresset.bfloat16, cresset.float64, cresset.int32, cresset.complex64], ids=str
)
def test_products_of_other_dtypes(dtype):
    s = cresset.tensor(DENSE).to(dtype).to_sparse_csr()
    assert (s @ cresset.ones(4, 3, dtype=dtype)).to(
        cresset.float32 if not dtype.is_complex else dtype
    ).real.tolist() == [[3.0] * 3, [15.0] * 3]


def test_wide_products_agree_with_dense_ones():
    dense = (cresset.rand(20, 30) > 0.8) * cresset.rand(20, 30)
    right = cresset.rand(30, 131)
    assert cresset.allclose(dense.to_sparse_csr() @ right, dense @ right, atol=1e-5)


def test_terms_of_a_product_can_be_reduced_otherwise():
    s, right = in_layout(cresset.sparse_csr), cresset.tensor([[1.0], [9.0], [2.0], [-1.0]])
    for reduce, expected in (
        ("sum", [6.0, 8.0]),
        ("mean", [6.0, 8.0 / 3]),
        ("amax", [6.0, 10.0]),
        ("max", [6.0, 10.0]),
        ("amin", [6.0, -6.0]),
    ):
        assert cresset.sparse.mm(s, right, reduce).flatten().tolist() == pytest.approx(expected)
    with pytest.raises(RuntimeError, match="reduce must be"):
        cresset.sparse.mm(s, right, "median")


def test_methods_of_the_base_are_those_of_the_layout():
    x = cresset.eye(2).to_sparse_csr()
    assert cresset.Tensor.crow_indices(x).tolist() == [0, 1, 2] and cresset.Tensor.values(x).tolist() == [1.0, 1.0]
    with pytest.raises(RuntimeError, match="crow_indices expected sparse row compressed tensor layout but got Strided"):
        cresset.Tensor.crow_indices(cresset.eye(2))


EVERY = [cresset.sparse_csr, cresset.sparse_csc, cresset.sparse_bsr, cresset.sparse_bsc]


def of_layout(layout, dense):
    blocks = (2, 1) if layout in (cresset.sparse_bsr, cresset.sparse_bsc) else None
    return dense.to_sparse(layout=layout, blocksize=blocks)


@pytest.mark.parametrize("layout", EVERY, ids=str)
class TestEveryCompressedLayout:
    def test_a_transpose_is_a_view(self, layout):
        dense = cresset.arange(1.0, 17.0).reshape(2, 2, 4)
        x = of_layout(layout, dense)
        for turned, same in ((x.mT, dense.mT), (x.mT.mT, dense), (x.transpose(0, 0), dense)):
            assert turned._is_view() and turned._base is x and turned.values()._is_view()
            assert turned.to_dense().tolist() == same.tolist()
        y = of_layout(layout, cresset.arange(1.0, 25.0).reshape(1, 3, 2, 4))
        assert y.transpose(0, 1).to_dense().tolist() == y.to_dense().transpose(0, 1).tolist()
        with pytest.raises(RuntimeError, match=r"same type \(Batch, Sparse, Dense\), got 0\(Batch\) and 2\(Sparse\)"):
            y.transpose(0, 2)

    def test_a_matrix_of_a_batch_is_selected_as_it_is(self, layout):
        x = of_layout(layout, cresset.arange(1.0, 17.0).reshape(2, 2, 4))
        assert x[1].layout == layout and x[1].to_dense().tolist() == x.to_dense()[1].tolist()
        with pytest.raises(RuntimeError, match="not supported for batched sparse compressed tensors"):
            x.select(1, 0)

    def test_there_are_no_strides(self, layout):
        x = of_layout(layout, cresset.ones(2, 4))
        for read, words in ((x.stride, "strides"), (x.is_contiguous, "is_contiguous"), (x.storage, "SparseCsr")):
            with pytest.raises(RuntimeError, match=words):
                read()
        with pytest.raises(TypeError, match="Cannot assign to a sparse tensor"):
            x[0, 0] = 1.0

    def test_copies_need_the_same_form(self, layout):
        x = of_layout(layout, cresset.ones(2, 4))
        for other, words in (
            (cresset.ones(2, 4), "different layouts"),
            (of_layout(layout, cresset.eye(2, 4)), "same number of specified elements"),
            (of_layout(layout, cresset.ones(4, 2)), "match along dimension 0"),
        ):
            with pytest.raises(RuntimeError, match=words):
                x.copy_(other)
        assert x.copy_(2 * x).to_dense().tolist() == [[2.0] * 4] * 2

    def test_one_like_it_has_its_layout(self, layout):
        x = of_layout(layout, cresset.ones(2, 4))
        assert cresset.empty_like(x)._nnz() == x._nnz()
        with pytest.raises(RuntimeError, match="empty_like with different sparse layout is not supported"):
            cresset.empty_like(x, layout=cresset.strided)

    def test_resize_as_takes_over_the_places(self, layout):
        x, like = of_layout(layout, cresset.ones(2, 4)), of_layout(layout, cresset.ones(4, 6, dtype=cresset.float64))
        x.resize_as_sparse_(like)
        assert x.shape == (4, 6) and x._nnz() == like._nnz() and x.dtype == cresset.float32
        with pytest.raises(RuntimeError, match="must have the same layout"):
            x.resize_as_sparse_(like.mT)
        with pytest.raises(RuntimeError, match="src  expected sparse compressed"):
            x.resize_as_sparse_(like.to_dense())

    def test_room_for_values(self, layout):
        blocks = (2, 1) if layout in (cresset.sparse_bsr, cresset.sparse_bsc) else ()
        made = cresset._sparse_compressed_tensor_with_dims(3, 1, (2, 4, 4, 5), blocks, cresset.int32, layout=layout)
        assert made.values().shape == (2, 3, *blocks, 5) and made.shape == (2, 4, 4, 5) and made._nnz() == 3
        assert made.to_dense().abs().sum().item() == 0

    def test_batches_without_matrices_are_valid(self, layout):
        blocked = layout in (cresset.sparse_bsr, cresset.sparse_bsc)
        first, second = cresset.zeros(0, 3, dtype=cresset.int64), cresset.zeros(0, 2, dtype=cresset.int64)
        values = cresset.zeros((0, 2, 1, 1) if blocked else (0, 2))
        x = cresset.sparse_compressed_tensor(first, second, values, (0, 2, 2), layout=layout, check_invariants=True)
        assert x.shape == (0, 2, 2)


class TestResizingRows:
    def test_rows_are_added_and_dropped(self):
        x = cresset.tensor([[1.0, 0.0], [0.0, 2.0]]).to_sparse_csr()
        assert x.resize_(3, 4).to_dense().tolist() == [[1.0, 0, 0, 0], [0, 2.0, 0, 0], [0.0] * 4]
        assert x.resize_(1, 4).to_dense().tolist() == [[1.0, 0.0, 0.0, 0.0]]

    def test_columns_stay(self):
        x = cresset.ones(2, 3).to_sparse_csr()
        with pytest.raises(RuntimeError, match="Resizing columns of sparse CSR tensors to a smaller value"):
            x.resize_(2, 2)
        with pytest.raises(RuntimeError, match="Only batched sparse CSR matrices are supported"):
            x.resize_(4)


def test_indices_of_rows_and_back():
    x = cresset.tensor([[0.0, 1.0], [2.0, 3.0]]).to_sparse_csr()
    both = cresset._convert_indices_from_csr_to_coo(x.crow_indices(), x.col_indices(), out_int32=True)
    assert both.dtype == cresset.int32 and both.tolist() == [[0, 1, 1], [1, 0, 1]]
    assert cresset._convert_indices_from_coo_to_csr(both[0], 2).tolist() == x.crow_indices().tolist()


def test_one_pattern_samples_a_batch_of_products():
    a, b = cresset.ones(2, 3, 4), cresset.ones(2, 4, 3)
    found = cresset.sparse.sampled_addmm(cresset.eye(3).to_sparse_csr(), a, b, beta=0.0)
    assert found.to_dense().tolist() == [[[4.0, 0, 0], [0, 4.0, 0], [0, 0, 4.0]]] * 2


def test_matrices_of_different_shapes_are_not_added():
    with pytest.raises(RuntimeError, match="Expected input tensors to have the same shape"):
        cresset.ones(2, 2).to_sparse_csr() + cresset.ones(2, 1).to_sparse_csr()


@pytest.mark.parametrize(
    ("first", "second", "values", "size", "words"),
    [
        (0, [0, 1], [1, 2], (1, 2), "crow_indices must have dimensionality >= 1 but got 0"),
        ([[0, 2]], [0, 1], [1, 2], (1, 2), "dimensionalities must be equal but got 2 and 1"),
        ([[0, 2]], [[0, 1]], [1, 2], (1, 2), r"sum of batch and block dimensionalities \(=1 \+ 0\) but got 1"),
        ([0, 2], [0, 1], [1, 2], (2,), r"\(=0 \+ 2 \+ 0\) but got 1"),
        ([[0, 2]], [[0, 1]], [[1, 2]], (2, 1, 2), r"must be equal to tensor batch dimensions \(=\[2\]\)"),
        ([0, 1, 2], [0, 1], [1, 2], (1, 2), r"number of rows \+ 1 \(=2\), but got 3"),
        ([0, 2], [0, 1, 1], [1, 2], (1, 2), r"must be equal to nnz \(=2\) as defined by values.shape\[0\], but got 3"),
        ([0, 2], [1, 0], [1, 2], (1, 2), "for all i = 1, ..., nrows are sorted and distinct"),
        ([0, 2], [0, 2], [1, 2], (1, 2), "`0 <= col_indices < ncols` is not satisfied"),
    ],
)
def test_what_is_wrong_with_the_parts(first, second, values, size, words):
    parts = (cresset.tensor(first), cresset.tensor(second), cresset.tensor(values))
    with pytest.raises(RuntimeError, match=words):
        cresset.sparse_csr_tensor(*parts, size, check_invariants=True)


def test_parts_of_other_dtypes_and_orders_in_memory():
    begin, columns, values = cresset.tensor([0, 2]), cresset.tensor([0, 1]), cresset.ones(2)
    for first, second, words in (
        (begin.int(), columns, "must have the same dtype, bot got Int and Long"),
        (begin.short(), columns.short(), "dtype must be Int or Long, but got Short"),
        (begin, cresset.tensor([0, 9, 1, 9])[::2], "expected col_indices to be a contiguous tensor per batch"),
    ):
        with pytest.raises(RuntimeError, match=words):
            cresset.sparse_csr_tensor(first, second, values, (1, 2), check_invariants=True)
    cresset._validate_compressed_sparse_indices(True, begin, columns, 1, 2, 2)
    with pytest.raises(RuntimeError, match="nrows"):
        cresset._validate_compressed_sparse_indices(False, begin, columns, 1, 1, 2)


@pytest.mark.parametrize("layout", [cresset.sparse_bsr, cresset.sparse_bsc])
@pytest.mark.parametrize("blocksize", [(1, 1), (1, 2), (2, 1)])
def test_results_have_the_blocks_of_their_operands_also_those_of_one_element(layout, blocksize):
    a, b = cresset.tensor([[0.0, 2.0], [3.0, 4.0]]), cresset.tensor([[5.0, 6.0], [0.0, 8.0]])
    x, y = (t.to_sparse(layout=layout, blocksize=blocksize) for t in (a, b))
    for result, expected in ((x * y, a * b), (x + y, a + b), (x - y, a - b)):
        assert result.layout == layout and result.values().shape[1:] == blocksize
        assert result.to_dense().equal(expected)
