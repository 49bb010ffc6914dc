"""The Python source of a graph. It is what people read, and what a GraphModule runs."""

import builtins
import json
import keyword
import math
import operator
import types
import typing
from collections import namedtuple

import cresset

from .. import pytree
from ..serialization.quoting import printable
from . import _pytree
from .node import Node, _get_qualified_name, _type_repr
from .readable import Readable

PythonCode = namedtuple("PythonCode", "src globals lineno_map", defaults=(None,))

# How operators are written. In-place forms change what the first operand's name stands for.
MAGIC = {
    "eq": "{} == {}", "ne": "{} != {}", "lt": "{} < {}", "gt": "{} > {}", "le": "{} <= {}", "ge": "{} >= {}",
    "pos": "+{}", "neg": "-{}", "invert": "~{}", "add": "{} + {}", "sub": "{} - {}", "mul": "{} * {}",
    "floordiv": "{} // {}",
    "truediv": "{} / {}", "mod": "{} % {}", "pow": "{} ** {}", "lshift": "{} << {}", "rshift": "{} >> {}",
    "and_": "{} & {}",
    "or_": "{} | {}", "xor": "{} ^ {}", "getitem": "{}[{}]", "matmul": "{} @ {}",
}  # fmt: skip
IN_PLACE = {
    "iadd": "{} += {}", "iand": "{} &= {}", "ifloordiv": "{} //= {}", "ilshift": "{} <<= {}", "imod": "{} %= {}",
    "imul": "{} *= {}",
    "imatmul": "{} @= {}", "ior": "{} |= {}", "ipow": "{} **= {}", "irshift": "{} >>= {}", "isub": "{} -= {}",
    "itruediv": "{} /= {}",
    "ixor": "{} ^= {}", "setitem": "{}[{}] = {}",
}  # fmt: skip
_SOURCE = "torch.fx._symbolic_trace"


def _is_ours(thing):
    return (getattr(thing, "__module__", None) or "").partition(".")[0] in ("cresset", "torch")


class _Globals:
    """The names that the code uses from outside, each for one object."""

    def __init__(self, namespace):
        self.namespace, self.by_name, self.wrapped = namespace, {}, {}

    def add(self, hint, thing):
        if _is_ours(thing) and not isinstance(thing, types.ModuleType) and hint.startswith("torch."):
            self.by_name.setdefault("torch", cresset)
            return hint
        normal = hint.replace(".", "_")
        if self.by_name.get(normal) is thing:
            return normal
        name = self.namespace.create_name(normal, thing if _is_hashable(thing) else None)
        self.by_name[name] = thing
        return name


def _is_hashable(thing):
    try:
        hash(thing)
    except TypeError:
        return False
    return True


class CodeGen:
    """Writes the source of a graph. A subclass may change how inputs are taken and outputs given."""

    def __init__(self):
        self._body_transformer = None

    def gen_fn_def(self, free_vars, maybe_return_annotation):
        """The line that begins the function."""
        if not free_vars or free_vars[0] != "self":
            free_vars.insert(0, "self")
        return f"def forward({', '.join(free_vars)}){maybe_return_annotation}:"

    def generate_output(self, output_args):
        """The line that returns."""
        return f"return {output_args!r}"

    def process_inputs(self, *args):
        return args

    def process_outputs(self, outputs):
        return outputs

    def additional_globals(self):
        """Names that the code of a subclass needs, as (name, object) pairs."""
        return []

    def python_code(
        self,
        graph,
        root_module,
        verbose=False,
        include_stride=False,
        include_device=False,
        colored=False,
        expanded_def=False,
        additional_meta=None,
    ):
        writer = _Writer(self, graph, root_module)
        if verbose:
            writer.seen = Readable(include_stride, include_device, colored, additional_meta)
        return writer.write(expanded_def)


class _PyTreeCodeGen(CodeGen):
    """Takes inputs as they were given, flattens them, and gives outputs in the form that was traced."""

    def __init__(self, pytree_info):
        super().__init__()
        self.pytree_info = pytree_info

    def process_inputs(self, *inputs):
        return pytree.tree_flatten(inputs)[0]

    def process_outputs(self, out):
        if self.pytree_info.out_spec is None:
            return out
        return pytree.tree_unflatten(out if isinstance(out, (list, tuple)) else [out], self.pytree_info.out_spec)

    def gen_fn_def(self, free_vars, maybe_return_annotation):
        names = [name.partition(":")[0].partition("=")[0].strip() for name in free_vars if name != "self"]
        first = super().gen_fn_def(list(self.pytree_info.orig_args), maybe_return_annotation)
        given = [name for name in self.pytree_info.orig_args if name != "self"]
        given = [name.lstrip("*").partition(":")[0].partition("=")[0].strip() for name in given]
        return (
            f"{first}\n    {', '.join(names)}, = fx_pytree.tree_flatten_spec([{', '.join(given)}], self._in_spec)"
            if names
            else first
        )

    def generate_output(self, output_args):
        if self.pytree_info.out_spec is None:
            return super().generate_output(output_args)
        return f"return pytree.tree_unflatten({output_args!r}, self._out_spec)"

    def additional_globals(self):
        return [("fx_pytree", _pytree), ("pytree", pytree)]


