"""The package functorch, which comes with PyTorch: torch.func under its older names."""

import subprocess
import sys

import cresset as torch

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


def test_a_function_of_samples_is_given_batches_back():
    from cresset._functorch.vmap import restore_vmap

    double = restore_vmap(lambda x, y: (x * y, y.sum(), None), (1, None), 2, "error")
    (product, total, nothing), dims = double(torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.tensor([1.0, 10.0]))
    assert product.tolist() == [[1.0, 30.0], [2.0, 40.0]] and total == 11 and nothing is None
    assert dims == (0, None, None)


def test_settings_of_compilers_are_read_and_set_by_their_older_name():
    from cresset._functorch.package.compile import config

    with config.patch(debug_assert=True):
        assert config.debug_assert
    assert not config.debug_assert


def test_derivatives_are_found_in_the_file_that_pytorch_has_them_in():
    transforms = torch._functorch.eager_transforms
    assert transforms.jvp is torch.func.jvp and transforms._as_tuple(1) == (1,) == transforms._as_tuple((1,))
