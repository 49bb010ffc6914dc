"""`to_c`: the file. Every value is a plain array in row order; views that only rename elements share their array, other
views are copied.

Note [Arrays]
An array lives from the operator that fills it to the last one that reads it; arrays whose lives do not meet share
memory. There is one block of memory for each type of element, so that the file needs no allocation and breaks no
aliasing rule. What does not depend on the inputs is computed here and written as a constant.
"""

import operator
import os
import re

import cresset

from ...fx.node import Node
from ...graph.aten_calls import default_of
from ..graph_signature import ConstantArgument, InputKind, OutputKind
from . import kernels, movement, operators
from .arrays import Array
from .text import ctype, literal

VIEWS = {
    "permute", "transpose", "t", "numpy_T", "mT", "select", "slice", "narrow", "expand", "expand_as", "split",
    "split_with_sizes", "chunk", "unbind", "diagonal", "movedim",
    "swapaxes", "unfold", "view", "reshape", "_unsafe_view", "flatten", "unflatten", "unsqueeze", "squeeze", "alias",
    "detach", "view_as", "tensor_split",
}  # fmt: skip
SAME = {"contiguous", "clone", "dropout", "lift_fresh", "alias", "detach", "feature_dropout", "alpha_dropout"}


class Writer:
    """Writes the steps of a program.

    Args:
        program: an ExportedProgram without free sizes.
        name: the prefix of what the file defines.
    """

    def __init__(self, program, name):
        self.program, self.name = program, name
        self.arrays = {}  # Node -> Array, or a list of them
        self.known = {}  # Node -> tensor, of what does not depend on the inputs
        self.constants = {}  # name -> tensor, as written
        self.steps, self.helpers = [], {}
        self.inputs, self.outputs = [], []
        self.node = None

    # ---- reading the program

    def write(self):
        specs = iter(self.program.graph_signature.input_specs)
        for node in self.program.graph.nodes:
            self.node = node
            if node.op == "placeholder":
                self.placeholder(node, next(specs))
            elif node.op == "call_function":
                self.call(node)
            else:
                self.output(node)
        return self

    def placeholder(self, node, spec):
        if spec.kind is not InputKind.USER_INPUT:
            self.known[node] = self.program.tensor_of(spec).detach()
        elif isinstance(spec.arg, ConstantArgument):
            self.known[node] = spec.arg.value
        else:
            value = node.meta["val"]
            array = self.arrays[node] = Array(value.shape, value.dtype, _identifier(node.name))
            self.inputs.append(array)

    def call(self, node):
        schema = getattr(node.target, "_schema", None)
        if schema is not None and any(argument.is_written for argument in schema.arguments):
            self.check_write(node)
        if all(argument in self.known for argument in node.all_input_nodes):
            self.fold(node)
        elif node.target is operator.getitem:
            self.arrays[node] = self.arrays[node.args[0]][node.args[1]]
        else:
            self.emit(node)

    def fold(self, node):
        """Compute what does not depend on the inputs."""
        values = lambda tree: _map(tree, lambda n: self.known[n])  # noqa: E731
        with cresset.no_grad():
            self.known[node] = node.target(*values(node.args), **values(node.kwargs))

    def emit(self, node):
        schema = getattr(node.target, "_schema", None)
        name = schema.op if schema is not None else getattr(node.target, "__name__", str(node.target))
        if schema is None:
            raise self.unsupported("a computation on sizes")
        given = {a.name: default_of(a) for a in schema.arguments if a.has_default}
        given.update(zip((a.name for a in schema.arguments), node.args, strict=False))
        given = {a.name: {**given, **node.kwargs}[a.name] for a in schema.arguments}
        if name.endswith("_") and not name.endswith("__"):
            name = name[:-1]
        if name in SAME:
            if name.endswith("dropout") and given["train"]:
                raise self.unsupported("dropout in training mode; call eval() before the export")
            source = self.array(node.args[0])
            self.arrays[node] = Array(source.shape, source.dtype).part_of(source, 0)
        elif name in VIEWS:
            movement.view(self, node, given)
        else:
            emitter = operators.EMITTERS.get(name)
            if emitter is None:
                raise self.unsupported("it has no form in C here")
            self.arrays[node] = emitter(self, **given)

    def check_write(self, node):
        """A write in place is a new value here, which is right only if nobody looks at the old one, or at a view of it,
        afterwards.
        """
        target = node.args[0]
        if target not in self.arrays or isinstance(target, Node) and target.op == "placeholder":
            raise self.unsupported("a write to an input or to a buffer")
        root, after = self.arrays[target].root, False
        for other in self.program.graph.nodes:
            after = after or other is node
            for argument in other.all_input_nodes if after and other is not node else ():
                if (
                    argument in self.arrays
                    and not isinstance(self.arrays[argument], list)
                    and self.arrays[argument].root is root
                ):
                    raise self.unsupported("a write in place to what is used later by another name; clone it before")

    def output(self, node):
        for spec, value in zip(self.program.graph_signature.output_specs, node.args[0], strict=True):
            if spec.kind is not OutputKind.USER_OUTPUT:
                raise self.unsupported("a program that writes to its buffers")
            if isinstance(value, Node):
                found = self.array(value)
                self.use(found)
                self.outputs.append(found)

    def unsupported(self, why):
        target = self.node.target
        name = getattr(getattr(target, "_schema", None), "name", None) or getattr(target, "__name__", target)
        place = self.node.meta.get("stack_trace", "")
        return NotImplementedError(f"to_c: {name}: {why}{'; ' + place if place else ''}")

    # ---- arrays

    def array(self, value):
        """The array of an argument; a constant is written when it is first used."""
        if isinstance(value, Array):
            return value
        if value in self.arrays:
            return self.arrays[value]
        tensor = self.known[value]
        if not isinstance(tensor, cresset.Tensor):
            raise self.unsupported(f"the argument {tensor!r} is no tensor")
        return self.arrays.setdefault(value, self.constant(value.name, tensor))

    def constant(self, name, tensor):
        name = _identifier(name)
        self.constants[name] = tensor.detach().cpu().contiguous()
        return Array(tensor.shape, tensor.dtype, name)

    def number(self, value):
        """A Python number of an argument; None if it is a tensor that depends on the inputs."""
        if isinstance(value, Node):
            value = self.known.get(value)
            return value.item() if isinstance(value, cresset.Tensor) and value.numel() == 1 else None
        return value

    def new(self, shape=None, dtype=None):
        """A new array for the present step: of the node's shape and dtype."""
        value = self.node.meta.get("val")
        array = Array(value.shape if shape is None else shape, value.dtype if dtype is None else dtype)
        array.pointer = f"v{len(self.steps)}"
        array.first = len(self.steps)
        return array

    def use(self, array):
        array.root.last = len(self.steps)

    def step(self, text, made, used=()):
        """Add a step that fills `made` from `used`."""
        for array in (*used, made):
            self.use(array)
        place = f"{self.node.name}: {', '.join(map(str, made.shape)) or 'one number'}"
        self.steps.append((made, f"    /* {place} */\n{_indented(text)}"))
        return made

    def helper(self, name):
        """Ask for a function of the file, and for those that it calls."""
        self.helpers.setdefault(name, kernels.SOURCES[name])

    # ---- memory

    def placed(self):
        """Where each array lies: {array: offset} and the size of each type's block."""
        blocks, sizes, offsets = {}, {}, {}
        arrays = [made for made, _ in self.steps if made.root is made]
        for array in sorted(arrays, key=lambda a: -a.count):
            offset = 0
            for start, stop, other in sorted(blocks.get(array.ctype, []), key=lambda b: b[0]):
                if other.last >= array.first and array.last >= other.first:
                    if start - offset >= array.count:
                        break
                    offset = max(offset, stop)
            blocks.setdefault(array.ctype, []).append((offset, offset + array.count, array))
            offsets[array] = offset
            sizes[array.ctype] = max(sizes.get(array.ctype, 0), offset + array.count)
        return offsets, sizes


