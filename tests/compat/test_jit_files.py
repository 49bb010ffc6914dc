"""TorchScript archives, both ways: what PyTorch writes, scripted and traced, runs here without the model's source; what
is written here runs there; the numbers agree to 1e-6.
"""

import io
import sys
import warnings
from pathlib import Path

import pytest

import cresset

sys.path.insert(0, str(Path(__file__).parent))
import jit_idioms
import jit_modules
import jit_programs

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning")  # PyTorch's, of all its functions here
with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    PROGRAMS = [*jit_programs.make(torch), *jit_idioms.make(torch)]
    THEIRS, OURS = (
        {**jit_modules.make(lib), **jit_programs.make(lib), **jit_idioms.make(lib)} for lib in (torch, cresset)
    )
# A recording has one path and no numbers as arguments; PyTorch does not record these.
NOT_TRACED = {
    "loops",
    "typed",
    "detection",
    "dicts",
    "texts",
    "comprehensions",
    "branch",
    "typed_without_scale",
    "forks",
    "raises",
    "methods",
    "post_process",
    "attention_with_past",
    "decoder",
    "output_classes",
    "beam_search",
    "vocabulary",
    "rotary",
    "pyramid",
    "streaming",
    "script_class",
    "error_texts",
    "unions",
    "nested_containers",
    "numbers",
    *jit_idioms.make(torch),
}


def to(lib, value):
    """The value with tensors of another library."""
    if isinstance(value, (torch.Tensor, cresset.Tensor)):
        return lib.tensor(value.detach().numpy())
    if isinstance(value, (list, tuple)):
        return type(value)([to(lib, item) for item in value])
    return {key: to(lib, item) for key, item in value.items()} if isinstance(value, dict) else value


def assert_same(want, got):
    fields = getattr(want, "_fields", None)  # each library makes a class of its own for a NamedTuple
    assert fields == getattr(got, "_fields", None)
    assert type(want) is type(got) or isinstance(want, torch.Tensor) or fields, (type(want), type(got))
    if isinstance(want, torch.Tensor):
        assert tuple(want.shape) == tuple(got.shape) and str(want.dtype) == str(got.dtype)
        if want.is_floating_point():
            torch.testing.assert_close(
                torch.tensor(got.detach().numpy()), want.detach(), rtol=1e-6, atol=1e-6, equal_nan=True
            )
        else:
            assert want.tolist() == got.tolist()
    elif isinstance(want, (list, tuple)):
        assert len(want) == len(got)
        for one, other in zip(want, got, strict=True):
            assert_same(one, other)
    elif isinstance(want, dict):
        assert list(want) == list(got)
        for key in want:
            assert_same(want[key], got[key])
    elif isinstance(want, float):
        assert got == pytest.approx(want, rel=1e-6, abs=1e-6)
    else:
        assert want == got


def compiled(lib, zoo, name, how):
    """(the compiled module, its arguments), the same numbers in both libraries."""
    make, arguments = zoo[name]
    lib.manual_seed(0)
    module, args = make(), arguments()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return (lib.jit.script(module) if how == "script" else lib.jit.trace(module, args, check_trace=False)), args


def saved(lib, module):
    file = io.BytesIO()
    lib.jit.save(module, file)
    file.seek(0)
    return file


def run(lib, module, args):
    lib.manual_seed(1)
    return module(*args)


CASES = [(name, "script") for name in THEIRS] + [(name, "trace") for name in THEIRS if name not in NOT_TRACED]


@pytest.mark.parametrize(("name", "how"), CASES)
def test_what_pytorch_writes_runs_here(name, how):
    module, args = compiled(torch, THEIRS, name, how)
    loaded = cresset.jit.load(saved(torch, module))
    assert list(loaded.state_dict()) == list(module.state_dict())
    assert_same(run(torch, module, args), run(cresset, loaded, to(cresset, args)))


@pytest.mark.parametrize(("name", "how"), CASES)
def test_what_is_written_here_runs_there(name, how):
    module, args = compiled(cresset, OURS, name, how)
    file = saved(cresset, module)
    loaded = torch.jit.load(file)
    assert list(loaded.state_dict()) == list(module.state_dict())
    assert_same(run(torch, loaded, to(torch, args)), run(cresset, module, args))


@pytest.mark.parametrize(("name", "how"), CASES)
def test_a_file_of_pytorchs_that_is_written_anew_still_runs_there(name, how):
    module, args = compiled(torch, THEIRS, name, how)
    again = torch.jit.load(saved(cresset, cresset.jit.load(saved(torch, module))))
    assert_same(run(torch, module, args), run(torch, again, args))


