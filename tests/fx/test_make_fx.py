"""make_fx: functions as graphs of aten operators."""

import pytest

import cresset
from cresset import nn
from cresset.fx.experimental.proxy_tensor import make_fx
from cresset.pytree import tree_map_only


def targets(module):
    return [str(node.target) for node in module.graph.nodes if node.op == "call_function"]


def test_a_function_becomes_its_operators():
    def program(x, y):
        z = x.sin() + y
        z[0] = 1
        return z * 2, x.sum()

    graph = make_fx(program)(cresset.ones(2, 3), cresset.ones(3))
    assert targets(graph) == [
        "aten.sin.default",
        "aten.add.Tensor",
        "aten.select.int",
        "aten.fill_.Scalar",
        "aten.mul.Tensor",
        "aten.sum.default",
    ]
    assert [node.name for node in graph.graph.nodes if node.op == "placeholder"] == ["x_1", "y_1"]
    x, y = cresset.randn(2, 3), cresset.randn(3)
    assert all(cresset.equal(a, b) for a, b in zip(graph(x, y), program(x, y), strict=True))


def test_tensors_that_are_no_arguments_are_attributes():
    weight = cresset.tensor([1.0, 2.0])
    graph = make_fx(lambda x: x * weight)(cresset.ones(2))
    assert graph._tensor_constant0.tolist() == [1.0, 2.0] and graph(cresset.full((2,), 3.0)).tolist() == [3.0, 6.0]
    module = nn.Linear(2, 1)
    graph = make_fx(module)(cresset.ones(1, 2))
    assert graph.weight is module.weight and cresset.equal(graph(cresset.ones(1, 2)), module(cresset.ones(1, 2)))


def test_nested_arguments_keep_their_structure():
    graph = make_fx(lambda d: {"sum": d["a"] + d["b"][0]})({"a": cresset.ones(2), "b": (cresset.ones(2),)})
    assert graph({"a": cresset.ones(2), "b": (cresset.full((2,), 4.0),)})["sum"].tolist() == [5.0, 5.0]


def test_a_decomposition_may_leave_a_call_as_it_is():
    aten = cresset.ops.aten

    def addmm(a, b, c, *, beta=1, alpha=1):
        return NotImplemented if beta == 1 else beta * a + b @ c

    def program(a, b):
        return cresset.addmm(a, a, b) + cresset.addmm(a, a, b, beta=2)

    a, b = cresset.randn(2, 2), cresset.randn(2, 2)
    graph = make_fx(program, decomposition_table={aten.addmm.default: addmm})(a, b)
    assert [node.target for node in graph.graph.nodes].count(aten.addmm.default) == 1
    assert cresset.allclose(graph(a, b), program(a, b))


def test_a_decomposition_is_entered():
    table = {cresset.ops.aten.silu.default: lambda x: x * x.sigmoid()}
    graph = make_fx(nn.functional.silu, decomposition_table=table)(cresset.ones(2))
    assert targets(graph) == ["aten.sigmoid.default", "aten.mul.Tensor"]


def test_symbolic_sizes_follow_the_input():
    graph = make_fx(lambda x: x.view(x.shape[0], -1) * x.shape[1], tracing_mode="symbolic")(cresset.ones(2, 3, 4))
    assert graph(cresset.ones(5, 6, 7)).shape == (5, 42) and graph(cresset.ones(5, 6, 7))[0, 0].item() == 6.0
    fixed = make_fx(lambda x: nn.functional.linear(x, cresset.ones(2, 3)), tracing_mode="symbolic")(cresset.ones(4, 3))
    assert fixed(cresset.ones(9, 3)).shape == (9, 2)


def test_what_cannot_be_recorded_is_an_error():
    with pytest.raises(RuntimeError, match="make_fx: the model asks for the truth value of a tensor"):
        make_fx(lambda x: x if x.sum() > 0 else -x)(cresset.ones(2))
    with pytest.raises(RuntimeError, match="make_fx: a constant .* is another one when the inputs are others"):
        make_fx(lambda x: (x.requires_grad_().square().sum().backward(), x.grad)[1])(cresset.ones(2))
    with pytest.raises(AssertionError, match="Unexpected tracing type"):
        make_fx(lambda x: x, tracing_mode="dreamt")


def test_a_mode_of_fake_tensors_can_be_left_for_a_while():
    from cresset._subclasses.fake_tensor import FakeTensor, FakeTensorMode
    from cresset.fx.experimental.proxy_tensor import maybe_disable_fake_tensor_mode

    with FakeTensorMode():
        assert isinstance(cresset.ones(2), FakeTensor)
        with maybe_disable_fake_tensor_mode():
            assert cresset.ones(2).tolist() == [1.0, 1.0]