def _map(tree, function):
    if isinstance(tree, Node):
        return function(tree)
    if isinstance(tree, (list, tuple)):
        return (
            type(tree)(_map(item, function) for item in tree)
            if type(tree) in (list, tuple)
            else [_map(item, function) for item in tree]
        )
    if isinstance(tree, dict):
        return {key: _map(item, function) for key, item in tree.items()}
    return tree


def _identifier(name):
    return "t_" + re.sub(r"\W", "_", name)


def _indented(text):
    return "\n".join("    " + line if line else "" for line in text.strip("\n").splitlines())


# ---- the file


def to_c(exported, path, *, name="model", weights="inside", main=False):
    """Write an exported program as one C99 file that computes the same without Python and without cresset.

    The file defines `void <name>_run(const float *x, float *out0)`, with one pointer for each input and output tensor,
    in the program's order, elements in row order. It uses no heap and no threads, and keeps its intermediate values in
    static memory: call it from one thread at a time.

    Args:
        exported: an ExportedProgram whose sizes are all fixed.
        path: where to write it, a name that ends in .c.
        name: the prefix of what the file defines.
        weights: "inside" the file, or "beside" it in `<path without .c>.bin`, which `int <name>_load(const char *path)`
            reads (0 if it could).
        main: also write a program: it reads inputs from standard input as they lie in memory, as often as there are
            some, and writes the outputs.

    >>> import tempfile, os
    >>> program = cresset.export.export(nn.Linear(3, 2).eval(), (cresset.ones(1, 3),))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     cresset.export.to_c(program, os.path.join(folder, "model.c"))
    ...     "void model_run(const float *t_input, float *out0)" in open(os.path.join(folder, "model.c")).read()
    True
    """
    path = os.fspath(path)
    if not path.endswith(".c"):
        raise ValueError(f"to_c: the file's name should end in .c, got {path!r}")
    if weights not in ("inside", "beside"):
        raise ValueError(f"to_c: weights should be 'inside' or 'beside', got {weights!r}")
    if not re.fullmatch(r"[A-Za-z_]\w*", name):
        raise ValueError(f"to_c: {name!r} is no name in C")
    if exported.range_constraints:
        raise NotImplementedError(
            f"to_c: the sizes {list(exported.range_constraints)} are free; export the module with fixed sizes, such "
            "as one sample"
        )
    writer = Writer(exported, name).write()
    text = _file(writer, weights == "inside", main)
    if weights == "beside":
        with open(path[:-2] + ".bin", "wb") as file:
            for tensor in writer.constants.values():
                file.write(_bytes(tensor))
    with open(path, "w") as file:
        file.write(text)


