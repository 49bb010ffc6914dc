"""The same seed gives PyTorch's numbers on the CPU, and states can be exchanged both ways."""

import numpy as np
import pytest

import cresset

torch = pytest.importorskip("torch")

FLOATS = ["float32", "float64", "float16", "bfloat16"]
INTEGERS = ["uint8", "int8", "int16", "int32", "int64"]
SIZES = [(1,), (7,), (15,), (16,), (17,), (33,), (1000,), (3, 4, 5)]


def array(t):
    """As NumPy, with 16-bit floats widened."""
    name = str(t.dtype).split(".")[-1]
    if name in ("bfloat16", "float16"):
        t = t.float()
    if name == "complex32":
        t = t.to(torch.complex64 if isinstance(t, torch.Tensor) else cresset.complex64)
    return t.detach().numpy()


def compare(program, ulp=0):
    """Run program(lib) in both from the same seed: equal results, and streams that go on alike."""
    results = []
    for lib in (cresset, torch):
        lib.manual_seed(1234)
        results.append((program(lib), lib.rand(3)))
    (ours, after), (theirs, after_theirs) = results
    for a, b in zip(*(x if isinstance(x, tuple) else (x,) for x in (ours, theirs)), strict=True):
        assert (
            str(a.dtype) == str(b.dtype) and tuple(a.shape) == tuple(b.shape) and tuple(a.stride()) == tuple(b.stride())
        )
        if ulp and a.dtype.is_floating_point:
            eps = {"float32": 2.0**-23, "float64": 2.0**-52, "float16": 2.0**-10, "bfloat16": 2.0**-7}[
                str(a.dtype).split(".")[-1]
            ]
            np.testing.assert_allclose(array(a), array(b), rtol=ulp * eps, atol=ulp * eps)
        else:
            np.testing.assert_array_equal(array(a), array(b))
    np.testing.assert_array_equal(after.numpy(), after_theirs.numpy(), err_msg="the streams went apart")


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("dtype", FLOATS)
class TestFloats:
    """Every continuous distribution, every floating dtype, sizes around the groups of 16."""

    def test_rand(self, size, dtype):
        compare(lambda lib: lib.rand(size, dtype=getattr(lib, dtype)))

    def test_uniform(self, size, dtype):
        compare(lambda lib: lib.empty(size, dtype=getattr(lib, dtype)).uniform_(-2.5, 7))

    def test_randn(self, size, dtype):
        compare(lambda lib: lib.randn(size, dtype=getattr(lib, dtype)), ulp=4)

    def test_normal(self, size, dtype):
        compare(lambda lib: lib.empty(size, dtype=getattr(lib, dtype)).normal_(3, 0.5), ulp=4)

    def test_normal_of_tensors(self, size, dtype):
        def program(lib):
            mean = lib.linspace(-1, 1, size[-1], dtype=getattr(lib, dtype))
            std = lib.full(size, 0.5, dtype=getattr(lib, dtype))
            return lib.normal(mean, std), lib.normal(mean, 2.0), lib.normal(1.5, std), lib.normal(1.0, 2.0, size)

        compare(program, ulp=4)

    def test_log_normal(self, size, dtype):
        compare(lambda lib: lib.empty(size, dtype=getattr(lib, dtype)).log_normal_(0, 0.5), ulp=4)

    def test_exponential(self, size, dtype):
        compare(lambda lib: lib.empty(size, dtype=getattr(lib, dtype)).exponential_(1.5), ulp=4)

    def test_cauchy(self, size, dtype):
        compare(lambda lib: lib.empty(size, dtype=getattr(lib, dtype)).cauchy_(1, 2), ulp=8)

    def test_bernoulli_of_a_tensor(self, size, dtype):
        def program(lib):
            p = lib.rand(size, dtype=getattr(lib, dtype))
            return lib.bernoulli(p), lib.empty(size).bernoulli_(p), lib.empty(size, dtype=lib.int32).bernoulli_(p)

        compare(program)

    def test_poisson(self, size, dtype):
        compare(lambda lib: lib.poisson(lib.rand(size, dtype=getattr(lib, dtype)) * 30))

    def test_dropout(self, size, dtype):
        def program(lib):
            x = lib.arange(np.prod(size), dtype=lib.float32).reshape(size).to(getattr(lib, dtype)) + 1
            return lib.dropout(x, 0.3, True), *lib.native_dropout(x, 0.3, True), lib.dropout_(x.clone(), 0.3, True)

        compare(program)


