"""Whether calls are recorded: contexts, decorators, generators, inference, anomaly detection."""

import threading

import pytest

import cresset
from cresset.autograd import grad_mode


@pytest.fixture
def x():
    return cresset.ones(2, requires_grad=True)


def test_no_grad_and_enable_grad_nest(x):
    with cresset.no_grad():
        assert not (x * 2).requires_grad
        with cresset.enable_grad():
            assert (x * 2).requires_grad
        assert not cresset.is_grad_enabled()
    assert cresset.is_grad_enabled()


def test_set_grad_enabled_takes_effect_at_once():
    cresset.set_grad_enabled(False)
    try:
        assert not cresset.is_grad_enabled()
    finally:
        cresset.set_grad_enabled(True)
    with cresset.set_grad_enabled(False):
        assert not cresset.is_grad_enabled()
    assert cresset.is_grad_enabled()


@pytest.mark.parametrize(
    "mode", ["no_grad", "no_grad()", "inference_mode", "inference_mode()", "set_grad_enabled(False)"]
)
def test_decorated_functions_run_in_the_mode(mode, x):
    @eval(mode, vars(cresset))
    def double():
        "The double."
        return x * 2

    assert not double().requires_grad and cresset.is_grad_enabled()
    assert double.__name__ == "double" and double.__doc__ == "The double."


def test_a_decorated_generator_leaves_its_caller_alone():
    @cresset.no_grad()
    def count():
        for k in range(3):
            yield k, cresset.is_grad_enabled()
        return "end"

    generator = count()
    for k in range(3):
        assert next(generator) == (k, False) and cresset.is_grad_enabled()
    with pytest.raises(StopIteration) as end:
        next(generator)
    assert end.value.value == "end"


def test_a_decorated_generator_is_closed():
    closed = []

    @cresset.no_grad()
    def count():
        try:
            yield 1
        finally:
            closed.append(cresset.is_grad_enabled())

    generator = count()
    next(generator)
    generator.close()
    assert closed == [False]


def test_decorating_a_class_warns():
    with pytest.warns(FutureWarning, match="Decorating classes is deprecated"):
        made = cresset.no_grad()(dict)
    assert made(a=1) == {"a": 1}


def test_the_mode_belongs_to_the_thread():
    seen = []
    with cresset.no_grad():
        thread = threading.Thread(target=lambda: seen.append(cresset.is_grad_enabled()))
        thread.start()
        thread.join()
    assert seen == [True]


@pytest.mark.parametrize("given_back", ["contiguous", "float", "cpu", "ravel", "type_as", "asarray", "inside"])
def test_an_argument_that_inference_mode_gives_back_is_no_inference_tensor(given_back):
    """Data looked at under inference_mode can be trained with after it."""
    data, weight = cresset.ones(2, 3), cresset.ones(3, requires_grad=True)
    with cresset.inference_mode():
        if given_back == "type_as":
            result = data.type_as(weight)
        elif given_back == "asarray":
            result = cresset.asarray(data)
        elif given_back == "inside":
            result = data
            data.renorm(2, 0, 10.0)  # asks for contiguous() itself
        else:
            result = getattr(data, given_back)()
    assert not data.is_inference() and (result is data or given_back == "ravel")
    (data * weight).sum().backward()
    assert weight.grad.tolist() == [2.0] * 3
    with cresset.inference_mode():
        made = data.double()
        assert made.is_inference() and made.contiguous().is_inference()


def test_inference_tensors_stay_out_of_graphs(x):
    with cresset.inference_mode():
        y = cresset.ones(2)
    assert y.is_inference() and not y.clone().is_inference()
    with pytest.raises(RuntimeError, match="Inference tensors cannot be saved for backward"):
        x * y
    with pytest.raises(RuntimeError, match="Inplace update to inference tensor outside InferenceMode"):
        y.add_(1)


def test_a_switch_is_remembered():
    with grad_mode.set_multithreading_enabled(False):
        assert not cresset.autograd.is_multithreading_enabled()
    assert cresset.autograd.is_multithreading_enabled()


def test_anomaly_detection_finds_a_nan_and_its_origin():
    x = cresset.zeros(1, requires_grad=True)
    with cresset.autograd.set_detect_anomaly(True):
        y = x.sqrt()  # the origin
        told = pytest.warns(UserWarning, match=r"y = x.sqrt\(\)  # the origin")
        with told, pytest.raises(RuntimeError, match="Function 'SqrtBackward0' returned nan values in its 0th output"):
            (y * 0).backward()
    assert not cresset._native.is_anomaly_enabled()


