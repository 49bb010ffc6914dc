"""New tensors: their values, dtypes, strides and errors."""

import math

import pytest

import cresset


def test_zeros_ones_and_full_take_sizes_in_every_form():
    for size in [(2, 3), [2, 3], cresset.Size([2, 3])]:
        assert cresset.zeros(size).tolist() == [[0.0] * 3] * 2
    assert cresset.zeros(2, 3).shape == cresset.zeros(size=(2, 3)).shape == (2, 3)
    assert cresset.zeros([]).shape == cresset.zeros(()).shape == ()
    assert cresset.ones(2, dtype=cresset.int32).tolist() == [1, 1]
    assert cresset.zeros(0, 3).shape == (0, 3)


@pytest.mark.parametrize(
    "value, dtype",
    [(True, cresset.bool), (3, cresset.int64), (2.5, cresset.float32), (1 + 2j, cresset.complex64)],
)
def test_the_kind_of_number_decides_the_dtype_of_full(value, dtype):
    made = cresset.full((2,), value)
    assert made.dtype == dtype and made.tolist() == [value, value]


@pytest.mark.parametrize(
    "value, dtype",
    [
        (300, cresset.uint8),
        (-129, cresset.int8),
        (2**31, cresset.int32),
        (1e300, cresset.float32),
        (70000, cresset.float16),
        (math.nan, cresset.int64),
        (math.inf, cresset.int32),
        (1j, cresset.float32),
    ],
)
def test_a_number_that_does_not_fit_is_refused(value, dtype):
    with pytest.raises(RuntimeError, match="cannot be converted to type .* without overflow"):
        cresset.full((1,), value, dtype=dtype)
    with pytest.raises(RuntimeError, match="without overflow"):
        cresset.zeros(1, dtype=dtype).fill_(value)


WITH_A_NUMBER = {
    "tensor": lambda x, n: cresset.tensor([n], dtype=x.dtype),
    "new_tensor": lambda x, n: x.new_tensor([n]),
    "setitem": lambda x, n: x.__setitem__(0, n),
    "setitem with a mask": lambda x, n: x.__setitem__(x == x, n),
    "masked_fill": lambda x, n: x.masked_fill(x == x, n),
    "index_fill": lambda x, n: x.index_fill(0, cresset.tensor([0]), n),
    "scatter": lambda x, n: x.scatter(0, cresset.tensor([0]), n),
    "linspace": lambda x, n: cresset.linspace(0, n, 3, dtype=x.dtype),
    "addcmul": lambda x, n: cresset.addcmul(x, x, x, value=n),
}


@pytest.mark.parametrize("name", WITH_A_NUMBER)
@pytest.mark.parametrize("dtype, number", [("uint8", 300), ("uint8", 300.0), ("uint8", -0.5), ("int8", 200.0)])
def test_a_number_that_does_not_fit_is_refused_wherever_it_is_written(name, dtype, number):
    x = cresset.ones(2, dtype=getattr(cresset, dtype))
    with pytest.raises(RuntimeError, match=f"cannot be converted to type {dtype} without overflow"):
        WITH_A_NUMBER[name](x, number)
    assert x.tolist() == [1, 1]


@pytest.mark.parametrize(
    "run",
    [
        lambda x: x.clamp(max=256),
        lambda x: x.clamp_(min=256),
        lambda x: cresset.where(x == x, x, 256),
        lambda x: cresset.add(x, x, alpha=256),
        lambda x: x.pow(256),
    ],
)
def test_whole_numbers_beyond_the_dtype_are_refused_beside_it(run):
    with pytest.raises(RuntimeError, match="cannot be converted to type uint8 without overflow"):
        run(cresset.ones(2, dtype=cresset.uint8))


def test_what_fits_only_just_is_taken():
    assert cresset.full((1,), -1, dtype=cresset.uint8).item() == 255
    assert cresset.full((1,), math.inf, dtype=cresset.float16).item() == math.inf
    assert cresset.full((1,), 1 + 0j).real.item() == 1.0
    assert cresset.full((1,), 2.5, dtype=cresset.bool).item() is True