@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS, "bool"])
class TestEveryDtype:
    """Discrete distributions, in whatever they are stored."""

    def test_random(self, dtype):
        compare(lambda lib: lib.empty(50, dtype=getattr(lib, dtype)).random_())

    def test_random_to(self, dtype):
        compare(lambda lib: lib.empty(50, dtype=getattr(lib, dtype)).random_(2))

    def test_bernoulli(self, dtype):
        compare(lambda lib: lib.empty(50, dtype=getattr(lib, dtype)).bernoulli_(0.3))
        compare(lambda lib: lib.bernoulli(lib.empty(50, dtype=getattr(lib, dtype)), 0.3))

    def test_geometric(self, dtype):
        if dtype != "bool":
            compare(lambda lib: lib.empty(50, dtype=getattr(lib, dtype)).geometric_(0.3))

    def test_randint(self, dtype):
        high = 2 if dtype == "bool" else 100
        compare(lambda lib: lib.randint(high, (3, 7), dtype=getattr(lib, dtype)))
        compare(lambda lib: lib.randint_like(lib.empty(20, dtype=getattr(lib, dtype)), 0, high))

    def test_randperm(self, dtype):
        if dtype != "bool":
            compare(lambda lib: lib.randperm(100, dtype=getattr(lib, dtype)))


@pytest.mark.parametrize(
    "dtype, bounds",
    [
        ("int64", (-(2**63), None)),
        ("int64", (5, None)),
        ("int64", (-(2**62), 2**62)),
        ("int64", (0, 2**31)),
        ("int64", (0, 2**32)),
        ("int64", (0, 2**40)),
        ("int32", (5, None)),
        ("int32", (-7, None)),
        ("int32", (-(2**31), 2**31)),
        ("int16", (-3, None)),
        ("int8", (-128, 128)),
        ("uint8", (0, 256)),
        ("float32", (5, None)),
        ("float64", (5, None)),
        ("float16", (5, None)),
        ("bfloat16", (5, None)),
        ("float32", (-(2**63), None)),
        ("float32", (0, 2**24)),
        ("float16", (0, 2**11)),
        ("bfloat16", (-(2**8), 2**8)),
        ("uint16", (0, 60000)),
        ("bool", (0, 2)),
    ],
)
def test_integer_ranges(dtype, bounds):
    compare(lambda lib: lib.empty(40, dtype=getattr(lib, dtype)).random_(*bounds))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "dtype, bounds",
    [("float32", (0, 2**25)), ("float16", (0, 4096)), ("bfloat16", (-1000, 1000)), ("float32", (2**24 + 1, 2**26))],
)
def test_integers_too_large_for_a_float_type(dtype, bounds):
    compare(lambda lib: lib.empty(40, dtype=getattr(lib, dtype)).random_(*bounds))


