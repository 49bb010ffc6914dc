"""The closed list: what a file may name, and how each name is built from data.

`Constructors` serves one load. A name that is not in TABLE is refused unless the user has added it
(`add_safe_globals`), or, with weights_only=False, if it is a class of modules that this process has loaded, or one of
the standard library's containers of data.
"""

import collections
import copyreg
import pickle
import re
import sys
import types

import cresset
from cresset import Tensor, _native
from cresset.storage import STORAGE_TYPES, TypedStorage, UntypedStorage
from cresset.tensors.quantized import schemes

from .. import _utils
from .numpy_values import NumpyConstructors
from .quoting import printable
from .saving import OVERRIDABLE

__all__ = ["Constructors", "is_known"]


class Function:
    """A function that a file names. It is not the function itself, so nothing but this list can call it."""

    def __init__(self, title, method):
        self.title, self.method = title, method

    def __repr__(self):
        return f"<{self.title}, named in a file>"

    def __reduce__(self):
        raise TypeError(f"{self.title} was only named in a file; it cannot be saved again")


_RATIO = re.compile(r"-?\d+(/\d+)?")
RECONSTRUCTOR = Function("copyreg._reconstructor", "")
# Bytes that making one takes, beyond the elements. Tensors have their storage's and their own native parts.
COST, COST_OF_TENSOR, COST_OF_OWN = 160, 500, 1500
TABLE = {}  # "module.name" -> what GLOBAL puts on the stack
METHODS = {}  # that value -> the name of the method of Constructors that applies it to arguments


def _class(kind, method, *titles):
    for title in titles or (f"{kind.__module__}.{kind.__qualname__}",):
        TABLE[title] = kind
    METHODS[kind] = method


def _function(method, *titles):
    for title in titles:
        TABLE[title] = made = Function(title, method)
        METHODS[made] = method


def _fill_table():
    _class(collections.OrderedDict, "ordered_dict")
    _class(collections.Counter, "counter")
    _class(collections.defaultdict, "default_dict")
    for name, kind in {
        "set": set, "frozenset": frozenset, "list": list, "dict": dict, "tuple": tuple, "bytearray": bytearray,
        "bytes": bytes,
    }.items():  # fmt: skip
        _class(kind, name + "_of", f"builtins.{name}", f"__builtin__.{name}")
    for name, kind in {"complex": complex, "slice": slice, "range": range}.items():
        _class(kind, name + "_of", f"builtins.{name}", f"__builtin__.{name}")
    TABLE["__builtin__.xrange"] = range
    for kind in (int, float, str, bool):  # named as the default of a defaultdict, never applied
        TABLE[f"builtins.{kind.__name__}"] = TABLE[f"__builtin__.{kind.__name__}"] = kind
    _function("encode", "_codecs.encode")
    _class(_native.Size, "size", "torch.Size")
    _class(_native.device, "device", "torch.device")
    _class(Tensor, "tensor_class", "torch.Tensor", "torch._tensor.Tensor")
    for name in dir(_native):
        value = getattr(_native, name)
        if isinstance(value, (_native.dtype, _native.layout, _native.memory_format)):
            TABLE[f"torch.{name}"] = value
    TABLE.update({f"torch.{name}": scheme for name, scheme in schemes.items()})
    _function("layout", "torch.serialization._get_layout")
    for word, kind in STORAGE_TYPES.items():
        _class(
            kind, "storage_class", f"torch.{word}Storage", f"torch.cuda.{word}Storage", f"torch.storage.{word}Storage"
        )
    _class(
        UntypedStorage,
        "storage_class",
        "torch.storage.UntypedStorage",
        "torch.UntypedStorage",
        "torch.storage._UntypedStorage",
    )
    _class(
        TypedStorage, "storage_class", "torch.storage.TypedStorage", "torch.TypedStorage", "torch.storage._TypedStorage"
    )
    for name in ("tensor", "tensor_v2", "tensor_v3", "parameter", "parameter_with_state", "sparse_tensor", "qtensor"):
        _function("rebuild_" + name, f"torch._utils._rebuild_{name}")
    _function("rebuild_meta_tensor", "torch._utils._rebuild_meta_tensor_no_storage")
    _function("rebuild_from_numpy", "torch._utils._rebuild_device_tensor_from_numpy")
    _function("rebuild_from_cpu_tensor", "torch._utils._rebuild_device_tensor_from_cpu_tensor")
    _function("rebuild_from_type", "torch._tensor._rebuild_from_type_v2")
    _function("rebuild_nested_tensor", "torch._utils._rebuild_nested_tensor")
    _function("rebuild_wrapper_subclass", "torch._utils._rebuild_wrapper_subclass")
    _function("numpy_scalar", "numpy.core.multiarray.scalar", "numpy._core.multiarray.scalar")
    _function("numpy_array", "numpy.core.multiarray._reconstruct", "numpy._core.multiarray._reconstruct")
    _function("numpy_frombuffer", "numpy.core.numeric._frombuffer", "numpy._core.numeric._frombuffer")
    _function("numpy_class", "numpy.ndarray")
    _function("numpy_dtype", "numpy.dtype")