class TestErrors:
    """What a wrong call says."""

    def test_negative_size(self):
        for make in (cresset.zeros, cresset.empty, cresset.ones, cresset.rand, cresset.randn):
            with pytest.raises(RuntimeError, match="negative dimension -1"):
                make(2, -1)

    def test_sizes_that_no_memory_holds(self):
        with pytest.raises(RuntimeError, match="overflowed"):
            cresset.zeros(2**62, 2)
        with pytest.raises(RuntimeError, match="overflowed"):
            cresset.empty(2**61)
        with pytest.raises(RuntimeError, match="allocate"):
            cresset.empty(2**50)

    def test_unknown_keyword(self):
        with pytest.raises(TypeError):
            cresset.randn(batch_size=32)
        with pytest.raises(TypeError):
            cresset.zeros()
        with pytest.raises(TypeError, match="must be tuple of ints, not float"):
            cresset.zeros(2.5)
        with pytest.raises(TypeError, match="must be tuple of ints, but found element of type str at pos 1"):
            cresset.zeros([2, "3"])

    def test_an_integer_tensor_wants_no_gradient(self):
        with pytest.raises(RuntimeError, match="floating point and complex"):
            cresset.zeros(2, dtype=cresset.int64, requires_grad=True)

    @pytest.mark.cpu_only("here is an accelerator")
    def test_pinned_memory_needs_an_accelerator(self):
        with pytest.raises(RuntimeError, match="pin_memory"):
            cresset.zeros(2, device="cpu", pin_memory=True)

    def test_fill_with_more_than_one_element(self):
        with pytest.raises(
            RuntimeError, match="only supports 0-dimension value tensor but got tensor with 1 dimensions"
        ):
            cresset.zeros(2).fill_(cresset.ones(1))


class TestArange:
    @pytest.mark.parametrize(
        "fill",
        [
            lambda out: cresset.arange(4, out=out),
            lambda out: cresset.arange(3, -1, -1, out=out).copy_(out.flip(0, 1)),
            lambda out: cresset.linspace(0, 3, 4, out=out),
            lambda out: cresset.range(0, 3, out=out),
        ],
        ids=["to", "down", "linspace", "range"],
    )
    @pytest.mark.filterwarnings("ignore:torch.range is deprecated")
    def test_an_out_of_as_many_elements_keeps_its_shape_and_what_lies_between(self, fill):
        whole = cresset.full((2, 3), 9.0)
        part = whole[:, 1:]
        fill(part)
        assert part.shape == (2, 2) and whole.tolist() == [[9.0, 0.0, 1.0], [9.0, 2.0, 3.0]]

    def test_counts_like_python(self):
        for args in [(5,), (2, 7), (0, 10, 3), (5, 0, -2), (3, 3), (-4, 4, 8)]:
            assert cresset.arange(*args).tolist() == list(range(*args))
        assert cresset.arange(5).dtype == cresset.int64

    def test_one_float_makes_floats(self):
        made = cresset.arange(0, 1, 0.25)
        assert made.dtype == cresset.float32 and made.tolist() == [0.0, 0.25, 0.5, 0.75]
        assert cresset.arange(3.0).dtype == cresset.float32

    def test_length_is_rounded_up(self):
        assert cresset.arange(0, 0.3, 0.1).shape == (3,)
        assert cresset.arange(1.0, 2.0, 0.3).shape == (4,)

    def test_large_integers_stay_exact(self):
        assert cresset.arange(2**53, 2**53 + 3).tolist() == [2**53, 2**53 + 1, 2**53 + 2]
        assert cresset.arange(-(2**63), 2**63 - 1, 2**62).tolist() == [-(2**63), -(2**62), 0, 2**62]

    def test_named_arguments(self):
        assert cresset.arange(end=3).tolist() == [0, 1, 2]
        assert cresset.arange(start=1, end=6, step=2).tolist() == [1, 3, 5]

    @pytest.mark.parametrize(
        "args, phrase",
        [
            ((0, 5, 0), "step must be nonzero"),
            ((5, 0), "inconsistent with step sign"),
            ((0, math.inf), "unsupported range"),
            ((1j,), "real"),
        ],
    )
    def test_impossible_ranges(self, args, phrase):
        with pytest.raises(RuntimeError, match=phrase):
            cresset.arange(*args)

    def test_dtypes_without_ranges(self):
        with pytest.raises(NotImplementedError, match="arange_(cpu|cuda).* not implemented for 'Bool'"):
            cresset.arange(2, dtype=cresset.bool)


