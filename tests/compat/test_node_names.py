"""Every operator PyTorch tests itself with: the nodes of its results have PyTorch's names."""

import sys
from pathlib import Path

import pytest

import cresset

torch = pytest.importorskip("torch")
pytest.importorskip("expecttest")
common = pytest.importorskip("torch.testing._internal.common_methods_invocations")

sys.path.insert(0, str(Path(__file__).parent))

from test_autograd_orders import find, ours, tensors  # noqa: E402

SAMPLES = 4

# Where they differ, and why.
DIFFERENT = {
    "nn.functional.linear_cross_entropy.chunked": "one operator, whatever pieces are asked for",
    "nn.functional.linear_cross_entropy.chunked_none": "likewise",
    "nn.functional.scaled_dot_product_attention": "the same kernel where PyTorch has one of products for some shapes",
    "round.decimals_0": "decimals=0, which is the default here, counts as given in PyTorch",
    "__rsub__": "the number slot of Python, which for a number on the left is called Rsub",
    "triangular_solve": "the older name of solve_triangular, which records it",
    "to_sparse": "the history of a sparse tensor is that of its values",
    "masked.prod": "made of other operators",
    "masked.median": "made of other operators",
    "masked.var": "made of other operators",
}

LEFT_OUT = {
    "as_strided.partial_views": "reads beyond the memory of the sample alone",
    "max_pool2d_with_indices_backward": "a step of PyTorch's backward",
    "sparse.mm.reduce": "samples in sparse layouts",
    "sparse.sampled_addmm": "samples in sparse layouts",
}


def names(value, kind):
    found = [t.grad_fn for t in tensors(value, kind)]
    return [None if node is None else (node.name(), type(node).__name__) for node in found]


def compared(op):
    """What both libraries call the nodes of each sample."""
    function, pairs = find(op), []
    for sample in list(op.sample_inputs("cpu", torch.float32, requires_grad=True))[:SAMPLES]:
        args, kwargs = [sample.input, *sample.args], sample.kwargs
        theirs = names(op.op(*args, **kwargs), torch.Tensor)
        pairs.append((theirs, names(function(*ours(args), **ours(kwargs)), cresset.Tensor)))
    return pairs


def identity(op):
    return op.name + (f".{op.variant_test_name}" if op.variant_test_name else "")


OPERATORS = [
    pytest.param(op, id=identity(op))
    for op in common.op_db
    if op.supports_autograd
    and op.supports_dtype(torch.float32, "cpu")
    and identity(op) not in LEFT_OUT
    and (op.name.startswith("__r") or not op.name.startswith(("_", "ops.", "torch.ops", "jiterator", "prims")))
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("op", OPERATORS)
def test_nodes_have_pytorchs_names(op):
    pairs = compared(op)
    if identity(op) in DIFFERENT:
        assert any(theirs != our for theirs, our in pairs), "the row in DIFFERENT can leave"
    else:
        for theirs, our in pairs:
            assert our == theirs


CELLS = [("LSTMCell", {}), ("GRUCell", {}), ("RNNCell", {}), ("RNNCell", {"nonlinearity": "relu"})]
NETWORKS = [
    (kind, options)
    for kind in ("LSTM", "GRU", "RNN")
    for options in ({}, {"batch_first": True}, {"bidirectional": True}, {"num_layers": 2},
                    {"batch_first": True, "bidirectional": True})
]  # fmt: skip


@pytest.mark.parametrize("kind, options", CELLS + NETWORKS, ids=str)
def test_recurrent_layers_have_pytorchs_names(kind, options):
    def of(lib):
        result = getattr(lib.nn, kind)(3, 4, **options)(lib.ones(*([2, 3] if "Cell" in kind else [5, 2, 3])))
        return names(result, lib.Tensor)

    theirs = of(torch)
    if kind == "LSTMCell":
        theirs[1] = theirs[0]  # h and c come from one node here
    assert of(cresset) == theirs


def test_packed_sequences_have_pytorchs_names():
    def of(lib):
        packed = lib.nn.utils.rnn.pack_padded_sequence(lib.ones(5, 2, 3), [5, 3])
        output, final = lib.nn.LSTM(3, 4)(packed)
        return names([output.data, *final], lib.Tensor)

    assert of(cresset) == of(torch)
