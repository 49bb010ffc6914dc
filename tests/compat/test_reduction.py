"""Reductions, scans, softmax and normalizations give what PyTorch gives: values, dtypes, gradients and the class of an
error.
"""

import warnings

import numpy as np
import pytest

import cresset

torch = pytest.importorskip("torch")

RNG = np.random.default_rng(0)

# Shapes that meet every path: one chunk, many chunks, short rows, narrow and wide columns, several reduced dimensions.
SHAPES = [
    (),
    (1,),
    (7,),
    (100,),
    (20000,),
    (3, 5),
    (1000, 4),
    (4, 1000),
    (700, 33),
    (33, 700),
    (3, 4000),
    (2, 3, 4, 5),
    (5, 1, 300),
    (2, 70, 65),
]
LAYOUTS = {
    "plain": lambda a: a,
    "transposed": lambda a: np.ascontiguousarray(a.T).T,
    "every other": lambda a: np.repeat(a, 2, axis=-1)[..., ::2] if a.ndim else a,
    "channels first": lambda a: np.moveaxis(np.ascontiguousarray(np.moveaxis(a, -1, 0)), 0, -1) if a.ndim > 2 else a,
}


def both(array, dtype):
    """The array as a tensor of each library, with the array's strides."""
    array = np.asarray(array)
    if array.size == 0 or array.ndim == 0:
        array = array.copy()
    make = {"bfloat16": np.float32, "float16": np.float32}.get(dtype, dtype)
    array = array if array.dtype == make else array.astype(make, order="K")
    ours, theirs = cresset.from_numpy(array), torch.from_numpy(array)
    if make is np.float32:
        ours, theirs = ours.to(getattr(cresset, dtype)), theirs.to(getattr(torch, dtype))
    return ours, theirs


def to_numpy(t):
    t = t.detach()
    return (
        (t.to(cresset.float32) if isinstance(t, cresset.Tensor) else t.float()).numpy()
        if "float16" in str(t.dtype)
        else t.numpy(force=True)
    )


def agree(ours, theirs, rtol=None):
    if isinstance(theirs, (tuple, list)):
        assert len(ours) == len(theirs)
        for a, b in zip(ours, theirs, strict=True):
            agree(a, b, rtol)
        return
    assert str(ours.dtype) == str(theirs.dtype)
    assert tuple(ours.shape) == tuple(theirs.shape)
    tolerance = {"torch.float16": 2e-3, "torch.bfloat16": 1.6e-2, "torch.float64": 1e-10, "torch.complex128": 1e-10}
    rtol = rtol or tolerance.get(str(theirs.dtype), 2e-5)
    np.testing.assert_allclose(to_numpy(ours), to_numpy(theirs), rtol=rtol, atol=rtol * 20)


def draw(shape, dtype):
    if dtype.startswith("complex"):
        return (RNG.standard_normal(shape) + 1j * RNG.standard_normal(shape)).astype(dtype)
    if "float" in dtype:
        return RNG.standard_normal(shape).astype(np.float64 if dtype == "float64" else np.float32)
    if dtype == "bool":
        return RNG.random(shape) > 0.3
    return RNG.integers(0 if dtype == "uint8" else -9, 10, shape).astype(dtype)


def dims_of(ndim):
    yield None
    yield from range(ndim)
    if ndim > 1:
        yield (0, -1)
        yield tuple(range(ndim))
    if ndim > 2:
        yield (0, 2)