def test_anomaly_detection_without_the_check_tells_the_origin_only():
    x = cresset.zeros(1, requires_grad=True)
    with cresset.autograd.set_detect_anomaly(True, check_nan=False):
        (x.sqrt() * 0).backward()
    assert x.grad.isnan().all()


def test_detect_anomaly_warns_that_it_is_slow():
    with pytest.warns(UserWarning, match="Anomaly Detection has been enabled"), cresset.autograd.detect_anomaly():
        assert cresset._native.is_anomaly_enabled()
    assert not cresset._native.is_anomaly_enabled()


@pytest.mark.parametrize("change", [
    lambda x: x.transpose_(0, 1), lambda x: x.t_(), lambda x: x.squeeze_(), lambda x: x.unsqueeze_(0),
    lambda x: x.swapaxes_(0, 1), lambda x: x.as_strided_((1,), (1,)),
], ids=["transpose", "t", "squeeze", "unsqueeze", "swapaxes", "as_strided"])  # fmt: skip
def test_a_tensor_of_inference_mode_keeps_its_sizes_outside_of_it(change):
    with cresset.inference_mode():
        x = cresset.ones(2, 1) * 2
        change(x)  # inside, it may
        y = cresset.ones(2, 1) * 2
    with pytest.raises(RuntimeError, match="Inplace update to inference tensor outside InferenceMode"):
        change(y)
    assert y.shape == (2, 1)


def test_a_tensor_of_inference_mode_keeps_its_memory_outside_of_it():
    with cresset.inference_mode():
        x = cresset.ones(2) * 2
    for source in (cresset.zeros(2), cresset.zeros(2).untyped_storage()):
        with pytest.raises(RuntimeError, match="Inplace update to inference tensor outside InferenceMode"):
            x.set_(source)
    assert x.tolist() == [2.0, 2.0]


def test_a_view_of_a_tensor_of_inference_mode_is_not_recorded():
    with cresset.inference_mode():
        x = cresset.ones(2, 3, requires_grad=True)
    view = x.view(-1)
    assert view.is_inference() and not view.requires_grad and view.is_leaf and not view._is_view()


@pytest.mark.parametrize("write", [
    lambda x, other: x.mul_(other), lambda x, other: x[:1].div_(other[:1]),
    lambda x, other: x.lerp_(cresset.ones(2), other), lambda x, other: x.masked_fill_(other, 1.0),
    lambda x, other: x.index_put_((other,), cresset.tensor(1.0)),
], ids=["mul", "div", "lerp", "masked_fill", "index_put"])  # fmt: skip
def test_a_write_that_would_keep_a_tensor_of_inference_mode_is_refused_before_it_is_done(write, request):
    x = cresset.ones(2, requires_grad=True) * 3
    history = x.grad_fn
    dtype = {"masked_fill": cresset.bool, "index_put": cresset.int64}.get(request.node.callspec.id, cresset.float32)
    with cresset.inference_mode():
        other = cresset.tensor([1, 0], dtype=dtype)
    with pytest.raises(RuntimeError, match="Inference tensors cannot be saved for backward"):
        write(x, other)
    assert x.tolist() == [3.0, 3.0] and x._version == 0 and x.grad_fn is history


def test_all_that_is_made_in_inference_mode_is_a_tensor_of_it():
    import numpy as np

    shared = np.ones(2)
    outside = cresset.ones(2)
    with cresset.inference_mode():
        made = [cresset.tensor([1]), cresset.as_tensor([1.0]), cresset.Tensor([1]), cresset.from_numpy(shared)]
        made += [cresset.frombuffer(bytearray(4), dtype=cresset.float32), cresset.from_dlpack(shared)]
        assert all(x.is_inference() for x in made) and not outside.view(2).is_inference()


def test_nothing_is_recorded_in_inference_mode_whatever_enable_grad_says(x):
    with cresset.inference_mode(), cresset.enable_grad():
        assert cresset.is_grad_enabled()
        y = x * x
        assert not y.requires_grad and y.is_inference()


def test_of_many_tensors_none_is_written_to_where_one_is_of_inference_mode():
    with cresset.inference_mode():
        frozen = cresset.ones(2)
    plain = cresset.ones(2)
    for change in (lambda x: cresset._foreach_zero_(x), lambda x: cresset._foreach_add_(x, 1)):
        with pytest.raises(RuntimeError, match="Inplace update to inference tensor"):
            change([plain, frozen])
    assert plain.tolist() == frozen.tolist() == [1.0, 1.0]
    with cresset.inference_mode():
        cresset._foreach_zero_([plain, frozen])
    assert plain.tolist() == frozen.tolist() == [0.0, 0.0]
