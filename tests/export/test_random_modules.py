"""Random modules with views and writes in place give the same in every recorded form."""

import pytest

import cresset

from . import random_modules


def test_every_form_of_random_modules_does_what_the_module_does(tmp_path):
    found = {number: random_modules.differences(number, tmp_path) for number in range(40)}
    assert sum(wrong is not None for wrong in found.values()) > 20
    assert {number: wrong for number, wrong in found.items() if wrong} == {}


class Writes(cresset.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("state", cresset.ones(2))

    def forward(self, x):
        y = x.clone()
        y[0] = 2
        flat = y.view(-1)
        flat.mul_(3)
        self.state.add_(flat.sum(), alpha=2)
        y.fill_diagonal_(1.0)
        y.diagonal().add_(x[0])
        turned = cresset.einsum("ij->ji", y)
        y[:1].neg_()
        x.add_(1)
        return y + self.state, flat, turned


def test_a_program_without_writes_gives_new_values_of_inputs_and_buffers():
    x, module = cresset.rand(2, 2), Writes()
    program = cresset.export.export(Writes(), (x.clone(),)).run_decompositions()
    kinds = [spec.kind.name for spec in program.graph_signature.output_specs]
    assert kinds == ["BUFFER_MUTATION", "USER_INPUT_MUTATION", *["USER_OUTPUT"] * 3]
    assert list(program.graph_signature.user_inputs_to_mutate.values()) == ["x"]
    assert not [
        node for node in program.graph.nodes if getattr(node.target, "__name__", "").partition(".")[0][-1:] == "_"
    ]
    given, expected_input = x.clone(), x.clone()
    found, expected = program.module()(given), module(expected_input)
    for a, b in zip((*found, given), (*expected, expected_input), strict=True):
        cresset.testing.assert_close(a, b)


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("record", [cresset.export.export, cresset.jit.trace])
def test_recording_leaves_buffers_as_they_were(record, training):
    module = Writes().train(training)
    record(module, (cresset.ones(2, 2),))
    assert module.state.tolist() == [1.0, 1.0]