REAL = {
    "sum": lambda x, d: x.sum(d),
    "mean": lambda x, d: x.mean(d, keepdim=True),
    "var": lambda x, d: x.var(d, correction=0),
    "norm": lambda x, d: x.norm(2, d),
    "norm of order 3": lambda x, d: x.norm(3, d),
    "largest size": lambda x, d: x.norm(float("inf"), d),
    "smallest size": lambda x, d: x.norm(-float("inf"), d),
    "count": lambda x, d: x.norm(0, d),
    "sum of sizes": lambda x, d: x.norm(1, d),
}
ORDERED = {
    "amax": lambda x, d: x.amax(() if d is None else d),
    "amin": lambda x, d: x.amin(() if d is None else d),
    "any": lambda x, d: x.any() if d is None else x.any(d),
    "all": lambda x, d: x.all() if d is None else x.all(d),
    "count_nonzero": lambda x, d: x.count_nonzero(d),
    "nansum": lambda x, d: x.nansum(d),
    "argmax": lambda x, d: x.argmax(d) if not isinstance(d, tuple) else x.argmax(d[0]),
    "max": lambda x, d: x.max(d) if isinstance(d, int) else x.max(),
    "min": lambda x, d: tuple(x.min(d, keepdim=True)) if isinstance(d, int) else x.min(),
    "sum": lambda x, d: x.sum(d),
    "aminmax": lambda x, d: x.aminmax(dim=d) if isinstance(d, int) else x.aminmax(),
}
SCANS = {
    "cumsum": lambda x, d: x.cumsum(d),
    "cumprod": lambda x, d: x.cumprod(d),
    "cummax": lambda x, d: tuple(x.cummax(d)),
    "cummin": lambda x, d: tuple(x.cummin(d)),
    "logcumsumexp": lambda x, d: x.logcumsumexp(d),
    "softmax": lambda x, d: x.softmax(d),
    "log_softmax": lambda x, d: x.log_softmax(d),
}


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "float16", "complex64"])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", REAL)
def test_real_reductions(name, layout, dtype):
    for shape in SHAPES:
        ours, theirs = both(LAYOUTS[layout](draw(shape, dtype)), dtype)
        for dim in dims_of(len(shape)):
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", "Casting complex values to real")
                agree(REAL[name](ours, dim), REAL[name](theirs, dim))


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "int64", "int32", "uint8", "bool"])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", ORDERED)
def test_ordered_reductions(name, layout, dtype):
    if name == "argmax" and dtype == "bool":
        pytest.skip("an error in both")
    for shape in SHAPES:
        ours, theirs = both(LAYOUTS[layout](draw(shape, dtype)), dtype)
        for dim in dims_of(len(shape)):
            agree(ORDERED[name](ours, dim), ORDERED[name](theirs, dim))


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", SCANS)
def test_scans_and_softmax(name, layout, dtype):
    for shape in SHAPES:
        if name == "cumprod" and max(shape, default=1) > 500:
            continue  # the product has long become zero
        ours, theirs = both(LAYOUTS[layout](draw(shape, dtype)), dtype)
        for dim in range(-1, max(len(shape), 1)):
            agree(SCANS[name](ours, dim), SCANS[name](theirs, dim), rtol=1e-4 if dtype == "float32" else None)


def test_nan_and_infinity():
    a = np.array([[1.0, np.nan, 3.0, np.nan], [np.inf, 2.0, np.inf, -np.inf], [-np.inf] * 4])
    ours, theirs = both(a, "float32")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for f in (*ORDERED.values(), *SCANS.values(), *REAL.values(), lambda x, d: x.logsumexp(d)):
            for dim in (0, 1):
                agree(f(ours, dim), f(theirs, dim))


