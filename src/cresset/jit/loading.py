"""torch.jit.load: TorchScript archives, ours and PyTorch's. The source inside is compiled by our own compiler and never
run by Python; the pickles are read as data.
"""

import os
import pickle
import re

from ..graph import types as t
from ..nn import Parameter
from ..serialization.archive import ZIP_MAGIC, ArchiveReader, FileSource
from ..serialization.loading import ArchiveLoad
from ..serialization.locations import restore_function
from ..serialization.pickles import PickleReader
from ..serialization.quoting import printable
from .objects import RecursiveScriptModule, ScriptObject
from .saving import FORMAT_VERSION
from .typed_values import Mismatch, accept, named_tuple_class

_COST_OF_PART = 64
_SLACK = 1 << 20  # bytes that a record may have beyond the size of the file


def load(f, map_location=None, _extra_files=None, _restore_shapes=False):
    """Read a module that torch.jit.save, also PyTorch's, has written. The model's Python source is not needed, and no
    code of the file runs in Python.

    Args:
        f: a path, or an object with `read` and `seek`.
        map_location: where tensors go: a device, its name, or a dictionary from tag to tag.
        _extra_files: a dictionary whose keys name extra files; their contents are put in it, as bytes.
        _restore_shapes: PyTorch's option for the sizes that a recording saw; they are not kept in the graph here.
    """
    if isinstance(f, (str, os.PathLike)):
        if not os.path.exists(f):
            raise ValueError(f"The provided filename {os.fsdecode(f)} does not exist")
        if os.path.isdir(f):
            raise ValueError(f"The provided filename {os.fsdecode(f)} is a directory")
        with open(f, "rb") as file:
            return load_from(FileSource(file, os.fsdecode(f)), restore_function(map_location), _extra_files)
    return load_from(FileSource(f), restore_function(map_location), _extra_files)


def load_from(source, restore, extra_files=None):
    """The module in a FileSource; `restore` puts storages in their places."""
    if source.size < 4 or source.read(0, 4) != ZIP_MAGIC:
        raise RuntimeError(
            f"PytorchStreamReader failed reading zip archive: failed finding central directory ({source.name}); the "
            "file is no archive, truncated or damaged"
        )
    archive = ArchiveReader(source, packed=True)
    if "constants.pkl" not in archive:
        hint = "; torch.load reads what torch.save wrote" if "data.pkl" in archive else ""
        raise RuntimeError(f"jit.load: {source.name} is no TorchScript archive: it has no constants.pkl{hint}")
    _check_version(archive)
    try:
        module = ModuleLoad(archive, restore).module()
    except RecursionError:
        raise RuntimeError(f"jit.load: the values or the source in {source.name} are nested too deeply") from None
    for name in extra_files if extra_files is not None else ():
        record = f"extra/{name}"
        extra_files[name] = _unpacked(archive, record) if record in archive else b""
    return module


def _check_version(archive):
    place = next((name for name in (".data/version", "version") if name in archive), None)  # the first: since version 6
    text = archive.beginning(place, 32) if place is not None else b""
    if not re.fullmatch(rb"\d{1,18}\s*", text):
        raise RuntimeError(f"jit.load: {archive.source.name} says no version; the file is truncated or damaged")
    version = int(text)
    if version > FORMAT_VERSION:
        raise RuntimeError(
            f"Attempted to read a PyTorch file with version {version}, but the maximum supported version for reading "
            f"is {FORMAT_VERSION}. "
            "The file was written by a newer PyTorch; install a newer cresset or save it with an older PyTorch"
        )
    if version < 1:
        raise RuntimeError(
            f"Attempted to read a PyTorch file with version {version}, but the minimum supported version for reading "
            "is 1"
        )


