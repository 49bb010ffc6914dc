"""Opening a compiled extension: its operators become those of torch.ops, with the kernels and shape rules that the
library registered.

The structs are those of headers/cresset/extension.h. The interpreter's lock is not held while a kernel runs.
"""

import ctypes
import os
import types

import cresset

from ..._library import registration
from ...ops import namespaces

__all__ = ["is_extension", "open_extension"]

MARK = b"cresset_extension_v1_run"
NUMBERS = {
    "uint8": 0, "int8": 1, "int16": 2, "int32": 3, "int64": 4, "float16": 5, "float32": 6, "float64": 7, "complex32": 8,
    "complex64": 9, "complex128": 10,
    "bool": 11, "bfloat16": 15, "uint16": 27, "uint32": 28, "uint64": 29,
}  # fmt: skip
NUMBER_OF = {getattr(cresset, name): number for name, number in NUMBERS.items()}
DTYPE_OF = {number: dtype for dtype, number in NUMBER_OF.items()}
ROOM = 4096  # for the words of an exception


class TensorStruct(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p), ("sizes", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)), ("dim", ctypes.c_int64),
        ("dtype", ctypes.c_int32), ("device_type", ctypes.c_int32), ("device_index", ctypes.c_int64),
    ]  # fmt: skip


class ArgumentStruct(ctypes.Structure):
    _fields_ = [
        ("kind", ctypes.c_int32), ("length", ctypes.c_int32), ("integer", ctypes.c_int64), ("number", ctypes.c_double),
        ("text", ctypes.c_char_p),
        ("tensors", ctypes.POINTER(TensorStruct)), ("integers", ctypes.POINTER(ctypes.c_int64)),
        ("numbers", ctypes.POINTER(ctypes.c_double)),
    ]  # fmt: skip


class ResultShape(ctypes.Structure):
    _fields_ = [("sizes", ctypes.c_int64 * 64), ("dim", ctypes.c_int64), ("dtype", ctypes.c_int64)]


def is_extension(path):
    """Whether a library was compiled against <cresset/extension.h>."""
    try:
        with open(path, "rb") as file:
            return MARK in file.read()
    except OSError:
        return False


def tensor_struct(who, tensor):
    if tensor.dtype not in NUMBER_OF:
        raise TypeError(f"{who}: tensors of {tensor.dtype} cannot be handed to an extension")
    if tensor.device.type not in ("cpu", "cuda", "meta"):
        raise TypeError(f"{who}: tensors on {tensor.device.type!r} cannot be handed to an extension")
    dim = tensor.dim()
    sizes, strides = (ctypes.c_int64 * dim)(*tensor.shape), (ctypes.c_int64 * dim)(*tensor.stride())
    data = None if tensor.device.type == "meta" else tensor.data_ptr()
    return TensorStruct(
        data, sizes, strides, dim, NUMBER_OF[tensor.dtype], int(tensor.device.type == "cuda"), tensor.device.index or 0
    )


def argument_struct(who, value, declared):
    """A value as the schema declares it."""
    declared = declared.rstrip("?")
    if value is None:
        return ArgumentStruct(kind=0)
    if declared.startswith("Tensor"):
        tensors = [value] if isinstance(value, cresset.Tensor) else list(value)
        array = (TensorStruct * len(tensors))(*(tensor_struct(who, tensor) for tensor in tensors))
        return ArgumentStruct(kind=1 if isinstance(value, cresset.Tensor) else 6, length=len(tensors), tensors=array)
    if declared.startswith(("int[", "SymInt[")):
        return ArgumentStruct(kind=7, length=len(value), integers=(ctypes.c_int64 * len(value))(*value))
    if declared.startswith("float["):
        return ArgumentStruct(kind=8, length=len(value), numbers=(ctypes.c_double * len(value))(*value))
    if declared == "bool":
        return ArgumentStruct(kind=4, integer=bool(value))
    if declared in ("int", "SymInt"):
        return ArgumentStruct(kind=2, integer=value)
    if declared == "float":
        return ArgumentStruct(kind=3, number=value)
    if declared == "str":
        return ArgumentStruct(kind=5, text=value.encode())
    raise TypeError(
        f"{who}: arguments of type {declared!r} cannot be handed to an extension; Tensor, int, float, bool, str and "
        "lists of them can"
    )


