"""New sparse tensors: by the factories' layout=, like others, in place of others, without memory."""

import pytest

import cresset

NO_BLOCKS = [cresset.sparse_coo, cresset.sparse_csr, cresset.sparse_csc]
COMPRESSED = [cresset.sparse_csr, cresset.sparse_csc, cresset.sparse_bsr, cresset.sparse_bsc]


def sparse(layout, dense=None):
    dense = cresset.eye(4) if dense is None else dense
    blocks = layout in (cresset.sparse_bsr, cresset.sparse_bsc)
    return dense.to_sparse(layout=layout, blocksize=(2, 2) if blocks else None)


@pytest.mark.parametrize("layout", NO_BLOCKS, ids=str)
@pytest.mark.parametrize(
    "make",
    [
        lambda layout: cresset.empty((2, 3), layout=layout),
        lambda layout: cresset.empty(2, 3, layout=layout),
        lambda layout: cresset.zeros(2, 3, layout=layout),
        lambda layout: cresset.zeros(size=(2, 3), layout=layout),
        lambda layout: cresset.zeros_like(cresset.ones(2, 3), layout=layout),
        lambda layout: cresset.ones(1).new_zeros((2, 3), layout=layout),
        lambda layout: cresset.ones(1).new_empty((2, 3), layout=layout),
    ],
)
def test_factories_make_sparse_tensors_without_values(make, layout):
    made = make(layout)
    assert made.layout == layout and made.shape == (2, 3) and made.dtype == cresset.float32
    assert made._nnz() == 0 and made.to_dense().tolist() == [[0.0] * 3] * 2


def test_factories_take_their_other_arguments():
    made = cresset.zeros(2, 2, layout=cresset.sparse_coo, dtype=cresset.float64, requires_grad=True)
    assert made.dtype == cresset.float64 and made.requires_grad and made.is_leaf


@pytest.mark.parametrize(
    "refused",
    [
        lambda: cresset.ones(2, layout=cresset.sparse_coo),
        lambda: cresset.rand(2, layout=cresset.sparse_coo),
        lambda: cresset.empty(2, layout=cresset.jagged),
        lambda: cresset.empty(2, 2, layout=cresset.sparse_bsr),
        lambda: cresset.rand_like(sparse(cresset.sparse_coo)),
    ],
)
def test_what_cannot_be_sparse_says_so(refused):
    with pytest.raises(RuntimeError, match="layout|sparse_coo|to_dense"):
        refused()


def test_zeros_are_written_into_a_sparse_tensor():
    out = cresset.eye(3).to_sparse()
    assert cresset.zeros(2, 5, out=out) is out
    assert out.shape == (2, 5) and out._nnz() == 0 and out.sparse_dim() == 2


@pytest.mark.parametrize("layout", COMPRESSED, ids=str)
def test_values_like_those_of_a_compressed_tensor_are_at_its_places(layout):
    x = sparse(layout)
    for made in (cresset.randn_like(x), cresset.ones_like(x), cresset.full_like(x, 3.0)):
        assert made.layout == layout and made._nnz() == x._nnz() and made.values().shape == x.values().shape
    assert cresset.zeros_like(x)._nnz() == 0
    assert cresset.zeros_like(x, layout=cresset.sparse_coo).sparse_dim() == 2


def test_what_is_like_a_batch_of_hybrid_matrices_has_its_dimensions():
    x = cresset.ones(2, 3, 4, 5).to_sparse_csr(dense_dim=1)
    made = cresset.zeros_like(x)
    assert (made.sparse_dim(), made.dense_dim(), made.shape) == (2, 1, (2, 3, 4, 5))


