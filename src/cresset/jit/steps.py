"""The instructions of each kind of node that is not control flow: the structural `prim::` kinds here, operators by what
`operators` finds for them.
"""

from .. import _native
from ..graph.types import ClassType, InterfaceType, ListType, NamedTupleType
from ..ops import aten_table
from . import forking, operators, typed_values

ALIASES = {"prim::unchecked_cast", "prim::unchecked_unwrap_optional"}  # the same value, under a narrower type


class _NewMemory:
    """The operators that never give what they were given, nor a view of it: sums and formulas."""

    def __contains__(self, kind):
        if kind in operators.ARITHMETIC:
            return True
        namespace, _, name = kind.partition("::")
        function = aten_table.function(name) if namespace == "aten" else None
        return isinstance(function, _native.Operator) and function.written_over is not None


GIVE_NEW_MEMORY = _NewMemory()


def constant_of(node):
    """The Python value of a constant."""
    if node.kind() == "prim::Uninitialized":
        return None
    if "function" in node.attributes:
        from .lowering import program

        return program(node.attributes["function"])
    return node.attributes.get("value")


def lower_node(to, node):
    """Write the instructions of a node to the lowering `to`."""
    form = _FORMS.get(node.kind())
    if form is not None:
        form(to, node)
    else:
        _operator(to, node)


# ---- containers


def _tuple(to, node):
    made = node.output().type()
    operands = to.reads(node, node.inputs())
    if isinstance(made, NamedTupleType):
        to.call(to.write(node.output()), typed_values.named_tuple_class(made), operands)
    else:
        to.emit("TUPLE", to.write(node.output()), len(operands), *operands)


def _list(to, node):
    operands = to.reads(node, node.inputs())
    to.emit("LIST", to.write(node.output()), len(operands), *operands)


