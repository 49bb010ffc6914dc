"""What `repr`, `format` and the print options promise, on values a reader can check by eye."""

import math

import pytest

import cresset
from cresset.show import printing


@pytest.fixture(autouse=True)
def default_options():
    cresset.set_printoptions(profile="default")
    yield
    cresset.set_printoptions(profile="default")


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ([1.0, 2.0, -3.0], "tensor([ 1.,  2., -3.])"),
        ([1.5, 2.0], "tensor([1.5000, 2.0000])"),
        ([0.5, 500.0], "tensor([  0.5000, 500.0000])"),
        ([0.5, 500.5], "tensor([5.0000e-01, 5.0050e+02])"),  # more than 1000 times as large
        ([0.00005], "tensor([5.0000e-05])"),
        ([1e9], "tensor([1.0000e+09])"),
        ([0.0, -0.0], "tensor([0., -0.])"),
        ([math.nan, math.inf, -math.inf], "tensor([nan, inf, -inf])"),
        ([1.0, math.nan, 10.0], "tensor([ 1., nan, 10.])"),
        ([0.5, math.inf], "tensor([0.5000,    inf])"),
        ([1, -20, 300], "tensor([  1, -20, 300])"),
        ([True, False], "tensor([ True, False])"),
        ([1 + 2j, 0.5 - 1j], "tensor([1.0000+2.j, 0.5000-1.j])"),
        (3.0, "tensor(3.)"),
        (0.1, "tensor(0.1000)"),
        (7, "tensor(7)"),
        (True, "tensor(True)"),
        ([], "tensor([])"),
    ],
)
def test_numbers_of_one_tensor_look_alike(values, text):
    assert repr(cresset.tensor(values)) == text


def test_dimensions_are_separated_by_as_many_line_breaks():
    block = "[[0, 1],\n         [2, 3]]"
    assert repr(cresset.tensor([[[0, 1], [2, 3]], [[0, 1], [2, 3]]])) == f"tensor([{block},\n\n        {block}])"


def test_long_rows_break_at_the_line_width():
    lines = repr(cresset.arange(100)).splitlines()
    assert lines[0] == "tensor([ 0,  1,  2,  3,  4,  5,  6,  7,  8,  9, 10, 11, 12, 13, 14, 15, 16, 17,"
    assert lines[1].startswith("        18, 19")


def test_large_tensors_show_their_edges():
    assert repr(cresset.arange(1001)) == "tensor([   0,    1,    2,  ...,  998,  999, 1000])"
    assert "..." not in repr(cresset.arange(1000))
    matrix = repr(cresset.arange(10_000).reshape(100, 100))
    assert matrix.splitlines()[0] == "tensor([[   0,    1,    2,  ...,   97,   98,   99],"
    assert matrix.splitlines()[3] == "        ...,"


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: cresset.empty(0, 3), "tensor([], size=(0, 3))"),
        (lambda: cresset.empty(0, dtype=cresset.int64), "tensor([], dtype=torch.int64)"),
        (lambda: cresset.empty(2, 3, device="meta"), "tensor(..., device='meta', size=(2, 3))"),
        (lambda: cresset.tensor([1.0], dtype=cresset.float64), "tensor([1.], dtype=torch.float64)"),
        (lambda: cresset.tensor([1], dtype=cresset.uint8), "tensor([1], dtype=torch.uint8)"),
        (lambda: cresset.ones(1, requires_grad=True), "tensor([1.], requires_grad=True)"),
        (lambda: cresset.ones(1, requires_grad=True) * 2, "tensor([2.], grad_fn=<MulBackward0>)"),
        (lambda: cresset.nn.Parameter(cresset.ones(1)), "Parameter containing:\ntensor([1.], requires_grad=True)"),
    ],
)
def test_suffixes_say_what_the_elements_do_not(make, text):
    assert repr(make()) == text


def test_a_suffix_that_does_not_fit_starts_a_line():
    text = repr(cresset.zeros(22, dtype=cresset.float64))
    assert text.endswith("0.],\n       dtype=torch.float64)")


def test_the_default_dtype_is_not_mentioned():
    cresset.set_default_dtype(cresset.float64)
    try:
        assert repr(cresset.tensor([1.5])) == "tensor([1.5000])"
        assert repr(cresset.tensor([1.5], dtype=cresset.float32)) == "tensor([1.5000], dtype=torch.float32)"
    finally:
        cresset.set_default_dtype(cresset.float32)


def test_a_subclass_prints_under_its_name():
    class Image(cresset.Tensor):
        pass

    assert repr(cresset.ones(2).as_subclass(Image)) == "Image([1., 1.])"


def test_the_smallest_float8_e8m0fnu_is_not_printed_as_zero():
    """PyTorch prints `0.` here, though this dtype has no zero: the one place where the two differ on purpose."""
    smallest = cresset.tensor([2.0**-127]).to(cresset.float8_e8m0fnu)
    assert repr(smallest) == "tensor([5.8775e-39], dtype=torch.float8_e8m0fnu)"


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"precision": 2}, "tensor([1.12, 2.00])"),
        ({"sci_mode": True}, "tensor([1.1235e+00, 2.0000e+00])"),
        ({"threshold": 1, "edgeitems": 0}, "tensor([...], size=(2,))"),
        ({"linewidth": 20}, "tensor([1.1235,\n        2.0000])"),
        ({"profile": "short"}, "tensor([1.12, 2.00])"),
        ({"profile": "short", "precision": 3}, "tensor([1.123, 2.000])"),
    ],
)
def test_options(options, text):
    with printing.printoptions(**options):
        assert repr(cresset.tensor([1.12345, 2.0])) == text
    assert repr(cresset.tensor([1.12345, 2.0])) == "tensor([1.1235, 2.0000])"


def test_options_come_back_after_an_error():
    before = printing.get_printoptions()
    with pytest.raises(ZeroDivisionError), printing.printoptions(precision=1, sci_mode=True):
        raise ZeroDivisionError
    assert printing.get_printoptions() == before
    assert before == {"precision": 4, "threshold": 1000, "edgeitems": 3, "linewidth": 80, "sci_mode": None}


def test_an_unknown_profile_is_told():
    with pytest.warns(UserWarning, match="set_printoptions: profile 'ful' is unknown; there are default, short, full"):
        cresset.set_printoptions(profile="ful")


def test_a_tensor_without_dimensions_formats_as_its_number():
    assert f"{cresset.tensor(2 / 3):.2f}" == "0.67"
    assert f"{cresset.tensor(2.5, requires_grad=True):>6}" == "   2.5"
    assert f"{cresset.tensor(7):03d}" == "007"
    assert f"{cresset.tensor([7])}" == "tensor([7])"
    with pytest.raises(TypeError, match="unsupported format string"):
        f"{cresset.tensor([7]):03d}"
