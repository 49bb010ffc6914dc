"""Every operator PyTorch tests itself with: second derivatives agree with PyTorch's, and forward mode with backward.

Forward mode is compared by v'(Ju) = (J'v)'u, for random u and v.
"""

import re
import types
import warnings

import numpy as np
import pytest

import cresset

torch = pytest.importorskip("torch")
pytest.importorskip("expecttest")
common = pytest.importorskip("torch.testing._internal.common_methods_invocations")
forward_ad = cresset.autograd.forward_ad

SAMPLES = 2
LARGEST = 2000  # elements of all arguments together

# What cannot be compared by drawing the same numbers, and where PyTorch is no measure.
LEFT_OUT = {
    "as_strided_scatter": "PyTorch gives the input the gradient of the elements that were overwritten",
    "as_strided": "samples with overlapping memory",
    "nn.functional.linear_cross_entropy": "PyTorch's is differentiated once",
    "nextafter": "a step to the next number has no gradient here",
    "bfloat16": "rounded",
    "half": "rounded",
    "masked.logaddexp": "nan where both are masked",
    "linalg.eigh": "the samples are not symmetric, and PyTorch reads one half of them",
    "linalg.eigvalsh": "the samples are not symmetric, and PyTorch reads one half of them",
    "native_group_norm": "PyTorch drops the gradient of the statistics",
    "native_layer_norm": "PyTorch fails when the gradient of a statistic is missing",
    "zero_": "needs no operator of its own",
    "chalf": "NumPy has no such type",
}
RANDOM = re.compile(
    r"rand|dropout|bernoulli|normal$|multinomial|empty|cauchy|fractional|exponential|geometric|uniform|poisson|rrelu|attention"
)

OPERATORS = [
    pytest.param(op, id=op.name + (f".{op.variant_test_name}" if op.variant_test_name else ""))
    for op in common.op_db
    if op.supports_autograd
    and op.supports_dtype(torch.float64, "cpu")
    and op.name not in LEFT_OUT
    and not RANDOM.search(op.name)
    and not op.name.startswith(("_", "ops.", "torch.ops", "jiterator", "to_sparse", "sparse"))
]


def ours(value):
    """PyTorch's values as cresset's."""
    if isinstance(value, torch.Tensor):
        array = value.detach().resolve_conj().resolve_neg().numpy().copy()
        return cresset.from_numpy(array).requires_grad_(value.requires_grad)
    if isinstance(value, torch.dtype):
        return getattr(cresset, str(value).removeprefix("torch."))
    if isinstance(value, torch.device):
        return cresset.device(str(value))
    if isinstance(value, (torch.layout, torch.memory_format)):
        return getattr(cresset, str(value).removeprefix("torch."))
    if isinstance(value, torch.Size):
        return tuple(value)
    if isinstance(value, (list, tuple)):
        return type(value)(ours(item) for item in value)
    if isinstance(value, dict):
        return {key: ours(item) for key, item in value.items()}
    return value


def find(op):
    """The operator's counterpart. Where PyTorch's table has a small function around it, the same with cresset as its
    `torch`.
    """
    around = op.op
    if isinstance(around, types.FunctionType) and "testing" in (around.__module__ or ""):
        names = {**around.__globals__, "torch": cresset, "F": cresset.nn.functional}
        return types.FunctionType(around.__code__, names, around.__name__, around.__defaults__, around.__closure__)
    for owner in (cresset, cresset.Tensor):
        found = owner
        for part in op.name.split("."):
            found = getattr(found, part, None)
        if callable(found):
            return found
    pytest.skip("not there")


def apply(function, args, kwargs):
    try:
        return function(*args, **kwargs)
    except AttributeError as error:
        if "module 'cresset" in str(error):
            pytest.skip(f"not there: {error}")
        raise


def tensors(value, kind):
    if isinstance(value, kind):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from tensors(item, kind)
    elif isinstance(value, dict):
        yield from tensors(list(value.values()), kind)


