"""Files of exported programs."""

import contextlib
import gc
import io
import json
import pickle
import tracemalloc
import zipfile

import pytest

import cresset
from cresset import nn
from cresset.export import Dim, export, load, save


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 3)
        self.register_buffer("scale", cresset.full((3,), 2.0))
        self.register_buffer("shift", cresset.ones(3), persistent=False)
        self.plain = cresset.tensor([1.0, 2.0, 3.0])

    def forward(self, x, flag=True):
        a, b = (self.fc(x) * self.scale + self.shift + self.plain).split([1, 2], 1)
        return {"a": a.view(x.shape[0], -1), "b": b.max(1)[0]}, x.shape[0] * 2 + 1


def saved(program):
    file = io.BytesIO()
    save(program, file)
    return file.getvalue()


def edited(content, change):
    """The file with another model.json."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(out, "w") as new:
        for item in old.infolist():
            data = old.read(item)
            if item.filename.endswith("models/model.json"):
                model = json.loads(data)
                change(model)
                data = json.dumps(model).encode()
            new.writestr(item.filename, data)
    return io.BytesIO(out.getvalue())


def program():
    return export(
        Net(), (cresset.randn(5, 4), True), dynamic_shapes={"x": {0: Dim("batch", min=2, max=64)}, "flag": None}
    )


def test_a_program_comes_back_as_it_was(tmp_path):
    first = program()
    save(first, tmp_path / "net.pt2", extra_files={"note.txt": "hello"})
    extra = {"note.txt": ""}
    second = load(tmp_path / "net.pt2", extra_files=extra)
    assert extra["note.txt"] == "hello"
    assert str(second.graph_signature) == str(first.graph_signature)
    assert [(n.op, n.name, str(n.target), str(n.args)) for n in second.graph.nodes] == [
        (n.op, n.name, str(n.target), str(n.args)) for n in first.graph.nodes
    ]
    assert str(second.range_constraints) == str(first.range_constraints) == "{'batch': VR[2, 64]}"
    assert list(second.state_dict) == list(first.state_dict) and isinstance(
        second.state_dict["fc.weight"], nn.Parameter
    )
    assert cresset.equal(second.example_inputs[0][0], first.example_inputs[0][0])
    x = cresset.randn(9, 4)
    got, want = second.module()(x, True), first.module()(x, True)
    assert got[1] == want[1] == 19 and all(cresset.equal(got[0][k], want[0][k]) for k in "ab")
    with pytest.raises(AssertionError, match="x has size 65 in dimension 0, so that batch is 65"):
        second.module()(cresset.randn(65, 4), True)


def test_other_dtypes_survive():
    class Cast(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("brief", cresset.tensor([1.5, -2.0], dtype=cresset.bfloat16))
            self.register_buffer("number", cresset.tensor(7))
            self.register_buffer("nothing", cresset.empty(0, 3))

        def forward(self, x):
            return x.to(cresset.bfloat16) + self.brief, self.number + 1, self.nothing.sum(0)

    run = load(io.BytesIO(saved(export(Cast(), (cresset.ones(2),))))).module()
    found = run(cresset.ones(2))
    assert found[0].tolist() == [2.5, -1.0] and found[1].item() == 8 and found[2].tolist() == [0.0, 0.0, 0.0]


def test_numbers_that_are_not_finite_are_words_in_the_file():
    class Hides(nn.Module):
        def forward(self, x):
            hidden = x.masked_fill(x > 1, float("-inf"))
            return hidden.nan_to_num(nan=float("inf"), neginf=float("nan"), posinf=2.5)

    data = saved(export(Hides(), (cresset.ones(3),)))
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith("models/model.json"))
        json.loads(archive.read(name), parse_constant=pytest.fail)  # JSON knows no such numbers
    found = load(io.BytesIO(data)).module()(cresset.tensor([1.0, 2.0, float("nan")]))
    assert found[0] == 1 and found[1].isnan() and found[2] == float("inf")


def test_what_is_no_program_is_refused(tmp_path):
    with pytest.raises(RuntimeError, match="this is no .pt2 file"):
        load(io.BytesIO(b"hello"))
    other = io.BytesIO()
    cresset.save({"a": cresset.ones(1)}, other)
    with pytest.raises(RuntimeError, match="holds no exported program"):
        load(io.BytesIO(other.getvalue()))
    with pytest.raises(TypeError, match="must be an instance of 'ExportedProgram'"):
        save(nn.ReLU(), tmp_path / "x.pt2")
    assert not (tmp_path / "x.pt2").exists()


def _set_target(text):
    def change(model):
        model["graph_module"]["graph"]["nodes"][0]["target"] = text

    return change


@pytest.mark.parametrize(
    "change, problem",
    [
        (_set_target("os.system"), "os.system is no operator that a program may call"),
        (_set_target("_operator.methodcaller"), "no operator that a program may call"),
        (_set_target("torch.ops.aten.nothing.default"), "is not there"),
        (_set_target("torch.ops.load_library.x.y"), "is not there"),
        (lambda m: m["schema_version"].update(major=9), "version 9 of the format"),
        (lambda m: m["graph_module"]["graph"]["nodes"].clear(), "not whole"),
        (lambda m: m["graph_module"]["graph"]["nodes"][0]["inputs"][0].update(arg={"as_ints": [1, {"a": 2}]}), "stands where int is expected"),  # noqa: E501
        (lambda m: m["graph_module"]["graph"]["nodes"][0]["inputs"][0].update(arg={"as_float": "much"}), "'much' stands where float is expected"),  # noqa: E501
        (lambda m: m["graph_module"]["graph"]["inputs"].clear() or m["graph_module"]["signature"]["input_specs"].clear(), "not whole"),  # noqa: E501
        (lambda m: m["graph_module"]["graph"]["tensor_values"]["x"]["sizes"][0].update({"as_expr": {"expr_str": "__import__('os')", "hint": None}}), "no formula"),  # noqa: E501
        (lambda m: m["range_constraints"].update(s0={"min_val": 2, "max_val": "\x1b[2J"}), r"'\\x1b\[2J' stands where int is expected"),  # noqa: E501
        (lambda m: m["range_constraints"].update(s0={"min_val": [2], "max_val": 9}), r"\[2\] stands where int is expected"),  # noqa: E501
    ],
)  # fmt: skip
def test_a_hostile_file_gets_an_error_and_never_code(change, problem):
    with pytest.raises(RuntimeError, match=problem):
        load(edited(saved(program()), change))


def test_weights_that_are_too_short_are_refused():
    content, out = saved(program()), io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(out, "w") as new:
        for item in old.infolist():
            data = old.read(item)
            new.writestr(item.filename, data[:8] if item.filename.endswith("weight_0") else data)
    with pytest.raises(RuntimeError, match="'fc.weight' has 8 bytes, too few"):
        load(io.BytesIO(out.getvalue()))


def renamed(model, old, new):
    """The whole of a program's JSON with another name of a value."""
    text = json.dumps(model).replace(json.dumps(old), json.dumps(new))
    model.clear()
    model.update(json.loads(text))