def _unpacked(archive, name):
    """A record that may be compressed. It may not grow beyond the file by more than a megabyte."""
    record = archive.record(name)
    if record.unpacked is None:
        return archive.read(name)
    most = archive.source.size + _SLACK
    if record.unpacked > most:
        raise RuntimeError(
            printable(
                (
                    f"jit.load: the record {name!r} is said to unpack to {record.unpacked} bytes, "
                    f"{archive.source.name} "
                    f"has {archive.source.size}"
                ),
                500,
            )
        )
    data = archive.beginning(name, record.unpacked + 1)
    if len(data) != record.unpacked:
        raise RuntimeError(
            printable(
                f"jit.load: the record {name!r} unpacks to another size than the archive says; the file is damaged", 500
            )
        )
    archive.check(record, data)
    return data


# ---- values of the pickles


def _is_module(type_):
    return isinstance(type_, t.ClassType) and type_.is_module


class _Shell:
    """An object that the pickle has made: its class, and its attributes once they are read."""

    __slots__ = ("made", "state", "type")

    def __init__(self, type_):
        self.type, self.state, self.made = type_, None, None


class _Named:
    """What a name of the file stands for: a type of the archive, or one of PyTorch's makers of lists."""

    __slots__ = ("make", "type")

    def __init__(self, make=None, type_=None):
        self.make, self.type = make, type_


class _Reader(PickleReader):
    """Members of enumerations are applied to a bare value."""

    def apply(self, maker_of, arguments, verb, new=False):
        if isinstance(maker_of, _Named) and isinstance(maker_of.type, t.EnumType) and not new:
            self.stack.append(_member(maker_of.type, arguments))
        else:
            super().apply(maker_of, arguments, verb, new)


def _member(type_, value):
    for member in enum_class(type_):
        if type(member.value) is type(value) and member.value == value:
            return member
    raise pickle.UnpicklingError(f"{type_.qualified_name} has no member of this value")


def enum_class(type_):
    """The Python class of an enumeration that an archive defines."""
    if type_.python_class is None:
        import enum

        type_.python_class = enum.Enum(type_.qualified_name.rpartition(".")[2], type_.members, module="torch.jit")
    return type_.python_class


def _one_list(arguments):
    (items,) = arguments
    if type(items) is not list:
        raise pickle.UnpicklingError("a list was expected")
    return items


def _tagged(arguments):
    value, tag = arguments
    if type(value) not in (list, dict) or type(tag) is not str:
        raise pickle.UnpicklingError("a list or dict with the name of its type was expected")
    return value


_MAKERS = {
    "build_intlist": _one_list,
    "build_doublelist": _one_list,
    "build_boollist": _one_list,
    "build_tensorlist": _one_list,
    "restore_type_tag": _tagged,
}
_PLAIN = {"torch.device", "torch._utils._rebuild_tensor_v2", "torch._utils._rebuild_parameter",
    "collections.OrderedDict", "builtins.complex", "torch.storage.UntypedStorage"}  # fmt: skip


def _compile(function):
    """Compile a function of the archive; whatever the compiler stumbles over in damaged source is a RuntimeError."""
    try:
        function.ensure_defined()
    except RuntimeError:
        raise
    except RecursionError:
        raise RuntimeError(
            printable(f"jit.load: the source of {function.qualified_name} is nested too deeply", 300)
        ) from None
    except Exception as error:
        raise RuntimeError(
            printable(
                f"jit.load: the source of {function.qualified_name} cannot be compiled: "
                f"{type(error).__name__}: {error}",
                500,
            )
        ) from error


class _Refusal:
    """Stands for the compilation of a function that failed."""

    def __init__(self, error):
        self.error = error

    def __call__(self, function):
        function._compile = self
        raise self.error


