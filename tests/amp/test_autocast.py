"""autocast: what runs in which precision, for how long, and what the weights keep."""

import pytest

import cresset
from cresset import nn
from cresset.amp import autocast, custom_bwd, custom_fwd
from cresset.nn import functional as F
from cresset.ops.autocast import policies, read_formulas

low = cresset.bfloat16


def test_products_run_low_losses_in_float32_and_joins_in_the_widest():
    x = cresset.ones(4, 4)
    with autocast("cpu"):
        y = x @ x
        assert y.dtype == low and F.linear(x, x).dtype == low and cresset.einsum("ij,jk", x, x).dtype == low
        assert (
            F.mse_loss(y, y).dtype == cresset.float32
            and F.cross_entropy(y, cresset.zeros(4, dtype=cresset.int64)).dtype == cresset.float32
        )
        assert cresset.cat([x, y]).dtype == cresset.float32 and cresset.cat([y, y]).dtype == low
        assert (x + x).dtype == cresset.float32 and y.exp().dtype == low
    assert (x @ x).dtype == cresset.float32


def test_float64_and_integers_are_left_alone():
    with autocast("cpu"):
        assert (cresset.ones(2, 2).double() @ cresset.ones(2, 2).double()).dtype == cresset.float64
        assert (cresset.ones(2, 2).long() @ cresset.ones(2, 2).long()).dtype == cresset.int64


def test_out_and_in_place_forms_are_left_alone():
    x, out = cresset.ones(2, 2), cresset.zeros(2, 2)
    with autocast("cpu"):
        assert cresset.mm(x, x, out=out).dtype == cresset.float32


def test_regions_nest_and_end_at_an_error():
    x = cresset.ones(2, 2)
    with pytest.raises(KeyError), autocast("cpu"):
        with autocast("cpu", dtype=cresset.float16):
            assert (x @ x).dtype == cresset.float16
        assert (x @ x).dtype == low
        with autocast("cpu", enabled=False):
            assert (x @ x).dtype == cresset.float32
        raise KeyError
    assert not cresset.is_autocast_enabled("cpu") and (x @ x).dtype == cresset.float32


def test_it_decorates():
    @autocast("cpu")
    def product(x):
        """Documentation."""
        return x @ x

    assert product(cresset.ones(2, 2)).dtype == low and product.__doc__ == "Documentation."


def test_gradients_come_back_in_the_dtype_of_the_weights():
    layer = nn.Linear(3, 2)
    with autocast("cpu"):
        loss = layer(cresset.ones(4, 3)).float().sum()
    loss.backward()
    assert layer.weight.grad.dtype == cresset.float32
    assert layer.weight.grad.tolist() == [[4, 4, 4], [4, 4, 4]] and layer.bias.grad.tolist() == [4, 4]


def test_backward_inside_the_region_runs_in_the_precision_of_forward():
    a = cresset.ones(2, 2, requires_grad=True)
    b = a @ cresset.eye(2)
    with autocast("cpu"):
        (grad,) = cresset.autograd.grad(b.sum(), a)
    assert grad.dtype == cresset.float32


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
def test_a_recurrent_layer_takes_what_a_layer_before_it_gave_in_low_precision(kind):
    first, second = nn.Linear(3, 4), kind(4, 2)
    with autocast("cpu"):
        x = first(cresset.ones(5, 1, 3))
        assert x.dtype == low
        output = second(x)[0]
    assert output.dtype == low
    cresset.testing.assert_close(output.float(), second(x.float())[0], atol=0.02, rtol=0.02)
    output.float().sum().backward()
    assert first.weight.grad.dtype == second.weight_ih_l0.grad.dtype == cresset.float32
    with pytest.raises(ValueError, match="RNN input dtype"):
        second(x)
    with autocast("cpu"), pytest.raises(RuntimeError, match="dtype"):
        second(x.double())


@pytest.mark.parametrize(("kind", "expected"), [(nn.RNNCell, low), (nn.GRUCell, cresset.float32)])
def test_a_plain_cell_gives_the_low_precision_of_its_products_and_a_gated_one_that_of_its_state(kind, expected):
    cell = kind(3, 2)
    with autocast("cpu"):
        output = cell(cresset.ones(1, 3))
    assert output.dtype == expected
    cresset.testing.assert_close(output.float(), cell(cresset.ones(1, 3)), atol=0.02, rtol=0.02)


