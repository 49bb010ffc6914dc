"""nan_guard names what made the first NaN or Inf; preflight finds on shapes what training would meet."""

import math

import pytest

import cresset
from cresset import nn
from cresset.debug import NonFiniteError, nan_guard, preflight

F = nn.functional


class Log(nn.Module):
    def forward(self, x):
        return x.log()


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Identity(), Log())

    def forward(self, x):
        return self.body(x) * 2


def caught(function, **options):
    with pytest.raises(NonFiniteError) as found, nan_guard(**options):
        function()
    return found.value


# ---- nan_guard, forward


def test_the_operation_its_module_and_its_line_are_named():
    error = caught(lambda: Net()(cresset.tensor([1.0, -2.0])))
    assert (error.operation, error.module, error.phase, error.made) == ("log", "body.1", "forward", "NaN")
    message = str(error)
    assert "log: made the first NaN in module 'body.1' (Log): 1 NaN of 2 elements, shape (2,)" in message
    assert "inputs (2,) between -2 and 1" in message and "test_debug.py:" in message
    assert isinstance(error, FloatingPointError)


def test_infinities_can_be_let_through():
    assert caught(lambda: cresset.zeros(1).log()).made == "Inf"
    with nan_guard(infinities=False):
        cresset.zeros(1).log()
    assert caught(lambda: cresset.zeros(1).log().sub(-math.inf), infinities=False).operation == "sub"


def test_a_mask_of_minus_infinity_is_meant():
    with nan_guard():
        scores = cresset.zeros(2, 2).masked_fill(cresset.tensor([[False, True], [False, False]]), -math.inf)
        assert scores.softmax(1).tolist() == [[1, 0], [0.5, 0.5]]
        cresset.full((2,), -math.inf)
    assert caught(lambda: cresset.full((1, 2), -math.inf).softmax(1)).operation == "softmax"


def test_a_nan_from_outside_is_told_from_one_that_was_made():
    linear = nn.Linear(1, 1)
    error = caught(lambda: linear(cresset.tensor([[math.nan]])))
    assert "an input holds NaN before the call in Linear" in str(error) and "outside the guard" in str(error)
    with cresset.no_grad():
        linear.weight.fill_(math.nan)
    assert "the parameter 'weight' holds NaN" in str(caught(lambda: linear(cresset.ones(1, 1))))


def test_a_sum_that_overflows_is_not_an_element_that_does():
    with nan_guard():
        assert cresset.full((4,), 3e38).neg().shape == (4,)
    assert caught(lambda: cresset.full((4,), 3e38).mul(2)).made == "Inf"


def test_in_place_and_unfilled_results():
    with nan_guard():
        cresset.empty(100).zero_()
    assert caught(lambda: cresset.ones(2).div_(0)).operation == "div_"


# ---- nan_guard, backward


def test_the_derivative_that_made_it_is_named():
    class Root(nn.Module):
        def forward(self, x):
            return x.sqrt()

    model = nn.Sequential(nn.Identity(), Root())
    x = cresset.zeros(3, requires_grad=True)
    error = caught(lambda: model(x).sum().backward())
    assert (error.operation, error.module, error.phase, error.made) == ("SqrtBackward0", "1", "backward", "Inf")
    assert "called at" in str(error) and "test_debug.py:" in str(error)


def test_backward_after_the_context_is_watched_and_can_be_left_out():
    x = cresset.zeros(3, requires_grad=True)
    with nan_guard():
        y = (x.sqrt() * 0).sum()  # 0 times the infinite slope is NaN
    with pytest.raises(NonFiniteError) as found:
        y.backward()
    assert (found.value.operation, found.value.made) == ("SqrtBackward0", "NaN")
    with nan_guard(backward=False):
        (x.sqrt() * 0).sum().backward()
    assert x.grad.isnan().all()


def test_a_sound_training_step_passes_and_gives_the_same_bits():
    def step(guard):
        cresset.manual_seed(0)
        model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.5), nn.Linear(8, 3))
        optimizer = cresset.optim.Adam(model.parameters())
        with nan_guard() if guard else cresset.enable_grad():
            for _ in range(2):
                optimizer.zero_grad()
                F.cross_entropy(model(cresset.randn(6, 4)), cresset.tensor([0, 1, 2, 0, 1, 2])).backward()
                optimizer.step()
        return [p.tolist() for p in model.parameters()]

    assert step(True) == step(False)