def test_linspace_has_both_ends_and_a_symmetric_middle():
    made = cresset.linspace(-1, 1, 5)
    assert made.tolist() == [-1.0, -0.5, 0.0, 0.5, 1.0]
    made = cresset.linspace(0.1, 0.7, 1001, dtype=cresset.float64)
    assert made[0].item() == 0.1 and made[-1].item() == 0.7
    assert cresset.linspace(3, 8, 1).tolist() == [3.0]
    assert cresset.linspace(3, 8, 0).shape == (0,)
    assert cresset.linspace(0, 10, 5, dtype=cresset.int64).tolist() == [0, 2, 5, 7, 10]
    assert cresset.linspace(cresset.tensor(1.0), 2, 3).tolist() == [1.0, 1.5, 2.0]
    assert cresset.linspace(0, 2j, 3).tolist() == [0, 1j, 2j]


def test_logspace_counts_powers():
    assert cresset.logspace(0, 3, 4).tolist() == [1.0, 10.0, 100.0, 1000.0]
    assert cresset.logspace(0, 4, 3, base=2).tolist() == [1.0, 4.0, 16.0]


def test_range_has_its_end_and_says_that_it_is_old():
    with pytest.warns(UserWarning, match="deprecated"):
        assert cresset.range(1, 2, 0.5).tolist() == [1.0, 1.5, 2.0]


def test_eye_may_be_wider_or_taller():
    assert cresset.eye(2, 3).tolist() == [[1, 0, 0], [0, 1, 0]]
    assert cresset.eye(3, 1, dtype=cresset.bool).tolist() == [[True], [False], [False]]
    assert cresset.eye(0).shape == (0, 0)
    with pytest.raises(RuntimeError, match="n must be greater or equal to 0, got -1"):
        cresset.eye(-1)


class TestLike:
    def test_keeps_size_dtype_and_order_of_memory(self):
        like = cresset.zeros_like(cresset.ones(2, 3, dtype=cresset.int16).t())
        assert like.shape == (3, 2) and like.stride() == (1, 3) and like.dtype == cresset.int16

    def test_has_memory_of_its_own_behind_a_broadcast(self):
        assert cresset.ones_like(cresset.zeros(1).expand(2, 3)).stride() == (3, 1)

    def test_takes_another_format_dtype_and_device(self):
        x = cresset.ones(2, 3).t()
        assert cresset.empty_like(x, memory_format=cresset.contiguous_format).stride() == (2, 1)
        assert cresset.full_like(x, 2, dtype=cresset.int64)[0, 0].item() == 2
        assert cresset.zeros_like(x, device="meta").is_meta
        assert cresset.zeros_like(cresset.zeros(2, device="meta"), device="cpu").tolist() == [0.0, 0.0]
        images = cresset.empty(2, 3, 4, 5)
        assert cresset.empty_like(images, memory_format=cresset.channels_last).stride() == (60, 1, 15, 3)

    def test_does_not_require_grad_unless_asked(self):
        x = cresset.ones(2, requires_grad=True)
        assert not cresset.zeros_like(x).requires_grad
        assert cresset.zeros_like(x, requires_grad=True).is_leaf


def test_new_tensors_are_of_the_old_ones_dtype():
    x = cresset.ones(2, dtype=cresset.float64)
    assert x.new_zeros(2, 3).dtype == x.new_ones((2,)).dtype == x.new_empty([]).dtype == cresset.float64
    assert x.new_full((2,), 3).tolist() == [3.0, 3.0]
    assert x.new_empty_strided((2, 2), (1, 2)).stride() == (1, 2)
    assert x.new_ones(1, dtype=cresset.bool).item() is True


def test_empty_strided_reaches_as_far_as_its_strides():
    x = cresset.empty_strided((2, 3), (10, 2))
    x.fill_(1)
    assert x.untyped_storage().nbytes() == 4 * (10 + 4 + 1) if hasattr(x, "untyped_storage") else True
    assert x.stride() == (10, 2)
    with pytest.raises(RuntimeError, match="dimensionality of sizes"):
        cresset.empty_strided((2, 3), (1,))


