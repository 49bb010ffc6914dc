"""The same small programs on sparse tensors give the same layouts, parts and elements in cresset and in PyTorch."""

import itertools
import warnings

import pytest

import cresset

torch = pytest.importorskip("torch")

LAYOUTS = ["sparse_coo", "sparse_csr", "sparse_csc", "sparse_bsr", "sparse_bsc"]


@pytest.fixture(autouse=True)
def quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch says that its compressed layouts are in beta
        yield


def described(t, value):
    """A result as plain values, the same for both libraries."""
    if isinstance(value, (tuple, list)):
        return [described(t, item) for item in value]
    if not isinstance(value, t.Tensor):
        return value
    facts = [str(value.layout), tuple(value.shape), str(value.dtype), value.requires_grad]
    if value.layout == t.sparse_coo:
        facts += [value.sparse_dim(), value.dense_dim()]
        value = value.coalesce()
        parts = [value.indices(), value.values()]
    elif value.layout == t.strided:
        parts = [value]
    else:
        row = value.layout in (t.sparse_csr, t.sparse_bsr)
        parts = [
            value.crow_indices() if row else value.ccol_indices(),
            value.col_indices() if row else value.row_indices(),
            value.values(),
        ]
    return facts, [part.detach().tolist() for part in parts]


def same(program, *args):
    ours, theirs = (described(t, program(t, *args)) for t in (cresset, torch))
    assert ours == pytest.approx(theirs) if isinstance(ours, float) else near(ours, theirs), (
        f"\nours   {ours}\ntheirs {theirs}"
    )


def near(a, b):
    if isinstance(a, (list, tuple)):
        return isinstance(b, (list, tuple)) and len(a) == len(b) and all(map(near, a, b))
    return a == pytest.approx(b, rel=1e-5, abs=1e-6) if isinstance(a, float) else a == b


def matrix(t, dtype="float32"):
    """Uncoalesced, out of order."""
    return t.sparse_coo_tensor(
        t.tensor([[1, 0, 1, 1], [2, 2, 0, 2]]), t.tensor([2.0, 3.0, -4.0, 3.0], dtype=getattr(t, dtype)), (2, 4)
    )


def hybrid(t):
    return t.sparse_coo_tensor(t.tensor([[0, 2, 0]]), t.arange(6.0).reshape(3, 2), (3, 2))


def dense(t):
    return t.arange(8.0).reshape(2, 4) - 3


PROGRAMS = {
    "coalesce": lambda t, s: s.coalesce(),
    "to_dense": lambda t, s: s.to_dense(),
    "add": lambda t, s: s + s,
    "add dense": lambda t, s: t.ones(s.shape) + s,
    "sub": lambda t, s: s - 3 * s,
    "mul": lambda t, s: s * s,
    "mul number": lambda t, s: 2 * s,
    "div number": lambda t, s: s / 4,
    "neg": lambda t, s: -s,
    "abs": lambda t, s: s.abs(),
    "sqrt of square": lambda t, s: (s**2).sqrt(),
    "sin": lambda t, s: s.sin(),
    "relu": lambda t, s: s.relu(),
    "sign": lambda t, s: s.sign(),
    "isnan": lambda t, s: s.isnan(),
    "sum": lambda t, s: s.sum(),
    "sum 0": lambda t, s: s.sum(0),
    "sum 1": lambda t, s: t.sparse.sum(s, 1),
    "norm": lambda t, s: s.norm(),
    "select": lambda t, s: s.select(0, 1),
    "index_select": lambda t, s: s.index_select(0, t.tensor([1, 0, 1])),
    "unsqueeze": lambda t, s: s.unsqueeze(0),
    "cat": lambda t, s: t.cat([s, s], 0),
    "stack": lambda t, s: t.stack([s, s], 0),
    "narrow_copy": lambda t, s: s.narrow_copy(0, 1, 1),
    "zeros_like": lambda t, s: t.zeros_like(s),
    "double": lambda t, s: s.double(),
    "clone": lambda t, s: s.clone(),
    "softmax": lambda t, s: t.sparse.softmax(s, 0),
    "log_softmax": lambda t, s: t.sparse.log_softmax(s, 1),
}


