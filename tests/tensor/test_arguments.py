"""What may stand for an argument: Python's types for dtypes, several numbers for a list of them; and what may not."""

import numpy
import pytest

import cresset
from cresset import nn


class TestPythonTypesAsDtypes:
    @pytest.mark.parametrize(
        ("named", "dtype"),
        [(float, cresset.float64), (int, cresset.int64), (bool, cresset.bool), (complex, cresset.complex128)],
    )
    def test_they_name_the_dtype_that_is_as_wide(self, named, dtype):
        x = cresset.ones(2)
        made = [
            cresset.tensor([1, 0], dtype=named),
            cresset.as_tensor([1], dtype=named),
            cresset.asarray([1], dtype=named),
            cresset.zeros(2, dtype=named),
            x.to(named),
            x.new_tensor([1], dtype=named),
            x.sum(dtype=named),
            cresset.frombuffer(bytearray(16), dtype=named),
            cresset.scalar_tensor(1, dtype=named),
        ]
        assert [t.dtype for t in made] == [dtype] * len(made)
        assert cresset.promote_types(named, cresset.bool) == dtype and cresset.can_cast(cresset.bool, named)

    def test_limits_layers_windows_and_autocast_take_them(self):
        assert cresset.finfo(float).bits == 64 and cresset.iinfo(int).max == 2**63 - 1
        assert nn.Linear(2, 2).to(float).weight.dtype == cresset.float64
        assert cresset.hann_window(3, dtype=float).dtype == cresset.float64
        with pytest.warns(UserWarning, match="autocast"):
            assert cresset.autocast("cpu", dtype=float).fast_dtype == cresset.float64

    def test_other_types_are_refused(self):
        for call in (
            lambda: cresset.tensor([1], dtype=str),
            lambda: cresset.zeros(2, dtype=list),
            lambda: nn.Linear(1, 1).to(str),
            lambda: cresset.set_default_dtype(float),
        ):
            with pytest.raises(TypeError):
                call()


class TestTensorType:
    def test_the_class_of_tensors_stands_for_the_default_dtype(self):
        x = cresset.ones(2, dtype=cresset.int32)
        assert x.type(cresset.Tensor).dtype == x.type("torch.Tensor").dtype == cresset.float32
        before = cresset.get_default_dtype()
        cresset.set_default_dtype(cresset.float64)
        try:
            assert x.type(cresset.Tensor).dtype == cresset.float64
        finally:
            cresset.set_default_dtype(before)

    @pytest.mark.parametrize(
        ("named", "error"), [(float, ValueError), (nn.Parameter, ValueError), ("x", ValueError), (3, TypeError)]
    )
    def test_what_names_no_type_is_refused(self, named, error):
        with pytest.raises(error, match="type"):
            cresset.ones(1).type(named)


class TestNumbersAndTruthValues:
    @pytest.mark.parametrize(
        "name",
        [
            "sum",
            "mean",
            "prod",
            "amax",
            "amin",
            "argmax",
            "any",
            "all",
            "std",
            "var",
            "logsumexp",
            "nansum",
            "max",
            "median",
            "mode",
        ],
    )
    def test_a_second_dimension_is_not_taken_for_keepdim(self, name):
        with pytest.raises(TypeError):
            getattr(cresset.rand(2, 3, 4), name)(0, 1)

    def test_a_number_is_no_bool(self):
        x = cresset.rand(2, 3)
        for call in (lambda: x.sum(0, keepdim=1), lambda: x.sort(0, 1), lambda: x.argsort(0, 0), lambda: x.copy_(x, 1)):
            with pytest.raises(TypeError):
                call()
        assert x.sum(0, numpy.bool_(True)).shape == (1, 3)

    def test_a_bool_is_no_dimension(self):
        x = cresset.rand(2, 3)
        for call in (lambda: x.argmax(True), lambda: x.cumsum(False), lambda: x.squeeze(True), lambda: x.chunk(True)):
            with pytest.raises(TypeError):
                call()


def test_dimensions_to_squeeze_or_count_may_be_given_one_by_one():
    x = cresset.ones(1, 1, 3, 1)
    assert x.squeeze(0, 1).shape == (3, 1) and x.squeeze(0, -1, 2).shape == (1, 3)
    assert x.clone().squeeze_(0, 1, 3).shape == (3,) and x.clone().squeeze_(dim=(0, 1)).shape == (3, 1)
    assert x.count_nonzero(0, 1).shape == (3, 1)
    with pytest.raises(RuntimeError, match="multiple times"):
        x.squeeze(0, 0)


