"""compile(fullgraph=True): programs whose way depends on the data are refused, at the line that asks."""

import runpy

import pytest

import cresset
from cresset import nn
from cresset._dynamo.exc import Unsupported


def by_if(x):
    if x.sum() > 0:
        return x + 1
    return x - 1


def by_while(x):
    while x.sum() < 10:
        x = x * 2
    return x


def by_and(x):
    return x.any() and x


def by_expression(x):
    return x if x.max() > 0 else -x


def by_search(x):
    return 1.0 in [x[0], x[1]]


def by_list(x):
    return x.tolist()


def by_break(x):
    cresset._dynamo.graph_break()
    return x


@pytest.mark.parametrize(
    "program", [by_if, by_while, by_and, by_expression, by_search, by_list, by_break], ids=lambda f: f.__name__
)
def test_what_the_data_decide_is_refused(program):
    x = cresset.ones(2)
    expected = program(x)
    with pytest.raises(Unsupported, match="fullgraph=True allows a single graph"):
        cresset.compile(program, fullgraph=True)(x)
    again = cresset.compile(program)(x)  # without the wish it runs
    assert again == expected if not isinstance(again, cresset.Tensor) else cresset.equal(again, expected)


def test_the_error_names_the_line():
    with pytest.raises(Unsupported, match=r"test_fullgraph.py:\d+, in by_if"):
        cresset.compile(by_if, fullgraph=True)(cresset.ones(1))


def test_it_is_over_after_the_call_even_after_an_error():
    with pytest.raises(Unsupported):
        cresset.compile(by_if, fullgraph=True)(cresset.ones(1))
    assert by_if(cresset.ones(1)).item() == 2.0
    cresset._dynamo.graph_break()


def test_sizes_numbers_and_options_may_decide():
    def program(x, flag):
        if flag and x.shape[0] == 2 and x.dim() == 1 and x.requires_grad is False:
            return cresset.where(x > 0, x, -x) + x.sum().item()
        return None

    assert cresset.compile(program, fullgraph=True)(cresset.tensor([-1.0, 3.0]), True).tolist() == [3.0, 5.0]


ASSERTING = """
def program(x):
    assert x.sum() > 0
    assert (x > 0).all(), "positive numbers are needed"
    return x
"""


def test_an_assertion_is_part_of_a_graph(tmp_path):
    (tmp_path / "asserting.py").write_text(ASSERTING)  # pytest writes the assertions of this file anew
    program = runpy.run_path(tmp_path / "asserting.py")["program"]
    assert cresset.compile(program, fullgraph=True)(cresset.ones(2)).tolist() == [1.0, 1.0]
    with pytest.raises(AssertionError, match="positive numbers"):
        cresset.compile(program, fullgraph=True)(cresset.tensor([-1.0, 3.0]))


def test_functions_of_the_library_may_look_at_values():
    def program(x):
        cresset.testing.assert_close(x, x)
        return cresset.nn.functional.one_hot(x.long()), cresset.nn.utils.rnn.pad_sequence([x, x])

    cresset.compile(program, fullgraph=True)(cresset.tensor([0.0, 1.0]))


def test_modules_and_their_own_compile():
    class Branching(nn.Module):
        def forward(self, x):
            return by_if(x)

    x = cresset.ones(1)
    assert cresset.compile(Branching())(x).item() == 2.0
    with pytest.raises(Unsupported):
        cresset.compile(Branching(), fullgraph=True)(x)
    with pytest.raises(Unsupported):
        cresset.compile(nn.Sequential(Branching()), fullgraph=True)(x)
    module = Branching()
    module.compile(fullgraph=True)
    with pytest.raises(Unsupported):
        module(x)
    clean = cresset.compile(nn.Sequential(nn.Linear(1, 2), nn.BatchNorm1d(2), nn.Dropout()), fullgraph=True)
    clean(cresset.ones(3, 1)).sum().backward()
    assert clean[0].weight.grad is not None and list(clean.state_dict())[0] == "_orig_mod.0.weight"


def test_a_graph_inside_another_keeps_the_outer_one_watched():
    inner = cresset.compile(lambda x: x + 1, fullgraph=True)

    def outer(x):
        return by_if(inner(x))

    with pytest.raises(Unsupported):
        cresset.compile(outer, fullgraph=True)(cresset.ones(1))


def test_every_layer_of_a_common_network_is_one_graph():
    model = nn.Sequential(
        nn.Conv2d(1, 4, 3, padding="same"), nn.BatchNorm2d(4), nn.GELU(), nn.MaxPool2d(2), nn.AdaptiveAvgPool2d(2),
        nn.Flatten(), nn.Linear(16, 8)
    )  # fmt: skip
    encoder = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    lstm = nn.LSTM(8, 4, num_layers=2, dropout=0.1)
    for run in (
        lambda: cresset.compile(model, fullgraph=True)(cresset.ones(2, 1, 8, 8)),
        lambda: cresset.compile(encoder, fullgraph=True)(cresset.ones(2, 3, 8)),
        lambda: cresset.compile(lstm, fullgraph=True)(cresset.ones(3, 2, 8))[0],
    ):
        run().sum().backward()
