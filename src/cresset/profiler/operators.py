"""torch.ops.profiler: the two ends of a named range as operators, so that a graph can hold them."""

import cresset

from ..ops.namespaces import OpOverloadPacket, PythonOverload, Schema
from .ranges import record_function

PACKETS = {}


def _operator(schema, run):
    schema = Schema(f"profiler::{schema}")
    packet = PACKETS.setdefault(schema.op, OpOverloadPacket(schema.name))
    packet._overloads[schema.overload_name or "default"] = PythonOverload(packet, schema, run)


def _enter(name, args):
    handle = cresset.tensor(())
    handle.range = record_function(name, args).__enter__()
    return handle


def _exit(handle):
    entered = handle.__dict__.pop("range", None)
    if entered is None:
        raise RuntimeError("profiler::_record_function_exit: the range has ended already, or nobody has begun it")
    entered.__exit__()


_RANGE = "__torch__.torch.classes.profiler._RecordFunction"
_operator("_record_function_enter(str name, str? args=None) -> Tensor", _enter)
_operator(
    f"_record_function_enter_new(str name, str? args=None) -> {_RANGE}",
    lambda name, args: record_function(name, args).__enter__(),
)
_operator("_record_function_exit(Tensor _0) -> ()", _exit)
_operator(f"_record_function_exit._RecordFunction({_RANGE} _0) -> ()", lambda entered: entered.__exit__())