@pytest.mark.parametrize(
    "view",
    [
        lambda x: x.t(),
        lambda x: x[:, ::2],
        lambda x: x[::3, 1:],
        lambda x: x.t()[::2],
        lambda x: x.reshape(2, 6, 3, 4).permute(2, 0, 3, 1),
        lambda x: x.reshape(2, 6, 12).permute(1, 2, 0)[::2, ::3],
    ],
    ids=["transposed", "columns", "rows", "both", "permuted", "permuted with gaps"],
)
class TestStrided:
    """Fills of memory that is not contiguous, and results that go there."""

    @pytest.mark.parametrize(
        "fill", ["uniform_", "normal_", "exponential_", "cauchy_", "log_normal_", "random_", "bernoulli_"]
    )
    def test_fills(self, view, fill):
        compare(lambda lib: getattr(view(lib.zeros(12, 12)), fill)(), ulp=8)
        compare(lambda lib: getattr(view(lib.zeros(12, 12, dtype=lib.float64)), fill)(), ulp=8)

    def test_bernoulli_of_a_tensor(self, view):
        compare(lambda lib: view(lib.zeros(12, 12)).bernoulli_(view(lib.rand(12, 12))))
        compare(lambda lib: view(lib.zeros(12, 12, dtype=lib.int64)).bernoulli_(lib.tensor(0.5)))
        compare(lambda lib: lib.bernoulli(view(lib.rand(12, 12))))

    def test_like(self, view):
        compare(lambda lib: lib.rand_like(view(lib.zeros(12, 12))))
        compare(lambda lib: lib.randn_like(view(lib.zeros(12, 12))), ulp=4)
        compare(lambda lib: lib.randint_like(view(lib.zeros(12, 12)), 50))

    def test_out(self, view):
        def program(lib):
            whole = lib.zeros(12, 12)
            out = view(whole)
            lib.rand(tuple(out.shape), out=out)
            lib.randn(tuple(out.shape), out=view(other := lib.zeros(12, 12)))
            return whole, other

        compare(program, ulp=4)

    def test_dropout(self, view):
        compare(lambda lib: lib.dropout(view(lib.ones(12, 12)), 0.4, True))

    def test_samples(self, view):
        compare(lambda lib: lib.poisson(view(lib.rand(12, 12)) * 5))
        compare(lambda lib: lib._standard_gamma(view(lib.rand(12, 12)) * 5), ulp=8)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape", [(10,), (3, 10), (2, 300)], ids=str)
class TestMultinomial:
    def test_with_replacement(self, shape, dtype):
        compare(lambda lib: lib.multinomial(lib.rand(shape, dtype=getattr(lib, dtype)), 20, True))

    def test_without(self, shape, dtype):
        for samples in (1, 2, 5, 10):
            compare(lambda lib: lib.multinomial(lib.rand(shape, dtype=getattr(lib, dtype)), samples))  # noqa: B023


def test_multinomial_of_transposed_weights():
    compare(lambda lib: lib.multinomial(lib.rand(6, 4).t(), 3))
    compare(lambda lib: lib.multinomial(lib.rand(6, 4).t(), 9, True))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
class TestGammaFamily:
    def test_standard_gamma(self, dtype):
        compare(lambda lib: lib._standard_gamma(lib.rand(200, dtype=getattr(lib, dtype)) * 4 + 0.01), ulp=8)

    def test_dirichlet(self, dtype):
        compare(lambda lib: lib._sample_dirichlet(lib.rand(50, 5, dtype=getattr(lib, dtype)) * 4 + 0.01), ulp=16)

    @pytest.mark.parametrize("concentration", [1e-6, 1e-3])
    def test_dirichlet_of_concentrations_so_small_that_gamma_draws_underflow(self, dtype, concentration):
        compare(lambda lib: lib._sample_dirichlet(lib.full((200, 3), concentration, dtype=getattr(lib, dtype))), ulp=16)

    def test_binomial(self, dtype):
        def program(lib):
            count = lib.arange(300, dtype=getattr(lib, dtype)).reshape(3, 100)
            return lib.binomial(count, lib.linspace(0, 1, 100, dtype=getattr(lib, dtype)))

        compare(program)

    def test_gradients_agree_with_pytorch_approximations(self, dtype):
        shapes = [0.05, 0.4, 1.0, 3.0, 9.0, 40.0]
        a = torch.tensor(shapes, dtype=getattr(torch, dtype)).repeat_interleave(6)
        x = a * torch.tensor([0.2, 0.5, 0.9, 1.1, 1.6, 2.5], dtype=a.dtype).repeat(6)
        ours = cresset._standard_gamma_grad(cresset.from_numpy(a.numpy()), cresset.from_numpy(x.numpy()))
        np.testing.assert_allclose(ours.numpy(), torch._standard_gamma_grad(a, x).numpy(), rtol=5e-3)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_complex_numbers(dtype):
    for size in (3, 8, 20):
        ours, theirs = [], []
        for lib, results in ((cresset, ours), (torch, theirs)):
            lib.manual_seed(5)
            kind = getattr(lib, dtype)
            results += [
                lib.rand(size, dtype=kind),
                lib.randn(size, dtype=kind),
                lib.empty(size, dtype=kind).normal_(2, 3),
            ]
        for a, b in zip(ours, theirs, strict=True):
            np.testing.assert_allclose(array(a), array(b), rtol=1e-6)