class ModuleLoad(ArchiveLoad):
    """One load of a TorchScript archive."""

    def __init__(self, archive, restore):
        super().__init__(archive, False, {"restore": restore, "trusting": False, "encoding": "utf-8"})
        self.constructors.safe = {}
        self.folder, self.compiler, self.named = "data", None, {}
        self.parameters = {}  # id of a tensor of the pickle -> (the tensor, its Parameter)

    def module(self):
        from .compiling.archive import ArchiveCompiler

        constants = self.constants()
        self.compiler = ArchiveCompiler(self.source, constants)
        self.folder, self.storages = "data", {}
        root = self.read_pickle("data.pkl")
        if not isinstance(root, _Shell) or not root.type.is_module:
            raise RuntimeError(
                f"jit.load: {self.archive.source.name} holds {type(root).__name__}, not a module; the file is damaged"
            )
        module = self.object(root)
        self.compile_all(root.type)
        return module

    def compile_all(self, root):
        """Compile the methods, as PyTorch does. What is wrong with the module's forward is told now, what is wrong with
        others when they are called: they may never be.
        """
        done = set()
        while pending := [function for function in self.functions() if function not in done]:
            for function in pending:
                done.add(function)
                try:
                    _compile(function)
                except RuntimeError as error:
                    if function is root.methods.get("forward"):
                        raise
                    function._compile = _Refusal(error)

    def functions(self):
        types = [
            type_
            for type_ in self.compiler.types.values()
            if isinstance(type_, t.ClassType) and not isinstance(type_, t.InterfaceType)
        ]
        return [*(function for type_ in types for function in type_.methods.values()), *self.compiler.compiled.values()]

    def source(self, name):
        """The source of "__torch__.a.b", or None: the file code/__torch__/a/b.py."""
        record = f"code/{name.replace('.', '/')}.py"
        if record not in self.archive:
            return None
        data = _unpacked(self.archive, record)
        self.budget.spend(2 * len(data))
        try:
            text = data.decode("utf-8")
            if not text.replace("\n", "").isprintable():  # lines of it stand in messages
                raise RuntimeError(printable(f"jit.load: {record} has characters that are no text", 300))
            return text
        except UnicodeDecodeError as error:
            raise RuntimeError(printable(f"jit.load: {record} is not text: {error}", 300)) from None

    def constants(self):
        self.folder = "constants"
        found = self.read_pickle("constants.pkl")
        if type(found) is not tuple:
            raise RuntimeError(
                f"jit.load: the constants of {self.archive.source.name} are no tuple; the file is damaged"
            )
        return list(found)

    def read_pickle(self, name):
        data = _unpacked(self.archive, name)
        return _Reader(data, self.budget, self.name, self, self.persistent, self.build, 0, "utf-8").read()

    def fetch(self, key, size, dtype):
        if self.archive.record(f"{self.folder}/{key}").unpacked is not None:
            raise RuntimeError(printable(f"jit.load: the storage {key!r} is compressed, which save never does", 300))
        return super().fetch(key, size, dtype, self.folder)

    # ---- names and how they are applied (see PickleReader)

    def name(self, module, name):
        title = f"{module}.{name}"
        if title in self.named:
            return self.named[title]
        if module == "torch.jit._pickle" and name in _MAKERS:
            made = _Named(_MAKERS[name])
        elif module == "__torch__" or module.startswith("__torch__."):
            if self.compiler is None:
                raise pickle.UnpicklingError(printable(f"the constants name the class {title}", 200))
            made = _Named(type_=self.compiler.type(title))
        elif title in _PLAIN or (module == "torch" and name.endswith("Storage")):
            return self.constructors.name(module, name)
        else:
            raise pickle.UnpicklingError(printable(f"the file names {title}, which no TorchScript archive has", 300))
        self.budget.spend(500)
        self.named[title] = made
        return made

    def get(self, value, new=False):
        if not isinstance(value, _Named):
            return self.constructors.get(value, new)
        if value.make is not None:
            return None if new else value.make
        if isinstance(value.type, t.NamedTupleType) and not new:
            return lambda arguments: named_tuple_class(value.type)(*arguments)
        if isinstance(value.type, t.ClassType) and new:
            return lambda arguments: self.shell(value.type)
        return None

    def shell(self, type_):
        self.budget.spend(2000)
        return _Shell(type_)

    def build(self, target, state):
        if not isinstance(target, _Shell):
            raise pickle.UnpicklingError(f"a state is given to a value of type {type(target).__name__}")
        if target.state is not None:
            raise pickle.UnpicklingError(
                f"an object of {printable(target.type.qualified_name, 200)} gets its attributes twice"
            )
        target.state = (state,)

    # ---- objects

    def object(self, shell):
        """The module or object of a shell; one that is inside of itself is refused."""
        if shell.made is not None:
            return shell.made
        if shell.state is None:
            raise RuntimeError(
                printable(
                    f"jit.load: an object of {shell.type.qualified_name} has no attributes, or is inside of itself", 300
                )
            )
        (state,), shell.state = shell.state, None
        type_ = shell.type
        made = RecursiveScriptModule(type_) if type_.is_module else ScriptObject(type_)
        if "__setstate__" in type_.methods and "__getstate__" in type_.methods:
            from .lowering import program

            program(type_.methods["__setstate__"])(made, self.plain(state))
        else:
            self.attributes(made, type_, state)
        if type_.is_module:
            made._hook(type_)
        shell.made = made
        return made

    def attributes(self, made, type_, state):
        if type(state) is not dict:
            raise RuntimeError(printable(f"jit.load: the attributes of {type_.qualified_name} are no dictionary", 300))
        if not type_.is_module and (
            type_.parameters or type_.buffers or any(_is_module(kind) for kind in type_.attributes.values())
        ):
            raise RuntimeError(
                printable(
                    f"jit.load: {type_.qualified_name} is no module, and has parameters, buffers or submodules", 300
                )
            )
        for name, kind in type_.attributes.items():
            if name not in state:
                raise RuntimeError(
                    printable(
                        f"jit.load: an object of {type_.qualified_name} has no value for its attribute {name!r}", 300
                    )
                )
            value = self.plain(state[name])
            if not _is_module(kind):
                try:
                    value = accept(kind)(value)
                except Mismatch:
                    raise RuntimeError(
                        printable(
                            (
                                f"jit.load: the attribute {name!r} of {type_.qualified_name} should be "
                                f"{kind.annotation_str}, and is {type(value).__name__}"
                            ),
                            300,
                        )
                    ) from None
            self.put(made, type_, name, kind, value)

    def put(self, made, type_, name, kind, value):
        if name in type_.parameters:
            made._parameters[name] = None if value is None else self.parameter(value)
        elif name in type_.buffers:
            made._buffers[name] = value
        elif _is_module(kind):
            if not isinstance(value, RecursiveScriptModule) or not value._script_type.isSubtypeOf(kind):
                raise RuntimeError(
                    printable(
                        f"jit.load: the submodule {name!r} of {type_.qualified_name} is no {kind.qualified_name}", 300
                    )
                )
            made._modules[name] = value
        else:
            made.__dict__[name] = value

    def parameter(self, value):
        """The Parameter of a tensor; one that modules share is one."""
        if id(value) not in self.parameters:
            self.parameters[id(value)] = (value, Parameter(value.detach(), requires_grad=value.requires_grad))
        return self.parameters[id(value)][1]

    def plain(self, value):
        """The value with objects in the places of shells. Each part is paid for each time it is met: parts that hold
        each other many times would be copied as often.
        """
        self.budget.spend(_COST_OF_PART)
        if isinstance(value, _Shell):
            return self.object(value)
        if isinstance(value, _Named):
            raise RuntimeError("jit.load: a name stands where a value should; the file is damaged")
        if type(value) is list:
            value[:] = [self.plain(item) for item in value]
        elif type(value) is dict:
            for key in list(value):
                value[key] = self.plain(value[key])
        elif type(value) is tuple:
            return tuple(self.plain(item) for item in value)
        elif isinstance(value, tuple):
            return type(value)(*(self.plain(item) for item in value))
        return value