class TestNew:
    def setup_method(self):
        self.x = cresset.eye(3, dtype=cresset.float64).to_sparse()

    def test_it_takes_sizes(self):
        for made, shape in ((self.x.new(), (0,)), (self.x.new(2, 3), (2, 3)), (self.x.new(self.x.shape), (3, 3))):
            assert made.layout == cresset.sparse_coo and made.shape == shape and made.dtype == cresset.float64

    def test_it_takes_parts(self):
        again = self.x.new(self.x.indices(), self.x.values())
        assert again.to_dense().tolist() == self.x.to_dense().tolist()
        assert self.x.new(self.x.indices(), self.x.values(), (4, 4)).shape == (4, 4)

    def test_it_takes_nothing_else(self):
        for wrong in ([6], cresset.ones(3), self.x):
            with pytest.raises(TypeError):
                self.x.new(wrong)
        with pytest.raises(RuntimeError, match="device type"):
            self.x.new(2, device="cuda")


def test_resize_as_takes_over_which_dimensions_are_sparse():
    x = cresset.empty((0,), layout=cresset.sparse_coo)
    like = cresset.sparse_coo_tensor([[0]], cresset.ones(1, 4), (2, 4))
    assert (x.resize_as_(like).sparse_dim(), x.dense_dim(), x.shape) == (1, 1, (2, 4))


def test_resizing_keeps_the_values_in_their_order():
    x = cresset.sparse_coo_tensor([[1]], [[1.0, 2.0, 3.0]], (2, 3))
    x.sparse_resize_((3, 4), 1, 1)
    assert x.to_dense().tolist() == [[0.0] * 4, [1.0, 2.0, 3.0, 0.0], [0.0] * 4]
    for size, word in (((1, 4), "sparse"), ((3, 1), "dense")):
        with pytest.raises(RuntimeError, match=f"shrinking the size of {word} dimensions"):
            x.sparse_resize_(size, 1, 1)


@pytest.mark.parametrize("layout", [cresset.sparse_coo, *COMPRESSED], ids=str)
def test_on_the_meta_device_there_are_no_values(layout):
    meta = sparse(layout).to("meta")
    assert meta.is_meta and meta.layout == layout and meta._nnz() == 0 and meta.shape == (4, 4)
    assert (meta + meta).is_meta and cresset.zeros_like(sparse(layout), device="meta")._nnz() == 0


def test_whole_numbers_may_be_given_as_floating_point_indices():
    assert cresset.sparse_coo_tensor(cresset.zeros(1, 1), cresset.ones(1)).to_dense().tolist() == [1.0]


def test_parts_are_validated_as_the_constructors_do():
    cresset._validate_sparse_coo_tensor_args(cresset.tensor([[0, 1]]), cresset.ones(2), (2,))
    with pytest.raises(RuntimeError, match="size is inconsistent"):
        cresset._validate_sparse_coo_tensor_args(cresset.tensor([[0, 2]]), cresset.ones(2), (2,))
    begin, columns = cresset.tensor([0, 2]), cresset.tensor([1, 1])
    with pytest.raises(RuntimeError, match="sorted and distinct"):
        cresset._validate_sparse_csr_tensor_args(begin, columns, cresset.ones(2), (1, 2))
    with pytest.raises(RuntimeError, match="sorted and distinct"):
        cresset._validate_sparse_compressed_tensor_args(begin, columns, cresset.ones(2), (2, 1), cresset.sparse_csc)


def test_32_bit_indices_stay_so_where_there_are_none():
    begin, rows = cresset.zeros(3, dtype=cresset.int32), cresset.empty(0, dtype=cresset.int32)
    x = cresset.sparse_csc_tensor(begin, rows, cresset.empty(0), (2, 2))
    assert x.row_indices().dtype == x.ccol_indices().dtype == cresset.int32


def test_old_names_without_arguments_make_a_vector_of_length_zero():
    assert cresset.sparse.DoubleTensor().shape == (0,)


@pytest.mark.parametrize("name, block", [("csr", ()), ("csc", ()), ("bsr", ((1, 1),)), ("bsc", ((1, 1),))])
def test_a_batch_of_no_matrices_has_no_compressed_form(name, block):
    with pytest.raises(RuntimeError, match=f"to_sparse_{name}: Expected product of batch dimensions to be non-zero"):
        getattr(cresset.ones(0, 2, 2), f"to_sparse_{name}")(*block)
