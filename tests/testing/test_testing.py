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


COO = cresset.sparse_coo_tensor([[0, 1], [1, 0]], [1.0, 2.0], (2, 2))


@pytest.mark.parametrize("layout", [cresset.sparse_coo, cresset.sparse_csr, cresset.sparse_csc])
def test_sparse_tensors_are_compared_by_their_parts(layout):
    one = COO.to_dense().to_sparse(layout=layout)
    assert_close(one, one.clone())
    name = str(layout).rpartition("_")[2].upper()
    with pytest.raises(AssertionError, match=f"Sparse {name} values are not close!\n\nMismatched elements: 2 / 2"):
        assert_close(one, (COO * 2).to_dense().to_sparse(layout=layout))
    with pytest.raises(AssertionError, match=f"Sparse {name} .*indices are not equal!"):
        assert_close(one, cresset.eye(2).to_sparse(layout=layout))
    with pytest.raises(AssertionError, match=f"number of specified values in sparse {name} tensors .* 2 != 4"):
        assert_close(one, cresset.ones(2, 2).to_sparse(layout=layout))


def test_blocks_are_compared_like_other_sparse_values():
    one, other = (cresset.full((4, 4), value).to_sparse_bsr((2, 2)) for value in (1.0, 3.0))
    assert_close(one, one.clone())
    with pytest.raises(AssertionError, match="Sparse BSR values are not close!"):
        assert_close(one, other)


def test_layouts_have_to_agree_unless_told_otherwise():
    dense, compressed = COO.to_dense(), COO.to_sparse_csr()
    for one, other in ((COO, dense), (COO, compressed), (dense, compressed)):
        with pytest.raises(AssertionError, match="The values for attribute 'layout' do not match"):
            assert_close(one, other)
        assert_close(one, other, check_layout=False)
    assert_close(COO, COO.coalesce())
    volume = cresset.ones(2, 2, 2)
    with pytest.raises(AssertionError, match="number of sparse dimensions in sparse COO tensors .* 3 != 2"):
        assert_close(volume.to_sparse(), volume.to_sparse(2))


def test_quantized_tensors_are_compared_by_what_they_mean():
    one, other = (cresset.quantize_per_tensor(cresset.tensor([x]), 1.0, 0, cresset.qint32) for x in (1.0, 2.0))
    assert_close(one, one.clone())
    with pytest.raises(AssertionError, match="Quantized tensor-likes are not close!"):
        assert_close(one, other)
    with pytest.raises(AssertionError, match="attribute 'is_quantized'"):
        assert_close(cresset.ones(1), one)


def test_eight_bit_floats_are_equal_or_not():
    one, other = (cresset.tensor([1.0, x]).to(cresset.float8_e4m3fn) for x in (2.0, 3.0))
    assert_close(one, one.clone())
    with pytest.raises(AssertionError, match=r"1 / 2 \(50.0%\)\nThe first mismatched element is at index \(1,\)"):
        assert_close(one, other)
    with pytest.raises(AssertionError, match="Rtol=1 and atol=0 are not supported"):
        assert_close(one, other, rtol=1, atol=0)


def test_quantized_dtypes_are_not_made():
    with pytest.raises(TypeError, match="requested dtype 'torch.quint8' is not supported"):
        make_tensor(2, dtype=cresset.quint8, device="cpu")


def test_made_tensors_stay_in_their_range():
    made = make_tensor(1000, dtype=cresset.float32, device="cpu", low=2, high=3)
    assert made.min() >= 2 and made.max() < 3
    assert not (make_tensor((1000,), dtype=cresset.int8, device="cpu", low=0, high=2, exclude_zero=True) == 0).any()
    assert not make_tensor(4, 4, dtype=cresset.float32, device="cpu", noncontiguous=True).is_contiguous()
    assert make_tensor(2, dtype=cresset.float32, device="cpu", requires_grad=True).requires_grad


@pytest.mark.parametrize(
    "options, words",
    [
        ({"low": 3, "high": 1}, "`low` must be less than `high`"),
        ({"low": float("nan")}, "`low` and `high` cannot be NaN"),
        ({"requires_grad": True}, "not supported for boolean and integral"),
        ({"noncontiguous": True, "memory_format": cresset.channels_last}, "are mutually exclusive"),
        ({"low": 10**400, "high": 10**401}, "only supports"),
        ({"low": 300, "high": 400}, r"interval .* \[300, 400\), but torch.int8 only supports \[-128, 128\)"),
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


def test_an_operator_that_draws_starts_from_one_seed_and_leaves_the_stream_alone():
    drawn = [cresset.testing._utils.wrapper_set_seed(cresset.rand, 2) for _ in range(2)]
    assert_close(*drawn, rtol=0, atol=0)
    cresset.manual_seed(0)
    expected = cresset.rand(1)
    cresset.manual_seed(0)
    with cresset.testing._utils.freeze_rng_state():
        cresset.rand(5)
    assert_close(cresset.rand(1), expected, rtol=0, atol=0)