class TestOut:
    """out= takes the result, and its dtype decides when none is given."""

    def test_dtype_of_out_decides(self):
        out = cresset.empty(0, dtype=cresset.float64)
        assert cresset.arange(3, out=out) is out
        assert out.tolist() == [0.0, 1.0, 2.0]
        assert cresset.zeros(2, out=cresset.empty(2, dtype=cresset.int32)).dtype == cresset.int32

    def test_a_contradiction_is_refused(self):
        with pytest.raises(RuntimeError, match=r"dtype Int does not match dtype of out parameter \(Float\)"):
            cresset.zeros(2, dtype=cresset.int32, out=cresset.empty(2))


class TestDefaultDevice:
    def test_inside_a_device_new_tensors_go_there(self):
        with cresset.device("meta"):
            assert cresset.zeros(2).is_meta and cresset.arange(3).is_meta and cresset.rand(2).is_meta
            assert not cresset.zeros(2, device="cpu").is_meta
        assert not cresset.zeros(2).is_meta

    def test_shapes_and_checks_come_without_memory(self):
        assert cresset.empty(2**40, device="meta").shape == (2**40,)
        assert cresset.arange(0, 10, 3, device="meta").shape == (4,)
        with pytest.raises(RuntimeError, match="negative dimension"):
            cresset.zeros(-1, device="meta")


class TestGradients:
    def test_what_is_overwritten_gets_zero_and_the_value_the_sum(self):
        x, value = cresset.ones(3, requires_grad=True), cresset.tensor(2.0, requires_grad=True)
        y = x.clone().fill_(value)
        (y * cresset.tensor([1.0, 2.0, 3.0])).sum().backward()
        assert x.grad.tolist() == [0.0, 0.0, 0.0] and value.grad.item() == 6.0

    def test_zero_stops_the_gradient(self):
        x = cresset.ones(2, requires_grad=True)
        x.clone().zero_().sum().backward()
        assert x.grad.tolist() == [0.0, 0.0]

    def test_complex_passes_it_to_the_parts(self):
        real, imag = cresset.tensor([1.0], requires_grad=True), cresset.tensor([2.0], requires_grad=True)
        z = cresset.complex(real, imag)
        (z * z.conj()).real.sum().backward()
        assert (real.grad.item(), imag.grad.item()) == (2.0, 4.0)


@pytest.mark.kernels
def test_polar_is_made_of_cosines_and_sines_of_all_angles_and_so_is_its_gradient():
    for dtype in (cresset.float32, cresset.float64):
        size, angle = (cresset.randn(n, dtype=dtype, requires_grad=True) for n in ((1003, 1), (2,)))
        angle = angle * cresset.tensor([20.0, 1e8], dtype=dtype)
        z, expected = cresset.polar(size, angle), cresset.complex(size * angle.cos(), size * angle.sin())
        cresset.testing.assert_close(z, expected)
    gradients = [cresset.autograd.grad((r * (2 - 1j)).imag.sin().sum(), (size, angle)) for r in (z, expected)]
    cresset.testing.assert_close(*gradients)  # in double precision, where sums of many differ by little
    assert cresset.polar(cresset.ones(0), cresset.ones(1)).shape == (0,)


@pytest.mark.kernels
@pytest.mark.parametrize("rows, columns", [(1, 1), (5, 3), (3, 5), (41, 40), (100, 7), (7, 100)])
def test_indices_of_triangles_are_those_of_what_they_keep(rows, columns):
    ones = cresset.ones(rows, columns)
    for offset in range(-rows - 1, columns + 2, 3):
        for name in ("tril", "triu"):
            pairs = getattr(cresset, name + "_indices")(rows, columns, offset)
            assert cresset.equal(pairs, getattr(ones, name)(offset).nonzero().t())


def test_polar_is_absolute_value_and_angle():
    z = cresset.polar(cresset.tensor([2.0]), cresset.tensor([math.pi / 2]))
    assert z.real.item() == pytest.approx(0, abs=1e-6) and z.imag.item() == pytest.approx(2)


