"""`.pt2` files: the graph as JSON, tensors as bytes. What PyTorch writes is read here, and what is written here PyTorch
reads.

Nothing of a file is run: operators are looked up by name in a table, sizes are parsed as formulas, and the sample
    inputs, the one pickled part, go through the data-only reader.
"""

import io
import json
import operator
import os
import re

import cresset

from ..fx.graph import Graph
from ..fx.node import Node
from ..graph.recordings import Free
from ..ops import aten_table
from ..ops.namespaces import OpOverload
from ..pytree import treespec_dumps, treespec_loads
from . import graph_signature as signature
from .dynamic_shapes import MOST
from .program import ExportedProgram, InputCheck, ModuleCallEntry, ModuleCallSignature, Range
from .size_text import expression_of, srepr, value_of

# The numbers that the format has for dtypes, layouts and memory formats.
DTYPES = {
    "uint8": 1, "int8": 2, "int16": 3, "int32": 4, "int64": 5, "float16": 6, "float32": 7, "float64": 8, "complex32": 9,
    "complex64": 10, "complex128": 11, "bool": 12,
    "bfloat16": 13, "uint16": 28, "float8_e4m3fn": 29, "float8_e5m2": 30, "float8_e4m3fnuz": 31, "float8_e5m2fnuz": 32,
}  # fmt: skip
DTYPE_NAMES = {number: name for name, number in DTYPES.items()}
STRIDED = 7
MEMORY_FORMATS = {
    "torch.contiguous_format": 1,
    "torch.channels_last": 2,
    "torch.channels_last_3d": 3,
    "torch.preserve_format": 4,
}
ARITHMETIC = (
    "add",
    "sub",
    "mul",
    "floordiv",
    "truediv",
    "mod",
    "pow",
    "neg",
    "pos",
    "eq",
    "ne",
    "lt",
    "le",
    "gt",
    "ge",
    "and_",
    "or_",
)
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
    record("models/model.json", json.dumps(_Serializer(ep).program()))
    if ep.example_inputs is not None:
        samples = io.BytesIO()
        cresset.save(ep.example_inputs, samples, pickle_protocol=pickle_protocol)
        record("data/sample_inputs/model.pt", samples.getvalue())
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
    if isinstance(f, (str, os.PathLike)):
        with open(f, "rb") as file:
            content = file.read()
    else:
        content = f.read()
    if content[:2] != b"PK":
        raise RuntimeError("export.load: this is no .pt2 file: it does not begin as a zip archive does")
    reader = cresset.PyTorchFileReader(io.BytesIO(content))
    names = set(reader.get_all_records())
    if "models/model.json" not in names:
        raise RuntimeError(
            f"export.load: the file holds no exported program (models/model.json); it has {sorted(names)[:8]}"
        )
    data = json.loads(reader.get_record("models/model.json"))
    major = data.get("schema_version", {}).get("major")
    if major != 8:
        raise RuntimeError(f"export.load: the file is of version {major} of the format; version 8 can be read")
    tensors = {}
    for kind in ("weights", "constants"):
        tensors[kind] = _read_tensors(reader, names, kind)
    samples = None
    if "data/sample_inputs/model.pt" in names:
        samples = cresset.load(io.BytesIO(reader.get_record("data/sample_inputs/model.pt")), weights_only=True)
    for name in extra_files or {}:
        if f"extra/{name}" in names:
            extra_files[name] = reader.get_record(f"extra/{name}").decode()
    try:
        return _Deserializer(data, tensors["weights"], tensors["constants"], samples).program()
    except (KeyError, IndexError, TypeError, AttributeError) as error:
        raise RuntimeError(
            f"export.load: the program in the file is not whole: {type(error).__name__}: {error}"
        ) from error


# ---- tensors


def _bytes(tensor):
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
        "device": {"type": "cpu", "index": None}, "strides": [{"as_int": s} for s in steps[::-1]],
        "storage_offset": {"as_int": 0}, "layout": STRIDED,
    }  # fmt: skip


