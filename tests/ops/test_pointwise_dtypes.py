"""What single pointwise operators do with whole numbers, bool and the half types."""

import pytest

import cresset

DIVISIONS = {
    "floor_divide": lambda a, b: a // b,
    "remainder": cresset.remainder,
    "fmod": cresset.fmod,
    "div trunc": lambda a, b: cresset.div(a, b, rounding_mode="trunc"),
    "div floor": lambda a, b: cresset.div(a, b, rounding_mode="floor"),
}


@pytest.mark.parametrize("division", DIVISIONS.values(), ids=DIVISIONS)
class TestDivisionOfWholeNumbers:
    @pytest.mark.cpu_only("a device does not look for zeros among divisors")
    @pytest.mark.parametrize("dtype", [cresset.int64, cresset.int32, cresset.uint8, cresset.int8], ids=str)
    def test_by_zero_is_an_error(self, division, dtype):
        a = cresset.tensor([3, 4], dtype=dtype)
        for zero in (
            0,
            cresset.tensor(0, dtype=dtype),
            cresset.tensor([1, 0], dtype=dtype),
            cresset.tensor([[0], [1]]),
        ):
            with pytest.raises(RuntimeError, match="ZeroDivisionError"):
                division(a, zero)

    @pytest.mark.cpu_only("a device does not look for zeros among divisors")
    def test_by_zero_late_in_a_large_tensor_is_an_error(self, division):
        b = cresset.ones(100_000, dtype=cresset.int64)
        assert division(b, b).shape == b.shape
        b[-1] = 0
        with pytest.raises(RuntimeError, match="ZeroDivisionError"):
            division(cresset.ones(100_000, dtype=cresset.int64), b)

    def test_of_nothing_by_zero_is_nothing(self, division):
        assert division(cresset.empty(0, dtype=cresset.int64), 0).tolist() == []

    def test_of_fractions_by_zero_is_not_an_error(self, division):
        assert not division(cresset.tensor([1.0]), 0).isfinite().any()

    def test_by_other_numbers(self, division):
        assert division(cresset.tensor([7, 9]), cresset.tensor([7, 3])).tolist() in ([1, 3], [0, 0])


@pytest.mark.parametrize("dtype", [cresset.int64, cresset.uint8, cresset.bool], ids=str)
def test_angles_of_whole_numbers_are_fractions(dtype):
    result = cresset.angle(cresset.tensor([1, 0], dtype=dtype))
    assert result.dtype == cresset.float32
    assert result.tolist() == [0.0, 0.0]
    assert cresset.angle(cresset.tensor([-1])).item() == pytest.approx(3.1415927)


def test_abs_of_bool_is_an_error():
    with pytest.raises(NotImplementedError):
        cresset.abs(cresset.tensor([True]))


def test_the_square_of_bool_is_a_whole_number():
    result = cresset.square(cresset.tensor([True, False]))
    assert result.dtype == cresset.int64
    assert result.tolist() == [1, 0]


@pytest.mark.parametrize(
    ("dtype", "largest"),
    [(cresset.float16, 65504.0), (cresset.bfloat16, 3.3895313892515355e38), (cresset.float32, 3.4028234663852886e38),
     (cresset.float64, 1.7976931348623157e308)],
)  # fmt: skip
def test_infinity_becomes_the_largest_number_of_the_dtype(dtype, largest):
    x = cresset.tensor([float("inf"), float("-inf"), float("nan"), 1.0], dtype=dtype)
    assert cresset.nan_to_num(x).tolist() == [largest, -largest, 0.0, 1.0]
    assert cresset.nan_to_num(x, nan=2.0, posinf=3.0, neginf=-4.0).tolist() == [3.0, -4.0, 2.0, 1.0]
    assert cresset.nan_to_num(x[::3].reshape(2, 1).expand(2, 2))[0, 1].item() == largest


