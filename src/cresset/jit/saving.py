"""torch.jit.save: a compiled module as a TorchScript archive, which PyTorch reads too.

`code/` has the source of its classes and functions, `data.pkl` the module's attributes with the tensors' storages in
`data/`, `constants.pkl` and `constants/` the tensors that the source names, `extra/` files of the user.
"""

import enum
import io
import os
import pickle
import struct
import sys
import zlib

from .. import _native
from ..graph import types as t
from ..graph.function import Argument, Function, FunctionSchema
from ..graph.graph import Graph, copy_node
from ..serialization.archive import ArchiveWriter
from ..serialization.saving import Storages, data_of, replaced_when_whole
from ..storage import TypedStorage
from .code import archive_sources
from .objects import ModuleFace, RecursiveScriptModule, ScriptFunction, class_of

FORMAT_VERSION = 10  # the meaning of operators that the source relies on: PyTorch 2's


def save(m, f, _extra_files=None):
    """Write a compiled module or function to a file that torch.jit.load, also PyTorch's, reads without the model's
    source.

    Args:
        m: what torch.jit.script or trace gave.
        f: a path, which is replaced as a whole or not at all, or an object with `write`.
        _extra_files: names and contents of files to put beside it.
    """
    if isinstance(f, (str, os.PathLike)):
        path = os.fspath(f)
        folder = os.path.splitext(os.path.basename(os.fsdecode(path)))[0] or "archive"
        data = to_bytes(m, _extra_files, folder)
        with replaced_when_whole(path) as file:
            file.write(data)
    else:
        f.write(to_bytes(m, _extra_files))


def to_bytes(m, _extra_files=None, folder="archive"):
    """The bytes of the archive."""
    if isinstance(m, ScriptFunction):
        m = _placeholder(m)
    if isinstance(m, ModuleFace):
        m = m._module
    if not isinstance(m, RecursiveScriptModule):
        raise AttributeError(
            f"'{type(m).__name__}' object has no attribute 'save_to_buffer': jit.save writes what torch.jit.script or "
            "trace gave; save others with torch.save"
        )
    printed = None
    while printed is None:
        data = ObjectWriter()
        data.value(m, m._script_type)
        printed = archive_sources([m._script_type, *data.types])
    sources, constants = printed
    held = ObjectWriter()
    held.tuple(
        [(value, t.TensorType() if isinstance(value, _native.Tensor) else t.StringType()) for value in constants]
    )
    file = io.BytesIO()
    archive = ArchiveWriter(file, folder)
    for name, text in (_extra_files or {}).items():
        archive.write(f"extra/{name}", text.encode() if isinstance(text, str) else bytes(text))
    data.write_storages(archive, "data")
    archive.write("data.pkl", data.bytes())
    for name, text in sources.items():
        archive.write(name, text.encode())
    held.write_storages(archive, "constants")
    archive.write("constants.pkl", held.bytes())
    archive.write(".data/version", f"{FORMAT_VERSION}\n".encode())
    archive.write("byteorder", sys.byteorder.encode())
    names = "".join(title.decode() for title, *_ in archive.entries)
    archive.write(".data/serialization_id", f"{zlib.crc32(names.encode()):020d}{archive.checksums:020d}".encode())
    archive.close()
    return file.getvalue()


def _placeholder(function):
    """A function travels as the forward of a module that has nothing else."""
    owner = t.ClassType("__torch__.PlaceholderModule", True)
    owner.attributes["training"] = t.BoolType()
    original = function._function.ensure_defined()
    schema, graph = original.schema, Graph()
    values = {}
    graph.addInput("self", owner)
    for value in original.graph.inputs():
        values[value] = graph.addInput(value.debugName(), value.type())
    for node in original.graph.nodes():
        graph.appendNode(copy_node(node, graph, values))
    for value in original.graph.outputs():
        graph.registerOutput(values[value])
    arguments = [Argument("self", owner), *schema.arguments]
    owner.methods["forward"] = Function(
        "__torch__.PlaceholderModule.forward", FunctionSchema("forward", arguments, schema.returns), graph, owner
    )
    return RecursiveScriptModule(owner)


_LISTS = {"int": "build_intlist", "float": "build_doublelist", "bool": "build_boollist", "Tensor": "build_tensorlist"}