def operators(graph):
    return [str(node.target).removeprefix("aten.") for node in graph.graph.nodes if node.op == "call_function"]


WEIGHT, BIAS, KERNEL, VECTOR = cresset.ones(3, 4), cresset.ones(3), cresset.ones(2, 1, 3, 3), cresset.ones(4)
functional = cresset.nn.functional
# What PyTorch records for functions that are made of others (tests/compat/test_fx.py asks it).
COMPOSITES = {
    "linear": (lambda x: functional.linear(x, WEIGHT, BIAS), (2, 4), ["t.default", "addmm.default"]),
    "linear of a batch": (
        lambda x: functional.linear(x, WEIGHT, BIAS),
        (2, 2, 4),
        ["view.default", "t.default", "addmm.default", "view.default"],
    ),
    "matmul of batches": (
        lambda x: x @ x.transpose(1, 2),
        (2, 2, 4),
        ["transpose.int", *["expand.default", "view.default"] * 2, "bmm.default", "_unsafe_view.default"],
    ),
    "matmul of a vector": (lambda x: x @ VECTOR, (2, 4), ["mv.default"]),
    "softmax": (lambda x: functional.softmax(x, -1), (2, 4), ["_softmax.default"]),
    "conv2d": (lambda x: functional.conv2d(x, KERNEL, stride=2), (1, 1, 5, 5), ["convolution.default"]),
    "reshape": (lambda x: x.t().reshape(-1), (2, 4), ["t.default", "clone.default", "_unsafe_view.default"]),
    "flatten": (lambda x: x.flatten(1), (2, 2, 2), ["view.default"]),
    "std": (lambda x: x.std(1), (2, 4), ["std.correction"]),
    "norm": (lambda x: x.norm(dim=1), (2, 4), ["linalg_vector_norm.default"]),
    "dropout in evaluation": (lambda x: functional.dropout(x, 0.5, False) + 1, (2,), ["add.Tensor"]),
    "to": (lambda x: x.to(cresset.float64), (2,), ["_to_copy.default"]),
    "where": (
        lambda x: cresset.where(x > 0, x, 0.0),
        (2,),
        ["gt.Scalar", "scalar_tensor.default", "where.self"],
    ),
    "pad": (lambda x: functional.pad(x, (1, 1)), (2,), ["constant_pad_nd.default"]),
    "interpolate": (
        lambda x: functional.interpolate(x, scale_factor=2.0),
        (1, 1, 2, 3),
        ["upsample_nearest2d.default"],
    ),
}


@pytest.mark.parametrize("name", COMPOSITES)
@pytest.mark.parametrize("mode", ["real", "fake", "symbolic"])
def test_a_function_that_is_made_of_others_is_recorded_as_those(name, mode):
    function, shape, expected = COMPOSITES[name]
    x = cresset.randn(shape)
    graph = make_fx(function, tracing_mode=mode)(x)
    found = [one for one in operators(graph) if "sym_size" not in one and not one.startswith("<")]  # no sizes, no parts
    assert found == expected
    assert cresset.allclose(graph(x), function(x), rtol=1e-5, atol=1e-6)


def test_before_dispatch_such_functions_stay_whole():
    graph = make_fx(lambda x: functional.linear(x, WEIGHT, BIAS), pre_dispatch=True)(cresset.ones(2, 4))
    assert operators(graph) == ["linear.default"]


def test_a_table_is_asked_for_what_functions_are_made_of_and_for_them_themselves():
    aten = cresset.ops.aten
    parts = {aten.addmm.default: lambda bias, a, b: a.mm(b) + bias}
    graph = make_fx(lambda x: functional.linear(x, WEIGHT, BIAS), parts)(cresset.ones(2, 4))
    assert operators(graph) == ["t.default", "mm.default", "add.Tensor"]
    whole = {aten.linear.default: lambda x, weight, bias=None: (x[:, None] * weight).sum(-1)}
    graph = make_fx(lambda x: functional.linear(x, WEIGHT, BIAS), whole)(cresset.ones(2, 4))
    assert "addmm.default" not in operators(graph)
    assert operators(graph)[-1] == "sum.dim_IntList"


