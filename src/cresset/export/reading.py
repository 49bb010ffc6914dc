"""The program of a `.pt2` file: its JSON becomes a graph and its signature. Nothing of it is run: operators are looked
up by name in a table, sizes are parsed as formulas, and words that become source must be names.
"""

import keyword
import operator
import re

import cresset

from .._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from ..fx.graph import Graph
from ..fx.node import Node
from ..graph.recordings import Free
from ..ops import aten_table
from ..ops.namespaces import OpOverload
from ..pytree import treespec_loads
from ..serialization.quoting import printable
from . import graph_signature as signature
from .dynamic_shapes import MOST
from .module_calls import ROOT
from .program import ExportedProgram, InputCheck, ModuleCallEntry, ModuleCallSignature, Range
from .schema import ARITHMETIC, DTYPE_NAMES, MEMORY_FORMATS, NOT_FINITE, STRIDED
from .size_text import expression_of, value_of

PLAIN = {"as_int": int, "as_float": float, "as_bool": bool, "as_string": str}


class ProgramReader:
    """Reads one program: `data` has the pieces of its JSON, the others are the file's tensors and sample inputs.

    The JSON is read a piece at a time: beside the program itself there is one node's description in memory.
    """

    def __init__(self, data, weights, constants, samples):
        self.data, self.weights, self.constants, self.samples = data, weights, constants, samples
        self.module = data["graph_module"].fields()
        self.parts = self.module["graph"].fields()
        self.signature = self.module["signature"].fields()
        self.graph, self.values, self.free_shapes, self.words = Graph(), {}, {}, {}
        self.symbols, self.fake_mode = {}, FakeTensorMode()
        for key, piece in self.module["metadata"].items() if "metadata" in self.module else ():
            if key.startswith("symbol."):
                name = piece.value()
                if isinstance(name, str) and name.isidentifier():
                    self.symbols[key[7:]] = name

    def expression(self, size):
        """The formula of a size, in the names that the symbols had when the file was written here."""
        text = size["as_expr"]["expr_str"]
        return expression_of(re.sub(r"Symbol\('(\w+)'", lambda m: f"Symbol('{self.symbols.get(m[1], m[1])}'", text))

    def program(self):
        inputs = [self.input_spec(spec.value()) for spec in self.signature["input_specs"].elements()]
        for spec in inputs:
            node = self.graph.create_node("placeholder", self.name(spec.arg.name), (), {}, spec.arg.name)
            node.name = node.target = spec.arg.name
            self.give(spec.arg.name, node)
            if isinstance(spec.arg, signature.ConstantArgument):
                node.meta["val"] = spec.arg.value
        for given in self.parts["nodes"].elements():
            self.node(given.value())
        self.describe({spec.arg.name for spec in inputs if spec.kind is signature.InputKind.USER_INPUT})
        outputs = [self.argument(value.value()) for value in self.parts["outputs"].elements()]
        self.graph.output(tuple(outputs))
        specs = [
            self.output_spec(spec.value(), value)
            for spec, value in zip(self.signature["output_specs"].elements(), outputs, strict=True)
        ]
        ranges = {}
        for symbol, piece in self.data["range_constraints"].items():
            limits = piece.value()
            low, high = (limits[end] for end in ("min_val", "max_val"))
            ranges[self.symbols.get(symbol, symbol)] = Range(
                0 if low is None else _plain(low, int), MOST if high is None else _plain(high, int)
            )
        calls = []
        for piece in self.module["module_call_graph"].elements():
            entry = piece.value()
            calls.append(ModuleCallEntry(entry["fqn"], self.call_signature(entry["signature"])))
        self.check_call(calls, inputs, specs)
        self.check_tensors(inputs)
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

    def check_call(self, calls, inputs, outputs):
        """Refuse a program whose arguments and results are not as many as its graph takes and gives."""
        whole = calls[0].signature if calls and calls[0].fqn == "" else None
        if whole is None or whole.forward_arg_names is None:
            raise RuntimeError("export.load: the file does not say how its program is called")
        args, kwargs = whole.in_spec.children()
        taken = len([spec for spec in inputs if spec.kind is signature.InputKind.USER_INPUT])
        given = len([spec for spec in outputs if spec.kind is signature.OutputKind.USER_OUTPUT])
        names = args.num_children + kwargs.num_children
        for what, said, found in (
            ("inputs", whole.in_spec.num_leaves, taken),
            ("outputs", whole.out_spec.num_leaves, given),
            ("arguments", len(whole.forward_arg_names), names),
        ):
            if said != found:
                raise RuntimeError(f"export.load: the file says {said} {what}, its program has {found}")

    def check_tensors(self, inputs):
        """Refuse names at which a module can hold no tensor, and parameters that are none."""
        held_at = {}
        for spec in inputs:
            if spec.kind is signature.InputKind.USER_INPUT:
                continue
            parts = spec.target.split(".")
            above = {".".join(parts[:end]) for end in range(1, len(parts))}
            if held_at.get(spec.target) or any(held_at.get(path) == "tensor" for path in above):
                raise RuntimeError(f"export.load: {printable(repr(spec.target), 100)} is where another tensor is")
            held_at |= {**dict.fromkeys(above, "module"), spec.target: "tensor"}
            if not all(parts) or any(hasattr(cresset.nn.Module, part) for part in parts):
                raise RuntimeError(f"export.load: {printable(repr(spec.target), 100)} is no name of a tensor")
            held = self.weights.get(spec.target, self.constants.get(spec.target))
            is_parameter = spec.kind is signature.InputKind.PARAMETER
            if is_parameter != isinstance(held, cresset.nn.Parameter):
                words = "is no parameter" if is_parameter else "is a parameter"
                raise RuntimeError(f"export.load: {printable(repr(spec.target), 100)} {words} in the file")

    def call_signature(self, given):
        if given is None:
            return None
        names = given["forward_arg_names"]
        return ModuleCallSignature(
            [self.signature_argument(one) for one in given["inputs"]],
            [self.signature_argument(one) for one in given["outputs"]],
            treespec_loads(given["in_spec"]),
            treespec_loads(given["out_spec"]),
            None if names is None else [self.name(name) for name in names],
        )

    def signature_argument(self, given):
        ((tag, value),) = given.items()
        if tag == "as_tensor":
            return signature.TensorArgument(self.values[value["name"]].name)
        if tag == "as_sym_int" and "as_name" in value:
            return signature.SymIntArgument(self.values[value["as_name"]].name)
        return signature.ConstantArgument("", self.argument(given))

    def checks(self, inputs):
        """What calls are checked for, from the described inputs."""
        found = []
        for spec in inputs:
            if spec.kind is not signature.InputKind.USER_INPUT:
                continue
            if isinstance(spec.arg, signature.ConstantArgument):
                found.append(InputCheck(spec.arg.name, spec.arg.name, None, None, spec.arg.value))
                continue
            dtype, shape = self.free_shapes[spec.arg.name]
            found.append(InputCheck(spec.arg.name, spec.arg.name, dtype, shape))
        return found

    def describe(self, inputs):
        """Put what the file says of values beside their nodes, and keep the free sizes of the `inputs`."""
        for name, piece in self.parts["tensor_values"].items():
            if name not in self.values:
                continue
            given, node = piece.value(), self.values[name]
            shape, dtype = [value_of(size) for size in given["sizes"]], getattr(cresset, DTYPE_NAMES[given["dtype"]])
            formulas = [None if "as_int" in size else self.expression(size) for size in given["sizes"]]
            held = cresset.empty(shape, dtype=dtype, device="meta")
            device = (given.get("device") or {}).get("type")
            node.meta["val"] = FakeTensor(self.fake_mode, held, device if device in ("cuda", "meta") else "cpu")
            node.meta["sizes"] = [
                size["as_int"] if formula is None else formula.text
                for size, formula in zip(given["sizes"], formulas, strict=True)
            ]
            if name in inputs:
                self.free_shapes[name] = (
                    dtype,
                    [
                        size["as_int"] if formula is None else _free(formula)
                        for size, formula in zip(given["sizes"], formulas, strict=True)
                    ],
                )
        for kind in ("sym_int_values", "sym_float_values"):
            for name, piece in self.parts[kind].items() if kind in self.parts else ():
                if name in self.values and "val" not in self.values[name].meta:
                    number = piece.value()
                    text = str(number["as_int"]) if "as_int" in number else self.expression(number).text
                    self.values[name].meta["expression"] = text

    # ---- nodes

    def name(self, text):
        """A name that the file gives to a value: it will stand in source."""
        if type(text) is not str or not text.isidentifier() or keyword.iskeyword(text) or not text.isascii():
            raise RuntimeError(f"export.load: {printable(repr(text), 100)} is no name of a value")
        return text

    def give(self, name, node):
        if name in self.values:
            raise RuntimeError(f"export.load: {name} is given twice; the program in the file is not whole")
        self.values[name] = node

    def node(self, given):
        target = _target(given["target"])
        args = [self.argument(i["arg"]) for i in given["inputs"] if i.get("kind", 1) != 2]
        kwargs = {self.name(i["name"]): self.argument(i["arg"]) for i in given["inputs"] if i.get("kind", 1) == 2}
        outputs = given["outputs"]
        single = len(outputs) == 1 and "as_tensors" not in outputs[0]
        name = _name(outputs[0]) if single and outputs else given.get("name") or given["target"].split(".")[-2]
        node = self.graph.create_node("call_function", target, tuple(args), kwargs, self.name(name))
        stack = self.module_stack(given.get("metadata") or {})
        node.meta["nn_module_stack"] = stack
        if single:
            node.name = name
            self.give(name, node)
            return
        names = [t["name"] for t in outputs[0]["as_tensors"]] if len(outputs) == 1 else [_name(o) for o in outputs]
        for k, name in enumerate(names):
            part = self.graph.create_node("call_function", operator.getitem, (node, k), {}, self.name(name))
            part.name, part.meta["nn_module_stack"] = name, dict(stack)
            self.give(name, part)
        for name in names:
            if "_unused_" in name:
                self.graph.erase_node(self.values.pop(name))

    def module_stack(self, metadata):
        """{name: (path, class)} of the calls of modules around a node, from "key,path,class;..."."""
        found, text = {}, metadata.get("nn_module_stack", "")
        for entry in text.split(";") if isinstance(text, str) else ():
            if entry not in self.words:  # many nodes have the same
                words = entry.split(",")
                is_whole = len(words) == 3 and (words[1] == "" or _is_path(words[1]))
                path, number = words[1].partition("@")[0] if is_whole else "", words[0].partition("@")[2]
                key = f"{ROOT}{path}@{number}" if number else f"{ROOT}{path}"
                self.words[entry] = (key, (path, words[2])) if is_whole else None
            if self.words[entry] is not None:
                found.__setitem__(*self.words[entry])
        return found

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
        if tag in PLAIN:
            return _plain(value, PLAIN[tag])
        if tag[:-1] in PLAIN and tag.endswith("s") and isinstance(value, list):
            return [_plain(item, PLAIN[tag[:-1]]) for item in value]
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


def _plain(value, kind):
    """A number or word of a kind: what JSON has for it."""
    if kind is float and isinstance(value, str) and value in NOT_FINITE:
        return NOT_FINITE[value]
    if type(value) is kind or (kind is float and type(value) is int):
        return kind(value)
    raise RuntimeError(f"export.load: {printable(repr(value), 100)} stands where {kind.__name__} is expected")


def _is_path(text):
    """Whether it is a module's path: names and numbers with dots between, each perhaps with "@" and a count."""
    parts = (part.partition("@")[0] for part in text.split("."))
    return all(part.isidentifier() or part.isdigit() for part in parts)


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
