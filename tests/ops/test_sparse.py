"""Products with sparse matrices, on every device."""

import pytest

import cresset
from cresset.autograd import gradcheck

pytestmark = pytest.mark.kernels

DTYPES = "float32 float64 float16 bfloat16 int32 int64 uint8 complex64 complex128".split()


def numbers(shape, dtype, seed):
    """Small whole numbers, of which every sum is exact."""
    given = cresset.randint(-3, 4, (2, *shape), generator=cresset.Generator().manual_seed(seed))
    if dtype.is_complex:
        return cresset.complex(given[0].double(), given[1].double()).to(dtype)
    return given[0].abs().to(dtype) if dtype == cresset.uint8 else given[0].to(dtype)


def thinned(shape, dtype, kept, seed=1):
    """A matrix with about one in `kept` of its elements; the first row has all of them, the second none."""
    chosen = cresset.randint(0, kept, shape, generator=cresset.Generator().manual_seed(seed)) == 0
    chosen[0], chosen[1] = True, False
    return cresset.where(chosen, numbers(shape, dtype, seed + 1), cresset.zeros((), dtype=dtype))


@pytest.fixture(autouse=True)
def made_on_the_cpu():
    """Operands are made on the CPU, whose generator they name, and products on the device of the run."""
    device = cresset.get_default_device()
    with cresset.device("cpu"):
        yield lambda tensor: tensor.to(device)


@pytest.mark.parametrize("width", [1, 3, 8, 32, 200])
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_product_is_that_of_the_dense_matrices(dtype, width, made_on_the_cpu):
    to, dtype = made_on_the_cpu, getattr(cresset, dtype)
    a, b = thinned((37, 50), dtype, 8), numbers((50, width), dtype, 3)
    expected = (a.double() @ b.double()).to(dtype) if not dtype.is_complex else a @ b
    for layout in ("coo", "csr", "csc"):
        sparse = getattr(to(a), "to_sparse" if layout == "coo" else f"to_sparse_{layout}")()
        assert cresset.equal((sparse @ to(b)).cpu(), expected)
    assert cresset.equal((to(b).t() @ to(a).to_sparse_csr().t()).cpu(), expected.t())


def test_rows_of_many_elements_are_shared_by_warps(made_on_the_cpu):
    a, b = numbers((3, 4000), cresset.float64, 1), numbers((4000, 20), cresset.float64, 2)
    for width in (1, 20):
        product = made_on_the_cpu(a).to_sparse_csr() @ made_on_the_cpu(b[:, :width].contiguous())
        assert cresset.equal(product.cpu(), a @ b[:, :width])


def test_matrices_that_do_not_begin_at_a_multiple_of_16_bytes(made_on_the_cpu):
    a, b = thinned((9, 12), cresset.float32, 3), numbers((12 * 8 + 1,), cresset.float32, 2)
    shifted = made_on_the_cpu(b)[1:].reshape(12, 8)
    assert cresset.equal((made_on_the_cpu(a).to_sparse_csr() @ shifted).cpu(), a @ b[1:].reshape(12, 8))


def test_indices_of_32_bits_and_elements_that_are_not_in_order(made_on_the_cpu):
    a, b = thinned((9, 12), cresset.float32, 3), numbers((12, 5), cresset.float32, 2)
    whole, to = a.to_sparse_csr(), made_on_the_cpu
    narrow = cresset.sparse_csr_tensor(
        to(whole.crow_indices().int()), to(whole.col_indices().int()), to(whole.values()), a.shape
    )
    assert cresset.equal((narrow @ to(b)).cpu(), a @ b)
    coordinates = a.to_sparse()
    order = cresset.randperm(coordinates._nnz(), generator=cresset.Generator().manual_seed(0))
    mixed = cresset.sparse_coo_tensor(to(coordinates.indices()[:, order]), to(coordinates.values()[order]), a.shape)
    assert cresset.equal((mixed @ to(b)).cpu(), a @ b)


@pytest.mark.parametrize("shapes", [((0, 4), (4, 3)), ((3, 0), (0, 2)), ((3, 4), (4, 0))])
def test_without_elements_the_sum_is_zero(shapes, made_on_the_cpu):
    a, b = (made_on_the_cpu(cresset.ones(shape)) for shape in shapes)
    for sparse in (a.to_sparse(), a.to_sparse_csr(), (a * 0).to_sparse_csr()):
        assert (sparse @ b).shape == (shapes[0][0], shapes[1][1])
    assert not ((a * 0).to_sparse_csr() @ b).any()


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
def test_its_derivatives(dtype, made_on_the_cpu):
    to, dtype = made_on_the_cpu, getattr(cresset, dtype)
    sparse = to(thinned((4, 6), dtype, 3)).to_sparse_csr()
    parts = sparse.crow_indices(), sparse.col_indices()

    def product(values, dense):
        return cresset.sparse_csr_tensor(*parts, values, (4, 6)) @ dense

    values, dense = sparse.values().detach().requires_grad_(), to(numbers((6, 3), dtype, 5)).requires_grad_()
    assert gradcheck(product, (values, dense))


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "complex64"])
def test_sampled_products(dtype, made_on_the_cpu):
    to, dtype = made_on_the_cpu, getattr(cresset, dtype)
    places = thinned((40, 30), dtype, 9)
    for width in (1, 7, 64):
        left, right = numbers((40, width), dtype, 2), numbers((width, 30), dtype, 3)
        pattern = (places * 0 + (places != 0)).to_sparse_csr()
        whole = cresset.sparse_csr_tensor(*(to(t) for t in pattern._parts), pattern.shape)
        result = cresset.sparse.sampled_addmm(whole, to(left), to(right), beta=0.0)
        expected = (left @ right)[pattern.to_sparse_coo().indices().unbind(0)]
        assert cresset.equal(result.values().cpu(), expected)


def test_two_sparse_matrices(made_on_the_cpu):
    a, b = thinned((20, 30), cresset.float32, 5), thinned((30, 10), cresset.float32, 5)
    product = made_on_the_cpu(a).to_sparse() @ made_on_the_cpu(b).to_sparse()
    assert cresset.equal(product.to_dense().cpu(), a @ b)


def test_a_column_beyond_the_matrix_is_an_error(made_on_the_cpu, refused):
    to = made_on_the_cpu
    begins, columns, values = to(cresset.tensor([0, 1, 2])), to(cresset.tensor([0, 9])), to(cresset.ones(2))
    with refused(RuntimeError, "out of bounds"):
        cresset.ops.sparse.product(begins, columns, values, to(cresset.ones(3, 2)))
