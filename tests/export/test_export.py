"""torch.export: modules as graphs of aten operators."""

import copy
import dataclasses

import pytest

import cresset
from cresset import nn
from cresset._dynamo.exc import UserError
from cresset.export import Dim, export
from cresset.nn import functional as F


def targets(program):
    return [str(node.target) for node in program.graph.nodes if node.op == "call_function"]


class Everything(nn.Module):
    """Parameters, both kinds of buffers, a plain tensor, nested inputs and outputs."""

    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 3)
        self.register_buffer("scale", cresset.full((3,), 2.0))
        self.register_buffer("shift", cresset.ones(3), persistent=False)
        self.plain = cresset.tensor([1.0, 2.0, 3.0])

    def forward(self, x, more, *, twice=True):
        h = self.fc(x) * self.scale + self.shift + self.plain + more[0] + more[1]["k"]
        return {"h": h * 2 if twice else h, "pair": (h.sum(1), 3)}, x.shape[0] * 2


def example(n=5):
    return (cresset.randn(n, 4), [cresset.randn(n, 3), {"k": cresset.randn(n, 3)}])


def test_a_graph_has_aten_operators_and_lifted_parameters():
    program = export(nn.Sequential(nn.Linear(4, 2), nn.ReLU()), (cresset.ones(1, 4),))
    assert targets(program) == ["aten.linear.default", "aten.relu.default"]
    assert [node.name for node in program.graph.nodes if node.op == "placeholder"] == [
        "p_0_weight",
        "p_0_bias",
        "input",
    ]
    assert program.graph_signature.parameters == ("0.weight", "0.bias")
    assert program.graph_signature.user_inputs == ("input",)


def test_inputs_outputs_state_and_constants_have_their_places():
    module = Everything()
    program = export(module, example(), {"twice": True})
    signature = program.graph_signature
    assert signature.parameters == ("fc.weight", "fc.bias")
    assert signature.buffers == ("scale", "shift") and signature.non_persistent_buffers == ("shift",)
    assert signature.inputs_to_lifted_tensor_constants == {"c_plain": "plain"}
    assert signature.user_inputs == ("x", "more_0", "more_1_k", True)
    assert list(program.state_dict) == ["fc.weight", "fc.bias", "scale"]
    assert sorted(program.constants) == ["plain", "shift"]
    assert program.state_dict["fc.weight"] is module.fc.weight
    assert [name for name, _ in program.named_buffers()] == ["scale", "shift"]
    program.validate()


def test_the_module_of_a_program_gives_the_modules_results_in_its_structure():
    module, (x, more) = Everything(), example()
    program = export(module, (x, more), {"twice": True})
    got, want = program.module()(x, more, twice=True), module(x, more, twice=True)
    assert got[1] == want[1] == 10 and got[0]["pair"][1] == 3
    assert cresset.equal(got[0]["h"], want[0]["h"]) and cresset.equal(got[0]["pair"][0], want[0]["pair"][0])


def test_parameters_are_shared_and_gradients_flow():
    module = nn.Linear(3, 1)
    run = export(module, (cresset.ones(2, 3),)).module()
    run(cresset.ones(2, 3)).sum().backward()
    assert module.weight.grad.tolist() == [[2.0, 2.0, 2.0]]
    with cresset.no_grad():
        module.bias.fill_(7.0)
        module.weight.fill_(0.0)
    assert run(cresset.ones(2, 3)).tolist() == [[7.0], [7.0]]