def _read_tensors(reader, names, kind):
    config = f"data/{kind}/model_{kind}_config.json"
    found = {}
    if config not in names:
        return found
    for name, entry in json.loads(reader.get_record(config))["config"].items():
        if entry["use_pickle"]:
            found[name] = cresset.load(
                io.BytesIO(reader.get_record(f"data/{kind}/{entry['path_name']}")), weights_only=True
            )
            continue
        meta = entry["tensor_meta"]
        dtype = getattr(cresset, DTYPE_NAMES[meta["dtype"]])
        sizes, strides = ([s["as_int"] for s in meta[key]] for key in ("sizes", "strides"))
        content = bytearray(reader.get_record(f"data/{kind}/{entry['path_name']}"))
        item = cresset.empty((), dtype=dtype).element_size()
        start = meta["storage_offset"]["as_int"]
        last = (
            start + sum((size - 1) * stride for size, stride in zip(sizes, strides, strict=True)) if all(sizes) else -1
        )
        if any(s < 0 for s in (*sizes, *strides, start)) or (last + 1) * item > len(content):
            raise RuntimeError(
                f"export.load: {name!r} has {len(content)} bytes, too few for sizes {sizes} and strides {strides} of "
                f"{DTYPE_NAMES[meta['dtype']]}"
            )
        flat = cresset.frombuffer(content, dtype=dtype) if content else cresset.empty(0, dtype=dtype)
        tensor = flat.as_strided(sizes, strides, start).clone() if all(sizes) else cresset.empty(sizes, dtype=dtype)
        found[name] = cresset.nn.Parameter(tensor, requires_grad=meta["requires_grad"]) if entry["is_param"] else tensor
    return found


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
            "inputs": [],
            "outputs": [],
            "in_spec": treespec_dumps(given.in_spec),
            "out_spec": treespec_dumps(given.out_spec),
            "forward_arg_names": given.forward_arg_names,
        }

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
            "metadata": {},
            "is_hop_single_tensor_return": None,
            "name": node.name,
        }

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
            return {"as_floats": [float(item) for item in items]}
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
                return {tag: value}
        if isinstance(value, cresset.dtype):
            return {"as_scalar_type": DTYPES[str(value).removeprefix("torch.")]}
        if isinstance(value, cresset.device):
            return {"as_device": {"type": value.type, "index": value.index}}
        if isinstance(value, cresset.memory_format):
            return {"as_memory_format": MEMORY_FORMATS[str(value)]}
        if isinstance(value, cresset.layout):
            return {"as_layout": STRIDED}
        raise NotImplementedError(f"export.save: an argument of the class {type(value).__name__} cannot be written")


# ---- reading