def test_gradients_and_their_gradients():
    functions = {
        "sum": lambda x: x.sum((0, 2)), "mean": lambda x: x.mean(1, keepdim=True), "prod": lambda x: x.prod(1),
        "prod of all": lambda x: x.prod(),
        "amax": lambda x: x.amax((0, 2)), "max": lambda x: x.max(1).values, "max of all": lambda x: x.max(),
        "min": lambda x: x.min(0, True).values,
        "nansum": lambda x: x.nansum(1), "logsumexp": lambda x: x.logsumexp((0, 1)), "var": lambda x: x.var(1),
        "std": lambda x: x.std((0, 2), False, True),
        "std of all": lambda x: x.std(True), "norm 2": lambda x: x.norm(2, 1), "norm 3": lambda x: x.norm(3, (0, 2)),
        "norm 1.5": lambda x: x.norm(1.5),
        "norm 0.5": lambda x: x.norm(0.5, 1), "norm 1": lambda x: x.norm(1),
        "norm inf": lambda x: x.norm(float("inf"), 1),
        "cumsum": lambda x: x.cumsum(1), "cumprod": lambda x: x.cumprod(2), "logcumsumexp": lambda x: x.logcumsumexp(1),
        "cummax": lambda x: x.cummax(1).values,
        "softmax": lambda x: x.softmax(1), "log_softmax": lambda x: x.log_softmax(-1),
        "aminmax": lambda x: sum(x.aminmax(dim=1)),
    }  # fmt: skip
    array = RNG.standard_normal((3, 4, 5))
    seed = RNG.standard_normal((3, 4, 5))
    for name, f in functions.items():
        for zeros in (False, True):
            values = np.where(seed > 1, 0, array) if zeros and "prod" in name else array
            results = []
            for lib in (cresset, torch):
                x = lib.from_numpy(values.copy()).requires_grad_()
                weight = lib.from_numpy(seed)
                y = f(x)
                (y * weight.reshape(-1)[: y.numel()].reshape(y.shape)).sum()
                (g,) = lib.autograd.grad(
                    (y * weight.reshape(-1)[: y.numel()].reshape(y.shape)).sum(), x, create_graph=True
                )
                (h,) = (
                    lib.autograd.grad((g * weight).square().sum(), x, allow_unused=True) if g.requires_grad else (None,)
                )
                results.append((g, lib.zeros_like(x) if h is None else h))
            try:
                agree(*results)
            except AssertionError as e:
                raise AssertionError(name) from e


NORMALIZATIONS = {
    "layer": lambda lib, x, w, b: lib.layer_norm(x, x.shape[-1:], w[: x.shape[-1]], b[: x.shape[-1]]),
    "layer over two": lambda lib, x, w, b: lib.layer_norm(x, x.shape[-2:]),
    "layer without bias": lambda lib, x, w, b: lib.layer_norm(x, x.shape[-1:], w[: x.shape[-1]], None, 0.1),
    "rms": lambda lib, x, w, b: lib.rms_norm(x, x.shape[-1:], w[: x.shape[-1]], 1e-5),
    "rms default": lambda lib, x, w, b: lib.rms_norm(x, x.shape[-2:]),
    "group": lambda lib, x, w, b: lib.group_norm(x, 2, w[: x.shape[1]], b[: x.shape[1]]),
    "group plain": lambda lib, x, w, b: lib.group_norm(x, 1),
    "batch": lambda lib, x, w, b: lib.batch_norm(
        x, w[: x.shape[1]], b[: x.shape[1]], None, None, True, 0.1, 1e-5, False
    ),
    "batch plain": lambda lib, x, w, b: lib.batch_norm(x, None, None, None, None, True, 0.1, 1e-5, False),
    "batch in evaluation": lambda lib, x, w, b: lib.batch_norm(
        x,
        w[: x.shape[1]],
        b[: x.shape[1]],
        b[: x.shape[1]].detach(),
        w[: x.shape[1]].detach().square(),
        False,
        0.1,
        1e-5,
        False,
    ),
    "instance": lambda lib, x, w, b: lib.instance_norm(
        x, w[: x.shape[1]], b[: x.shape[1]], None, None, True, 0.1, 1e-5, False
    ),
}


@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", NORMALIZATIONS)
def test_normalizations(name, layout, dtype):
    for shape in [(3, 4, 5), (2, 6, 4, 4), (5, 8, 17), (70, 4, 6), (2, 4, 300), (2, 2, 5, 1000)]:
        array = LAYOUTS[layout](draw(shape, dtype) + 1)
        weight, bias, seed = draw((5000,), dtype), draw((5000,), dtype), draw(shape, dtype)
        results = []
        for lib, k in ((cresset, 0), (torch, 1)):
            x, w, b, s = (both(a, dtype)[k] for a in (array, weight, bias, seed))
            x, w, b = x.requires_grad_(), w.requires_grad_(), b.requires_grad_()
            y = NORMALIZATIONS[name](lib, x, w, b)
            grads = lib.autograd.grad((y * s).sum(), [x, w, b], allow_unused=True)
            results.append([y] + [g if g is not None else lib.zeros(1) for g in grads])
        agree(*results, rtol={"float32": 2e-4, "float64": 1e-9, "bfloat16": 4e-2}[dtype])