def test_writes_stay_writes_and_the_modules_buffers_are_as_before():
    class Counter(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("n", cresset.zeros(()))

        def forward(self, x):
            self.n.add_(1)
            y = x.clone()
            y[0] = 5.0
            return y + self.n

    module = Counter()
    program = export(module, (cresset.zeros(2),))
    assert module.n.item() == 0
    assert targets(program)[:2] == ["aten.add_.Tensor", "aten.clone.default"]
    run = program.module()
    assert run(cresset.zeros(2)).tolist() == [6.0, 1.0]
    assert run(cresset.zeros(2)).tolist() == [7.0, 2.0]
    assert module.n.item() == 2


def test_batch_norm_in_training_mode_keeps_its_statistics_while_it_is_exported():
    norm = nn.BatchNorm1d(3)
    program = export(norm, (cresset.randn(4, 3),))
    assert norm.num_batches_tracked.item() == 0 and norm.running_mean.tolist() == [0.0, 0.0, 0.0]
    program.module()(cresset.randn(4, 3))
    assert norm.num_batches_tracked.item() == 1


def test_a_question_for_elements_is_refused_with_the_line():
    class Branch(nn.Module):
        def forward(self, x):
            return x + 1 if x.sum() > 0 else x - 1

    with pytest.raises(
        RuntimeError, match=r"export: the model asks for the truth value.*test_export\.py:\d+, in forward"
    ):
        export(Branch(), (cresset.ones(2),))


def test_a_dataclass_that_is_registered_is_a_container():
    @dataclasses.dataclass
    class Point:
        x: cresset.Tensor
        y: cresset.Tensor

    cresset.export.register_dataclass(Point)

    class Swap(nn.Module):
        def forward(self, p):
            return Point(p.y, p.x * 2)

    run = export(Swap(), (Point(cresset.ones(2), cresset.zeros(2)),)).module()
    found = run(Point(cresset.ones(2), cresset.full((2,), 3.0)))
    assert isinstance(found, Point) and found.x.tolist() == [3.0, 3.0] and found.y.tolist() == [2.0, 2.0]


def test_a_result_of_another_class_is_refused():
    class Odd(nn.Module):
        def forward(self, x):
            return object()

    with pytest.raises(RuntimeError, match="export: the module gives a object"):
        export(Odd(), (cresset.ones(2),))


def test_what_is_no_module_and_args_that_are_no_tuple_are_refused():
    with pytest.raises(ValueError, match=r"Expected `mod` to be an instance of `torch.nn.Module`"):
        export(lambda x: x, (cresset.ones(2),))
    with pytest.raises(RuntimeError, match="Expecting `args` to be a tuple"):
        export(nn.ReLU(), cresset.ones(2))
    with pytest.raises(RuntimeError, match=r"use `exported_program.module\(\)`"):
        export(nn.ReLU(), (cresset.ones(2),))(cresset.ones(2))


def test_a_program_prints_shapes_lines_and_its_signature():
    program = export(nn.Linear(3, 2), (cresset.ones(4, 3),), dynamic_shapes={"input": {0: Dim("batch", max=9)}})
    text = str(program)
    assert 'linear: "f32[batch, 2]" = torch.ops.aten.linear.default(input, p_weight, p_bias)' in text
    assert "p_weight: PARAMETER target='weight'" in text
    assert "Range constraints: {'batch': VR[0, 9]}" in text
    assert "# File: " in text


def test_a_deep_copy_has_parameters_of_its_own():
    program = export(nn.Linear(2, 1), (cresset.ones(1, 2),))
    other = copy.deepcopy(program)
    with cresset.no_grad():
        other.state_dict["weight"].zero_()
    assert cresset.equal(other.module()(cresset.ones(1, 2))[0], other.state_dict["bias"])
    assert program.state_dict["weight"].abs().sum() > 0


MODELS = {
    "cnn": lambda: (
        nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
            nn.Linear(64, 5)),
        (cresset.randn(2, 3, 8, 8),),
    ),
    "lstm": lambda: (nn.LSTM(3, 4, 2, batch_first=True, bidirectional=True), (cresset.randn(2, 5, 3),)),
    "encoder": lambda: (nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 2),
        (cresset.randn(2, 5, 8),)),
    "attention": lambda: (nn.MultiheadAttention(8, 2), (cresset.randn(5, 2, 8),) * 3),
    "embedding": lambda: (nn.Sequential(nn.Embedding(10, 4), nn.Linear(4, 2)), (cresset.tensor([[1, 2], [3, 4]]),)),
    "norms": lambda: (nn.Sequential(nn.GroupNorm(2, 4), nn.Softsign(), nn.Tanhshrink(), nn.LayerNorm(6)),
        (cresset.randn(3, 4, 6),)),
    "transposed": lambda: (nn.Sequential(nn.ConvTranspose2d(2, 3, 3, stride=2), nn.Upsample(scale_factor=2)),
        (cresset.randn(1, 2, 4, 4),)),
}  # fmt: skip


@pytest.mark.parametrize("name", MODELS)
def test_exported_models_give_eagers_numbers(name):
    cresset.manual_seed(0)
    module, args = MODELS[name]()
    module.eval()
    got, want = export(module, args).module()(*args), module(*args)
    for a, b in zip(cresset.pytree.tree_leaves(got), cresset.pytree.tree_leaves(want), strict=True):
        assert a is b or cresset.allclose(a, b, atol=1e-6)


def test_a_dimension_of_a_constant_that_python_computes_is_kept():
    class Positions(nn.Module):
        def forward(self, x):
            return x + cresset.arange(x.shape[1]) / x.shape[1] ** 0.5

    program = export(Positions(), (cresset.zeros(2, 4),), dynamic_shapes={"x": {1: Dim("n")}})
    assert cresset.allclose(program.module()(cresset.zeros(2, 9)), Positions()(cresset.zeros(2, 9)))