class TestKeptCasts:
    def casts(self, body):
        """How many casts of the weight a body makes: the distinct nodes that lead to it."""
        weight = nn.Parameter(cresset.ones(2, 2))
        results = body(weight)
        nodes = [result.grad_fn.next_functions[1][0] for result in results]
        return weight, len({id(node) for node in nodes}), results

    def test_a_weight_is_cast_once_in_a_region(self):
        def body(weight):
            with autocast("cpu"):
                return [cresset.ones(2, 2) @ weight for _ in range(3)]

        weight, count, results = self.casts(body)
        assert count == 1
        sum(r.float().sum() for r in results).backward()
        assert weight.grad.tolist() == [[6, 6], [6, 6]]

    def test_without_the_cache_it_is_cast_each_time(self):
        def body(weight):
            with autocast("cpu", cache_enabled=False):
                return [cresset.ones(2, 2) @ weight for _ in range(3)]

        assert self.casts(body)[1] == 3

    def test_a_changed_weight_is_cast_again(self):
        weight = nn.Parameter(cresset.ones(2, 2))
        with autocast("cpu"):
            before = cresset.ones(2, 2) @ weight
            with cresset.no_grad():
                weight.mul_(3)
            after = cresset.ones(2, 2) @ weight
        assert before.tolist() == [[2, 2], [2, 2]] and after.tolist() == [[6, 6], [6, 6]]

    def test_a_cast_made_without_grad_is_not_used_with_it(self):
        weight = nn.Parameter(cresset.ones(2, 2))
        with autocast("cpu"):
            with cresset.no_grad():
                cresset.ones(2, 2) @ weight
            result = cresset.ones(2, 2) @ weight
        result.float().sum().backward()
        assert weight.grad is not None

    def test_nothing_is_kept_after_the_region(self):
        import gc
        import weakref

        weight = nn.Parameter(cresset.ones(2, 2))
        with autocast("cpu"):
            cresset.ones(2, 2) @ weight
        gone = weakref.ref(weight)
        del weight
        gc.collect()
        assert gone() is None


def test_the_low_precision_can_be_chosen():
    before = cresset.get_autocast_dtype("cpu")
    cresset.set_autocast_dtype("cpu", cresset.float16)
    try:
        with autocast("cpu"):
            assert (cresset.ones(1, 1) @ cresset.ones(1, 1)).dtype == cresset.float16
    finally:
        cresset.set_autocast_dtype("cpu", before)
    with pytest.warns(UserWarning, match="not supported"):
        assert not autocast("cpu", dtype=cresset.float32)._enabled


def test_an_operator_a_formula_and_a_function_say_it_themselves():
    read_formulas()  # as when autocast is first enabled on CUDA
    assert policies["matmul"] == {"cpu": "lower", "cuda": "lower"}
    assert policies["exp"] == {"cuda": "float32"}
    assert policies["addmv"] == {"cpu": "plain", "cuda": "lower"}
    assert "add" not in policies


class TestCustomFunctions:
    def run(self, cast_inputs):
        seen = []

        class Product(cresset.autograd.Function):
            @staticmethod
            @custom_fwd(device_type="cpu", cast_inputs=cast_inputs)
            def forward(ctx, a, b):
                ctx.save_for_backward(a, b)
                result = a @ b
                seen.append((a.dtype, result.dtype))
                return result

            @staticmethod
            @custom_bwd(device_type="cpu")
            def backward(ctx, grad):
                a, b = ctx.saved_tensors
                seen.append((grad @ b.t()).dtype)
                return (grad @ b.t()).to(a.dtype), (a.t() @ grad).to(b.dtype)

        a = cresset.ones(2, 2, requires_grad=True)
        with autocast("cpu"):
            result = Product.apply(a, a)
        result.float().sum().backward()
        assert a.grad.dtype == cresset.float32 and a.grad.tolist() == [[4, 4], [4, 4]]
        return seen

    def test_forward_and_backward_have_the_same_state(self):
        assert self.run(None) == [(cresset.float32, low), low]

    def test_inputs_can_be_cast(self):
        assert self.run(cresset.float32) == [(cresset.float32, cresset.float32), cresset.float32]


def test_another_thread_has_its_own_state():
    import threading

    seen = []
    with autocast("cpu"):
        thread = threading.Thread(target=lambda: seen.append(cresset.is_autocast_enabled("cpu")))
        thread.start()
        thread.join()
    assert seen == [False]


def test_what_is_no_function_cannot_be_decorated():
    with pytest.raises(TypeError, match="requires a callable, but got Tensor"):
        cresset.autocast("cpu")(cresset.ones(2))


def test_a_text_that_is_no_device_is_refused():
    with pytest.raises(RuntimeError, match="Invalid device string: 'no device'"):
        cresset.autocast("no device")