@pytest.mark.parametrize("name", NORMALIZATIONS)
def test_second_derivatives_of_normalizations(name):
    array, seed = draw((3, 4, 5), "float64"), draw((3, 4, 5), "float64")
    weight, bias = draw((9,), "float64"), draw((9,), "float64")
    results = []
    for lib, k in ((cresset, 0), (torch, 1)):
        x, w, b, s = (both(a, "float64")[k] for a in (array, weight, bias, seed))
        x, w, b = x.requires_grad_(), w.requires_grad_(), b.requires_grad_()
        y = NORMALIZATIONS[name](lib, x, w, b)
        grads = lib.autograd.grad((y * s).sin().sum(), [x, w], create_graph=True, allow_unused=True)
        total = sum((g * g).sum() for g in grads if g is not None)
        seconds = lib.autograd.grad(total, [x, w, b], allow_unused=True)
        results.append([g if g is not None else lib.zeros(1) for g in seconds])
    agree(*results, rtol=1e-8)


def test_running_statistics():
    array = draw((4, 3, 5), "float32")
    results = []
    for lib in (cresset, torch):
        mean, var = lib.zeros(3), lib.ones(3)
        for _ in range(2):
            lib.batch_norm(lib.from_numpy(array), None, None, mean, var, True, 0.3, 1e-5, False)
        results.append([mean, var])
    agree(*results)