def test_a_step_that_spoils_the_weights_is_named():
    def train():
        weight = nn.Parameter(cresset.ones(2))
        optimizer = cresset.optim.SGD([weight], lr=1e38)
        (weight * 100).sum().backward()
        optimizer.step()

    error = caught(train)
    assert (error.operation, error.phase, error.made) == ("SGD.step", "step", "Inf") and "number 0 of group 0" in str(
        error
    )
    with nan_guard(infinities=False):
        train()


def test_a_closure_is_watched():
    def train():
        weight = nn.Parameter(cresset.zeros(1))
        optimizer = cresset.optim.SGD([weight], lr=0.1)
        optimizer.step(lambda: weight.log().sum())

    assert caught(train).operation == "log"


def test_an_exception_within_a_step_leaves_no_mode_behind():
    class Broken(cresset.optim.SGD):
        def step(self, closure=None):
            raise RuntimeError("no")

    before = cresset._native.function_mode_depth()
    with pytest.raises(RuntimeError, match="no"), nan_guard():
        Broken([nn.Parameter(cresset.ones(1))], lr=0.1).step()
    assert cresset._native.function_mode_depth() == before


def test_nothing_is_left_behind():
    before = cresset._native.function_mode_depth()
    model = Net()
    with pytest.raises(NonFiniteError), nan_guard():
        model(-cresset.ones(1))
    assert cresset._native.function_mode_depth() == before
    assert model(-cresset.ones(1)).isnan().all()
    guard = nan_guard()
    with pytest.raises(NonFiniteError), guard:
        model(-cresset.ones(1))
    with guard:  # again, with a fresh stack of modules
        assert guard.modules == []


# ---- preflight


def test_a_sound_model_is_counted():
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    optimizer = cresset.optim.Adam(model.parameters())
    found = preflight(
        model, (cresset.ones(32, 4), cresset.zeros(32, dtype=cresset.int64)), optimizer, loss=F.cross_entropy
    )
    assert found.ok and found.without_gradient == [] and [tuple(t.shape) for t in found.outputs] == [(32, 2)]
    assert found.total_params == found.trainable_params == 4 * 8 + 8 + 8 * 2 + 2
    assert found.parameter_bytes == found.gradient_bytes == 58 * 4
    assert found.optimizer_bytes in range(
        2 * 58 * 4, 2 * 58 * 4 + 4 * 8 + 1
    )  # two moments, and a count of steps for each of four
    assert found.multiply_adds == 32 * 4 * 8 + 32 * 8 * 2
    # The first linear keeps its input, the second the relu's output.
    first, relu, second = found.modules[1:]
    assert first.saved_bytes == 32 * 4 * 4 and relu.saved_bytes + second.saved_bytes == 32 * 8 * 4
    assert found.activation_bytes >= first.saved_bytes + relu.saved_bytes + second.saved_bytes
    # Most is there when the relu goes backward: what all keep, the gradients of its result and input, and those of the
    # second linear.
    kept = first.saved_bytes + relu.saved_bytes + second.saved_bytes
    assert found.peak_bytes == found.parameter_bytes + found.optimizer_bytes + kept + 4 * (32 * 8 + 32 * 8 + 18)
    text = str(found)
    assert "0: Linear" in text and "no problems found" in text and "1,536 forward" in text
    assert optimizer.state == {} and model[0].weight.grad is None


def test_a_shape_error_names_module_and_shapes():
    model = nn.Sequential(nn.Linear(4, 8), nn.Sequential(nn.ReLU(), nn.Linear(9, 2)))
    found = preflight(model, cresset.ones(32, 4))
    assert not found.ok
    assert found.problems[0].startswith("module '1.1' (Linear): cannot take (32, 8): ")
    assert found.without_gradient is None


def test_a_report_with_a_layer_that_refused_its_input_can_be_printed():
    found = preflight(nn.Sequential(nn.Linear(4, 8), nn.Linear(9, 2)), cresset.ones(2, 4))
    assert "problem: module '1' (Linear): cannot take (2, 8)" in str(found)
    assert found.multiply_adds == 2 * 8 * 4


