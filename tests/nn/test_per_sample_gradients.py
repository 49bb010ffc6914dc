"""The gradient of each sample, from one backward."""

import pytest

import cresset
from cresset import nn
from cresset.nn import functional as F
from cresset.nn.utils._expanded_weights import ExpandedWeight
from cresset.nn.utils._expanded_weights.expanded_weights_impl import HANDLED_FUNCTIONS, implements_per_sample_grads
from cresset.nn.utils._expanded_weights.expanded_weights_utils import forward_helper, set_grad_sample_if_exists
from cresset.nn.utils._per_sample_grad import call_for_per_sample_grads

MODELS = {
    "pictures": (
        nn.Sequential(
            nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.GroupNorm(2, 8), nn.Conv2d(8, 4, 3, padding="same", groups=2),
            nn.InstanceNorm2d(4, affine=True), nn.Flatten(), nn.Linear(36, 5),
        ),
        cresset.randn(4, 3, 3, 3),
    ),
    "words": (
        nn.Sequential(nn.Embedding(9, 6, padding_idx=1, max_norm=1.0), nn.LayerNorm(6), nn.Flatten(), nn.Linear(18, 5)),
        cresset.randint(0, 9, (4, 3)),
    ),
    "sequences": (
        nn.Sequential(
            nn.Conv1d(3, 4, 3, padding=1, padding_mode="circular"),
            nn.InstanceNorm1d(4, affine=True, track_running_stats=True), nn.Flatten(), nn.Linear(24, 5),
        ),
        cresset.randn(4, 3, 6),
    ),
    "volumes": (
        nn.Sequential(nn.Conv3d(2, 2, 3, padding=1), nn.Flatten(), nn.Linear(16, 5)), cresset.randn(4, 2, 2, 2, 2)
    ),
}  # fmt: skip


@pytest.mark.parametrize("reduction", ["sum", "mean"])
@pytest.mark.parametrize("name", MODELS)
def test_each_sample_has_the_gradient_that_it_has_alone(name, reduction):
    model, x = MODELS[name]
    loss = nn.CrossEntropyLoss(reduction=reduction)
    targets = cresset.tensor([0, 3, 4, 1])
    loss(call_for_per_sample_grads(model, loss_reduction=reduction)(x), targets).backward()
    for k in range(4):
        alone = cresset.autograd.grad(loss(model(x[k : k + 1]), targets[k : k + 1]), list(model.parameters()))
        for parameter, expected in zip(model.parameters(), alone, strict=True):
            cresset.testing.assert_close(parameter.grad_sample[k], expected, atol=1e-5, rtol=1e-4)
            assert parameter.grad is None
    for parameter in model.parameters():
        del parameter.grad_sample


def test_the_input_has_its_gradient_and_running_statistics_move_once():
    x = cresset.randn(3, 2, 4, requires_grad=True)
    norm, plain = (nn.InstanceNorm1d(2, affine=True, track_running_stats=True) for _ in range(2))
    call_for_per_sample_grads(norm)(x).square().sum().backward()
    (expected,) = cresset.autograd.grad(plain(x).square().sum(), x)
    cresset.testing.assert_close(x.grad, expected)
    cresset.testing.assert_close(norm.running_mean, plain.running_mean)


def test_what_mixes_samples_or_is_used_otherwise_is_refused():
    x, weight = cresset.randn(3, 4), cresset.ones(4, requires_grad=True)
    with pytest.raises(RuntimeError, match="Expanded Weights encountered but cannot handle function add"):
        x + ExpandedWeight(weight, 3, "sum")
    with pytest.raises(RuntimeError, match="requires a batch dimension, but the input of layer_norm has the shape"):
        F.layer_norm(x, (3, 4), ExpandedWeight(cresset.ones(3, 4, requires_grad=True), 3, "sum"))
    with pytest.raises(RuntimeError, match="input batch size of 3 with ExpandedWeight of batch size 5"):
        call_for_per_sample_grads(nn.Linear(4, 2), batch_size=5)(x)
    with pytest.raises(RuntimeError, match="mixture of ExpandedWeight parameters and normal Parameters"):
        F.linear(x, ExpandedWeight(cresset.ones(2, 4, requires_grad=True), 3, "sum"), weight[:2])
    with pytest.raises(RuntimeError, match="do not support inputs that are also ExpandedWeights"):
        F.linear(ExpandedWeight(x.requires_grad_(), 3, "sum"), cresset.ones(2, 4))
    for given, message in (
        ((3,), "requires a Tensor as the first input"), ((cresset.tensor(3),), "got an input of size 0"),
        ((cresset.ones(0, 4),), "0 is not a valid batch size"),
    ):  # fmt: skip
        with pytest.raises(RuntimeError, match=message):
            forward_helper(F.linear, given, {})
    with pytest.raises(RuntimeError, match="same loss_reduction argument but got one with sum and one with mean"):
        forward_helper(F.layer_norm, (x, (4,)), {"weight": ExpandedWeight(weight, 3, "sum"),
                                                 "bias": ExpandedWeight(weight, 3, "mean")})  # fmt: skip
    with pytest.raises(RuntimeError, match="of tensors that require_grad"):
        ExpandedWeight(cresset.ones(2), 3, "sum")
    with pytest.raises(RuntimeError, match="Can only make Expanded Weights of Tensors, got int"):
        ExpandedWeight(2, 3, "sum")


def test_calls_say_what_they_need():
    layer = nn.Linear(4, 2)
    for arguments, message in (
        ({"loss_reduction": ""}, "to be sum or mean"), ({"batch_size": 6.4}, "None or an integer, got float"),
        ({"batch_size": -1}, "must be positive, got -1"),
    ):  # fmt: skip
        with pytest.raises(RuntimeError, match=message):
            call_for_per_sample_grads(layer, **arguments)
    with pytest.raises(RuntimeError, match="Module passed must be nn.Module, got str"):
        call_for_per_sample_grads("layer")
    with pytest.raises(RuntimeError, match="Unable to find a tensor"):
        call_for_per_sample_grads(layer)("text")
    with pytest.raises(RuntimeError, match="batch size 3 and one with batch size 5"):
        call_for_per_sample_grads(nn.Bilinear(1, 1, 1))(cresset.ones(3, 1), cresset.ones(5, 1))
    call_for_per_sample_grads(layer)(cresset.ones(3, 4)).sum().backward()
    with pytest.raises(RuntimeError, match="clear out the grad_sample parameter of weight"):
        call_for_per_sample_grads(layer)


def test_a_rule_of_ones_own():
    def scaled(x, factor):
        return x * factor

    class Rule(cresset.autograd.Function):
        @staticmethod
        def forward(ctx, names, func, x, factor):
            ctx.factor = factor
            ctx.save_for_backward(x)
            return forward_helper(func, (x, factor), {})

        @staticmethod
        def backward(ctx, slope):
            set_grad_sample_if_exists(ctx.factor, lambda _: slope * ctx.saved_tensors[0])
            return None, None, None, None

    implements_per_sample_grads(scaled)(Rule)
    factor = cresset.tensor([2.0], requires_grad=True)
    expanded = ExpandedWeight(factor, 2, "sum")
    ExpandedWeight.__torch_function__(scaled, (), (cresset.tensor([[1.0], [3.0]]), expanded)).sum().backward()
    del HANDLED_FUNCTIONS[scaled]
    assert factor.grad_sample.tolist() == [[1.0], [3.0]]
