"""`.pt2` files: the graph as JSON, tensors as bytes. What PyTorch writes is read here, and what is written here PyTorch
reads.

Nothing of a file is run: operators are looked up by name in a table, sizes are parsed as formulas, and the sample
    inputs, the one pickled part, go through the data-only reader.
"""

import contextlib
import io
import json
import math
import operator
import os
import re

import cresset

from ..fx.node import Node
from ..pytree import treespec_dumps
from ..serialization.archive import ArchiveReader, FileSource
from ..serialization.quoting import printable
from . import graph_signature as signature
from .dynamic_shapes import MOST
from .program import ExportedProgram
from .reading import ProgramReader
from .schema import DTYPE_NAMES, DTYPES, MEMORY_FORMATS, STRIDED
from .size_text import srepr

_PROGRAM, _SAMPLES = "models/model.json", "data/sample_inputs/model.pt"  # names of records
SEEN_AS = {
    "bfloat16": "int16",
    "float8_e4m3fn": "uint8",
    "float8_e5m2": "uint8",
    "float8_e4m3fnuz": "uint8",
    "float8_e5m2fnuz": "uint8",
}


def save(ep, f, *, extra_files=None, opset_version=None, pickle_protocol=2):
    """Write an exported program to a path or an open binary file, as PyTorch does.

    Args:
        extra_files: further texts to put into the file, by name.
        opset_version: None; other versions of the operators are not written.
    """
    if not isinstance(ep, ExportedProgram):
        raise TypeError(
            f"The 'ep' parameter must be an instance of 'ExportedProgram', got '{type(ep).__name__}' instead."
        )
    if opset_version:
        raise NotImplementedError("export.save: opset_version is not supported; leave it out")
    sink = io.BytesIO()
    writer = cresset.PyTorchFileWriter(sink)

    def record(name, content):
        content = content.encode() if isinstance(content, str) else content
        writer.write_record(name, content, len(content))

    parameters = {name for name, _ in ep.named_parameters()}
    for kind, prefix, tensors in (("weights", "weight", ep.state_dict), ("constants", "tensor", ep.constants)):
        config = {}
        for number, (name, tensor) in enumerate(tensors.items()):
            record(f"data/{kind}/{prefix}_{number}", _bytes(tensor))
            config[name] = {
                "path_name": f"{prefix}_{number}",
                "is_param": name in parameters,
                "use_pickle": False,
                "tensor_meta": _tensor_meta(tensor),
            }
        record(f"data/{kind}/model_{kind}_config.json", json.dumps({"config": config}))
    record(_PROGRAM, json.dumps(_Serializer(ep).program()))
    if ep.example_inputs is not None:
        samples = io.BytesIO()
        cresset.save(ep.example_inputs, samples, pickle_protocol=pickle_protocol)
        record(_SAMPLES, samples.getvalue())
    for name, text in (extra_files or {}).items():
        record(f"extra/{name}", text)
    record("archive_format", "pt2")
    record("archive_version", "0")
    writer.write_end_of_file()
    if hasattr(f, "write"):
        f.write(sink.getvalue())
        return
    path = os.fspath(f)
    with open(path, "wb") as file:
        file.write(sink.getvalue())


def load(f, *, extra_files=None, expected_opset_version=None):
    """Read an exported program from a path or an open binary file, written here or by PyTorch.

    Args:
        extra_files: a dict whose keys name further texts of the file; their contents are put in.
        expected_opset_version: None; files of other versions of the operators are refused.

    >>> import io
    >>> file = io.BytesIO()
    >>> cresset.export.save(cresset.export.export(nn.ReLU(), (cresset.ones(2),)), file)
    >>> cresset.export.load(io.BytesIO(file.getvalue())).module()(cresset.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """
    if expected_opset_version:
        raise NotImplementedError("export.load: expected_opset_version is not supported; leave it out")
    with contextlib.ExitStack() as opened:
        file = opened.enter_context(open(f, "rb")) if isinstance(f, (str, os.PathLike)) else f
        if not (hasattr(file, "seek") and hasattr(file, "tell")):
            file = io.BytesIO(file.read())
        beginning = file.read(2)
        if beginning != b"PK":
            raise RuntimeError("export.load: this is no .pt2 file: it does not begin as a zip archive does")
        file.seek(-len(beginning), os.SEEK_CUR)
        return _load(ArchiveReader(FileSource(file)), extra_files)


