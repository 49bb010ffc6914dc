"""torch.jit.trace beside PyTorch: warnings, errors, and files that PyTorch loads and runs."""

import io
import warnings

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import cresset  # noqa: E402


def told(t, program, *inputs, **options):
    """The first words of the tracer's warnings, and the class and first words of the error."""
    inputs = tuple(t.ones(*shape) for shape in inputs)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        try:
            t.jit.trace(program(t), inputs if len(inputs) > 1 else inputs[0], **options)
            error = None
        except Exception as problem:  # the comparison is what comes out
            error = (type(problem).__name__, " ".join(str(problem).split()[:5]))
    words = {" ".join(str(w.message).split()[:7]) for w in seen if w.category.__name__ == "TracerWarning"}
    return words, error


PROGRAMS = {
    "branch": (lambda t: lambda x: x + 1 if x.sum() > 0 else x - 1, [(2,)]),
    "size branch": (lambda t: lambda x: x + 1 if x.size(0) == 2 else x - 1, [(2,)]),
    "list": (lambda t: lambda x: x * x.tolist()[0], [(2,)]),
    "number": (lambda t: lambda x: x * x[0].item(), [(2,)]),
    "constant": (lambda t: lambda x: x * t.tensor([1.0, 2.0]), [(2,)]),
    "dict": (lambda t: lambda x: {"a": x}, [(2,)]),
    "list result": (lambda t: lambda x: [x, x], [(2,)]),
    "int result": (lambda t: lambda x: 3, [(2,)]),
    "nothing": (lambda t: lambda x: None, [(2,)]),
    "quiet": (lambda t: lambda x, y: (x @ y, x.view(x.size(0), -1)), [(2, 3), (3, 2)]),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_warnings_and_errors_are_pytorchs(name):
    program, inputs = PROGRAMS[name]
    assert told(cresset, program, *inputs) == told(torch, program, *inputs)


def modules():
    nn = cresset.nn

    class Sizes(nn.Module):
        def forward(self, x):
            y = x.view(x.size(0), -1)
            y = y * y.shape[1]
            y[0] = 1
            y = y.to(cresset.float64).float() + cresset.zeros(1)
            return (
                y.reshape(x.shape[0], x.shape[1] * x.shape[2]).sum() / x.shape[0],
                x[:, 0],
                x[x > 0],
                cresset.arange(x.shape[0]),
            )

    class Many(nn.Module):
        def forward(self, x):
            F = nn.functional
            return (
                cresset.cat([x, x.flip(0)]).softmax(-1), x.mean((0, 1), keepdim=True), x.max(1)[0], x.split(1, 0)[0],
                F.interpolate(x[None], scale_factor=2.0), F.gelu(x),
                x.std(dim=-1), cresset.where(x > 0, x, 0.0), x.clamp(-1, 1), F.pad(x, (1, 2)),
                x.transpose(0, 1).contiguous(), 1 - x, 2 / (x + 9), x**2, x.sum() * 2,
            )  # fmt: skip

    r = cresset.randn
    return {
        "mlp": (nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2)), (r(3, 4),)),
        "cnn": (
            nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
                nn.Dropout(), nn.Linear(64, 5), nn.LayerNorm(5), nn.GELU()),
            (r(2, 3, 8, 8),),
        ),
        "encoder": (nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), (r(2, 5, 8),)),
        "lstm": (nn.LSTM(3, 4, 2, batch_first=True, bidirectional=True), (r(2, 5, 3),)),
        "gru": (nn.GRU(3, 4), (r(5, 2, 3),)),
        "attention": (nn.MultiheadAttention(8, 2), (r(5, 2, 8),) * 3),
        "embedding": (nn.Sequential(nn.Embedding(5, 3), nn.Linear(3, 2)), (cresset.tensor([1, 2]),)),
        "group norm": (nn.Sequential(nn.GroupNorm(2, 4), nn.SiLU(), nn.Upsample(scale_factor=2)), (r(2, 4, 3, 3),)),
        "transposed": (nn.Sequential(nn.ConvTranspose2d(2, 3, 3, stride=2), nn.AvgPool2d(2), nn.Hardswish()),
            (r(1, 2, 4, 4),)),
        "sizes": (Sizes(), (r(2, 3, 4),)),
        "many": (Many(), (r(2, 3, 4),)),
    }  # fmt: skip


@pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning")
@pytest.mark.parametrize("name", modules())
def test_pytorch_loads_what_was_traced_here_and_gives_the_same_numbers(name):
    cresset.manual_seed(0)
    module, inputs = modules()[name]
    module.eval()
    file = io.BytesIO()
    cresset.jit.save(cresset.jit.trace(module, inputs), file)
    file.seek(0)
    loaded = torch.jit.load(file)
    got = torch.utils._pytree.tree_leaves(loaded(*(torch.from_numpy(x.numpy()) for x in inputs)))
    want = cresset.pytree.tree_leaves(module(*inputs))
    assert len(got) == len(want)
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=1e-5, atol=1e-6)


LINALG = {
    "cholesky": lambda t, x: t.linalg.cholesky(x),
    "cholesky_ex": lambda t, x: t.linalg.cholesky_ex(x).L,
    "eig": lambda t, x: t.linalg.eig(x).eigenvalues.real.sort().values,
    "eigh": lambda t, x: t.linalg.eigh(x).eigenvalues,
    "eigvalsh": lambda t, x: t.linalg.eigvalsh(x),
    "ldl_factor": lambda t, x: t.linalg.ldl_factor(x).LD,
    "lstsq": lambda t, x: t.linalg.lstsq(x, x).solution,
    "matrix_exp": lambda t, x: t.linalg.matrix_exp(x),
    "matrix_norm": lambda t, x: t.linalg.matrix_norm(x, "nuc"),
    "norm": lambda t, x: t.linalg.norm(x),
    "pinv": lambda t, x: t.linalg.pinv(x),
    "solve_triangular": lambda t, x: t.linalg.solve_triangular(x, x, upper=True),
    "tensorinv": lambda t, x: t.linalg.tensorinv(x, 1),
}


def operators_of(t, program):
    """The operators of a trace, and whether it gives the program's numbers for other elements."""
    traced = t.jit.trace(lambda x: program(t, x), t.eye(3) * 2)
    other = t.tensor([[4.0, 1.0, 0.0], [1.0, 3.0, 0.5], [0.0, 0.5, 2.0]])
    assert t.allclose(traced(other), program(t, other), atol=1e-5)
    return [node.kind() for node in traced.graph.nodes() if node.kind().startswith("aten::linalg")]


@pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning")
@pytest.mark.parametrize("name", LINALG)
def test_linear_algebra_is_traced_by_the_operators_of_pytorch(name):
    ours, theirs = (operators_of(t, LINALG[name]) for t in (cresset, torch))
    assert ours == theirs


@pytest.mark.parametrize("name", ["MultivariateNormal", "Kumaraswamy"])
def test_densities_are_traced_whose_shapes_are_broadcast(name):
    def density(t):
        def program(value, a, b):
            return getattr(t.distributions, name)(a, b).log_prob(value)

        b = [[1.0, 0.2], [0.2, 2.0]] if name == "MultivariateNormal" else [2.0, 3.0]
        example = t.tensor([0.3, 0.6]), t.tensor([1.0, 1.5]), t.tensor(b)
        traced = t.jit.trace(program, example, check_trace=False)
        return traced(t.tensor([0.5, 0.2]), *example[1:]).tolist()

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # both tell that they checked the arguments' elements
        assert density(cresset) == pytest.approx(density(torch), rel=1e-5)


@pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning")
def test_a_tensor_is_filled_with_the_number_in_another_that_depends_on_the_input():
    def filled(t):
        traced = t.jit.trace(lambda x: (t.full((2,), x.sum()), t.full((1, 2), x[0] > 1)), t.ones(3))
        return [(r.tolist(), str(r.dtype)) for r in traced(t.tensor([2.0, 3.0, 4.0]))]

    assert filled(cresset) == filled(torch)