@pytest.mark.parametrize("name", ["a\n    print('run')\n    b", "x=print('run')", "import", "a b", ""])
def test_a_name_that_would_be_source_is_refused(name):
    with pytest.raises(RuntimeError, match="is no name of a value"):
        load(edited(saved(program()), lambda model: renamed(model, "linear", name)))


def test_a_structure_may_not_name_a_class_that_does_something():
    def change(model):
        (entry,) = [e for e in model["graph_module"]["module_call_graph"] if e["fqn"] == ""]
        popen = {"type": "collections.namedtuple", "context": '"subprocess.Popen"', "children_spec": []}
        entry["signature"]["out_spec"] = json.dumps([1, popen])

    with pytest.raises(ValueError, match="subprocess.Popen is no namedtuple"):
        load(edited(saved(program()), change))


def test_a_structure_imports_nothing():
    def change(model):
        (entry,) = [e for e in model["graph_module"]["module_call_graph"] if e["fqn"] == ""]
        other = {"type": "collections.namedtuple", "context": '"antigravity.Point"', "children_spec": []}
        entry["signature"]["out_spec"] = json.dumps([1, other])

    with pytest.raises(ValueError, match="a module that is not imported"):
        load(edited(saved(program()), change))


def repeated(graph, count):
    """The graph's nodes many times over."""
    graph["nodes"] = graph["nodes"] * count


@pytest.mark.parametrize(
    "change",
    [
        lambda graph: repeated(graph, 150),
        lambda graph: graph["nodes"][0]["inputs"].extend([{"name": "a", "arg": {"as_none": True}, "kind": 1}] * 3000),
        lambda graph: graph["nodes"][0].update(more=[[]] * 50_000),
        lambda graph: graph["outputs"].__setitem__(0, {"as_ints": [0] * 70_000}),
        lambda graph: graph["tensor_values"].update({f"none{number}": {} for number in range(10_000)}),
        lambda graph: graph["tensor_values"]["x"].update(sizes=[{"as_int": 1}] * 15_000),
        lambda graph: graph.update({f"none{number}": 0 for number in range(15_000)}),
        lambda graph: graph["tensor_values"]["x"]["sizes"].__setitem__(
            0, {"as_expr": {"expr_str": "Add(" + "Integer(1), " * 20_000 + ")", "hint": None}}
        ),
    ],
    ids=["nodes", "inputs", "other fields", "an output", "values", "sizes", "parts", "a formula"],
)
def test_a_large_description_takes_no_more_memory_than_the_file_and_a_megabyte(change):
    content = edited(saved(program()), lambda model: change(model["graph_module"]["graph"])).getvalue()
    assert len(content) > 150_000
    file = io.BytesIO(content)
    with contextlib.suppress(RuntimeError, ValueError):
        load(file)  # errors are words of modules that are imported once
    file.seek(0)
    tracemalloc.start()
    try:
        load(file)
    except (RuntimeError, ValueError):
        pass
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < len(content) + (1 << 20)