def _bytes(tensor):
    return bytes(memoryview(tensor.reshape(-1))) if tensor.numel() else b""


def _file(writer, inside, main):
    name = writer.name
    offsets, sizes = writer.placed()
    parts = [
        f"/* {name}: written by cresset {cresset.__version__} from an exported program. C99; link with -lm.\n"
        f"   void {name}_run({_signature(writer)});\n   Elements are in row order. Not for several threads at once: "
        "intermediate values are static. */",
        "#include <math.h>\n#include <stdint.h>\n#include <string.h>"
        + ("" if inside and not main else "\n#include <stdio.h>"),
        f"void {name}_run({_signature(writer)});" + ("" if inside else f"\nint {name}_load(const char *path);"),
    ]
    constants = []
    for constant, tensor in writer.constants.items():
        kind, count = ctype(tensor.dtype), max(tensor.numel(), 1)
        if inside:
            constants.append(f"static const {kind} {constant}[{count}] = {{{_numbers(tensor)}}};")
        else:
            constants.append(f"static {kind} {constant}[{count}];")
    parts += ["\n".join(constants)] if constants else []
    parts += [f"static {kind} {_block(kind)}[{max(size, 1)}];" for kind, size in sizes.items()]
    parts += list(writer.helpers.values())
    if not inside:
        parts.append(_loader(writer))
    lines = [f"void {name}_run({_signature(writer)})", "{"]
    for made, _ in writer.steps:
        if made.root is made:
            lines.append(f"    {made.ctype} *const {made.pointer} = {_block(made.ctype)} + {offsets[made]};")
    lines += ["", *(text for _, text in writer.steps)]
    for k, array in enumerate(writer.outputs):
        lines.append(f"    memcpy(out{k}, {array.name}, sizeof({array.ctype}) * {array.count});")
    lines.append("}")
    parts.append("\n".join(lines))
    if main:
        parts.append(_main(writer, inside))
    return "\n\n".join(parts) + "\n"


def _signature(writer):
    inputs = [f"const {array.ctype} *{array.pointer}" for array in writer.inputs]
    return ", ".join([*inputs, *(f"{array.ctype} *out{k}" for k, array in enumerate(writer.outputs))])


def _block(kind):
    return "memory_" + kind.replace(" ", "_")


def _numbers(tensor):
    values = tensor.reshape(-1).tolist()
    lines = [", ".join(literal(v, tensor.dtype) for v in values[k : k + 12]) for k in range(0, len(values), 12)]
    return (",\n    ".join(lines) if len(lines) <= 1 else "\n    " + ",\n    ".join(lines) + "\n") or "0"


def _loader(writer):
    reads = "\n".join(
        f"    good = good && fread({name}, sizeof({ctype(t.dtype)}), {t.numel()}, file) == {t.numel()};"
        for name, t in writer.constants.items()
        if t.numel()
    )
    return (
        f'int {writer.name}_load(const char *path)\n{{\n    int good = 1;\n    FILE *file = fopen(path, "rb");\n    '
        f"if (!file) return 1;\n{reads}\n"
        "    fclose(file);\n    return good ? 0 : 1;\n}"
    )


def _main(writer, inside):
    declared = [f"    static {a.ctype} in{k}[{max(a.count, 1)}];" for k, a in enumerate(writer.inputs)]
    declared += [f"    static {a.ctype} out{k}[{max(a.count, 1)}];" for k, a in enumerate(writer.outputs)]
    reads = (
        " && ".join(
            f"fread(in{k}, sizeof({a.ctype}), {a.count}, stdin) == {a.count}" for k, a in enumerate(writer.inputs)
        )
        or "!done++"
    )
    names = ", ".join(
        [*(f"in{k}" for k in range(len(writer.inputs))), *(f"out{k}" for k in range(len(writer.outputs)))]
    )
    writes = "\n".join(
        f"        if (fwrite(out{k}, sizeof({a.ctype}), {a.count}, stdout) != {a.count}) return 1;"
        for k, a in enumerate(writer.outputs)
    )
    load = "" if inside else f"    if (argc < 2 || {writer.name}_load(argv[1])) return 2;\n"
    head = "int main(void)" if inside else "int main(int argc, char **argv)"
    first = "" if writer.inputs else "    int done = 0;\n"
    return (
        f"{head}\n{{\n{chr(10).join(declared)}\n{first}{load}    while ({reads}) {{\n        "
        f"{writer.name}_run({names});\n{writes}\n    }}\n    return 0;\n}}"
    )
