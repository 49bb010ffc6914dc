"""docs/adding_an_op.md shows code that is in the tree, and what it says of that code holds."""

import io
import re
import warnings
from pathlib import Path

import pytest

import cresset
from cresset.autograd import gradcheck

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "adding_an_op.md").read_text(encoding="utf-8")
SHOWN = re.findall(r"^```(?:python|cpp)\n(?:#|//) ((?:src|native)/\S+)\n(.*?)^```$", PAGE, re.M | re.S)


def test_the_page_shows_a_function_made_of_others_and_an_operator_with_two_kernels():
    assert {file for file, _ in SHOWN} == {
        "src/cresset/ops/rearrange.py",
        "native/ops/scan.cpp",
        "native/cuda/scan.cpp",
        "src/cresset/ops/scan.py",
    }


@pytest.mark.parametrize("file, code", SHOWN, ids=[file for file, _ in SHOWN])
def test_what_it_shows_is_in_the_tree(file, code):
    text = (ROOT / file).read_text(encoding="utf-8")
    for part in code.strip("\n").split("\n\n\n"):
        assert part in text


class TestTheOperatorOnThePage:
    def test_its_derivative_agrees_with_finite_differences(self):
        x = cresset.tensor([[1.0, 2.0], [3.0, 5.0]], dtype=cresset.float64, requires_grad=True)
        assert gradcheck(lambda x: cresset.cumsum(x, 1), [x])

    def test_vmap_computes_the_whole_batch_at_once(self):
        x = cresset.arange(6.0).reshape(2, 3)
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # sample by sample would warn
            assert cresset.vmap(lambda row: row.cumsum(0))(x).tolist() == [[0.0, 1.0, 3.0], [3.0, 7.0, 12.0]]

    def test_it_is_one_node_in_an_exported_file(self):
        class Sums(cresset.nn.Module):
            def forward(self, x):
                return x.cumsum(1)

        file = io.BytesIO()
        cresset.onnx.export(Sums(), (cresset.ones(2, 3),), file)
        assert b"CumSum" in file.getvalue()