class ObjectWriter:
    """The pickle of typed values, as PyTorch's C++ reads it: objects by their class's name and attributes, lists with
    their types.
    """

    def __init__(self):
        self._out = [pickle.PROTO + b"\x02"]
        self._memo, self._kept, self._count = {}, [], 0
        self._storages = Storages()
        self.types = {}  # classes of the values, in the order of first use

    def bytes(self):
        return b"".join([*self._out, pickle.STOP])

    def write_storages(self, archive, folder):
        for key, (storage, _) in self._storages.kept.items():
            archive.write(f"{folder}/{key}", data_of(storage))

    # ---- pieces

    def _global(self, module, name):
        self._out.append(pickle.GLOBAL + f"{module}\n{name}\n".encode())

    def _text(self, text):
        data = text.encode("utf-8", "surrogatepass")
        self._out.append(pickle.BINUNICODE + struct.pack("<I", len(data)) + data)

    def _integer(self, number):
        if not -(2**63) <= number < 2**63:
            raise RuntimeError(f"jit.save: {number} does not fit in 64 bits")
        if 0 <= number < 256:
            self._out.append(pickle.BININT1 + bytes([number]))
        elif -(2**31) <= number < 2**31:
            self._out.append(pickle.BININT + struct.pack("<i", number))
        else:
            self._out.append(pickle.LONG1 + b"\x08" + struct.pack("<q", number))

    def _remember(self, value):
        """Others that are the same object refer to it."""
        number, self._count = self._count, self._count + 1
        self._memo[id(value)] = number
        self._kept.append(value)  # so that no other object gets its id meanwhile
        self._out.append(
            pickle.BINPUT + bytes([number]) if number < 256 else pickle.LONG_BINPUT + struct.pack("<I", number)
        )

    def _is_known(self, value):
        number = self._memo.get(id(value))
        if number is not None:
            self._out.append(
                pickle.BINGET + bytes([number]) if number < 256 else pickle.LONG_BINGET + struct.pack("<I", number)
            )
        return number is not None

    # ---- values

    def value(self, value, type_):
        """Write a value of this type."""
        if isinstance(type_, t.OptionalType):
            if value is not None:
                return self.value(value, type_.element)
        elif isinstance(type_, (t.UnionType, t.AnyType)):
            type_ = self._type_of(value, type_)
        if value is None:
            self._out.append(pickle.NONE)
        elif isinstance(value, bool):
            self._out.append(pickle.NEWTRUE if value else pickle.NEWFALSE)
        elif isinstance(value, enum.Enum):
            self.types.setdefault(type_)
            module, _, name = type_.qualified_name.rpartition(".")
            self._global(module, name)
            self.value(value.value, type_.value_type)
            self._out.append(pickle.REDUCE)
        elif isinstance(value, int):
            self._integer(value)
        elif isinstance(value, float):
            self._out.append(pickle.BINFLOAT + struct.pack(">d", value))
        elif isinstance(value, complex):
            self._global("builtins", "complex")
            self._out.append(
                pickle.MARK
                + b"".join(pickle.BINFLOAT + struct.pack(">d", part) for part in (value.real, value.imag))
                + pickle.TUPLE
                + pickle.REDUCE
            )
        elif isinstance(value, str):
            self._text(value)
        elif isinstance(value, _native.Tensor):
            self.tensor(value)
        elif isinstance(value, _native.device):
            self._global("torch", "device")
            self._text(str(value))
            self._out.append(pickle.TUPLE1 + pickle.REDUCE)
        elif isinstance(value, tuple):
            self._typed_tuple(value, type_)
        elif isinstance(value, list):
            self._list(value, type_)
        elif isinstance(value, dict):
            self._dict(value, type_)
        elif class_of(value) is not None:
            self._object(value)
        else:
            raise RuntimeError(f"jit.save: a value of type {type(value).__name__} cannot be written to an archive")
        return None

    @staticmethod
    def _type_of(value, type_):
        """The member of a union that a value has."""
        from .typed_values import IsInstance

        for member in getattr(type_, "members", ()):
            if IsInstance([member])(value):
                return member
        if isinstance(value, list):
            return t.ListType(t.AnyType())
        return t.DictType(t.AnyType(), t.AnyType()) if isinstance(value, dict) else type_

    def tuple(self, typed):
        """A tuple of (value, type)."""
        self._out.append(pickle.MARK)
        for value, type_ in typed:
            self.value(value, type_)
        self._out.append(pickle.TUPLE)

    def _typed_tuple(self, value, type_):
        if isinstance(type_, t.NamedTupleType):
            self.types.setdefault(type_)
            module, _, name = type_.qualified_name.rpartition(".")
            self._global(module, name)
            self.tuple(zip(value, type_.elements(), strict=True))
            self._out.append(pickle.REDUCE)
        else:
            self.tuple(
                zip(
                    value,
                    type_.elements() if isinstance(type_, t.TupleType) else [t.AnyType()] * len(value),
                    strict=True,
                )
            )

    def _list(self, items, type_):
        if self._is_known(items):
            return
        maker = _LISTS.get(str(type_.element))
        if maker is not None:
            self._global("torch.jit._pickle", maker)
            self._out.append(pickle.MARK)
        else:
            self._global("torch.jit._pickle", "restore_type_tag")
        self._out.append(pickle.EMPTY_LIST + pickle.MARK)
        for item in items:
            self.value(item, type_.element)
        self._out.append(pickle.APPENDS)
        if maker is not None:
            self._out.append(pickle.TUPLE + pickle.REDUCE)
        else:
            self._tag(type_)
        self._remember(items)

    def _dict(self, items, type_):
        if self._is_known(items):
            return
        self._global("torch.jit._pickle", "restore_type_tag")
        self._out.append(pickle.EMPTY_DICT + pickle.MARK)
        for key, item in items.items():
            self.value(key, type_.key)
            self.value(item, type_.value)
        self._out.append(pickle.SETITEMS)
        self._tag(type_)
        self._remember(items)

    def _tag(self, type_):
        self._text(type_.annotation_str)
        self._out.append(pickle.TUPLE2 + pickle.REDUCE)

    def _object(self, value):
        if self._is_known(value):
            return
        class_type = class_of(value)
        self.types.setdefault(class_type)
        module, _, name = class_type.qualified_name.rpartition(".")
        self._global(module, name)
        self._out.append(pickle.EMPTY_TUPLE + pickle.NEWOBJ)
        state = class_type.methods.get("__getstate__")
        if state is not None and "__setstate__" in class_type.methods:
            from .lowering import program

            self.value(program(state)(value), state.schema.returns)
        else:
            self._out.append(pickle.EMPTY_DICT + pickle.MARK)
            for attribute, kind in class_type.attributes.items():
                self._text(attribute)
                self.value(_attribute(value, attribute), kind)
            self._out.append(pickle.SETITEMS)
        self._out.append(pickle.BUILD)
        self._remember(value)

    def tensor(self, tensor):
        if self._is_known(tensor):
            return
        plain = type(tensor) is _native.Tensor or type(tensor).__name__ in ("Parameter", "Buffer", "Tensor")
        if tensor.layout != _native.strided or not plain:
            raise RuntimeError(
                f"jit.save: a tensor of type {type(tensor).__name__} and layout {tensor.layout} cannot be written to "
                "an archive; make it dense first"
            )
        storage = TypedStorage(wrap_storage=tensor.untyped_storage(), dtype=tensor.dtype)
        _, kind, key, location, count = self._storages.describe(storage)
        self._global("torch._utils", "_rebuild_tensor_v2")
        self._out.append(pickle.MARK + pickle.MARK)
        self._text("storage")
        self._global("torch", kind.__name__)
        self._text(key)
        self._text(location)
        self._integer(count)
        self._out.append(pickle.TUPLE + pickle.BINPERSID)
        self._integer(tensor.storage_offset())
        for numbers in (tensor.size(), tensor.stride()):
            self._out.append(pickle.MARK)
            for number in numbers:
                self._integer(number)
            self._out.append(pickle.TUPLE)
        self._out.append(pickle.NEWTRUE if tensor.requires_grad else pickle.NEWFALSE)
        self._global("collections", "OrderedDict")
        self._out.append(pickle.EMPTY_TUPLE + pickle.REDUCE + pickle.TUPLE + pickle.REDUCE)
        self._remember(tensor)


def _attribute(value, name):
    fields = value.__dict__
    for register in ("_parameters", "_buffers", "_modules"):
        if name in fields.get(register, ()):
            return fields[register][name]
    return fields[name]