BLOCKED = ("os", "sys", "posix", "nt")  # of which nothing can be allowed


def today(module, name):
    """Where a name of Python 2 is, which pickles of protocol 2 are written with."""
    import _compat_pickle

    if (module, name) in _compat_pickle.NAME_MAPPING:
        return _compat_pickle.NAME_MAPPING[module, name]
    return _compat_pickle.IMPORT_MAPPING.get(module, module), name


# With weights_only=False these come back, too: containers of data in the standard library.
STANDARD = {
    "argparse.Namespace", "types.SimpleNamespace", "collections.deque", "datetime.date", "datetime.datetime",
    "datetime.time", "datetime.timedelta",
    "datetime.timezone", "decimal.Decimal", "fractions.Fraction", "pathlib.Path", "pathlib.PosixPath",
    "pathlib.PurePosixPath", "pathlib.WindowsPath",
    "pathlib.PureWindowsPath", "uuid.UUID", "ipaddress.IPv4Address", "ipaddress.IPv6Address",
}  # fmt: skip


class Constructors(NumpyConstructors):
    """What the names of one file stand for.

    Args:
        budget: what the values may take; a Budget.
        safe: the user's own globals, by "module.name".
        trusting: weights_only=False.
        has_numbers: whether storages have their numbers yet. Where they do not, an empty tensor stands for one that is
            made of the numbers of others, and `unread` says so.
    """

    def __init__(self, budget, safe, trusting, has_numbers=True):
        if not TABLE:
            _fill_table()
        self.budget, self.safe, self.trusting, self.has_numbers, self.unread = (
            budget,
            safe,
            trusting,
            has_numbers,
            False,
        )
        self.added = {}

    # ---- names

    def name(self, module, name):
        title = f"{module}.{name}"
        if module in BLOCKED:
            raise pickle.UnpicklingError(
                f"unsupported GLOBAL {printable(title, 200)} whose module {module} is blocked: it reaches the system, "
                "also where it was allowed"
            )
        if title not in self.safe:
            title = ".".join(today(module, name))
        if title in self.safe:
            value = self.safe[title]
            self.allow(value)
            return value
        title = f"{module}.{name}"
        try:
            return TABLE[title]
        except KeyError:
            pass
        if title in ("torch.nn.parameter.Parameter", "torch.nn.Parameter"):
            from cresset.nn import Parameter

            self.added[Parameter] = lambda arguments: Parameter(*self.exactly(arguments, Tensor, bool))
            return Parameter
        if self.trusting:
            return self.trusted(module, name)
        raise pickle.UnpicklingError(_advice(title, False))

    def allow(self, value):
        self.added[value] = lambda arguments: value(*arguments)
        if isinstance(value, type):
            self.added["new", value] = lambda arguments: value.__new__(value, *arguments)

    def trusted(self, module, name):
        """A class that may be read with weights_only=False: it exists in this process already, and holds data."""
        title = f"{module}.{name}"
        if title in STANDARD:
            kind = getattr(__import__(module), name)
            self.added[kind] = lambda arguments: kind(*self.standard(kind, arguments))
            self.added["new", kind] = lambda arguments: self.empty_instance(kind, arguments)
            return kind
        if title in ("copyreg._reconstructor", "copy_reg._reconstructor"):
            self.added[RECONSTRUCTOR] = self.reconstructor
            return RECONSTRUCTOR
        if title == "builtins.object" or title == "__builtin__.object":
            return object
        if (function := _function_of_tensors(module, name)) is not None:
            return function
        here = "cresset" + module[5:] if module == "torch" or module.startswith("torch.") else module
        owner = sys.modules.get(here)
        if owner is None and here.startswith("cresset.nn."):
            owner = _place(here)
        if owner is None:
            raise pickle.UnpicklingError(
                _advice(title, True) + f". The module {printable(module, 200)} is not imported in this process"
            )
        value = owner
        for part in name.split("."):
            # The plain dictionary: an attribute that is computed, or a module that loads others when asked, would run
            # code for the file.
            held = value.__dict__ if isinstance(value, (type, types.ModuleType)) else {}
            if part not in held:
                raise AttributeError(
                    printable(
                        (
                            f"load: the file names {title}, but the module {module} has no {name}; import or define "
                            "the "
                            "class first"
                        ),
                        500,
                    )
                )
            value = held[part]
        from cresset.nn import Module

        of_models = isinstance(value, type) and (
            issubclass(value, Module) or value.__module__.startswith("cresset.nn.utils.")  # what they keep as hooks
        )
        if not of_models:
            raise pickle.UnpicklingError(_advice(title, True))
        if value.__new__ is object.__new__:
            self.added["new", value] = lambda arguments: self.empty_instance(value, arguments)
        return value

    def empty_instance(self, kind, arguments):
        if arguments:
            raise pickle.UnpicklingError(f"{kind.__name__} takes no arguments here, got {len(arguments)}")
        return kind.__new__(kind)

    def reconstructor(self, arguments):
        """What protocols 0 and 1 write for an instance: (class, object, None)."""
        kind, base, state = arguments
        if base is not object or state is not None:
            raise pickle.UnpicklingError("copyreg._reconstructor is only read for subclasses of object")
        maker = self.added.get(("new", kind))
        if maker is None:
            raise pickle.UnpicklingError("copyreg._reconstructor applies a value which is not a constructor of data")
        return maker(())

    def get(self, value, new=False):
        """The function that applies what GLOBAL gave to arguments; None: there is none. `new` is NEWOBJ's way, without
        __init__.
        """
        if not isinstance(value, (type, Function)) and not callable(value):
            return None  # not even looked up: hashing what a file made can take long
        maker = self.added.get(("new", value) if new else value)
        if maker is None and any(value == allowed for allowed in self.safe.values()):
            self.allow(value)  # found by a getattr that was allowed, too
            maker = self.added.get(("new", value) if new else value)
        if maker is not None:
            self.budget.spend(COST_OF_OWN)
        elif not (new and value in self.added):
            method = METHODS.get(value)
            if method is not None:
                self.budget.spend(COST_OF_TENSOR if method.startswith("rebuild_") else COST)
                maker = getattr(self, method)
        return maker

    # ---- checks

    def charge_elements(self, count):
        """What a copy of so many elements takes."""
        self.budget.spend(8 * count)

    def charge_numbers(self, *tensors):
        """What it takes to walk or copy tensors: they can have many more elements than their storages (a stride of
        0)."""
        for tensor in tensors:
            self.budget.spend(16 * tensor.numel())

    def exactly(self, arguments, *kinds):
        if len(arguments) > len(kinds):
            raise pickle.UnpicklingError(f"expected at most {len(kinds)} arguments, got {len(arguments)}")
        for argument, kind in zip(arguments, kinds, strict=False):
            if not isinstance(argument, kind):
                raise pickle.UnpicklingError(
                    f"expected an argument of type {getattr(kind, '__name__', kind)}, got {type(argument).__name__}"
                )
        return arguments

    def plain(self, arguments):
        for argument in arguments:
            plain = type(argument) in (str, bytes, int, float, bool, complex, type(None), list, tuple)
            if not plain and type(argument).__module__ != "datetime":
                raise pickle.UnpicklingError(f"expected plain values, got {type(argument).__name__}")
            if isinstance(argument, (str, bytes, list, tuple)):
                self.charge_elements(len(argument))
        return arguments

    def standard(self, kind, arguments):
        """Arguments for a container of data of the standard library."""
        if kind.__name__ == "Fraction" and any(
            isinstance(part, str) and not _RATIO.fullmatch(part) for part in arguments
        ):
            raise pickle.UnpicklingError(
                "a Fraction is read from whole numbers, as 'a/b'"
            )  # "1e999999999" has as many digits
        return self.plain(arguments)

    # ---- containers and numbers

    def elements(self, arguments):
        """The elements of the one list, tuple or set in `arguments`; empty if there is none."""
        (items,) = self.exactly(arguments, (list, tuple, set, frozenset, dict)) or ((),)
        self.charge_elements(len(items))
        return items

    def set_of(self, arguments):
        made = set()
        self.budget.spend_value(made)
        self.budget.fill_set(made, list(self.elements(arguments)))
        return made

    def frozenset_of(self, arguments):
        return frozenset(self.set_of(arguments))

    def list_of(self, arguments):
        return list(self.elements(arguments))

    def tuple_of(self, arguments):
        return tuple(self.elements(arguments))

    def filled(self, made, arguments):
        """The dictionary `made` with the items of the one dictionary or list of pairs in `arguments`; as it is if there
        is none.
        """
        items = self.elements(arguments)
        if not isinstance(items, dict):
            for pair in items:
                if not isinstance(pair, (list, tuple)) or len(pair) != 2:
                    raise pickle.UnpicklingError("a dictionary is made of pairs")
        self.budget.fill_dict(made, items.items() if isinstance(items, dict) else items)
        return made

    def dict_of(self, arguments):
        return self.filled({}, arguments)

    def ordered_dict(self, arguments):
        return self.filled(collections.OrderedDict(), arguments)

    def counter(self, arguments):
        return self.filled(collections.Counter(), self.exactly(arguments, dict))

    def default_dict(self, arguments):
        kind = arguments[0] if arguments else None
        if (
            kind not in (None, list, dict, set, int, float, str, bool, tuple, collections.OrderedDict)
            or len(arguments) > 1
        ):
            raise pickle.UnpicklingError("a defaultdict is read with a plain type for its default")
        return collections.defaultdict(kind)

    def bytearray_of(self, arguments):
        return bytearray(self.bytes_of(arguments))

    def bytes_of(self, arguments):
        if not arguments:
            return b""
        if len(arguments) == 2:
            return self.encode(arguments)
        (data,) = self.exactly(arguments, (bytes, bytearray, list))
        self.charge_elements(len(data))
        return bytes(data)

    def encode(self, arguments):
        text, encoding = self.exactly(arguments, str, str)
        if encoding not in ("latin1", "latin-1", "utf-8", "utf8", "ascii"):
            raise pickle.UnpicklingError(f"bytes in the encoding {encoding!r} are not read; PyTorch writes latin1")
        return self.budget.spend_value(text.encode(encoding))

    def complex_of(self, arguments):
        return complex(*self.exactly(arguments, (int, float), (int, float)))

    def slice_of(self, arguments):
        return slice(*self.plain(arguments))

    def range_of(self, arguments):
        return range(*self.exactly(arguments, int, int, int))

    def size(self, arguments):
        (sizes,) = self.exactly(arguments, (tuple, list))
        self.charge_elements(len(sizes))
        return _native.Size(sizes)

    def device(self, arguments):
        return _native.device(*self.exactly(arguments, (str, int), int))

    def layout(self, arguments):
        (name,) = self.exactly(arguments, str)
        layout = TABLE.get(name)
        if not isinstance(layout, _native.layout):
            raise pickle.UnpicklingError(f"there is no layout {name!r}")
        return layout

    # ---- tensors

    def tensor_class(self, arguments):
        raise pickle.UnpicklingError("a tensor is made from its storage, not by its class")

    storage_class = numpy_class = tensor_class

    def dimensions(self, *lists):
        for numbers in lists:
            if not isinstance(numbers, (tuple, list)) or not all(type(number) is int for number in numbers):
                raise pickle.UnpicklingError("a tensor's sizes and strides are integers")
            self.charge_elements(2 * len(numbers))

    def put_off(self):
        self.unread = True
        return cresset.empty(0)

    def rebuild_tensor(self, arguments):
        storage, offset, size, stride = self.exactly(arguments, TypedStorage, int, (tuple, list), (tuple, list))
        self.dimensions(size, stride)
        return _utils._rebuild_tensor(storage, offset, size, stride)

    def rebuild_tensor_v2(self, arguments):
        if len(arguments) < 6:
            raise pickle.UnpicklingError(f"a tensor is made of 6 parts, got {len(arguments)}")
        storage, offset, size, stride, requires_grad, _hooks, *metadata = self.exactly(
            arguments, TypedStorage, int, (tuple, list), (tuple, list), bool, (dict, type(None)), (dict, type(None))
        )
        self.dimensions(size, stride)
        if not self.has_numbers and any(metadata):  # a conjugate is computed
            return self.put_off()
        return _utils._rebuild_tensor_v2(storage, offset, size, stride, requires_grad, None, *metadata)

    def rebuild_tensor_v3(self, arguments):
        if len(arguments) < 7:
            raise pickle.UnpicklingError(f"a tensor is made of 7 parts, got {len(arguments)}")
        storage, offset, size, stride, requires_grad, _hooks, dtype, *metadata = self.exactly(
            arguments,
            (TypedStorage, UntypedStorage),
            int,
            (tuple, list),
            (tuple, list),
            bool,
            (dict, type(None)),
            _native.dtype,
            (dict, type(None)),
        )
        self.dimensions(size, stride)
        if not self.has_numbers and any(metadata):
            return self.put_off()
        return _utils._rebuild_tensor_v3(storage, offset, size, stride, requires_grad, None, dtype, *metadata)

    def rebuild_meta_tensor(self, arguments):
        dtype, size, stride, requires_grad = self.exactly(arguments, _native.dtype, (tuple, list), (tuple, list), bool)
        self.dimensions(size, stride)
        return _utils._rebuild_meta_tensor_no_storage(dtype, size, stride, requires_grad)

    def rebuild_wrapper_subclass(self, arguments):
        """A tensor without memory, of a class that was allowed."""
        lists = (tuple, list)
        kind, dtype, size, stride, offset, layout, device, requires_grad = self.exactly(
            arguments, type, _native.dtype, lists, lists, int, _native.layout, _native.device, bool
        )
        if kind not in self.added or not issubclass(kind, Tensor):
            raise pickle.UnpicklingError(f"{kind.__name__} is not a kind of tensor that was allowed")
        self.dimensions(size, stride)
        return _utils._rebuild_wrapper_subclass(kind, dtype, size, stride, offset, layout, device, requires_grad)

    def rebuild_parameter(self, arguments):
        data, requires_grad, _hooks = self.exactly(arguments, Tensor, bool, (dict, type(None)))
        return _utils._rebuild_parameter(data, requires_grad, None)

    def rebuild_parameter_with_state(self, arguments):
        data, requires_grad, _hooks, state = self.exactly(arguments, Tensor, bool, (dict, type(None)), (dict, tuple))
        parameter = _utils._rebuild_parameter(data, requires_grad, None)
        self.set_attributes(parameter, state)
        return parameter

    def rebuild_sparse_tensor(self, arguments):
        if not self.has_numbers:
            return self.put_off()
        layout, data = self.exactly(arguments, _native.layout, tuple)
        tensors, size = (data[:2], data[2]) if layout == _native.sparse_coo and len(data) > 2 else (data[:3], data[-1])
        if len(data) not in (3, 4) or not all(isinstance(part, Tensor) for part in tensors):
            raise pickle.UnpicklingError(f"a tensor of layout {layout} is made of indices, values and a size")
        self.dimensions(size)
        self.charge_numbers(*tensors)
        return _utils._rebuild_sparse_tensor(layout, data)

    def rebuild_qtensor(self, arguments):
        if not self.has_numbers:
            return self.put_off()
        self.exactly(arguments, TypedStorage, int, (tuple, list), (tuple, list), tuple, bool, (dict, type(None)))
        self.dimensions(*arguments[2:4])
        return _utils._rebuild_qtensor(*arguments)

    def rebuild_nested_tensor(self, arguments):
        """Packed values with offsets or shapes, or (as PyTorch has it) a buffer with sizes, strides and offsets."""
        if not self.has_numbers:
            return self.put_off()
        if len(arguments) == 4:
            parts = self.exactly(arguments, Tensor, Tensor, Tensor, Tensor)
        else:
            maybe, lists = (Tensor, type(None)), (list, tuple, type(None))
            parts = self.exactly(arguments, Tensor, _native.layout, maybe, int, maybe, lists, dict)
            for shape in parts[5] or ():
                self.dimensions(shape)
        self.charge_numbers(*(part for part in parts if isinstance(part, Tensor)))
        return _utils._rebuild_nested_tensor(*parts)

    def rebuild_from_numpy(self, arguments):
        array, dtype, device, requires_grad = arguments
        import numpy

        self.exactly((array, dtype, requires_grad), numpy.ndarray, _native.dtype, bool)
        self.budget.spend(array.nbytes + array.size * dtype.itemsize)
        return cresset.from_numpy(array.copy()).to(dtype).requires_grad_(requires_grad)

    def rebuild_from_cpu_tensor(self, arguments):
        if not self.has_numbers:
            return self.put_off()
        data, dtype, _device, requires_grad = self.exactly(arguments, Tensor, _native.dtype, object, bool)
        self.charge_numbers(data)
        return data.to(dtype).requires_grad_(requires_grad)

    def rebuild_from_type(self, arguments):
        rebuild, kind, inner, state = self.exactly(arguments, Function, type, tuple, object)
        if not rebuild.method.startswith("rebuild_"):
            raise pickle.UnpicklingError(f"{rebuild.title} does not make tensors")
        tensor = getattr(self, rebuild.method)(inner)
        if kind not in METHODS and kind not in self.added:
            raise pickle.UnpicklingError(f"{kind.__name__} is not a kind of tensor that was allowed")
        if not issubclass(kind, Tensor):
            raise pickle.UnpicklingError(f"{kind.__name__} is not a kind of tensor")
        if type(tensor) is not kind:
            tensor = tensor.as_subclass(kind)
        if kind in self.added:
            self.give_state(tensor, state)
        else:
            self.set_attributes(tensor, state)
        return tensor

    # ---- BUILD

    def build(self, instance, state):
        """Give `instance` its state: what BUILD does."""
        kind = type(instance)
        if kind.__module__ == "numpy" or kind.__module__.startswith("numpy."):
            self.build_numpy(instance, state)
        elif kind is collections.OrderedDict or isinstance(instance, Tensor):
            self.set_attributes(instance, state)
        elif kind in self.added or ("new", kind) in self.added:
            self.give_state(instance, state)
        else:
            raise pickle.UnpicklingError(f"BUILD on a value of type {kind.__name__}, which has no state")

    def give_state(self, instance, state):
        """The state of an instance of a class that was allowed, in the way of the class."""
        if hasattr(type(instance), "__setstate__"):
            self.budget.spend(COST_OF_OWN + 2 * sys.getsizeof(state))
            instance.__setstate__(state)
        else:
            self.set_attributes(instance, state, shadowing=True)

    def set_attributes(self, instance, state, shadowing=False):
        slots = None
        if isinstance(state, tuple) and len(state) == 2:
            state, slots = state
        for attributes in filter(None, (state, slots)):
            if not isinstance(attributes, dict):
                raise pickle.UnpicklingError("the state of an object is a dictionary")
            self.charge_elements(len(attributes))
            own = getattr(instance, "__dict__", None)  # None: it has slots alone
            if own is None and attributes is not slots:
                raise pickle.UnpicklingError(f"{type(instance).__name__} has slots alone, and the file has more for it")
            before = 0 if own is None else self.budget.size_before(own)
            settable = None if attributes is not slots else copyreg._slotnames(type(instance))
            for name, value in attributes.items():
                if (
                    type(name) is not str
                    or name.startswith("__")
                    or (not shadowing and hasattr(type(instance), name))
                    or (settable is not None and name not in settable)
                ):
                    said = printable(name, 200) if type(name) is str else f"named by a {type(name).__name__}"
                    raise pickle.UnpicklingError(
                        f"the attribute {said} of {type(instance).__name__} cannot come from a file"
                    )
                if attributes is slots:
                    setattr(instance, name, value)
                else:
                    own[name] = value
            if own is not None:
                self.budget.grown(before, own)