def _load(archive, extra_files):
    if _PROGRAM not in archive:
        raise RuntimeError(
            f"export.load: the file holds no exported program ({_PROGRAM}); it has {sorted(archive.records)[:8]}"
        )
    data = archive.json(_PROGRAM).fields()
    try:
        major = data["schema_version"].value().get("major") if "schema_version" in data else None
        if major != 8:
            raise RuntimeError(f"export.load: the file is of version {major!r} of the format; version 8 can be read")
        tensors = {kind: _Tensors(archive, kind).read() for kind in ("weights", "constants")}
        samples = None
        if _SAMPLES in archive:
            samples = cresset.load(io.BytesIO(archive.read(_SAMPLES)), weights_only=True)
        program = ProgramReader(data, tensors["weights"], tensors["constants"], samples).program()
    except (
        KeyError, IndexError, TypeError, AttributeError, StopIteration, AssertionError, NotImplementedError,
        ArithmeticError, SyntaxError,
    ) as error:  # fmt: skip
        raise RuntimeError(
            "export.load: the program in the file is not whole: " + printable(f"{type(error).__name__}: {error}", 500)
        ) from error
    except RecursionError:
        raise RuntimeError("export.load: the program in the file is nested too deeply") from None
    for name in extra_files or {}:
        if f"extra/{name}" in archive:
            extra_files[name] = archive.read(f"extra/{name}").decode()
    return program


# ---- tensors


def _bytes(tensor):
    if tensor.is_meta:
        return b""
    tensor = tensor.detach().cpu().contiguous()
    name = str(tensor.dtype).removeprefix("torch.")
    if tensor.numel() == 0:
        return b""
    seen = tensor.view(getattr(cresset, SEEN_AS[name])) if name in SEEN_AS else tensor
    return bytes(memoryview(seen.reshape(-1)))


def _tensor_meta(tensor, sizes=None):
    shape = list(tensor.shape)
    steps, step = [], 1
    for size in reversed(shape):
        steps.append(step)
        step *= max(size, 1)
    return {
        "dtype": DTYPES[str(tensor.dtype).removeprefix("torch.")],
        "sizes": sizes or [{"as_int": size} for size in shape], "requires_grad": bool(tensor.requires_grad),
        "device": {"type": "meta" if tensor.is_meta else "cpu", "index": None},
        "strides": [{"as_int": s} for s in steps[::-1]],
        "storage_offset": {"as_int": 0}, "layout": STRIDED,
    }  # fmt: skip