class _Deserializer:
    def __init__(self, data, weights, constants, samples):
        self.data, self.weights, self.constants, self.samples = data, weights, constants, samples
        self.module = data["graph_module"]
        self.described = self.module["graph"]["tensor_values"]
        self.numbers = {
            **self.module["graph"].get("sym_int_values", {}),
            **self.module["graph"].get("sym_float_values", {}),
        }
        self.graph, self.values = Graph(), {}
        given = self.module.get("metadata") or {}
        self.symbols = {
            key[7:]: name
            for key, name in given.items()
            if key.startswith("symbol.") and isinstance(name, str) and name.isidentifier()
        }

    def expression(self, size):
        """The formula of a size, in the names that the symbols had when the file was written here."""
        text = re.sub(
            r"Symbol\('(\w+)'", lambda m: f"Symbol('{self.symbols.get(m[1], m[1])}'", size["as_expr"]["expr_str"]
        )
        return expression_of(text)

    def program(self):
        inputs = [self.input_spec(spec) for spec in self.module["signature"]["input_specs"]]
        for spec in inputs:
            node = self.graph.create_node("placeholder", spec.arg.name, (), {}, spec.arg.name)
            node.name = node.target = spec.arg.name
            self.give(spec.arg.name, node)
            if isinstance(spec.arg, signature.ConstantArgument):
                node.meta["val"] = spec.arg.value
        for given in self.module["graph"]["nodes"]:
            self.node(given)
        outputs = [self.argument(value) for value in self.module["graph"]["outputs"]]
        self.graph.output(tuple(outputs))
        specs = [
            self.output_spec(spec, value)
            for spec, value in zip(self.module["signature"]["output_specs"], outputs, strict=True)
        ]
        ranges = {}
        for symbol, limits in self.data["range_constraints"].items():
            ranges[self.symbols.get(symbol, symbol)] = Range(
                limits["min_val"] or 0, MOST if limits["max_val"] is None else limits["max_val"]
            )
        calls = [
            ModuleCallEntry(entry["fqn"], self.call_signature(entry["signature"]))
            for entry in self.module["module_call_graph"]
        ]
        program = ExportedProgram(
            None,
            self.graph,
            signature.ExportGraphSignature(inputs, specs),
            self.weights,
            ranges,
            calls,
            self.samples,
            self.constants,
            checks=self.checks(inputs),
        )
        program.validate()
        return program

    def call_signature(self, given):
        if given is None:
            return None
        return ModuleCallSignature(
            [], [], treespec_loads(given["in_spec"]), treespec_loads(given["out_spec"]), given["forward_arg_names"]
        )

    def checks(self, inputs):
        """What calls are checked for, from the described inputs."""
        found = []
        for spec in inputs:
            if spec.kind is not signature.InputKind.USER_INPUT:
                continue
            if isinstance(spec.arg, signature.ConstantArgument):
                found.append(InputCheck(spec.arg.name, spec.arg.name, None, None, spec.arg.value))
                continue
            meta = self.described[spec.arg.name]
            shape = []
            for size in meta["sizes"]:
                expression = None if "as_int" in size else self.expression(size)
                shape.append(size["as_int"] if expression is None else _free(expression))
            found.append(InputCheck(spec.arg.name, spec.arg.name, getattr(cresset, DTYPE_NAMES[meta["dtype"]]), shape))
        return found

    # ---- nodes

    def give(self, name, node):
        self.values[name] = node
        if name in self.described:
            meta = self.described[name]
            shape = [value_of(size) for size in meta["sizes"]]
            node.meta["val"] = cresset.empty(shape, dtype=getattr(cresset, DTYPE_NAMES[meta["dtype"]]), device="meta")
            node.meta["sizes"] = [
                size["as_int"] if "as_int" in size else self.expression(size).text for size in meta["sizes"]
            ]
        elif name in self.numbers:
            number = self.numbers[name]
            node.meta["expression"] = str(number["as_int"]) if "as_int" in number else self.expression(number).text

    def node(self, given):
        target = _target(given["target"])
        args = [self.argument(i["arg"]) for i in given["inputs"] if i.get("kind", 1) != 2]
        kwargs = {i["name"]: self.argument(i["arg"]) for i in given["inputs"] if i.get("kind", 1) == 2}
        outputs = given["outputs"]
        single = len(outputs) == 1 and "as_tensors" not in outputs[0]
        name = _name(outputs[0]) if single and outputs else given.get("name") or given["target"].split(".")[-2]
        node = self.graph.create_node("call_function", target, tuple(args), kwargs, name)
        if single:
            node.name = name
            self.give(name, node)
            return
        names = [t["name"] for t in outputs[0]["as_tensors"]] if len(outputs) == 1 else [_name(o) for o in outputs]
        for k, name in enumerate(names):
            part = self.graph.create_node("call_function", operator.getitem, (node, k), {}, name)
            part.name = name
            self.give(name, part)
        for name in names:
            if "_unused_" in name:
                self.graph.erase_node(self.values.pop(name))

    def argument(self, given):
        ((tag, value),) = given.items()
        if tag == "as_none":
            return None
        if tag == "as_tensor":
            return self.values[value["name"]]
        if tag == "as_tensors":
            return [self.values[item["name"]] for item in value]
        if tag in ("as_sym_int", "as_sym_float"):
            return self.values[value["as_name"]] if "as_name" in value else next(iter(value.values()))
        if tag == "as_sym_ints":
            return [self.values[item["as_name"]] if "as_name" in item else item["as_int"] for item in value]
        if tag == "as_optional_tensors":
            return [None if "as_none" in item else self.values[item["as_tensor"]["name"]] for item in value]
        if tag == "as_optional_tensor":
            return None if "as_none" in value else self.values[value["as_tensor"]["name"]]
        if tag == "as_scalar_type":
            return getattr(cresset, DTYPE_NAMES[value])
        if tag == "as_device":
            return cresset.device(value["type"], *([value["index"]] if value["index"] is not None else []))
        if tag == "as_memory_format":
            return next(getattr(cresset, name[6:]) for name, number in MEMORY_FORMATS.items() if number == value)
        if tag == "as_layout":
            if value != STRIDED:
                raise RuntimeError(f"export.load: the layout with number {value} is not there")
            return cresset.strided
        if tag in ("as_int", "as_float", "as_bool", "as_string", "as_ints", "as_floats", "as_bools", "as_strings"):
            return value
        raise RuntimeError(f"export.load: an argument of the kind {tag} cannot be read")

    def input_spec(self, spec):
        ((tag, given),) = spec.items()
        kinds, tensor = signature.InputKind, signature.TensorArgument
        if tag == "parameter":
            return signature.InputSpec(kinds.PARAMETER, tensor(given["arg"]["name"]), given["parameter_name"])
        if tag == "buffer":
            return signature.InputSpec(
                kinds.BUFFER, tensor(given["arg"]["name"]), given["buffer_name"], bool(given["persistent"])
            )
        if tag == "tensor_constant":
            return signature.InputSpec(
                kinds.CONSTANT_TENSOR, tensor(given["arg"]["name"]), given["tensor_constant_name"]
            )
        if tag == "constant_input":
            return signature.InputSpec(
                kinds.USER_INPUT, signature.ConstantArgument(given["name"], self.argument(given["value"])), None
            )
        if tag == "user_input" and "as_tensor" in given["arg"]:
            return signature.InputSpec(kinds.USER_INPUT, tensor(given["arg"]["as_tensor"]["name"]), None)
        raise RuntimeError(f"export.load: an input of the kind {tag} cannot be read")

    def output_spec(self, spec, value):
        ((tag, given),) = spec.items()
        kinds = signature.OutputKind
        if tag == "buffer_mutation":
            return signature.OutputSpec(
                kinds.BUFFER_MUTATION, signature.TensorArgument(given["arg"]["name"]), given["buffer_name"]
            )
        if tag == "user_input_mutation":
            return signature.OutputSpec(
                kinds.USER_INPUT_MUTATION, signature.TensorArgument(given["arg"]["name"]), given["user_input_name"]
            )
        if tag != "user_output":
            raise RuntimeError(f"export.load: an output of the kind {tag} cannot be read")
        if not isinstance(value, Node):
            return signature.OutputSpec(kinds.USER_OUTPUT, signature.ConstantArgument("", value), None)
        kind = signature.SymIntArgument if "expression" in value.meta else signature.TensorArgument
        return signature.OutputSpec(kinds.USER_OUTPUT, kind(value.name), None)


def _name(output):
    ((tag, value),) = output.items()
    return value["as_name"] if tag in ("as_sym_int", "as_sym_float", "as_sym_bool") else value["name"]


def _target(text):
    """The operator of this name; nothing else can be named."""
    match = re.fullmatch(r"torch\.ops\.(\w+)\.(\w+)\.(\w+)", text)
    if match is not None:
        space, name, overload = match.groups()
        if space == "aten" and not aten_table.overloads(f"aten::{name}"):
            raise RuntimeError(f"export.load: the operator {text} is not there")
        found = getattr(getattr(getattr(cresset.ops, space), name, None), overload, None)
        if isinstance(found, OpOverload):
            return found
        raise RuntimeError(f"export.load: the operator {text} is not there")
    module, _, name = text.rpartition(".")
    if module in ("_operator", "operator") and name in ARITHMETIC:
        return getattr(operator, name)
    raise RuntimeError(f"export.load: {text} is no operator that a program may call")


def _free(expression):
    symbol, factor, offset = expression.linear()
    return Free(symbol, factor, offset)