def test_feature_and_alpha_dropout():
    def x(lib):
        return lib.linspace(-1, 1, 60).reshape(3, 5, 4)

    for name in ("feature_dropout", "alpha_dropout", "feature_alpha_dropout"):
        for p in (0.2, 0.5):
            compare(lambda lib: getattr(lib, name)(x(lib), p, True))  # noqa: B023
            compare(lambda lib: getattr(lib, name + "_")(x(lib), p, True))  # noqa: B023


def test_gradient_of_dropout():
    def program(lib):
        x = lib.linspace(-1, 1, 100).requires_grad_()
        y = lib.dropout(x, 0.3, True)
        (y * y).sum().backward()
        return y.detach(), x.grad

    compare(program, ulp=2)


def test_rrelu():
    compare(lambda lib: lib.rrelu(lib.linspace(-1, 1, 40), 0.1, 0.3, True), ulp=1)


class TestStates:
    """States travel between the libraries as bytes."""

    def test_from_pytorch(self):
        torch.manual_seed(3)
        torch.randn(5), torch.rand(300)
        cresset.set_rng_state(cresset.from_numpy(torch.get_rng_state().numpy()))
        for draw in ("rand", "randn", "randperm"):
            np.testing.assert_allclose(getattr(cresset, draw)(9).numpy(), getattr(torch, draw)(9).numpy(), rtol=1e-6)

    def test_to_pytorch(self):
        cresset.manual_seed(4)
        cresset.randn(3), cresset.rand(700)
        torch.set_rng_state(torch.from_numpy(cresset.get_rng_state().numpy()))
        for draw in ("randn", "rand", "randperm"):
            np.testing.assert_allclose(getattr(cresset, draw)(9).numpy(), getattr(torch, draw)(9).numpy(), rtol=1e-6)

    def test_bytes_are_equal(self):
        for lib in (cresset, torch):
            lib.manual_seed(6)
            lib.randn(3)
            lib.rand(10)
        np.testing.assert_array_equal(cresset.get_rng_state().numpy(), torch.get_rng_state().numpy())

    def test_generators_start_alike(self):
        assert cresset.Generator().initial_seed() == torch.Generator().initial_seed()
        a = cresset.rand(3, generator=cresset.Generator())
        np.testing.assert_array_equal(a.numpy(), torch.rand(3, generator=torch.Generator()).numpy())

    def test_a_generator_serves_every_function(self):
        def program(lib):
            g = lib.Generator().manual_seed(9)
            x = lib.rand(20, generator=g)
            return (
                x,
                lib.randn(20, generator=g),
                lib.randint(5, (20,), generator=g),
                lib.randint(1, 5, (20,), generator=g),
                lib.randperm(20, generator=g),
                lib.normal(0.0, 1.0, (3,), generator=g),
                lib.normal(x, 1.0, generator=g),
                lib.bernoulli(x, generator=g),
                lib.bernoulli(x, 0.5, generator=g),
                lib.multinomial(x, 5, generator=g),
                lib.poisson(x, g),
                lib.binomial(x, x, generator=g),
                lib.rand_like(x, generator=g),
                lib.randn_like(x, generator=g),
                lib.randint_like(x, 9, generator=g),
                lib.empty(4).uniform_(generator=g),
                lib.empty(4).normal_(generator=g),
                lib.empty(4).random_(generator=g),
                lib.empty(4).random_(3, generator=g),
                lib.empty(4).random_(3, 9, generator=g),
                lib.empty(4).bernoulli_(0.3, generator=g),
                lib.empty(4).exponential_(generator=g),
                lib.empty(4).geometric_(0.2, generator=g),
                lib.empty(4).cauchy_(generator=g),
                lib.empty(4).log_normal_(generator=g),
            )

        compare(program, ulp=8)


def test_negative_and_large_seeds():
    for seed in (-1, -(2**63), 2**63, 2**64 - 1, 2**32 + 5):
        cresset.manual_seed(seed)
        torch.manual_seed(seed)
        assert cresset.initial_seed() == torch.initial_seed()
        np.testing.assert_array_equal(cresset.rand(5).numpy(), torch.rand(5).numpy())