class _Tensors:
    """The tensors of one kind, by name. A record is read once, whoever names it: so tensors that share memory still do,
    and no file takes more memory than it has bytes.
    """

    def __init__(self, archive, kind):
        self.archive, self.kind, self.known = archive, kind, {}

    def read(self):
        config = f"data/{self.kind}/model_{self.kind}_config.json"
        if config not in self.archive:
            return {}
        entries = self.archive.json(config).fields()["config"].items()
        return {name: self.tensor(name, entry.value()) for name, entry in entries}

    def record(self, path, pickled):
        """The value of a pickled record, or the bytes of another one as a tensor."""
        key = (path, pickled)
        if key not in self.known:
            name = f"data/{self.kind}/{path}"
            if pickled:
                self.known[key] = cresset.load(io.BytesIO(self.archive.read(name)), weights_only=True)
            else:
                content = cresset.empty(self.archive.record(name).size, dtype=cresset.uint8)
                if len(content):
                    self.archive.read_into(name, memoryview(content))
                self.known[key] = content
        return self.known[key]

    def tensor(self, name, entry):
        content = self.record(entry["path_name"], bool(entry["use_pickle"]))
        if not isinstance(content, cresset.Tensor):
            raise RuntimeError(printable(f"export.load: {name!r} is a {type(content).__name__}, not a tensor", 300))
        if entry["use_pickle"]:
            return content
        meta = entry["tensor_meta"]
        dtype = getattr(cresset, DTYPE_NAMES[meta["dtype"]])
        sizes, strides = ([s["as_int"] for s in meta[key]] for key in ("sizes", "strides"))
        start = meta["storage_offset"]["as_int"]
        if any(type(s) is not int or s < 0 for s in (*sizes, *strides, start)) or len(sizes) != len(strides):
            raise RuntimeError(
                printable(f"export.load: {name!r} has the sizes {sizes}, strides {strides} and offset {start}", 300)
            )
        is_meta = (meta.get("device") or {}).get("type") == "meta"  # a shape without elements
        last = start + sum((size - 1) * stride for size, stride in zip(sizes, strides, strict=True))
        if all(sizes) and not is_meta and (last + 1) * dtype.itemsize > content.numel():
            raise RuntimeError(
                printable(
                    f"export.load: {name!r} has {content.numel()} bytes, too few for sizes {sizes} and strides "
                    f"{strides} of {DTYPE_NAMES[meta['dtype']]}",
                    300,
                )
            )
        if is_meta:
            tensor = cresset.empty_strided(sizes, strides, dtype=dtype, device="meta")
        elif all(sizes):
            whole = content.numel() // dtype.itemsize * dtype.itemsize
            tensor = content[:whole].view(dtype).as_strided(sizes, strides, start)
        else:
            tensor = cresset.empty(sizes, dtype=dtype)
        return cresset.nn.Parameter(tensor, requires_grad=bool(meta["requires_grad"])) if entry["is_param"] else tensor


# ---- writing