def _function_of_tensors(module, name):
    """A function that layers keep as their activation, under PyTorch's names for it. It is a value here: no file can
    have it called.
    """
    if module in ("torch.nn.functional", "torch._C._nn"):
        from cresset.nn import functional

        value = vars(functional).get(name)
        if isinstance(value, types.FunctionType) and value.__module__.startswith("cresset.nn.functional."):
            return value
    else:
        value = vars(cresset).get(name) if module == "torch" else None
    return value if isinstance(value, (_native.Operator, OVERRIDABLE)) else None


def _place(module):
    """The module of cresset that stands in for one of PyTorch's, if there is one."""
    import importlib

    try:
        return importlib.import_module(module)
    except ImportError:
        return None


def _advice(title, trusting):
    title = printable(title, 200).removeprefix("__builtin__.")
    refused = (
        f"Unsupported global: GLOBAL {title} was not an allowed global by default. load builds only data, and never "
        "runs what a file names"
    )
    if trusting:
        return (
            f"{refused}; weights_only=False adds classes of nn.Module. If you trust the class, use "
            f"`torch.serialization.add_safe_globals([{title}])` or the `safe_globals` context to allowlist it"
        )
    return (
        f"{refused}. If the file is a whole model, weights_only=False reads modules whose classes are imported. "
        f"If you trust {title}, use `torch.serialization.add_safe_globals([{title}])` or the `safe_globals` context to "
        "allowlist it"
    )


def is_known(module, name):
    """Whether every load knows the name."""
    if not TABLE:
        _fill_table()
    title = f"{module}.{name}"
    return title in TABLE or title in ("torch.nn.parameter.Parameter", "torch.nn.Parameter")