def test_extra_files_travel_both_ways(tmp_path):
    path = tmp_path / "theirs.pt"
    torch.jit.save(
        torch.jit.script(THEIRS["linear"][0]()), path, _extra_files={"labels.txt": "a,b", "raw": b"\x00\x01"}
    )
    extra = {"labels.txt": "", "raw": "", "absent": ""}
    module = cresset.jit.load(path, _extra_files=extra)
    assert extra == {"labels.txt": b"a,b", "raw": b"\x00\x01", "absent": b""}
    cresset.jit.save(module, tmp_path / "ours.pt", _extra_files={"labels.txt": "c"})
    extra = {"labels.txt": ""}
    torch.jit.load(tmp_path / "ours.pt", _extra_files=extra)
    assert extra == {"labels.txt": b"c"}


def test_a_frozen_model_of_pytorchs_runs_here():
    module, args = compiled(torch, THEIRS, "cnn", "script")
    loaded = cresset.jit.load(saved(torch, torch.jit.freeze(module)))
    assert list(loaded.parameters()) == []
    assert_same(module(*args), loaded(*to(cresset, args)))


def test_a_module_whose_methods_call_it_otherwise_than_self_runs_here():
    class Doubles(torch.nn.Module):
        def forward(module, x):  # noqa: N805
            return module.twice(x) + 1

        def twice(module, x):  # noqa: N805
            return 2 * x

    file = io.BytesIO()
    torch.jit.save(torch.jit.script(Doubles()), file)
    assert cresset.jit.load(io.BytesIO(file.getvalue()))(cresset.ones(2)).tolist() == [3.0, 3.0]


def test_exported_methods_come_along():
    module, args = compiled(torch, THEIRS, "methods", "script")
    loaded = cresset.jit.load(saved(torch, module))
    assert loaded.predict(*to(cresset, args)).tolist() == module.predict(*args).tolist()


def test_a_decoder_that_was_saved_generates():
    module, args = compiled(torch, THEIRS, "decoder", "script")
    loaded = cresset.jit.load(saved(torch, module))
    assert loaded.generate(*to(cresset, args), 4).tolist() == module.generate(*args, 4).tolist()


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_scripted_program_gives_what_pytorchs_gives(name):
    theirs, ours = compiled(torch, THEIRS, name, "script"), compiled(cresset, OURS, name, "script")
    assert_same(run(torch, *theirs), run(cresset, *ours))


def test_what_a_program_raises_is_the_same_error():
    module, _ = compiled(torch, THEIRS, "raises", "script")
    loaded = cresset.jit.load(saved(torch, module))
    for shape, error in (((2, 3, 4), "ValueError: two dimensions"), ((2, 3), "AssertionError: six columns")):
        with pytest.raises(torch.jit.Error, match=error):
            module(torch.ones(shape))
        with pytest.raises(cresset.jit.Error, match=error):
            loaded(cresset.ones(shape))


def test_gradients_flow_into_loaded_parameters():
    module, args = compiled(torch, THEIRS, "sequential_mlp", "script")
    loaded = cresset.jit.load(saved(torch, module))
    module(*args).pow(2).sum().backward()
    loaded(*to(cresset, args)).pow(2).sum().backward()
    for want, got in zip(module.parameters(), loaded.parameters(), strict=True):
        assert_same(want.grad, got.grad)


def packed(lib, kind):
    class Packed(lib.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = getattr(lib.nn, kind)(3, 4, bidirectional=True)

        def forward(self, x: lib.Tensor, lengths: lib.Tensor):
            sequence = lib.nn.utils.rnn.pack_padded_sequence(x, lengths, enforce_sorted=False)
            out, state = self.layer(sequence)
            padded, counts = lib.nn.utils.rnn.pad_packed_sequence(out)
            return padded, counts, state

    lib.manual_seed(0)
    return lib.jit.script(Packed()), (lib.arange(45.0).view(5, 3, 3) / 45, lib.tensor([2, 5, 3]))


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
def test_sequences_without_padding_travel_both_ways(kind):
    ours, args = packed(cresset, kind)
    assert_same(torch.jit.load(saved(cresset, ours))(*to(torch, args)), ours(*args))
    theirs, args = packed(torch, kind)
    assert_same(theirs(*args), cresset.jit.load(saved(torch, theirs))(*to(cresset, args)))