def test_complex_numbers_from_parts():
    real, imag = cresset.tensor([3.0, 0.0]), cresset.tensor([4.0])
    assert cresset.complex(real, imag).tolist() == [3 + 4j, 4j]
    z = cresset.polar(cresset.tensor([5.0]), cresset.tensor([math.pi / 2]))
    assert z.tolist() == [pytest.approx(5j, abs=1e-6)]


def test_gradient_reaches_both_parts():
    real, imag = cresset.ones(1, requires_grad=True), cresset.ones(1, requires_grad=True)
    z = cresset.complex(real, imag)
    (z.real * 2 + z.imag * 3).sum().backward()
    assert (real.grad.item(), imag.grad.item()) == (2.0, 3.0)


def test_scalar_tensor_has_the_default_dtype():
    assert cresset.scalar_tensor(3).dtype == cresset.float32
    assert cresset.scalar_tensor(3, dtype=cresset.int64).dtype == cresset.int64


@pytest.mark.parametrize("offset", [-2, 0, 1])
@pytest.mark.parametrize("part", ["tril", "triu"])
def test_indices_of_a_triangle_point_at_it(part, offset):
    whole = cresset.ones(3, 4)
    rows, columns = getattr(cresset, part + "_indices")(3, 4, offset)
    marked = cresset.zeros(3, 4)
    marked[rows, columns] = 1
    assert cresset.equal(marked, getattr(cresset, part)(whole, offset))


def test_vander_counts_powers_down_or_up():
    x = cresset.tensor([2, 3], dtype=cresset.int32)
    assert cresset.vander(x, 3).tolist() == [[4, 2, 1], [9, 3, 1]]
    assert cresset.vander(x, 3, increasing=True).tolist() == [[1, 2, 4], [1, 3, 9]]
    assert cresset.vander(x).dtype == cresset.int64


def test_range_has_its_end():
    with pytest.warns(UserWarning, match="deprecated"):
        assert cresset.range(1, 3).tolist() == [1.0, 2.0, 3.0]
        assert cresset.range(3, 1, -1, dtype=cresset.int64).tolist() == [3, 2, 1]


def test_empty_permuted_lies_in_memory_as_asked():
    x = cresset.empty_permuted((2, 3, 4), (0, 2, 1), dtype=cresset.int64)
    assert x.shape == (2, 3, 4) and x.stride() == (12, 1, 3) and x.dtype == cresset.int64


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda x: cresset.complex(x, x.double()), RuntimeError, "Expected object of scalar type"),
        (lambda x: cresset.complex(x.long(), x.long()), RuntimeError, "Half, Float or Double"),
        (lambda x: cresset.complex(x, 1), TypeError, r"argument 'imag' \(position 2\) must be Tensor, not int"),
        (lambda x: cresset.tril_indices(-1, 2), RuntimeError, "row must be non-negative, got -1"),
        (lambda x: cresset.vander(x.reshape(1, -1)), RuntimeError, "one-dimensional"),
        (lambda x: cresset.range(1, 0), RuntimeError, "inconsistent with step sign"),
        (lambda x: cresset.range(0, 1, 0), RuntimeError, "step must be nonzero"),
        (lambda x: cresset.empty_permuted((2, 3), (1, 1)), RuntimeError, "Duplicate dim not allowed"),
        (lambda x: cresset.empty_permuted((2, 3), (1,)), RuntimeError, r"len\(physical_layout\) = 1"),
    ],
)
def test_error_says_what_is_wrong(call, error, message):
    with pytest.raises(error, match=message):
        call(cresset.zeros(8))


def test_a_new_dimension_of_size_one_is_like_one_of_unsqueeze():
    x = cresset.ones(5)
    assert x.expand(1, 1, 5).stride() == x.unsqueeze(0).unsqueeze(0).stride() == (5, 5, 1)
    assert x.expand(2, 1, 5).stride() == (0, 5, 1) and cresset.ones(()).expand(1, 1).stride() == (0, 0)


def test_sizes_whose_strides_do_not_fit_are_refused():
    for make in (cresset.empty, cresset.empty(0).resize_):
        with pytest.raises(RuntimeError, match="Stride calculation overflowed"):
            make([0, 4, 2**61])