CALLS = """
x.sum(dim=())
x.amax(dim=())
x.any(dim=())
x.all(dim=())
x.mean(dim=[])
x.var(dim=[])
x.prod(dim=(0, 1))
i.logsumexp(0)
i.mean()
i.var()
x.mean(dtype=lib.int64)
i.mean(dtype=lib.float32)
i.sum(dtype=lib.float16)
x.sum(dtype=lib.int64)
u.any()
u.all(0)
u.any(dim=())
e.max()
e.amax()
e.amax(0)
e.amax(1)
e.max(0)
e.max(1)
e.argmax(0)
e.argmax(1)
e.argmax()
e.mean(0)
e.sum(1)
e.prod(0)
e.logsumexp(0)
e.norm()
e.norm(float("inf"))
e.aminmax()
e.aminmax(dim=0)
e.cumsum(0)
e.cummax(0)
e.softmax(0)
e.any(0)
e.all(0)
lib.tensor(3.0).max(0)
lib.tensor(3.0).max(1)
lib.tensor(3.0).argmax()
lib.tensor(3.0).sum(-1)
lib.tensor(3.0).sum((0, -1))
lib.tensor(3.0).softmax(0)
lib.tensor(3.0).cumsum(0)
lib.tensor(3.0).cummax(0)
x.sum((0, 0))
x.sum(2)
x.sum(dim="a")
x.sum(0, True, lib.float64)
x.var(0, False)
x.var(False)
x.var(unbiased=False)
x.var((0, 1), True, True)
x.var(0, correction=0)
x.var(0, True, correction=0)
x.var(None)
x.var(0, correction=None)
x.var(0, correction=0.5)
x.std(correction=1)
lib.var_mean(x)
lib.var_mean(x, False)
lib.std_mean(x, 0, False, True)
lib.var_mean(x, (0,), correction=0)
x.max(x + 1)
lib.max(x, other=x)
lib.max(input=x, dim=1)
lib.min(x, x.t().contiguous().t() * 2)
x.max(dim=None)
c.max()
c.amax()
c.max(0)
c.argmax(0)
c.nansum()
c.softmax(0)
c.logsumexp(0)
c.logcumsumexp(0)
c.cummax(0)
c.prod()
c.mean(0)
c.var()
c.cumprod(0)
c.norm(1)
c.norm(float("inf"))
lib.linalg_vector_norm(c, dtype=lib.float64) if lib is cresset else lib.linalg.vector_norm(c, dtype=lib.float64)
b.argmax()
b.max(0)
b.sum()
b.prod()
b.cumsum(0)
b.cumsum_(0)
i.softmax(0)
i.softmax(0, dtype=lib.float32)
i.log_softmax(0)
i.logcumsumexp(0)
i.cumsum(0, dtype=lib.int32)
i.clone().cumsum_(0)
i.norm()
u.cumprod(0)
x.half().softmax(1, dtype=lib.float64)
x.softmax(2)
x.cumsum(2)
x.argmax(dim=None, keepdim=True)
x.argmax(1, True)
lib.tensor([2, 2, 1, 2]).argmax()
lib.tensor([1, 2, 1, 2]).cummax(0)
lib.tensor([1, 5], dtype=lib.uint64).max()
lib.tensor([1, 5], dtype=lib.uint64).sum()
lib.tensor([1.0, float("nan")]).nansum(dtype=lib.int64)
lib.layer_norm(x, (4,))
lib.layer_norm(x, ())
lib.layer_norm(x, (3,), lib.ones(2))
lib.layer_norm(i, (3,))
lib.group_norm(x, 2)
lib.group_norm(x, 3, lib.ones(2))
lib.batch_norm(x, lib.ones(4), None, None, None, True, 0.1, 1e-5, False)
lib.batch_norm(x, None, None, lib.ones(4), None, True, 0.1, 1e-5, False)
lib.batch_norm(x, None, None, None, None, False, 0.1, 1e-5, False)
lib.batch_norm(e.t(), None, None, None, None, True, 0.1, 1e-5, False)
lib.native_layer_norm(x, (3,), None, None, 1e-5)
lib.native_layer_norm(x.bfloat16(), (3,), lib.ones(3), None, 1e-5)
lib.native_layer_norm(e, (3,), None, None, 1e-5)
lib.native_layer_norm(e.t(), (0,), None, None, 1e-5)
lib.native_batch_norm(x, None, None, lib.zeros(3), lib.ones(3), False, 0.1, 1e-5)
lib.native_group_norm(x, None, None, 2, 3, 1, 3, 1e-5)
lib.sum(x, 0, out=lib.empty(3, dtype=lib.float64))
lib.sum(x, 0, out=lib.empty(3, dtype=lib.int32))
lib.sum(x, 0, out=lib.empty(5))
lib.max(x, 0, out=(lib.empty(3), lib.empty(3, dtype=lib.int64)))
lib.max(x, x, out=lib.empty(0))
lib.amax(x, 0, out=lib.empty(0))
lib.amax(x, 0, out=lib.empty(0, dtype=lib.float64))
lib.all(x, out=lib.empty(0, dtype=lib.bool))
lib.softmax(x, 0, out=lib.empty(0))
lib.cumsum(x, 0, out=lib.empty(0))
lib.cumsum(x, 0, out=x)
lib.sum(i, 0, out=lib.empty(0))
lib.mean(i, 0, out=lib.empty(0))
lib.prod(x, 0, out=lib.empty(3, dtype=lib.int64))
lib.cumsum(x, 0, out=lib.empty(0, dtype=lib.float64))
x.clone().cumsum_(0, dtype=lib.float64)
x.cumsum(0, dtype=lib.bool)
lib.mean(x, 0, out=lib.empty(3, dtype=lib.float64))
lib.std(x, 0, out=lib.empty(3))
""".strip().splitlines()


@pytest.mark.parametrize("call", CALLS)
def test_same_answer_or_same_error(call):
    answers = []
    for lib in (cresset, torch):
        x = lib.arange(6.0).reshape(2, 3)
        names = {
            "x": x, "lib": lib, "cresset": cresset, "i": lib.arange(5), "e": lib.empty(0, 3),
            "c": lib.tensor([1 + 2j, 3 - 1j, 0.5j]),
            "b": lib.tensor([True, False, True]), "u": lib.tensor([1, 0, 2], dtype=lib.uint8),
        }  # fmt: skip
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                answers.append(eval(call, names))
            except Exception as e:  # the class of the error is the answer
                answers.append(type(e))
    ours, theirs = answers
    if isinstance(theirs, type) or isinstance(ours, type):
        assert ours == theirs
    else:
        agree(ours, theirs)