def test_results_that_nobody_uses_stay_in_the_graph():
    graph = make_fx(lambda x: (x.sin(), x.cos())[1])(cresset.ones(2))
    assert operators(graph) == ["sin.default", "cos.default"]
    graph = make_fx(lambda x: functional.layer_norm(x, (4,)))(cresset.ones(2, 4))
    assert operators(graph)[0] == "native_layer_norm.default"
    assert len(operators(graph)) == 4


def changed_by_views(x: cresset.Tensor) -> cresset.Tensor:
    """Adds to a row of x, and doubles the whole by its transpose."""
    x[0].add_(1)
    x.t().mul_(2)
    return x + 1


@pytest.mark.parametrize("remove", ["mutations", "mutations_and_views"])
def test_a_functionalized_function_is_recorded_without_writes(remove):
    given = cresset.tensor([[1.0, 2.0], [3.0, 4.0]])
    made = make_fx(cresset.func.functionalize(changed_by_views, remove=remove))(given.clone())
    found = targets(made)
    assert [name for name in found if name.split(".")[1].endswith("_")] == ["aten.copy_.default"]  # to the input
    views = {"aten.select.int", "aten.t.default"}
    copies = {"aten.select_copy.int", "aten.t_copy.default"}
    assert (views if remove == "mutations" else copies) <= set(found)
    assert not (copies if remove == "mutations" else views) & set(found)
    x = given.clone()
    assert made(x).tolist() == [[5.0, 7.0], [7.0, 9.0]]
    assert x.tolist() == [[4.0, 6.0], [6.0, 8.0]]
    plain = given.clone()
    assert cresset.func.functionalize(changed_by_views, remove=remove)(plain).tolist() == [[5.0, 7.0], [7.0, 9.0]]
    assert plain.equal(x)


def test_a_result_keeps_its_annotation():
    assert ") -> torch.Tensor:" in make_fx(changed_by_views)(cresset.ones(2, 2)).code
    assert "->" not in make_fx(lambda x: x.sin())(cresset.ones(2)).code


class Pair(cresset.Tensor):
    """Two tensors of one shape, each computed with by itself."""

    @staticmethod
    def __new__(cls, a, b):
        return cresset.Tensor._make_wrapper_subclass(cls, a.size(), dtype=a.dtype, requires_grad=a.requires_grad)

    def __init__(self, a, b):
        self.a, self.b = a, b

    def __tensor_flatten__(self):
        return ["a", "b"], None

    @staticmethod
    def __tensor_unflatten__(inner, context, size, stride):
        return Pair(inner["a"], inner["b"])

    @classmethod
    def __torch_dispatch__(cls, func, types, args, kwargs=None):
        halves = [
            func(*tree_map_only(Pair, lambda pair, name=name: getattr(pair, name), args), **(kwargs or {}))
            for name in "ab"
        ]
        return Pair(*halves)


@pytest.mark.parametrize("mode", ["real", "fake", "symbolic"])
def test_what_a_wrapper_computes_is_recorded(mode):
    def f(a, b, y):
        out = (Pair(a, b) * y).neg()
        return out.a, out.b, y + y

    graph = make_fx(f, tracing_mode=mode)(cresset.zeros(2), cresset.ones(2), cresset.ones(2))
    assert not any(node.op == "get_attr" for node in graph.graph.nodes)
    three, five, seven = (cresset.full((2,), n) for n in (3.0, 5.0, 7.0))
    assert [out.tolist() for out in graph(three, five, seven)] == [[-21.0] * 2, [-35.0] * 2, [14.0] * 2]


def test_before_dispatch_the_graph_says_what_is_not_recorded_for_backward():
    def function(x):
        with cresset.no_grad():
            y = x * 2
        return (y * x).sum()

    graph = make_fx(function, pre_dispatch=True)(cresset.ones(3, requires_grad=True))
    names = [str(node.name) for node in graph.graph.nodes]
    assert names == ["x_1", "_set_grad_enabled", "mul", "_set_grad_enabled_1", "mul_1", "sum_1", "output"]
    graph.graph.eliminate_dead_code()
    graph.recompile()
    x = cresset.ones(3, requires_grad=True)
    graph(x).backward()
    assert x.grad.tolist() == [2.0, 2.0, 2.0] and cresset.is_grad_enabled()
    assert "set_grad_enabled" not in make_fx(function)(cresset.ones(3)).code


def test_softmax_has_the_dimension_as_it_is_written():
    assert "_softmax.default(x_1, -1, False)" in make_fx(lambda x: x.softmax(-1))(cresset.ones(2, 3)).code
    assert "_softmax.default(x_1, 1, False)" in make_fx(lambda x: x.softmax(1))(cresset.ones(2, 3)).code