class _Serializer:
    def __init__(self, ep):
        self.ep = ep
        self.symbols = {symbol: f"s{number}" for number, symbol in enumerate(ep.range_constraints)}
        self.tensors, self.ints = {}, {}

    def program(self):
        ep = self.ep
        ranges = {
            self.symbols[symbol]: {"min_val": limits.lower, "max_val": None if limits.upper == MOST else limits.upper}
            for symbol, limits in ep.range_constraints.items()
        }
        return {
            "graph_module": self.graph_module(), "opset_version": {"aten": 10}, "range_constraints": ranges,
            "schema_version": {"major": 8, "minor": 20},
            "verifiers": [ep.dialect], "torch_version": "2.13.0", "guards_code": [],
        }  # fmt: skip

    def graph_module(self):
        graph = self.ep.graph
        inputs, nodes = [], []
        for spec, node in zip(
            self.ep.graph_signature.input_specs, (n for n in graph.nodes if n.op == "placeholder"), strict=True
        ):
            self.describe(node)
            inputs.append(
                {"as_tensor": {"name": node.name}}
                if isinstance(spec.arg, signature.TensorArgument)
                else self.constant(spec.arg.value)
            )
        for node in graph.nodes:
            if node.op == "call_function" and node.target is not operator.getitem:
                nodes.append(self.node(node))
        outputs = [self.argument(value) for value in graph.output_node().args[0]]
        entries = []
        for entry in self.ep.module_call_graph:
            entries.append(
                {
                    "fqn": entry.fqn,
                    "signature": None if entry.signature is None else self.call_signature(entry.signature),
                }
            )
        return {
            "graph": {
                "inputs": inputs, "outputs": outputs, "nodes": nodes, "tensor_values": self.tensors,
                "sym_int_values": self.ints, "sym_bool_values": {},
                "is_single_tensor_return": False, "custom_obj_values": {}, "sym_float_values": {},
            },
            "signature": {
                "input_specs": [self.input_spec(s) for s in self.ep.graph_signature.input_specs],
                "output_specs": [self.output_spec(s, a) for s,
                    a in zip(self.ep.graph_signature.output_specs, outputs, strict=True)],
            },
            "module_call_graph": entries, "metadata": {f"symbol.{there}": here for here, there in self.symbols.items()},
            "treespec_namedtuple_fields": {},
        }  # fmt: skip

    def call_signature(self, given):
        return {
            "inputs": [self.signature_argument(one) for one in given.inputs],
            "outputs": [self.signature_argument(one) for one in given.outputs],
            "in_spec": treespec_dumps(given.in_spec),
            "out_spec": treespec_dumps(given.out_spec),
            "forward_arg_names": given.forward_arg_names,
        }

    def signature_argument(self, given):
        if isinstance(given, signature.ConstantArgument):
            return self.constant(given.value)
        if isinstance(given, signature.SymIntArgument):
            return {"as_sym_int": {"as_name": given.name}}
        return {"as_tensor": {"name": given.name}}

    def input_spec(self, spec):
        name = {"name": spec.arg.name}
        if spec.kind is signature.InputKind.PARAMETER:
            return {"parameter": {"arg": name, "parameter_name": spec.target}}
        if spec.kind is signature.InputKind.BUFFER:
            return {"buffer": {"arg": name, "buffer_name": spec.target, "persistent": spec.persistent}}
        if spec.kind is signature.InputKind.CONSTANT_TENSOR:
            return {"tensor_constant": {"arg": name, "tensor_constant_name": spec.target}}
        if isinstance(spec.arg, signature.ConstantArgument):
            return {"constant_input": {"name": spec.arg.name, "value": self.constant(spec.arg.value)}}
        return {"user_input": {"arg": {"as_tensor": name}}}

    def output_spec(self, spec, argument):
        kinds = signature.OutputKind
        if spec.kind is kinds.BUFFER_MUTATION:
            return {"buffer_mutation": {"arg": {"name": spec.arg.name}, "buffer_name": spec.target}}
        if spec.kind is kinds.USER_INPUT_MUTATION:
            return {"user_input_mutation": {"arg": {"name": spec.arg.name}, "user_input_name": spec.target}}
        return {"user_output": {"arg": argument}}

    # ---- nodes and values

    def describe(self, node):
        value = node.meta.get("val")
        if isinstance(value, cresset.Tensor):
            sizes = [self.size(size, example) for size, example in zip(node.meta["sizes"], value.shape, strict=True)]
            self.tensors[node.name] = _tensor_meta(value, sizes)
        elif "expression" in node.meta:
            self.ints[node.name] = self.size(node.meta["expression"], 2)

    def size(self, size, hint):
        if isinstance(size, int) or re.fullmatch(r"-?\d+", size):
            return {"as_int": int(size)}
        return {"as_expr": {"expr_str": srepr(size, self.symbols), "hint": {"as_int": int(hint)}}}

    def node(self, node):
        schema = getattr(node.target, "_schema", None)
        if schema is None:
            inputs = [
                {"name": name, "arg": self.argument(value), "kind": 1}
                for name, value in zip("ab", node.args, strict=False)
            ]
            self.describe(node)
            return self._node(
                f"_operator.{node.target.__name__}", inputs, [{"as_sym_int": {"as_name": node.name}}], node
            )
        inputs = [
            {"name": a.name, "arg": self.argument(v, a.type), "kind": 1}
            for a, v in zip(schema.arguments, node.args, strict=False)
        ]
        types = {a.name: a.type for a in schema.arguments}
        inputs += [{"name": name, "arg": self.argument(v, types[name]), "kind": 2} for name, v in node.kwargs.items()]
        return self._node(
            f"torch.ops.{schema.namespace}.{schema.op}.{node.target._overloadname}",
            inputs,
            self.outputs(node, schema),
            node,
        )

    def _node(self, target, inputs, outputs, node):
        return {
            "target": target,
            "inputs": inputs,
            "outputs": outputs,
            "metadata": self.metadata(node),
            "is_hop_single_tensor_return": None,
            "name": node.name,
        }

    def metadata(self, node):
        """Which calls of modules are around a node: "key,path,class" of each."""
        stack = node.meta.get("nn_module_stack") or {}
        words = [",".join((key, path, kind)) for key, (path, kind) in stack.items()]
        return {"nn_module_stack": ";".join(words)} if words else {}

    def outputs(self, node, schema):
        parts = {user.args[1]: user for user in node.users if user.target is operator.getitem}
        for part in parts.values():
            self.describe(part)
        if len(schema.returns) == 1 and schema.returns[0].type == "Tensor[]":
            return [
                {
                    "as_tensors": [
                        {"name": parts[k].name if k in parts else f"{node.name}_unused_{k}"}
                        for k in range(max(parts, default=-1) + 1)
                    ]
                }
            ]
        if len(schema.returns) > 1:
            return [
                {"as_tensor": {"name": parts[k].name if k in parts else f"{node.name}_unused_{k}"}}
                for k in range(len(schema.returns))
            ]
        self.describe(node)
        if isinstance(node.meta.get("val"), cresset.Tensor):
            return [{"as_tensor": {"name": node.name}}]
        return [{"as_sym_int": {"as_name": node.name}}]

    def argument(self, value, kind=""):
        if isinstance(value, Node):
            if "expression" in value.meta:
                return {"as_sym_int": {"as_name": value.name}}
            if not isinstance(value.meta.get("val"), cresset.Tensor):
                raise NotImplementedError(f"export.save: {value.name} is a fraction of sizes, which cannot be written")
            return {"as_tensor": {"name": value.name}}
        if isinstance(value, (list, tuple)):
            return self.list_of(list(value), kind)
        return self.constant(value)

    def list_of(self, items, kind):
        nodes = [isinstance(item, Node) for item in items]
        if kind.startswith("Tensor?"):
            return {
                "as_optional_tensors": [
                    {"as_none": True} if item is None else {"as_tensor": {"name": item.name}} for item in items
                ]
            }
        if kind.startswith("Tensor") or (
            any(nodes) and all(n and "expression" not in i.meta for n, i in zip(nodes, items, strict=True))
        ):
            return {"as_tensors": [{"name": item.name} for item in items]}
        if any(nodes):
            return {
                "as_sym_ints": [
                    {"as_name": item.name} if isinstance(item, Node) else {"as_int": item} for item in items
                ]
            }
        kinds = {type(item) for item in items}
        if kinds <= {bool} and items:
            return {"as_bools": items}
        if kinds <= {int}:
            return {"as_ints": items}
        if kinds <= {int, float}:
            return {"as_floats": [_in_json(float(item)) for item in items]}
        if kinds == {str}:
            return {"as_strings": items}
        raise NotImplementedError(
            f"export.save: an argument that is a list of {sorted(k.__name__ for k in kinds)} cannot be written"
        )

    def constant(self, value):
        if value is None:
            return {"as_none": True}
        for kind, tag in ((bool, "as_bool"), (int, "as_int"), (float, "as_float"), (str, "as_string")):
            if isinstance(value, kind):
                return {tag: _in_json(value) if kind is float else value}
        if isinstance(value, cresset.dtype):
            return {"as_scalar_type": DTYPES[str(value).removeprefix("torch.")]}
        if isinstance(value, cresset.device):
            return {"as_device": {"type": value.type, "index": value.index}}
        if isinstance(value, cresset.memory_format):
            return {"as_memory_format": MEMORY_FORMATS[str(value)]}
        if isinstance(value, cresset.layout):
            return {"as_layout": STRIDED}
        raise NotImplementedError(f"export.save: an argument of the class {type(value).__name__} cannot be written")


def _in_json(number):
    """The number, or the word for one that is not finite."""
    return (
        number if math.isfinite(number) else "NaN" if math.isnan(number) else "Infinity" if number > 0 else "-Infinity"
    )