def tracked(value, kind):
    return [t for t in tensors(value, kind) if t.requires_grad]


def noise(like, generator):
    return torch.from_numpy(np.asarray(generator.standard_normal(tuple(like.shape)))).to(like.dtype)


def samples(op):
    for sample in list(op.sample_inputs("cpu", torch.float64, requires_grad=True))[:SAMPLES]:
        args, kwargs = [sample.input, *sample.args], sample.kwargs
        if sum(t.numel() for t in tensors([args, kwargs], torch.Tensor)) > LARGEST:
            continue
        inputs = tracked([args, kwargs], torch.Tensor)
        process = sample.output_process_fn_grad  # eigenvectors are unique up to their phase, and so on
        outputs = tracked(process(op.op(*args, **kwargs)), torch.Tensor)
        if inputs and outputs:
            yield args, kwargs, inputs, outputs, process


def second(lib, inputs, outputs, v, w):
    """The gradient of (J'v)'w by the inputs and by v."""
    slopes = lib.autograd.grad(outputs, inputs, v, create_graph=True, allow_unused=True)
    pairs = [(s, x) for s, x in zip(slopes, w, strict=True) if s is not None and s.requires_grad]
    if not pairs:
        return [None] * (len(inputs) + len(v))
    slopes, w = zip(*pairs, strict=True)
    return lib.autograd.grad(slopes, [*inputs, *v], w, allow_unused=True)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("op", OPERATORS)
def test_second_derivatives(op):
    if not op.supports_gradgrad:
        pytest.skip("PyTorch has none")
    function, generator = find(op), np.random.default_rng(0)
    for args, kwargs, inputs, outputs, process in samples(op):
        v, w = [noise(o, generator) for o in outputs], [noise(i, generator) for i in inputs]
        expected = second(torch, inputs, outputs, [x.clone().requires_grad_() for x in v], w)
        my_args, my_kwargs = ours(args), ours(kwargs)
        my_inputs = tracked([my_args, my_kwargs], cresset.Tensor)
        my_outputs = tracked(process(apply(function, my_args, my_kwargs)), cresset.Tensor)
        found = second(cresset, my_inputs, my_outputs, [ours(x).requires_grad_() for x in v], ours(w))
        for a, b in zip(found, expected, strict=True):
            a = 0 if a is None else a.detach().numpy()
            b = 0 if b is None else b.numpy(force=True)
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("op", OPERATORS)
def test_forward_mode(op):
    function, generator = find(op), np.random.default_rng(1)
    for args, kwargs, inputs, outputs, process in samples(op):
        v, u = [noise(o, generator) for o in outputs], [noise(i, generator) for i in inputs]
        slopes = torch.autograd.grad(outputs, inputs, v, allow_unused=True)
        expected = sum((s.conj() * x).sum().real.item() for s, x in zip(slopes, u, strict=True) if s is not None)
        with forward_ad.dual_level():
            directions = iter(u)

            def dual(value):
                if isinstance(value, torch.Tensor) and value.requires_grad:
                    return forward_ad.make_dual(ours(value), ours(next(directions)))  # noqa: B023
                if isinstance(value, (list, tuple)) and not isinstance(value, torch.Size):
                    return type(value)(dual(item) for item in value)  # noqa: B023
                if isinstance(value, dict):
                    return {key: dual(item) for key, item in value.items()}  # noqa: B023
                return ours(value)

            my_args, my_kwargs = dual(args), dual(kwargs)
            results = tracked(process(apply(function, my_args, my_kwargs)), cresset.Tensor)
            tangents = [forward_ad.unpack_dual(r).tangent for r in results]
        found = sum((ours(x).conj() * t).sum().real.item() for x, t in zip(v, tangents, strict=True) if t is not None)
        assert found == pytest.approx(expected, rel=1e-6, abs=1e-6, nan_ok=True)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    raise SystemExit(pytest.main([__file__]))