class Long(nn.Module):
    """So many nodes that their description is most of the file."""

    def forward(self, x):
        for number in range(400):
            x = (x + number).relu()
        return x


def test_a_long_program_takes_some_times_its_description():
    """Its nodes are what the caller asked for, about 2 kB each in memory where the file has some 500 bytes; beside them
    there is the description of one.
    """
    content = saved(export(Long(), (cresset.ones(2),)))
    file = io.BytesIO(content)
    load(file)
    file.seek(0)
    gc.collect()
    tracemalloc.start()
    found = load(file)
    peak = tracemalloc.get_traced_memory()[1]
    gc.collect()
    kept = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert len(found.graph.nodes) == 802
    assert kept < 4 * len(content)
    assert peak < kept + (1 << 18)


def test_weights_of_large_sizes_and_no_strides_take_no_memory():
    content = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(saved(program()))) as old, zipfile.ZipFile(content, "w") as new:
        for item in old.infolist():
            data = old.read(item)
            if item.filename.endswith("model_weights_config.json"):
                config = json.loads(data)
                meta = config["config"]["scale"]["tensor_meta"]
                meta["sizes"], meta["strides"] = [{"as_int": 1 << 40}], [{"as_int": 0}]
                data = json.dumps(config).encode()
            new.writestr(item.filename, data)
    before = cresset._native.host_memory_statistics()["in_use"]
    cresset._native.reset_peak_host_memory()
    assert load(io.BytesIO(content.getvalue())).state_dict["scale"].shape == (1 << 40,)
    taken = cresset._native.host_memory_statistics()["peak"] - before
    assert taken <= len(content.getvalue()) + 2**20


def test_tied_weights_and_a_record_that_two_names_share_are_read_once():
    content = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(saved(program()))) as old, zipfile.ZipFile(content, "w") as new:
        for item in old.infolist():
            data = old.read(item)
            if item.filename.endswith("model_weights_config.json"):
                config = json.loads(data)
                config["config"]["scale"]["path_name"] = config["config"]["fc.bias"]["path_name"]
                data = json.dumps(config).encode()
            new.writestr(item.filename, data)
    state = load(io.BytesIO(content.getvalue())).state_dict
    assert state["scale"].data_ptr() == state["fc.bias"].data_ptr()


@pytest.mark.parametrize(
    "change, problem",
    [
        (lambda config: config["fc.weight"].update(is_param=False), "'fc.weight' is no parameter in the file"),
        (lambda config: config["scale"].update(is_param=True), "'scale' is a parameter in the file"),
        (lambda config: config["scale"]["tensor_meta"].update(strides=[]), "has the sizes"),
        (lambda config: config["scale"].update(use_pickle=True), "UnpicklingError|no archive|damaged|load"),
    ],
)
def test_a_tensor_that_is_not_what_the_program_says_is_refused(change, problem):
    content = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(saved(program()))) as old, zipfile.ZipFile(content, "w") as new:
        for item in old.infolist():
            data = old.read(item)
            if item.filename.endswith("model_weights_config.json"):
                config = json.loads(data)
                change(config["config"])
                data = json.dumps(config).encode()
            new.writestr(item.filename, data)
    with pytest.raises((RuntimeError, pickle.UnpicklingError), match=problem):
        load(io.BytesIO(content.getvalue()))


@pytest.mark.parametrize("name", ["", "fc.", "forward", "fc..bias", "fc", "fc.bias", "fc.bias.x"])
def test_a_name_at_which_no_module_holds_a_tensor_is_refused(name):
    def change(model):
        for spec in model["graph_module"]["signature"]["input_specs"]:
            if "buffer" in spec and spec["buffer"]["buffer_name"] == "scale":
                spec["buffer"]["buffer_name"] = name

    with pytest.raises(RuntimeError, match="is no name of a tensor|is where another tensor is"):
        load(edited(saved(program()), change))