@pytest.mark.parametrize("make", [matrix, hybrid], ids=["matrix", "hybrid"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_coordinate_tensors(name, make):
    same(lambda t: PROGRAMS[name](t, make(t)))


@pytest.mark.parametrize("here, there", list(itertools.product(["strided", *LAYOUTS], LAYOUTS)))
def test_conversions(here, there):
    def program(t):
        def to(x, layout):
            return x.to_sparse(
                layout=getattr(t, layout), **({"blocksize": (1, 2)} if layout.startswith("sparse_bs") else {})
            )

        x = dense(t).relu()
        return to(x if here == "strided" else to(x, here), there)

    try:
        program(torch)
    except (RuntimeError, NotImplementedError):
        pytest.skip("PyTorch does not convert this way; cresset does")
    same(program)


@pytest.mark.parametrize("layout", LAYOUTS[:3])
@pytest.mark.parametrize(
    "program",
    [
        lambda t, s: s @ t.arange(8.0).reshape(4, 2),
        lambda t, s: s @ t.arange(4.0),
        lambda t, s: t.mm(t.arange(4.0).reshape(2, 2), s),
        lambda t, s: t.addmm(t.ones(2, 2), s, t.arange(8.0).reshape(4, 2), beta=2, alpha=3),
        lambda t, s: t.sparse.mm(s, t.ones(4, 1)),
        lambda t, s: s.t(),
        lambda t, s: s * 3,
        lambda t, s: s.sum(),
    ],
)
def test_products(layout, program):
    same(lambda t: program(t, dense(t).to_sparse(layout=getattr(t, layout))))


def test_products_of_two_sparse_matrices():
    same(lambda t: t.sparse.mm(matrix(t).coalesce(), matrix(t).coalesce().t()))


def test_a_product_at_some_places():
    same(
        lambda t: t.sparse.sampled_addmm(
            t.eye(3).to_sparse_csr(), t.arange(6.0).reshape(3, 2), t.arange(6.0).reshape(2, 3), beta=0.5, alpha=2.0
        )
    )
    same(lambda t: t.sparse.spdiags(t.arange(9.0).reshape(3, 3), t.tensor([0, -1, 2]), (3, 3)))


def test_gradients():
    def program(t):
        s = matrix(t).coalesce().requires_grad_()
        x = t.arange(8.0).reshape(4, 2).requires_grad_()
        (t.sparse.mm(s, x) ** 2).sum().backward()
        return s.grad, x.grad

    same(program)

    def of_values(t):
        v = t.tensor([1.0, 2.0, 3.0], requires_grad=True)
        s = t.sparse_coo_tensor(t.tensor([[0, 0, 1], [1, 1, 0]]), v, (2, 2))
        (s.to_dense() ** 2).sum().backward()
        return v.grad

    same(of_values)


@pytest.mark.parametrize("options", [{}, {"padding_idx": 1}], ids=["plain", "padding"])
def test_gradients_of_embeddings(options):
    def program(t):
        e = t.nn.Embedding(4, 2, sparse=True, **options)
        for index in ([0, 1, 1], [3, 1, 0]):
            (e(t.tensor(index)) * t.arange(6.0).reshape(3, 2)).sum().backward()
        return e.weight.grad

    same(program)


@pytest.mark.parametrize(
    "kind, options", [("SGD", {"momentum": 0.9}), ("Adagrad", {"lr_decay": 0.1}), ("SparseAdam", {})]
)
def test_optimizers_with_sparse_gradients(kind, options):
    def program(t):
        t.manual_seed(0)
        e = t.nn.Embedding(6, 3, sparse=True)
        optimizer = getattr(t.optim, kind)(e.parameters(), lr=0.1, **options)
        for index in ([0, 1, 1], [2, 1, 5], [3, 3, 0]):
            optimizer.zero_grad()
            (e(t.tensor(index)) ** 2).sum().backward()
            optimizer.step()
        return e.weight.detach()

    same(program)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_texts(layout):
    def program(t):
        x = dense(t).to_sparse(
            layout=getattr(t, layout), **({"blocksize": (1, 2)} if layout.startswith("sparse_bs") else {})
        )
        return repr(x), repr(x.double().requires_grad_())

    same(program)


@pytest.mark.parametrize(
    "program",
    [
        lambda t: matrix(t).indices(),
        lambda t: matrix(t).values(),
        lambda t: t.ones(2).coalesce(),
        lambda t: matrix(t).crow_indices(),
        lambda t: dense(t).to_sparse_csr().indices(),
        lambda t: matrix(t) ** 0,
        lambda t: matrix(t) / matrix(t),
        lambda t: matrix(t).exp(),
        lambda t: matrix(t).numpy(),
        lambda t: matrix(t).data_ptr(),
        lambda t: t.sparse_coo_tensor([[5]], [1.0], (2,), check_invariants=True),
        lambda t: t.sparse_coo_tensor([[0]], [1.0], (2, 2)),
        lambda t: t.sparse_csr_tensor([0, 3], [0, 1], [1.0, 2.0], (1, 2), check_invariants=True),
        lambda t: bool(matrix(t)),
        lambda t: t.eye(2, dtype=t.int64).add_(t.eye(2).to_sparse()),
        lambda t: t.eye(2, dtype=t.int64).sub_(t.eye(2).to_sparse()),
        lambda t: t.eye(2, dtype=t.int64).to_sparse().add_(t.eye(2).to_sparse()),
    ],
)
def test_errors_have_the_same_class(program):
    with pytest.raises(Exception) as theirs:  # noqa: PT011
        program(torch)
    with pytest.raises(theirs.type):
        program(cresset)