class TestSquares:
    def test_a_power_of_two_is_a_square(self):
        x = cresset.tensor([3.0, -1.5], requires_grad=True)
        for y in (x**2, x**2.0, x.pow(2), cresset.pow(x, 2), cresset.square(x)):
            assert y.tolist() == [9.0, 2.25]
            assert type(y.grad_fn).__name__ == "PowBackward0"
            (slope,) = cresset.autograd.grad(y.sum(), x)
            assert slope.tolist() == [6.0, -3.0]

    @pytest.mark.parametrize("dtype", [cresset.bool, cresset.uint8, cresset.int32], ids=str)
    def test_a_whole_exponent_keeps_whole_numbers(self, dtype):
        x = cresset.tensor([1, 0], dtype=dtype)
        assert (x**2).dtype == (cresset.int64 if dtype == cresset.bool else dtype)
        assert (x**2.0).dtype == cresset.float32
        assert (x**2).tolist() == [1, 0]

    def test_in_place_and_out(self):
        x = cresset.tensor([3.0])
        assert x.pow_(2) is x
        assert x.item() == 9.0
        x **= 2
        assert x.item() == 81.0
        out = cresset.empty(1)
        assert cresset.pow(cresset.tensor([4.0]), 2, out=out) is out
        assert out.item() == 16.0

    def test_of_halves_complex_numbers_and_other_exponents(self):
        assert (cresset.tensor([3.0], dtype=cresset.float16) ** 2).dtype == cresset.float16
        assert (cresset.tensor([1 + 2j]) ** 2).tolist() == [-3 + 4j]
        assert (cresset.tensor([3.0]) ** True).tolist() == [3.0]
        assert (cresset.tensor([2.0]) ** (2 + 0j)).dtype == cresset.complex64
        assert (2 ** cresset.tensor([2.0])).tolist() == [4.0]

    @pytest.mark.parametrize(
        ("exponent", "value", "slope", "second"),
        [(3, 64.0, 48.0, 24.0), (0.5, 2.0, 0.25, -0.03125), (-0.5, 0.5, -0.0625, 0.0234375),
         (-1, 0.25, -0.0625, 0.03125), (-2, 0.0625, -0.03125, 0.0234375)],
    )  # fmt: skip
    def test_a_power_that_a_simpler_function_computes_keeps_its_base_alone(self, exponent, value, slope, second):
        x = cresset.tensor([4.0], requires_grad=True)
        for power in (lambda: x**exponent, lambda: x.pow(exponent), lambda: (x * 1).pow_(exponent)):
            y = power()
            assert y.tolist() == [value]
            assert type(y.grad_fn).__name__ == "PowBackward0"
            if y.grad_fn.next_functions[0][0].name() == "AccumulateGrad":
                y += 1  # backward does not need it
            (first,) = cresset.autograd.grad(y, x, create_graph=True)
            assert first.tolist() == [slope]
            assert cresset.autograd.grad(first, x)[0].tolist() == [second]


@pytest.mark.cpu_only("a device does not look for zeros among divisors")
def test_a_division_that_fails_leaves_its_operand_as_it_was():
    a, b = cresset.arange(5000), cresset.ones(5000, dtype=cresset.int64) * 2
    b[4999] = 0
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        a //= b
    assert cresset.equal(a, cresset.arange(5000))
    b[4999] = 2
    a //= b
    assert a[-2:].tolist() == [2499, 2499]


