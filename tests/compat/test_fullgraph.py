"""compile(fullgraph=True) refuses what PyTorch refuses."""

import pytest

torch = pytest.importorskip("torch")

PROGRAMS = {
    "a branch": "lambda x: x + 1 if x.sum() > 0 else x", "a negation": "lambda x: x if not x.any() else -x",
    "a search": "lambda x: 1 if x[0] in [1.0] else 2",
    "a list": "lambda x: x.tolist()", "a number": "lambda x: x + x.sum().item()",
    "a selection": "lambda x: torch.where(x > 0, x, -x)",
    "a mask": "lambda x: x[x > 0]", "a shape": "lambda x: x if x.shape[0] == 2 else -x",
    "a list of integers": "lambda x: x.long().sum().view(1).tolist()[0] * 0",
    "a break": "lambda x: (torch._dynamo.graph_break(), x)[1]",
}  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_the_same_programs_are_one_graph(agree, program):
    agree(f"torch.compile({program}, backend='eager', fullgraph=True)(torch.tensor([1.0, 3.0]))")