class CompiledOperator:
    """One operator of an open library: number `number` of its table."""

    def __init__(self, handle, number, op):
        self.handle, self.number, self.name = handle, number, op.name()
        self.declared = [str(argument.type) for argument in op._schema.arguments]
        self.results = len(op._schema.returns)

    def arguments(self, values):
        return (ArgumentStruct * len(values))(
            *(argument_struct(self.name, value, kind) for value, kind in zip(values, self.declared, strict=True))
        )

    def empty_results(self, values):
        """The results as the shape rule says, not filled yet, on the device of the first tensor."""
        if not self.results:
            return []
        shapes, error = (ResultShape * self.results)(), ctypes.create_string_buffer(ROOM)
        if (
            self.handle.cresset_extension_v1_shape(
                self.number, self.arguments(values), len(values), shapes, self.results, error, ROOM
            )
            < 0
        ):
            raise RuntimeError(f"{self.name}: {error.value.decode(errors='replace')}")
        device = next(
            (
                t.device
                for value in values
                for t in (value if isinstance(value, (list, tuple)) else [value])
                if isinstance(t, cresset.Tensor)
            ),
            None,
        )
        found = []
        for shape in shapes:
            sizes = list(shape.sizes[: shape.dim])
            if shape.dtype not in DTYPE_OF or any(size < 0 for size in sizes):
                raise RuntimeError(f"{self.name}: the shape rule gives sizes {sizes} and dtype number {shape.dtype}")
            found.append(cresset.empty(sizes, dtype=DTYPE_OF[shape.dtype], device=device))
        return found

    def given(self, results):
        return None if not results else results[0] if self.results == 1 else tuple(results)

    def fake(self, *values):
        return self.given(self.empty_results(values))

    def run(self, device, *values):
        results = self.empty_results(values)
        structs = (TensorStruct * len(results))(*(tensor_struct(self.name, result) for result in results))
        stream = ctypes.c_void_p(cresset.cuda.current_stream().cuda_stream) if device else None
        error = ctypes.create_string_buffer(ROOM)
        arguments = self.arguments(values)
        if (
            self.handle.cresset_extension_v1_run(
                self.number, device, arguments, len(values), structs, len(results), stream, error, ROOM
            )
            < 0
        ):
            raise RuntimeError(f"{self.name}: {error.value.decode(errors='replace')}")
        return self.given(results)

    def cpu(self, *values):
        return self.run(0, *values)

    def cuda(self, *values):
        return self.run(1, *values)


_open = {}  # path -> module; a library stays open as long as the process


def open_extension(path, namespace):
    """An object with the operators of a library as attributes; they are torch.ops.<namespace>.<operator>, too."""
    path = os.path.realpath(path)
    if path in _open:
        return _open[path]
    if not is_extension(path):
        raise OSError(f"{path} was not compiled against <cresset/extension.h>")
    handle = ctypes.CDLL(path)
    handle.cresset_extension_v1_schema.restype = ctypes.c_char_p
    module = types.ModuleType(namespace, f"Operators compiled into {path}.")
    module.__file__, module.__all__ = path, []
    for number in range(handle.cresset_extension_v1_count()):
        schema = handle.cresset_extension_v1_schema(number).decode()
        op = registration.add_operator(namespaces.Schema(f"{namespace}::{schema}"), replace=True)
        compiled, parts = CompiledOperator(handle, number, op), handle.cresset_extension_v1_parts(number)
        if compiled.results and not parts & 1:
            raise RuntimeError(
                f"{op.name()}: the operator has results and no shape rule; add .shape(...) to its registration"
            )
        op._fake = compiled.fake
        for bit, device, kernel in ((2, "cpu", compiled.cpu), (4, "cuda", compiled.cuda)):
            if parts & bit:
                op._kernels[device] = kernel
        name = op._schema.op
        setattr(module, name, getattr(getattr(cresset.ops, namespace), name))
        module.__all__.append(name)
    _open[path] = module
    return module
