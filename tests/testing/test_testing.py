"""What `testing` accepts, what it says when values differ, and what it makes."""

import doctest
import inspect

import pytest

import cresset
from cresset.testing import FileCheck, assert_allclose, assert_close, comparison, make_tensor


def words_of(*args, **kwargs):
    with pytest.raises(AssertionError) as caught:
        assert_close(*args, **kwargs)
    return str(caught.value)


def test_equal_and_close_values_pass():
    assert_close(cresset.tensor([1.0]), cresset.tensor([1.0 + 1e-6]))
    assert_close(1.0, 1.0 + 1e-9)
    assert_close([1, {"a": cresset.ones(2)}], [1, {"a": cresset.ones(2)}])
    assert_close(None, None)
    assert_close(cresset.empty(0), cresset.empty(0))


def test_the_error_counts_and_finds_the_worst_elements():
    words = words_of(cresset.tensor([[1.0, 2.0], [3.0, 4.0]]), cresset.tensor([[1.0, 2.5], [3.0, 8.0]]))
    assert "Mismatched elements: 2 / 4 (50.0%)" in words
    assert "Greatest absolute difference: 4.0 at index (1, 1)" in words
    assert "Greatest relative difference: 0.5 at index (1, 1)" in words


def test_the_error_names_the_item():
    assert words_of({"a": [1, 2]}, {"a": [1, 3]}).endswith("The failure occurred for item ['a'][1]")


def test_own_words():
    assert words_of(1, 2, msg="mine") == "mine"
    assert words_of(1, 2, msg=lambda words: "so: " + words).startswith("so: Scalars are not equal!")


@pytest.mark.parametrize(
    "one, other, options, words",
    [
        (cresset.ones(2), cresset.ones(3), {}, "attribute 'shape'"),
        (cresset.ones(2), cresset.ones(2, dtype=cresset.float64), {}, "attribute 'dtype'"),
        (cresset.ones(2, 2), cresset.ones(2, 2).t(), {"check_stride": True}, "attribute 'stride()'"),
        (cresset.ones(2), cresset.ones(2, device="meta"), {}, "attribute 'device'"),
        (cresset.tensor(float("nan")), cresset.tensor(float("nan")), {}, "Scalars are not close"),
        ([1], [1, 2], {}, "length of the sequences mismatch: 1 != 2"),
        ({"a": 1}, {"b": 1}, {}, "Missing keys in the actual mapping: ['b']"),
        (1, 1.0, {}, "(d)types do not match"),
        (None, 1, {}, "None mismatch"),
        (True, False, {}, "Booleans mismatch"),
    ],
)
def test_what_differs_is_named(one, other, options, words):
    assert words in words_of(one, other, **options)


def test_options_loosen_the_comparison():
    assert_close(cresset.ones(2), cresset.ones(2, dtype=cresset.float64), check_dtype=False)
    assert_close(cresset.tensor([float("nan")]), cresset.tensor([float("nan")]), equal_nan=True)
    assert_close(cresset.tensor([1.0]), cresset.tensor([1.4]), rtol=0, atol=0.5)
    assert_close(1, 1.0, check_dtype=False)
    with pytest.warns(FutureWarning):
        assert_allclose(cresset.tensor([1.0]), [1.0])


def test_what_cannot_be_compared_is_refused():
    with pytest.raises(TypeError, match="cannot compare inputs of type .*Tensor.* and .*list"):
        assert_close(cresset.ones(1), [1.0])
    with pytest.raises(TypeError, match="cannot compare"):
        assert_close("a", "a")
    with pytest.raises(ValueError, match="got no atol"):
        assert_close(1.0, 1.0, rtol=0.1)


def test_made_tensors_stay_in_their_range():
    made = make_tensor(1000, dtype=cresset.float32, device="cpu", low=2, high=3)
    assert made.min() >= 2 and made.max() < 3
    assert not (make_tensor((1000,), dtype=cresset.int8, device="cpu", low=0, high=2, exclude_zero=True) == 0).any()
    assert not make_tensor(4, 4, dtype=cresset.float32, device="cpu", noncontiguous=True).is_contiguous()
    assert make_tensor(2, dtype=cresset.float32, device="cpu", requires_grad=True).requires_grad


@pytest.mark.parametrize(
    "options, words",
    [
        ({"low": 3, "high": 1}, "low must be less than high"),
        ({"low": float("nan")}, "must not be nan"),
        ({"requires_grad": True}, "has no gradients"),
        ({"noncontiguous": True, "memory_format": cresset.channels_last}, "exclude each other"),
        ({"low": 300, "high": 400}, "no torch.int8 lies in"),
    ],
)
def test_wrong_wishes_are_named(options, words):
    with pytest.raises(ValueError, match=words):
        make_tensor(2, dtype=cresset.int8, device="cpu", **options)


def test_file_check_reads_in_order():
    FileCheck().check("a").check_same("b").check_next("c").check_not("a").run("a b\nc")
    FileCheck().check_count("x", 2, exactly=True).check_dag("z").check_dag("y").run("x x y z")
    FileCheck().check_regex("[0-9]+").run("n = 12")
    FileCheck().run("# CHECK: a\n# CHECK-NOT: b", "only a")


@pytest.mark.parametrize(
    "checks, words",
    [
        (FileCheck().check("b"), 'Expected to find "b"'),
        (FileCheck().check_not("a"), 'Expected to not find "a" but found it at character 0'),
        (FileCheck().check("a").check_next("a"), "on the next line"),
        (FileCheck().check_count("a", 1, exactly=True), "Expected to not find"),
        (FileCheck(), "nothing to check"),
    ],
)
def test_file_check_says_what_is_wrong(checks, words):
    with pytest.raises(RuntimeError, match=words):
        checks.run("a a")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "value", [assert_close, assert_allclose, comparison.default_tolerances, make_tensor, FileCheck]
)
def test_the_examples_give_what_they_show(value):
    test = doctest.DocTestParser().get_doctest(
        inspect.cleandoc(value.__doc__), {"cresset": cresset}, value.__name__, None, 0
    )
    said = []
    doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test, out=said.append)
    assert said == [], "".join(said)