def _dict(to, node):
    operands = to.reads(node, node.inputs())
    to.emit("DICT", to.write(node.output()), len(operands) // 2, *operands)


def _unpack(to, node):
    (operand,) = to.reads(node, node.inputs())
    to.emit("UNPACK", operand, node.outputsSize(), *(to.write(output) for output in node.outputs()))


def _item(to, node):
    operands = to.reads(node, node.inputs()[:2])
    to.emit("ITEM", to.write(node.output()), *operands)


def _tuple_slice(to, node):
    (operand,) = to.reads(node, node.inputs())
    part = to.constant(slice(node.attributes["beg"], node.attributes["end"]))
    to.emit("ITEM", to.write(node.output()), operand, part)


# ---- objects


def _dict_of(owner, name):
    """Where a module keeps the attribute: the name of the dict in it, None for its own."""
    if name in owner.parameters:
        return "_parameters"
    if name in owner.buffers:
        return "_buffers"
    kind = owner.attributes.get(name)
    return "_modules" if isinstance(kind, ClassType) and kind.is_module else None


def _get_attribute(to, node):
    owner, name = node.inputsAt(0).type(), node.attributes["name"]
    (operand,) = to.reads(node, node.inputs())
    if isinstance(owner, ClassType) and not isinstance(owner, InterfaceType):
        where = to.constant(_dict_of(owner, name) if owner.is_module else None)
        to.emit("MEMBER", to.write(node.output()), operand, where, to.constant(name))
    else:
        to.emit("ATTRIBUTE", to.write(node.output()), operand, to.constant(name))


def _set_attribute(to, node):
    owner, name = node.inputsAt(0).type(), node.attributes["name"]
    target, value = to.reads(node, node.inputs())
    where = to.constant(_dict_of(owner, name) if isinstance(owner, ClassType) and owner.is_module else None)
    to.emit("SET_MEMBER", target, where, to.constant(name), value)


def _create(to, node):
    from .objects import new_object

    to.call(to.write(node.output()), new_object, [to.constant(node.output().type())])


class _MethodByName:
    """Calls a method of whatever class the object has: for interfaces."""

    def __init__(self, name):
        self.name = name

    def __call__(self, object, *args):
        from .lowering import program
        from .objects import class_of

        return program(class_of(object).methods[self.name])(object, *args)


def _method(to, node):
    from .lowering import program

    owner, name = node.inputsAt(0).type(), node.attributes["name"]
    function = None if isinstance(owner, InterfaceType) else owner.methods[name]
    target = _MethodByName(name) if function is None else function.python or program(function)
    operands = to.reads(node, node.inputs())
    to.call(to.write(node.output()), target, operands)


def _function(to, node):
    from .lowering import program

    function = node.inputsAt(0).node().attributes["function"]
    target = function.python if function.python is not None and function.graph is None else program(function)
    operands = to.reads(node, node.inputs()[1:])
    to.call(to.write(node.output()), target, operands)


def _python(to, node):
    """A call that leaves the program: what comes back is checked, as a Python value may be anything."""
    function, outputs = node.attributes["function"], node.outputs()
    operands = to.reads(node, node.inputs())
    if len(outputs) == 1:
        to.call(to.write(outputs[0]), typed_values.PythonCall(function, outputs[0].type()), operands)
    else:
        unread = to.temporary()
        to.call(unread, function, operands)
        to.emit("RELEASE", unread)


def _isinstance(to, node):
    operands = to.reads(node, node.inputs())
    to.call(to.write(node.output()), typed_values.IsInstance(node.attributes["types"]), operands)


def _tolist(to, node):
    value, depth, kind = node.inputs()
    numbers = [to.constant_value(depth), to.constant_value(kind)]
    operands = to.reads(node, [value])
    to.call(to.write(node.output()), typed_values.ToList(*numbers), operands)


# ---- the rest


def _enter(to, node):
    operands = to.reads(node, node.inputs())
    to.emit("ENTER", to.write(node.output()) if node.outputs() else to.temporary(), *operands)


def _exit(to, node):
    operands = to.reads(node, node.inputs()[:1])
    to.emit("EXIT", *operands)
    for output in node.outputs():
        to.emit("MOVE", to.write(output), to.constant(None))


def _fork(to, node):
    from .lowering import lower

    target = forking.Fork(lower(node.attributes["Subgraph"], "fork"))
    operands = to.reads(node, node.inputs())
    to.call(to.write(node.output()), target, operands)


def _same(wanted):
    def form(to, node):
        operands = to.reads(node, node.inputs())
        to.emit("SAME", to.write(node.output()), wanted, *operands)

    return form


def _length(to, node):
    operands = to.reads(node, node.inputs())
    to.emit("LENGTH", to.write(node.output()), *operands)


def _operator(to, node):
    found = operators.resolve(to, node)
    operands = to.reads(node, found.values)
    borrowed = []
    for number, convert in found.converted:
        if to.is_constant(found.values[number]):
            operands[number] = to.constant(convert(to.constant_value(found.values[number])))
            continue
        borrowed.append(to.temporary())
        to.call(borrowed[-1], convert, [operands[number]])
        operands[number] = borrowed[-1] | operators.LAST_USE
    outputs = node.outputs()
    single = len(outputs) == 1
    register = to.write(outputs[0]) if single else to.temporary()
    over = getattr(found.function, "written_over", None) if len(operands) == 1 else None
    if over is not None:
        to.emit("APPLY", register, to.constant(found.function), to.constant(over), to.own(found.values[0], operands[0]))
    elif found.instruction is not None:
        if node.kind() in operators.ARITHMETIC:
            operands[0] = to.own(found.values[0], operands[0])
        to.emit(found.instruction[0], register, *found.instruction[1:], *operands)
    else:
        to.call(register, found.function, operands, found.names)
    if single and found.gives_list:
        to.call(register, list, [register])
    elif not outputs:
        to.emit("RELEASE", register)
    elif not single:
        to.emit("UNPACK", register | operators.LAST_USE, len(outputs), *(to.write(output) for output in outputs))
        for output, declared in zip(outputs, found.result_types, strict=True):
            if isinstance(declared, ListType):
                to.call(to.registers[output], list, [to.registers[output]])
    to.free += borrowed


_FORMS = {
    "prim::TupleConstruct": _tuple,
    "prim::ListConstruct": _list,
    "prim::DictConstruct": _dict,
    "prim::TupleUnpack": _unpack,
    "prim::ListUnpack": _unpack,
    "prim::TupleIndex": _item,
    "prim::TupleSlice": _tuple_slice,
    "prim::GetAttr": _get_attribute,
    "prim::SetAttr": _set_attribute,
    "prim::CreateObject": _create,
    "prim::CallMethod": _method,
    "prim::CallFunction": _function,
    "prim::PythonOp": _python,
    "prim::isinstance": _isinstance,
    "prim::tolist": _tolist,
    "prim::Enter": _enter,
    "prim::Exit": _exit,
    "prim::fork": _fork,
    "aten::__is__": _same(1),
    "aten::__isnot__": _same(0),
    "aten::len": _length,
}