def test_operands_are_numbers_of_the_common_dtype():
    small = cresset.tensor([1, 5, 254], dtype=cresset.uint8)
    assert (small // -4).tolist() == [0, 0, 1]  # -4 is 252
    assert (small % cresset.tensor(-4, dtype=cresset.int16)).tolist() == [1, 5, 2]
    assert (cresset.tensor([3], dtype=cresset.int8) << 257).tolist() == [6]


def test_comparisons_and_bounds_take_a_number_for_what_it_is():
    small = cresset.tensor([1, 254], dtype=cresset.uint8)
    assert (small > -4).tolist() == [True, True]
    assert small.clamp(min=-4).tolist() == [1, 254]


def test_a_bound_without_dimensions_beside_a_number_is_one():
    bound = cresset.tensor(0.5, dtype=cresset.float64)
    assert cresset.tensor([0, 2], dtype=cresset.int8).clamp(bound, 1).dtype is cresset.float32
    assert cresset.tensor(2.0).clamp(0, bound).dtype is cresset.float32
    assert cresset.tensor(2.0).clamp(bound, bound).dtype is cresset.float64


def test_a_number_divided_by_a_tensor_is_rounded():
    divisor = cresset.tensor([4, -3, 2])
    assert cresset.div(7, divisor, rounding_mode="floor").tolist() == [1, -3, 3]
    assert cresset.div(7, divisor, rounding_mode="trunc").tolist() == [1, -2, 3]
    assert cresset.divide(7, cresset.tensor([4, 2]), rounding_mode=None).tolist() == [1.75, 3.5]
    assert cresset.div(-7, 2, rounding_mode="floor").item() == -4


@pytest.mark.parametrize("dtype", [cresset.bfloat16, cresset.float16], ids=str)
def test_a_number_among_halves_is_a_half(dtype):
    x = cresset.tensor([0.1], dtype=dtype)
    number = x.item()  # 0.1001 in bfloat16
    for tenth in (0.1, cresset.tensor(0.1), cresset.tensor(0.1, dtype=cresset.float64)):
        assert (x == tenth).item() and (x >= tenth).item() and not (x != tenth).item()
        assert (x - tenth).item() == 0
        assert cresset.fmod(x, tenth).item() == 0
    assert (0.1 - x).item() == 0
    assert number != 0.1


def test_an_integer_among_halves_is_a_half():
    x, wide = cresset.tensor([1.0, 1.0], dtype=cresset.bfloat16), cresset.tensor([257, 256])  # 257 has no bfloat16
    assert cresset.sub(wide, x).tolist() == cresset.sub(wide.to(cresset.bfloat16), x).tolist()
    assert (wide.to(cresset.bfloat16) == wide).tolist() == [True, True]


def test_what_multiplies_or_divides_from_the_right_keeps_its_precision():
    x = cresset.tensor([2 - 2**-7], dtype=cresset.bfloat16)  # the last bfloat16 below 2
    number = 1 + 2**-8 - 2**-12  # as a bfloat16 it would be 1
    assert (x * number).item() == (number * x).item() == (x / (1 / number)).item() == 2
    assert cresset.mul(number, x).item() == x.item()


def test_a_result_has_its_own_dtype_before_it_is_written_to_another():
    one, two = cresset.tensor([1], dtype=cresset.uint8), cresset.tensor([2], dtype=cresset.uint8)
    assert cresset.sub(one, two, out=cresset.zeros(1)).tolist() == [255.0]  # in uint8
    wide = cresset.exp(cresset.tensor([1.0], dtype=cresset.float16), out=cresset.zeros(1, dtype=cresset.float64))
    assert wide.tolist() == [2.71875]  # e as a half


def test_a_modulus_or_a_bounded_number_is_written_to_no_other_dtype():
    x, wide = cresset.tensor([-2.0, 0.5]), cresset.zeros(2, dtype=cresset.float64)
    refused = (
        lambda: cresset.abs(x, out=wide),
        lambda: cresset.clamp(x, -1, 1, out=wide),
        lambda: cresset.clamp(x, max=0, out=wide),
        lambda: cresset.clamp_min(x, 0, out=wide),
        lambda: cresset.clamp_max(x, 0.5, out=wide),
    )
    for call in refused:
        with pytest.raises(RuntimeError, match="Expected out tensor to have dtype float32, but got float64"):
            call()
    assert wide.tolist() == [0.0, 0.0]
    assert cresset.abs(cresset.tensor([3 + 4j, 0j]), out=wide).tolist() == [5.0, 0.0]  # computed apart
    with pytest.raises(RuntimeError, match="Expected out tensor to have dtype complex64, but got complex128"):
        cresset.abs(cresset.tensor([3 + 4j, 0j]), out=cresset.zeros(2, dtype=cresset.complex128))
    bound = cresset.tensor([-1.0, 1.0])
    assert cresset.clamp(x, bound, out=wide).tolist() == [-1.0, 1.0]  # a tensor's promotes, and is cast
    assert cresset.clamp_max(x, bound, out=wide).tolist() == [-2.0, 0.5]


def test_addcdiv_refuses_to_divide_whole_numbers():
    whole = cresset.tensor([1, 2])
    for other in (whole, cresset.tensor([True, True])):
        with pytest.raises(RuntimeError, match="Integer division with addcdiv is no longer supported"):
            cresset.addcdiv(cresset.ones(2), whole, other)
    assert cresset.addcdiv(cresset.ones(2), whole, cresset.tensor([2.0, 2.0])).tolist() == [1.5, 2.0]


@pytest.mark.parametrize("shape", [(2,), (2, 0)])
def test_an_imaginary_attribute_of_a_real_formula_is_refused(shape):
    x = cresset.ones(shape)
    for call in (cresset.nn.functional.hardshrink, cresset.nn.functional.leaky_relu, cresset.nn.functional.elu):
        with pytest.raises(RuntimeError, match="imaginary part"):
            call(x, 1j)
        assert cresset.equal(call(x, 0.5 + 0j), call(x, 0.5))


def test_out_that_shares_elements_is_refused_before_it_is_resized():
    shared = cresset.zeros(2).expand(3, 2)
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
        cresset.add(cresset.ones(()), 1, out=shared)
    assert shared.shape == (3, 2)


def test_numbers_do_not_change_the_one_dtype_that_an_operator_has():
    whole, flags = cresset.tensor([-1, 0, 2]), cresset.tensor([False, True])
    assert cresset.heaviside(whole, 3).tolist() == [0, 3, 1]
    assert cresset.heaviside(flags, True).tolist() == [True, True]
    for x, number in ((whole, 0.5), (whole.float(), 1j), (flags, 2)):
        with pytest.raises(RuntimeError, match="heaviside: expected numbers that dtype"):
            cresset.heaviside(x, number)


NARROW = [cresset.uint8, cresset.int8, cresset.int16, cresset.int32, cresset.uint16, cresset.uint32]


@pytest.mark.parametrize("dtype", NARROW, ids=str)
def test_narrow_integers_wrap_as_they_do_in_64_bits(dtype):
    bound = cresset.iinfo(dtype)
    ends = [bound.min, bound.max, bound.min + 1, bound.max - 1, 0, 1, 100, 77]
    pairs = [(a, b) for a in ends for b in ends] * 3
    x, y = (cresset.tensor(column).to(dtype) for column in zip(*pairs, strict=True))
    wide_x, wide_y = x.long(), y.long()
    for call in (
        lambda x, y: x + y, lambda x, y: x - y, lambda x, y: x * y, lambda x, y: -x, lambda x, y: x * x,
        lambda x, y: x & y, lambda x, y: x | y, lambda x, y: x ^ y, lambda x, y: ~x, lambda x, y: x + 200,
        lambda x, y: 3 - x, lambda x, y: cresset.add(x, y, alpha=5), lambda x, y: cresset.addcmul(x, x, y, value=3),
    ):  # fmt: skip
        expected = call(wide_x, wide_y).to(dtype)
        assert call(x, y).dtype == dtype and call(x, y).tolist() == expected.tolist()
        assert call(x.view(3, -1).t(), y.view(3, -1).t()).tolist() == expected.view(3, -1).t().tolist()
        assert call(x[::2], y[::2]).tolist() == expected[::2].tolist()


def test_narrow_integers_of_two_dtypes_and_results_of_another_are_converted():
    x, y = cresset.tensor([250, 3], dtype=cresset.uint8), cresset.tensor([-5, 100], dtype=cresset.int8)
    assert (x + y).tolist() == [245, 103] and (x + y).dtype == cresset.int16
    assert cresset.add(x, x, out=cresset.empty(2, dtype=cresset.int32)).tolist() == [244, 6]
    assert (x + cresset.tensor(300)).tolist() == [38, 47]
    assert x.clone().add_(y).tolist() == [245, 103]