def test_tensors_that_a_model_makes_itself_have_shapes_as_well():
    class Positions(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Linear(4, 4)

        def forward(self, x):
            return self.inner(x + cresset.arange(4.0)) * cresset.tensor([1.0])

    assert preflight(Positions(), cresset.ones(2, 4)).problems == []
    assert "(2, 4)" in str(cresset.summary(Positions(), (2, 4)))


def test_a_model_that_looks_at_numbers_is_not_called_wrong():
    class Choosing(nn.Module):
        def forward(self, x):
            return x if x.sum() > 0 else -x

    (problem,) = preflight(nn.Sequential(Choosing()), cresset.ones(2, 4)).problems
    assert problem.startswith("module '0' (Choosing): cannot be followed on shapes alone, which preflight has")


@pytest.mark.parametrize(
    "model, optimizer, words",
    [
        (nn.Linear, None, "preflight: model should be a Module, an instance of Module, got the class Linear"),
        (None, None, "preflight: model should be a Module, an instance of Module, got NoneType"),
        (nn.Linear(4, 4), cresset.optim.Adam, "preflight: optimizer should be one of cresset.optim, made with"),
        (nn.Linear(4, 4), "adam", "made with model.parameters(), got str"),
    ],
)
def test_what_is_no_model_or_no_optimizer_is_refused_with_a_sentence(model, optimizer, words):
    with pytest.raises(TypeError) as error:
        preflight(model, cresset.ones(2, 4), optimizer)
    assert words in str(error.value)


def test_parameters_without_a_gradient_are_named():
    class Forgetful(nn.Module):
        def __init__(self):
            super().__init__()
            self.used, self.unused = nn.Linear(2, 2), nn.Linear(2, 2, bias=False)
            self.scale = nn.Parameter(cresset.ones(2))
            self.frozen = nn.Parameter(cresset.ones(2), requires_grad=False)

        def forward(self, x):
            return self.used(x) * self.scale.detach()

    model = Forgetful()
    found = preflight(model, cresset.ones(1, 2))
    assert found.without_gradient == ["scale", "unused.weight"]
    assert "parameters 'scale', 'unused.weight' would get no gradient" in found.problems[0]


def test_shared_weights_are_one_parameter():
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding, self.head = nn.Embedding(10, 4), nn.Linear(4, 10, bias=False)
            self.head.weight = self.embedding.weight

        def forward(self, tokens):
            return self.head(self.embedding(tokens).detach())

    found = preflight(Tied(), cresset.zeros(2, 3, dtype=cresset.int64))
    assert found.ok and found.total_params == 40


def test_the_optimizer_is_compared_with_the_model():
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    optimizer = cresset.optim.SGD([*model[0].parameters(), nn.Parameter(cresset.ones(1))], lr=0.1, momentum=0.9)
    problems = preflight(model, cresset.ones(1, 2), optimizer).problems
    assert problems == [
        "the optimizer does not have parameters '1.weight', '1.bias', which need a gradient",
        "the optimizer has 1 parameter that is not the model's; make it after the model got its final parameters",
    ]
    frozen = nn.Linear(2, 2).requires_grad_(False)
    assert preflight(frozen, cresset.ones(1, 2)).ok


def test_the_state_of_an_optimizer_that_needs_a_closure_is_unknown():
    model = nn.Linear(2, 2)
    found = preflight(model, cresset.ones(1, 2), cresset.optim.LBFGS(model.parameters()))
    assert found.optimizer_bytes is None and "optimizer unknown" in str(found) and found.peak_bytes > 0


def test_a_loss_that_is_no_number_or_fails_is_a_problem():
    model = nn.Linear(2, 3)
    batch = cresset.ones(4, 2), cresset.zeros(4, 3)
    assert "one number, got (4, 3)" in preflight(model, batch, loss=lambda a, b: a - b).problems[0]
    assert (
        preflight(model, (cresset.ones(4, 2), cresset.zeros(5, 3)), loss=lambda a, b: (a - b).mean())
        .problems[0]
        .startswith("the loss or what follows the model: ")
    )


def test_a_model_larger_than_memory_costs_nothing():
    with cresset.device("meta"):
        model = nn.Sequential(nn.Linear(100_000, 1_000_000), nn.Linear(1_000_000, 10))
    found = preflight(model, cresset.empty(8, 100_000, device="meta"), cresset.optim.AdamW(model.parameters()))
    assert found.ok and found.parameter_bytes > 4e11 and found.optimizer_bytes >= 2 * found.parameter_bytes


def test_the_model_and_the_generators_are_left_as_they_were():
    model = nn.Sequential(nn.BatchNorm1d(2), nn.Dropout(0.5), nn.Linear(2, 1)).eval()
    before = {name: value.tolist() for name, value in model.state_dict().items()}
    cresset.manual_seed(0)
    state = cresset.get_rng_state()
    assert preflight(model, cresset.ones(4, 2)).ok
    assert cresset.equal(cresset.get_rng_state(), state) and not model.training
    assert {name: value.tolist() for name, value in model.state_dict().items()} == before
    assert all(not p.is_meta and p.grad is None for p in model.parameters())