def test_is_tensor_asks_nobody():
    class Answers:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            raise AssertionError("asked")

    class Sub(cresset.Tensor):
        __torch_function__ = Answers.__torch_function__

    assert not cresset.is_tensor(Answers())
    assert cresset.is_tensor(cresset.ones(1).as_subclass(Sub))
    with pytest.raises(AssertionError, match="asked"):
        cresset.is_floating_point(Answers())


def test_a_tensor_that_is_recorded_is_no_number():
    x = cresset.ones(2)
    assert cresset.native_dropout(x, cresset.tensor(0.0), True)[0].tolist() == [1.0, 1.0]
    with pytest.raises(TypeError, match="must be float"):
        cresset.native_dropout(x, cresset.tensor(0.0, requires_grad=True), True)


class TestNumbersInOtherThings:
    def test_a_tensor_of_one_element_among_data_is_a_number(self):
        one, two = cresset.tensor([1]), cresset.tensor([[2]])
        for data, expected in (([one, two], [1, 2]), ([one, 3], [1, 3]), ([[one], [two]], [[1], [2]])):
            made = cresset.tensor(data)
            assert made.tolist() == expected and made.dtype is cresset.int64
        assert cresset.tensor([(one, cresset.tensor(2.5))]).tolist() == [[1.0, 2.5]]

    def test_an_array_without_dimensions_is_a_number_of_its_dtype(self):
        assert cresset.tensor([7, numpy.array(5)]).dtype is cresset.int64
        assert cresset.tensor([[7, numpy.array(5)], [numpy.array(9), 5.0]]).tolist() == [[7.0, 5.0], [9.0, 5.0]]
        assert cresset.tensor([7, numpy.array(5.0)]).dtype is cresset.float64

    def test_integers_of_any_size_are_true(self):
        assert cresset.tensor([2**63, 0, -(2**70)], dtype=cresset.bool).tolist() == [True, False, True]


class TestTensorsForIntegers:
    """A 0-d tensor may stand for any integer; one of one element, of any shape, for a size or a place."""

    @pytest.mark.parametrize(
        "call",
        [
            lambda x, one: x.select(0, one),
            lambda x, one: x.narrow(0, 0, one),
            lambda x, one: x.split(one)[0],
            lambda x, one: x.topk(one).values,
            lambda x, one: x.kthvalue(one).values,
            lambda x, one: x.triu(one),
            lambda x, one: cresset.slice_copy(x, 0, 0, one),
            lambda x, one: cresset.eye(one),
            lambda x, one: cresset.randperm(one),
            lambda x, one: cresset.bincount(cresset.tensor([0]), minlength=one),
            lambda x, one: x.as_strided((1,), (1,), one),
        ],
    )
    def test_sizes_and_places_take_one_element(self, call):
        x = cresset.arange(12.0).reshape(3, 4)
        for one in (cresset.tensor(1), cresset.tensor([1]), cresset.tensor([[1]])):
            assert call(x, one).equal(call(x, 1))

    def test_dimensions_take_0d_tensors_alone_and_no_bools(self):
        x = cresset.ones(3, 4)
        assert x.unsqueeze(cresset.tensor(1)).shape == (3, 1, 4)
        for other in (cresset.tensor([1]), cresset.tensor(True), cresset.tensor(1.0)):
            with pytest.raises(TypeError, match="must be int, not Tensor"):
                x.unsqueeze(other)


def test_where_one_form_alone_takes_so_many_arguments_its_own_error_is_told():
    with pytest.raises(TypeError, match=r"randint\(\): argument 'high' \(position 1\) must be int, not float"):
        cresset.randint(0.5, (1,))
    with pytest.raises(TypeError, match="invalid combination of arguments"):
        cresset.randint(0.5, 2.5, (1,))


class TestNumpysNames:
    """axis, keepdims and x stand for dim, keepdim and input, in operators and in functions made of them."""

    def test_they_stand_for_ours(self):
        x = cresset.tensor([[3.0, 1.0], [2.0, 4.0]])
        assert cresset.diff(x, axis=0).tolist() == x.diff(axis=0).tolist() == [[-1.0, 3.0]]
        assert cresset.argsort(x, axis=0).tolist() == [[1, 0], [0, 1]]
        assert cresset.nanmean(x, axis=1, keepdims=True).tolist() == [[2.0], [3.0]]
        assert cresset.trapezoid(x, axis=0).tolist() == [2.5, 2.5]
        assert cresset.fliplr(x=x).tolist() == [[1.0, 3.0], [4.0, 2.0]]

    def test_they_are_not_given_beside_ours(self):
        with pytest.raises(TypeError, match="multiple values for argument 'dim'"):
            cresset.diff(cresset.ones(2), 1, 0, axis=0)

    def test_layers_have_their_own_names(self):
        with pytest.raises(TypeError, match="unexpected keyword argument 'axis'"):
            nn.functional.normalize(cresset.ones(2, 2), axis=1)