def test_empty_vectors_are_joined_along_any_dimension():
    assert cresset.cat([cresset.empty(0), cresset.empty(0)], dim=1).shape == (0,)


def test_randperm_needs_room_for_its_largest_number_only():
    assert sorted(cresset.randperm(256, dtype=cresset.uint8).tolist()) == list(range(256))
    with pytest.raises(RuntimeError, match="without overflow"):
        cresset.randperm(257, dtype=cresset.uint8)


def test_complex_numbers_fill_a_tensor_of_single_precision_also_by_default_half():
    cresset.set_default_dtype(cresset.float16)
    try:
        assert cresset.full((1,), 1j).dtype == cresset.complex64
    finally:
        cresset.set_default_dtype(cresset.float32)


def test_parts_of_complex_numbers_are_of_one_floating_dtype():
    whole, single, double = cresset.tensor([1]), cresset.ones(1), cresset.ones(1, dtype=cresset.float64)
    for make in (cresset.complex, cresset.polar):
        with pytest.raises(RuntimeError, match="Half, Float or Double tensors but got Long and Long"):
            make(whole, whole)
        with pytest.raises(RuntimeError, match="scalar type Float but got scalar type Double for second argument"):
            make(single, double)
        with pytest.raises(RuntimeError, match="type ComplexFloat but got scalar type Float for argument 'out'"):
            make(single, single, out=cresset.ones(1))


def test_asarray_keeps_the_history_unless_told_otherwise():
    y = cresset.ones(2, requires_grad=True) * 2
    assert cresset.asarray(y) is y and cresset.asarray(y, copy=True).grad_fn is not None
    assert not cresset.asarray(y, requires_grad=False).requires_grad
    with pytest.raises(ValueError, match="with dtype '.*' into dtype '.*'"):
        cresset.asarray(y, dtype=cresset.float64, copy=False)
    assert cresset.asarray(cresset.utils.dlpack.to_dlpack(cresset.ones(2))).tolist() == [1.0, 1.0]


def test_the_old_constructors_keep_to_their_device():
    with pytest.raises(RuntimeError, match="legacy constructor expects device type: cpu"):
        cresset.FloatTensor(device="cuda")
    with pytest.raises(RuntimeError, match="not supported"):
        cresset.Tensor(cresset.ones(1), device="cpu")
    x = cresset.ones(2)
    assert x.new(size=(3, 4)).shape == (3, 4) and x.new(x.storage()).data_ptr() == x.data_ptr()
    with pytest.raises(TypeError, match="invalid combination"):
        cresset.LongTensor((6, 0), 1, 1, 0)


def test_a_sequence_without_a_first_element_has_no_shape():
    class Broken:
        def __len__(self):
            return 3

        def __getitem__(self, index):
            raise TypeError

    with pytest.raises(ValueError, match="could not determine the shape of object type 'Broken'"):
        cresset.tensor(Broken())


def test_meshgrid_says_once_that_indexing_will_be_required():
    cresset.ops.join._warn_of_indexing.cache_clear()
    with pytest.warns(UserWarning, match="required to pass the indexing"):
        cresset.meshgrid(cresset.ones(1))


def test_what_is_made_in_a_leaf_requires_a_gradient_only_where_that_is_asked_for():
    leaf = cresset.zeros(2, requires_grad=True)
    with cresset.no_grad():
        assert not cresset.ones(2, out=leaf).requires_grad
        assert cresset.ones(2, out=leaf, requires_grad=True) is leaf and leaf.requires_grad
    result = leaf * 2
    with cresset.no_grad():
        assert cresset.ones(2, out=result).requires_grad  # no leaf: it keeps its history


def test_what_is_made_gets_the_size_that_was_asked_for_whatever_out_had():
    for made in (cresset.zeros, cresset.rand, cresset.randperm):
        dtype = cresset.int64 if made is cresset.randperm else None
        assert made(4, out=cresset.empty(2, 2, dtype=dtype)).shape == (4,)
    with pytest.warns(UserWarning, match=r"The out tensor will be resized to shape \[4\]"):
        assert cresset.arange(4, out=cresset.empty(3, dtype=cresset.int64)).tolist() == [0, 1, 2, 3]
