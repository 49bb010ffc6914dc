"""Programs as packages: torch._inductor.aoti_compile_and_package and aoti_load_package."""

import io
import os
import zipfile

import pytest

import cresset
from cresset import _inductor, nn
from cresset.export import Dim, export

NO_CONSTANTS = {"aot_inductor.package_constants_in_so": False}


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear, self.norm = nn.Linear(4, 4), nn.BatchNorm1d(4)

    def forward(self, x):
        return self.norm(self.linear(x)).relu()


@pytest.fixture
def layer():
    cresset.manual_seed(0)
    return Layer().eval()


X = cresset.arange(12.0).reshape(3, 4)


def test_a_package_computes_what_the_model_computes_without_gradients(layer, tmp_path):
    path = _inductor.aoti_compile_and_package(export(layer, (X,)), package_path=tmp_path / "layer.pt2")
    run = _inductor.aoti_load_package(path)
    assert path == tmp_path / "layer.pt2" and run(X).equal(layer(X)) and run((X,)).equal(layer(X))
    assert layer(X).requires_grad and not run(X).requires_grad


def test_free_sizes_stay_free_and_results_keep_their_structure(tmp_path):
    class Named(nn.Module):
        def forward(self, x, by=None):
            return {"sum": x.sum(0), "scaled": (x * by,)}

    shapes = {"x": {0: Dim("n")}, "by": None}
    program = export(Named(), (X,), {"by": cresset.tensor(2.0)}, dynamic_shapes=shapes)
    file = io.BytesIO()
    assert _inductor.aoti_compile_and_package(program, package_path=file) is file
    run = _inductor.package.load_package(io.BytesIO(file.getvalue()))
    found = run(cresset.ones(5, 4), by=cresset.tensor(3.0))
    assert found["sum"].tolist() == [5.0] * 4 and found["scaled"][0].sum() == 60


def test_a_package_without_constants_waits_for_them(layer, tmp_path):
    path = _inductor.aoti_compile_and_package(export(layer, (X,)), inductor_configs=NO_CONSTANTS)
    try:
        run = _inductor.aoti_load_package(path)
        with zipfile.ZipFile(path) as file:
            assert all(not one.file_size for one in file.infolist() if "/weights/weight_" in one.filename)
    finally:
        os.remove(path)
    with pytest.raises(RuntimeError, match=r"without its constants; load_constants\(\) has not given linear.weight"):
        run(X)
    other = Layer().eval()
    run.load_constants(other.state_dict(), check_full_update=True)
    before = other(X)
    assert run(X).equal(before)
    other.linear.weight.data.mul_(2)
    assert run(X).equal(before)
    run.load_constants(other.state_dict(), check_full_update=True, user_managed=True)
    other.linear.weight.data.mul_(2)
    assert run(X).equal(other(X))


@pytest.mark.parametrize(
    "given, full, phrase",
    [
        ({}, True, "linear.weight, .* not given, and check_full_update is True"),
        ({"bias": cresset.ones(4)}, False, "the program has no constant 'bias'; it has linear.weight"),
        ({"linear.bias": cresset.ones(3)}, False, r"linear.bias is \(4,\) of torch.float32, got \(3,\)"),
    ],
)
def test_constants_that_do_not_fit_are_named(layer, given, full, phrase):
    file = io.BytesIO()
    _inductor.aoti_compile_and_package(export(layer, (X,)), package_path=file)
    run = _inductor.aoti_load_package(io.BytesIO(file.getvalue()))
    assert run.get_constant_fqns()[:2] == ["linear.weight", "linear.bias"]
    with pytest.raises(RuntimeError, match=phrase):
        run.load_constants(given, check_full_update=full)


@pytest.mark.parametrize(
    "call, error, phrase",
    [
        (lambda program: _inductor.aoti_compile_and_package(nn.ReLU()), ValueError, "Only ExportedProgram"),
        (
            lambda program: _inductor.aoti_compile_and_package(program, package_path="model.zip"), AssertionError,
            "a file ending in .pt2",
        ),
        (
            lambda program: _inductor.aoti_compile_and_package(program, inductor_configs={"fastest": True}),
            RuntimeError, "there is no setting 'fastest'",
        ),
        (lambda program: _inductor.package.load_package("x", "other"), RuntimeError, "there is no 'other'"),
    ],
)  # fmt: skip
def test_what_is_refused(call, error, phrase):
    with pytest.raises(error, match=phrase):
        call(export(nn.ReLU(), (X,)))


def test_a_library_of_pytorch_is_refused_in_words():
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("model/data/aotinductor/model/model.so", b"")
        archive.writestr("model/archive_format", "pt2")
    with pytest.raises(RuntimeError, match="a library that PyTorch generated"):
        _inductor.aoti_load_package(io.BytesIO(file.getvalue()))


def test_a_fresh_cache_is_a_folder_for_a_while(monkeypatch, tmp_path):
    monkeypatch.setenv("CRESSET_CACHE", "mine")
    sizes = {}
    with _inductor.utils.fresh_inductor_cache(sizes, dir=tmp_path):
        folder = os.environ["CRESSET_CACHE"]
        with open(os.path.join(folder, "loop.so"), "wb") as file:
            file.write(b"12345")
    assert sizes == {"loop.so": 5} and not os.path.exists(folder) and os.environ["CRESSET_CACHE"] == "mine"