def test_the_number_of_offsets_may_be_free():
    class Bags(nn.Module):
        def __init__(self):
            super().__init__()
            self.bags = nn.EmbeddingBag(5, 2)

        def forward(self, words, starts):
            return self.bags(words, starts)

    module, words = Bags(), cresset.tensor([0, 4, 3, 1, 1])
    free = {"words": None, "starts": {0: Dim("bags")}}
    program = export(module, (words, cresset.tensor([0, 2])), dynamic_shapes=free)
    starts = cresset.tensor([0, 1, 1, 4])
    assert cresset.allclose(program.module()(words, starts), module(words, starts))


def test_losses_and_padding_are_one_operator():
    class Loss(nn.Module):
        def forward(self, x, y):
            return (
                F.cross_entropy(x, y, label_smoothing=0.1),
                F.pad(x, (1, 1), value=2.0),
                F.smooth_l1_loss(x, x * 2, beta=0.5),
            )

    program = export(Loss(), (cresset.randn(3, 4), cresset.tensor([0, 1, 2])))
    assert [t for t in targets(program) if "mul" not in t] == [
        "aten.cross_entropy_loss.default",
        "aten.pad.default",
        "aten.smooth_l1_loss.default",
    ]


def test_a_module_can_ask_whether_it_is_being_exported():
    class Asks(nn.Module):
        def forward(self, x):
            return x + 1 if cresset.compiler.is_exporting() and cresset.compiler.is_compiling() else x - 1

    assert export(Asks(), (cresset.zeros(1),)).module()(cresset.zeros(1)).item() == 1
    assert Asks()(cresset.zeros(1)).item() == -1 and not cresset.compiler.is_exporting()


def test_a_condition_on_the_inputs_holds_both_ways():
    class Either(nn.Module):
        def forward(self, x):
            return cresset.cond(x.sum() > 0, lambda x: x * 2, lambda x: -x, (x,))

    run = export(Either(), (cresset.ones(2),)).module()
    assert run(cresset.ones(2)).tolist() == [2.0, 2.0]
    assert run(-cresset.ones(2)).tolist() == [1.0, 1.0]


def test_branches_of_a_condition_that_is_recorded_give_the_same_shapes():
    class Either(nn.Module):
        def forward(self, x):
            return cresset.cond(x.sum() > 0, lambda x: x, lambda x: x.sum(), (x,))

    with pytest.raises(RuntimeError, match="cond: the branches"):
        export(Either(), (cresset.ones(2),))


def test_a_loop_on_the_inputs_is_refused():
    class Loop(nn.Module):
        def forward(self, x):
            return cresset.while_loop(lambda x: x.sum() < 10, lambda x: (x * 2,), (x,))

    with pytest.raises(cresset._dynamo.exc.UserError, match="truth value"):
        export(Loop(), (cresset.ones(2),))


@pytest.mark.parametrize("limit", [4, 60])
def test_a_branch_on_a_size_within_its_range_is_refused(limit):
    class Branch(nn.Module):
        def forward(self, x):
            return x + 1 if x.shape[0] > limit else x * 2

    with pytest.raises(cresset._dynamo.exc.UserError, match=r"Constraints violated \(n\)"):
        export(Branch(), (cresset.ones(12),), dynamic_shapes={"x": {0: Dim("n", min=1, max=100)}})
    low, high, example = (1, 40, 12) if limit == 60 else (5, 100, 12)
    program = export(Branch(), (cresset.ones(example),), dynamic_shapes={"x": {0: Dim("n", min=low, max=high)}})
    assert program.module()(cresset.ones(high))[0].item() == 2.0


def test_numbers_of_numpy_are_numbers_of_the_graph():
    np = pytest.importorskip("numpy")

    class Scaled(nn.Module):
        def forward(self, x):
            return (np.float32(2) * x + np.float32(0.5)).reshape(np.int64(3), np.int64(2)).sum(np.int64(0))

    x = cresset.arange(6.0).reshape(2, 3)
    program = export(Scaled(), (x,))
    assert program.module()(x).tolist() == Scaled()(x).tolist() == [13.5, 19.5]
    numbers = [a for node in program.graph.nodes for a in node.args if isinstance(a, (int, float))]
    assert {type(number) for number in numbers} <= {int, float}


@pytest.mark.parametrize(
    "found", [id, lambda x: float(x.detach().numpy().sum())], ids=["an address", "an element by way of NumPy"]
)
def test_a_number_that_is_another_one_when_the_model_runs_again_is_named(found):
    pytest.importorskip("numpy")

    class Shifted(nn.Module):
        def forward(self, x):
            return x + found(x)

    with pytest.raises(UserError, match="a number was .*, and .* when the model ran once more on inputs of the same"):
        export(Shifted(), (cresset.ones(3),))
