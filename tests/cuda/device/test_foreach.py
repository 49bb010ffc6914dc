"""Lists of tensors on CUDA: what the CPU gives for each of them, in one launch."""

import math

import pytest

import cresset
from cresset.ops import foreach

SHAPES = [(5,), (3, 7), (), (0,), (1030,), (4096,)]
DTYPES = [cresset.float32, cresset.float64, cresset.float16, cresset.bfloat16]


def lists(count, dtype=cresset.float32, shapes=SHAPES):
    generator = cresset.Generator().manual_seed(0)
    return [
        [(cresset.rand(shape, generator=generator, dtype=cresset.float64) + 0.1).to(dtype) for shape in shapes]
        for _ in range(count)
    ]


def agrees(name, *arguments, on_device="cuda", **keywords):
    """The function on CUDA and on the CPU, each with tensors of its own."""

    def moved(value):
        if isinstance(value, (list, tuple)):
            return type(value)(moved(item) for item in value)
        return value.to(on_device) if isinstance(value, cresset.Tensor) else value

    there = [moved(argument) for argument in arguments]
    before = [tensor._version for tensor in there[0]]
    results = getattr(cresset, "_foreach_" + name)(*there, **keywords)
    expected = getattr(cresset, "_foreach_" + name)(*arguments, **keywords)
    assert type(results) is type(expected)
    for a, b in zip(results, expected, strict=True):
        assert a.dtype == b.dtype
        cresset.testing.assert_close(a.cpu(), b, rtol=2e-6 if b.dtype != cresset.float16 else 1e-3, atol=1e-7)
    if name.endswith("_"):
        assert [tensor._version for tensor in there[0]] == [version + 1 for version in before]
        assert all(a is b for a, b in zip(results, there[0], strict=True))


class TestEveryOperation:
    @pytest.mark.parametrize("name", ["abs", "sqrt", "exp", "neg", "reciprocal", "sigmoid", "floor"])
    @pytest.mark.parametrize("end", ["", "_"])
    def test_on_one(self, name, end, cuda):
        agrees(name + end, *lists(1))

    @pytest.mark.parametrize("name", ["add", "sub", "mul", "div", "pow", "maximum", "clamp_min", "clamp_max"])
    @pytest.mark.parametrize("end", ["", "_"])
    def test_on_two(self, name, end, cuda):
        if name + end == "maximum_":
            return
        a, b = lists(2)
        agrees(name + end, a, b)
        agrees(name + end, a, 0.5)
        agrees(name + end, a, [0.25 * i for i in range(len(a))])

    @pytest.mark.parametrize("name", ["addcmul", "addcdiv"])
    @pytest.mark.parametrize("end", ["", "_"])
    def test_on_three(self, name, end, cuda):
        agrees(name + end, *lists(3), value=0.5)
        agrees(name + end, *lists(3), [0.5 * i for i in range(len(SHAPES))])

    def test_lerp(self, cuda):
        agrees("lerp", *lists(2), 0.25)
        agrees("lerp_", *lists(3))

    @pytest.mark.parametrize("to", DTYPES, ids=str)
    def test_copies_between_dtypes(self, to, cuda):
        for source in DTYPES:
            agrees("copy_", lists(1, to)[0], lists(2, source)[1])

    def test_zero(self, cuda):
        agrees("zero_", lists(1, cresset.bfloat16)[0])

    def test_alpha(self, cuda):
        agrees("add_", *lists(2), alpha=0.5)
        agrees("sub", *lists(2), alpha=2)

    def test_one_tensor_for_all(self, cuda):
        agrees("mul_", lists(1)[0], cresset.tensor(0.5))
        agrees("div", lists(1, cresset.bfloat16)[0], cresset.tensor(3.0, dtype=cresset.bfloat16))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
class TestEveryDtype:
    def test_arithmetic(self, dtype, cuda):
        agrees("addcmul_", *lists(3, dtype), value=0.5)
        agrees("mul", *lists(2, dtype))

    @pytest.mark.parametrize("order", [1, 2, math.inf])
    def test_norms(self, dtype, order, cuda):
        tensors = lists(1, dtype, [shape for shape in SHAPES if shape != (0,) or order < 3])[0]
        there = [tensor.to(cuda) for tensor in tensors]
        assert foreach._norms(there, order) is not None
        for a, b in zip(cresset._foreach_norm(there, order), tensors, strict=True):
            exact = b.double().norm(order)
            assert a.dtype == dtype
            cresset.testing.assert_close(
                a.cpu().double(),
                exact,
                rtol={cresset.bfloat16: 4e-3, cresset.float16: 1e-3}.get(dtype, 1e-5),
                atol=1e-7,
            )


class TestNorms:
    def test_many_tensors_need_more_than_one_table(self, cuda):
        there = cresset.arange(1700.0).to(cuda)[:, None].expand(1700, 2).contiguous().unbind()
        norms = foreach._norms(there, 1.0).tolist()
        assert norms == [2.0 * i for i in range(1700)]

    def test_large_ones_have_many_parts(self, cuda):
        assert foreach._norms([cresset.ones(300_000, device=cuda), cresset.ones(7, device=cuda)], 1.0).tolist() == [
            300_000,
            7,
        ]

    def test_nan_is_the_largest(self, cuda):
        value = cresset.ones(1000)
        value[500] = math.nan
        assert foreach._norms([value.to(cuda)], math.inf).isnan().all()

    def test_unaligned_and_strided(self, cuda):
        whole = cresset.ones(101, device=cuda)
        assert foreach._norms([whole[1:], whole[::2]], 1.0).tolist() == [100, 51]

    def test_clipping_scales_all_gradients(self, cuda):
        parameters = [
            cresset.nn.Parameter(cresset.zeros(2, device=cuda)),
            cresset.nn.Parameter(cresset.zeros(3, device=cuda)),
        ]
        for parameter, value in zip(parameters, ([3.0, 0.0], [0.0, 4.0, 0.0]), strict=True):
            parameter.grad = cresset.tensor(value, device=cuda)
        assert cresset.nn.utils.clip_grad_norm_(parameters, 1.0).item() == 5
        cresset.testing.assert_close(
            [p.grad.tolist() for p in parameters], [[0.6, 0.0], [0.0, 0.8, 0.0]], rtol=1e-5, atol=0
        )
        cresset.nn.utils.clip_grad_value_(parameters, 0.7)
        cresset.testing.assert_close(
            [p.grad.tolist() for p in parameters], [[0.6, 0.0], [0.0, 0.7, 0.0]], rtol=1e-5, atol=0
        )


class TestWhatIsLeftToOrdinaryOperations:
    def test_gradients_are_recorded(self, cuda):
        x = cresset.ones(3, device=cuda, requires_grad=True)
        (y,) = cresset._foreach_mul([x], 3.0)
        y.sum().backward()
        assert x.grad.tolist() == [3, 3, 3]

    def test_shapes_that_broadcast_and_integers(self, cuda):
        (y,) = cresset._foreach_add([cresset.ones(2, 3, device=cuda)], [cresset.ones(3, device=cuda)])
        assert y.tolist() == [[2, 2, 2]] * 2
        (y,) = cresset._foreach_add([cresset.ones(3, dtype=cresset.int64, device=cuda)], 2)
        assert y.tolist() == [3, 3, 3]

    def test_a_tensor_twice_in_the_list_changes_twice(self, cuda):
        x = cresset.ones(3, device=cuda)
        cresset._foreach_mul_([x, x], 2.0)
        assert x.tolist() == [4, 4, 4]
