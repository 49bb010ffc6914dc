"""The package functorch, which comes with PyTorch: torch.func under its older names."""

import subprocess
import sys

PROGRAM = """
import functorch, warnings
import torch
from functorch.einops import rearrange
from functorch.experimental import chunk_vmap, functionalize, replace_all_batch_norm_modules_
from functorch.experimental.control_flow import cond, map

warnings.simplefilter("error")
assert functorch.__version__ == torch.__version__
assert cond is torch.cond and map(torch.sin, torch.zeros(2)).tolist() == [0.0, 0.0]
assert functionalize(torch.sin)(torch.zeros(2)).tolist() == [0.0, 0.0]
assert functorch.make_fx(torch.sin)(torch.zeros(2))(torch.zeros(3)).shape == (3,)
for name, today in {"vmap": "torch.vmap", "grad": "torch.func.grad"}.items():
    try:
        getattr(functorch, name)(torch.sin)
    except FutureWarning as warning:
        assert f"Please use `{today}`" in str(warning), warning
    else:
        raise AssertionError(name)
warnings.simplefilter("ignore")
print(functorch.grad(torch.sin)(torch.tensor(0.0)), functorch.vmap(torch.sin)(torch.zeros(2)))
"""


def test_a_program_that_imports_functorch_finds_it(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    done = subprocess.run([sys.executable, "-m", "cresset", "run", str(program)], capture_output=True, text=True)
    assert done.stdout == "tensor(1.) tensor([0., 0.])\n", done.stderr
