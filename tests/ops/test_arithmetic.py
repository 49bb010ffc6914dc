"""The old order of arguments, with factors as numbers in front, gives what today's gives, and warns."""

import pytest

import cresset

X, Y = [1.0, 2.0], [3.0, 5.0]


def make(values):
    return cresset.tensor(values)


FORMS = {
    "add as a function": (lambda: cresset.add(make(X), 2, make(Y)), [7.0, 12.0]),
    "add of a number": (lambda: cresset.add(1, 2, make(Y)), [7.0, 11.0]),
    "sub of a number": (lambda: cresset.sub(1, 2, make(Y)), [-5.0, -9.0]),
    "add_": (lambda: make(X).add_(0.5, make(Y)), [2.5, 4.5]),
    "sub_": (lambda: make(X).sub_(2, make(Y)), [-5.0, -8.0]),
    "addcmul": (lambda: cresset.addcmul(make(X), 2, make(Y), make(Y)), [19.0, 52.0]),
    "addcdiv_": (lambda: make(X).addcdiv_(-2, make(Y), make(Y)), [-1.0, 0.0]),
    "addmm as a function": (lambda: cresset.addmm(2, make([[1.0]]), 3, make([X]), make([[3.0], [5.0]])), [[41.0]]),
    "addmm without alpha": (lambda: cresset.addmm(2, make([[1.0]]), make([X]), make([[3.0], [5.0]])), [[15.0]]),
    "addmm_ as a method": (lambda: make([[1.0]]).addmm_(2, 3, make([X]), make([[3.0], [5.0]])), [[41.0]]),
    "baddbmm": (lambda: cresset.baddbmm(2, make([[[1.0]]]), 3, make([[X]]), make([[[3.0], [5.0]]])), [[[41.0]]]),
    "addmv as a function": (lambda: cresset.addmv(2, make([1.0]), 3, make([X]), make(Y)), [41.0]),
    "addr as a method": (lambda: make([[1.0, 1.0]]).addr(2, 3, make([1.0]), make(Y)), [[11.0, 17.0]]),
    "addr_ without alpha": (lambda: make([[1.0, 1.0]]).addr_(2, make([1.0]), make(Y)), [[5.0, 7.0]]),
}


@pytest.mark.parametrize("form", FORMS)
def test_factors_in_front(form):
    run, expected = FORMS[form]
    with pytest.warns(UserWarning, match="overload of add|overload of sub|overload of baddbmm"):
        assert run().tolist() == expected


def test_the_old_order_is_differentiable():
    x, y = make(X).requires_grad_(), make(Y).requires_grad_()
    with pytest.warns(UserWarning):
        cresset.add(x, 2, y).sum().backward()
    assert (x.grad.tolist(), y.grad.tolist()) == ([1.0, 1.0], [2.0, 2.0])


def test_the_old_order_takes_out():
    out = cresset.empty(2)
    with pytest.warns(UserWarning):
        assert cresset.add(make(X), 2, make(Y), out=out) is out
    assert out.tolist() == [7.0, 12.0]


def test_a_tensor_is_no_factor():
    with pytest.raises(TypeError, match="takes 2 positional arguments but 3 were given"):
        cresset.add(make(X), make(Y), make(Y))
    with pytest.raises(TypeError, match="addr"):
        cresset.addr(make([[1.0]]), make(X), make(X), make(Y))


def test_bools_have_powers_that_are_bools():
    x = cresset.tensor([True, False])
    assert (x**True).tolist() == cresset.pow(x, True).tolist() == [True, False]
    assert (x**False).tolist() == cresset.pow(x, False).tolist() == [True, True]
    assert cresset.pow(x, False, out=cresset.zeros(2)).tolist() == [1.0, 1.0]
    assert x.clone().pow_(False).tolist() == [True, True]
    with pytest.raises(NotImplementedError, match="'bool'"):
        x ** cresset.tensor(True)


def test_an_error_about_dtypes_has_the_words_programs_look_for():
    whole, one = cresset.tensor([1, 2], dtype=cresset.int8), cresset.ones(2)
    with pytest.raises(RuntimeError, match="result type Float can't be cast to the desired output type Char"):
        whole.add_(one)
    with pytest.raises(RuntimeError, match="result type Float can't be cast to the desired output type Char"):
        cresset.add(one, one, out=whole)
    with pytest.raises(RuntimeError, match="Integers to negative integer powers are not allowed\\."):
        whole**-2
    with pytest.raises(RuntimeError, match="Boolean alpha only supported for Boolean results\\."):
        cresset.add(whole, whole, alpha=True)
    with pytest.raises(RuntimeError, match="heaviside is not yet implemented for tensors with different dtypes\\."):
        cresset.heaviside(whole, one)
    with pytest.raises(RuntimeError, match="does not support negative n\\."):
        cresset.polygamma(-1, one)


def test_float_power_writes_to_an_out_of_its_own_dtype():
    out = cresset.empty(2, dtype=cresset.float64)
    assert cresset.float_power(cresset.tensor([2, 3]), 2, out=out) is out and out.tolist() == [4.0, 9.0]
    with pytest.raises(RuntimeError, match="float_power"):
        cresset.float_power(cresset.tensor([2, 3]), 2, out=cresset.empty(2))


@pytest.mark.parametrize("dtype", [cresset.float64, cresset.float16, cresset.complex64])
def test_a_0d_weight_of_lerp_counts_as_a_number(dtype):
    x, weight = cresset.ones(2, dtype=dtype), cresset.tensor(0.5)
    assert x.lerp(x + 1, weight).tolist() == [1.5, 1.5] and x.lerp(x + 1, weight).dtype is dtype
    assert x.clone().lerp_(x + 1, weight).tolist() == [1.5, 1.5]
    with pytest.raises(RuntimeError, match="expected dtype"):
        x.lerp(x + 1, weight.reshape(1))


def test_the_gradient_of_a_0d_weight_of_lerp_has_its_dtype():
    x, weight = cresset.ones(2, dtype=cresset.float64), cresset.tensor(0.5, requires_grad=True)
    x.lerp(x + 3, weight).sum().backward()
    assert weight.grad.dtype is cresset.float32 and weight.grad.item() == 6.0