class _BoxedCodeGen(CodeGen):
    """Takes one list of inputs and empties it, so that nobody but the code holds them while it runs."""

    def gen_fn_def(self, free_vars, maybe_return_annotation):
        names = [name.partition(":")[0].partition("=")[0].strip() for name in free_vars if name != "self"]
        first = f"def forward(self, args_list){maybe_return_annotation}:"
        if not names:
            return first
        taken = "".join(f"\n    {name} = next(args_iter)" for name in names)
        return f"{first}\n    args_iter = iter(args_list){taken}\n    args_list.clear()"


class _Writer:
    """One run of a CodeGen over a graph."""

    def __init__(self, codegen, graph, root):
        from .graph import _Namespace

        self.codegen, self.graph, self.root, self.seen = codegen, graph, root, None
        self.namespace = _Namespace()
        self.globals = _Globals(self.namespace)
        self.free, self.body, self.result = [], [], ""
        for name, thing in [
            ("inf", math.inf),
            ("nan", math.nan),
            ("NoneType", type(None)),
            ("torch", cresset),
            ("device", cresset.device),
        ]:
            self.globals.by_name[name] = thing
        for name, thing in codegen.additional_globals():
            self.globals.by_name[name] = thing
        for node in graph.nodes:
            self.check_names(node)
            self.namespace._owner[node.name] = node

    def check_names(self, node):
        """Refuse a node whose words are no names: they become source, and a graph may come from a file."""
        words = [node.name, *node.kwargs]
        if node.op in ("placeholder", "call_method"):
            words.append(node.target.lstrip("*") if node.op == "placeholder" else node.target)
        for word in words:
            if not (isinstance(word, str) and word.isidentifier()) or keyword.iskeyword(word):
                raise RuntimeError(
                    f"Graph.python_code: {printable(repr(word), 100)} is no name of Python's, in a node of "
                    f"the kind {node.op}"
                )

    # ---- values

    def argument(self, value):
        if isinstance(value, Node):
            return value.name
        if isinstance(value, tuple):
            if hasattr(value, "_fields"):
                name = self.globals.add(_type_repr(type(value)), type(value))
                return f"{name}({', '.join(map(self.argument, value))})"
            inside = ", ".join(map(self.argument, value))
            return f"({inside},)" if len(value) == 1 else f"({inside})"
        if isinstance(value, list):
            return f"[{', '.join(map(self.argument, value))}]"
        if isinstance(value, dict):
            return "{" + ", ".join(f"{key!r}: {self.argument(item)}" for key, item in value.items()) + "}"
        if isinstance(value, slice):
            return f"slice({self.argument(value.start)}, {self.argument(value.stop)}, {self.argument(value.step)})"
        if isinstance(value, (cresset.dtype, cresset.layout, cresset.memory_format)):
            return repr(value).replace("cresset.", "torch.")
        if isinstance(value, type) or callable(value):
            return self.globals.add(_type_repr(value) if isinstance(value, type) else _get_qualified_name(value), value)
        if isinstance(value, cresset.Generator):  # which no text says
            return self.globals.add("_generator", value)
        if value is ...:
            return "Ellipsis"
        return repr(value)

    def arguments(self, args, kwargs):
        return ", ".join(
            [*map(self.argument, args), *(f"{key} = {self.argument(value)}" for key, value in kwargs.items())]
        )

    def attribute(self, path):
        text = self.root
        for part in path.split("."):
            text = (
                f"{text}.{part}" if part.isidentifier() else f"getattr({text}, {json.dumps(part, ensure_ascii=False)})"
            )
        return text

    def kind(self, node):
        if self.seen and (shown := self.seen.value(node)):
            return f": {shown}"
        if node.type is None:
            return ""
        return f" : {self.annotation(node.type)}"

    def annotation(self, kind):
        """A type as code, in which every name is one of the function's own globals: compilers look them up there."""
        if kind is None or kind is type(None):
            return "NoneType"
        inside, origin = typing.get_args(kind), typing.get_origin(kind)
        if isinstance(kind, types.UnionType):
            return "|".join(map(self.annotation, inside))
        if origin in (list, dict, tuple, set, typing.Union) and inside:
            plain = isinstance(kind, types.GenericAlias)
            outer = origin if plain or origin is typing.Union else getattr(typing, origin.__name__.capitalize())
            hint = origin.__name__ if plain else f"typing.{getattr(outer, '_name', None) or outer.__name__}"
            return f"{self.named(hint, outer)}[{','.join(map(self.annotation, inside))}]"
        if isinstance(kind, type) and origin is None:
            return self.named(_type_repr(kind), kind)
        return self.globals.add("typing.Any", typing.Any) if kind is typing.Any else _type_repr(kind)

    def named(self, hint, kind):
        if kind.__module__ == "builtins":
            self.globals.by_name[hint] = kind
            return hint
        return self.globals.add(hint, kind)

    # ---- lines

    def line(self, node):
        if node.op == "placeholder":
            default = f" = {self.argument(node.args[0])}" if node.args else ""
            self.free.append(f"{node.target}{self.kind(node)}{default}")
            bare = node.target.replace("*", "")
            return f"{node.name} = {bare}" if bare != node.name else None
        if node.op == "output":
            if node.type is not None:
                self.result = f" -> {self.annotation(node.type)}"
            text = self.argument(node.args[0])
            return self.codegen.generate_output(_Text(text))
        left = f"{node.name}{self.kind(node)} = "
        if node.op == "get_attr":
            return left + self.attribute(node.target)
        if node.op == "call_module":
            return f"{left}{self.attribute(node.target)}({self.arguments(node.args, node.kwargs)})"
        if node.op == "call_method":
            return f"{left}{self.argument(node.args[0])}.{node.target}({self.arguments(node.args[1:], node.kwargs)})"
        return self.function(node, left)

    def function(self, node, left):
        target = node.target
        name = getattr(target, "__name__", "")
        of_operator = getattr(operator, name, None) is target
        if of_operator and name in MAGIC and not node.kwargs and len(node.args) == MAGIC[name].count("{}"):
            return left + MAGIC[name].format(*map(self.argument, node.args))
        if of_operator and name in IN_PLACE and not node.kwargs:
            text = IN_PLACE[name].format(*map(self.argument, node.args))
            return f"{text};  {left}{self.argument(node.args[0])}"
        if target is getattr and len(node.args) == 2 and isinstance(node.args[1], str) and node.args[1].isidentifier():
            return f"{left}{self.argument(node.args[0])}.{node.args[1]}"
        qualified = _get_qualified_name(target)
        used = self.globals.add(qualified, target)
        if node.meta.get("is_wrapped"):
            self.globals.wrapped.setdefault(used)
        return f"{left}{used}({self.arguments(node.args, node.kwargs)})"

    def write(self, expanded_def):
        last_use = {}
        for node in reversed(self.graph.nodes):
            for used in node._input_nodes:
                last_use.setdefault(used, node)
        freed = {}
        for used, node in last_use.items():
            freed.setdefault(node, []).append(used)
        for node in self.graph.nodes:
            if self.seen and (said := self.seen.above(node)):
                self.body.append(said)
            line = self.line(node)
            if line is None:
                continue
            done = (
                []
                if node.op in ("placeholder", "output")
                else sorted(freed.get(node, []), key=list(node._input_nodes).index)
            )
            if node.op not in ("placeholder", "output") and not node.users:
                done.append(node)
            self.body.append(line + (f";  {' = '.join(one.name for one in done)} = None" if done else "") + "\n")
        if self.seen and self.body:
            self.body[0] = self.body[0].lstrip("\n")
        body = self.codegen._body_transformer(self.body) if self.codegen._body_transformer else self.body
        wraps = "\n".join(f'{_SOURCE}.wrap("{name}")' for name in self.globals.wrapped)
        prologue = self.codegen.gen_fn_def(self.free, self.result)
        if expanded_def:
            first, _, rest = prologue.partition("(")
            inside, end, tail = rest.partition(")")
            prologue = (
                f"{first}(\n    " + ",\n    ".join(part.strip() for part in inside.split(",")) + f",\n{end}{tail}"
            )
        text = "".join(f"    {line}" for part in body or ["pass\n"] for line in part.splitlines(keepends=True))
        return PythonCode(f"\n{wraps}\n\n{prologue}\n{text}    ", dict(self.globals.by_name))


class _Text:
    """Prints as the text it holds: what a CodeGen gets as the output's expression."""

    def __init__(self, text):
        self.text = text

    def __repr__(self):
        return self.text


def compiled(code, defaults, keyword_defaults, filename):
    """The function that a graph's source defines. The source is made from nodes; what stands around the function is not
    run.
    """
    module = builtins.compile(code.src, filename, "exec")
    body = next(part for part in module.co_consts if isinstance(part, types.CodeType) and part.co_name == "forward")
    function = types.FunctionType(body, code.globals, "forward", defaults or None)
    function.__kwdefaults__ = keyword_defaults or None
    return function
