"""Modules and parameters in sequences and dictionaries."""

import itertools
import operator
from collections import OrderedDict
from collections.abc import Iterable, Mapping

import cresset

from .module import Module, _indented
from .parameter import Parameter


class Container(Module):
    """Submodules given by keyword; kept for old code, Module does the same."""

    def __init__(self, **kwargs):
        super().__init__()
        for name, module in kwargs.items():
            self.add_module(name, module)


def _position(index, length, who):
    """`index` counted from the front; refused outside of the container."""
    index = operator.index(index)
    if not -length <= index < length:
        raise IndexError(f"index {index} is out of range: {who} has {length} elements")
    return index % length


class Sequential(Module):
    """Modules called one after the other, each with what the one before returned.

    >>> model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    >>> model(cresset.zeros(3, 4)).shape
    torch.Size([3, 2])
    """

    def __init__(self, *args):
        super().__init__()
        named = args[0].items() if len(args) == 1 and isinstance(args[0], OrderedDict) else enumerate(args)
        for name, module in named:
            self.add_module(str(name), module)

    def _name_at(self, index):
        return next(itertools.islice(self._modules, _position(index, len(self), "Sequential"), None))

    def __getitem__(self, index):
        if isinstance(index, slice):
            return type(self)(OrderedDict(list(self._modules.items())[index]))
        return self._modules[self._name_at(index)]

    def __setitem__(self, index, module):
        setattr(self, self._name_at(index), module)

    def __delitem__(self, index):
        names = list(self._modules)[index] if isinstance(index, slice) else [self._name_at(index)]
        for name in names:
            delattr(self, name)
        self._renumber()

    def _renumber(self):
        self._modules = OrderedDict((str(i), module) for i, module in enumerate(self._modules.values()))

    def __len__(self):
        return len(self._modules)

    def __iter__(self):
        return iter(self._modules.values())

    def __add__(self, other):
        if not isinstance(other, Sequential):
            raise ValueError(f"add operator supports only objects of Sequential class, but {type(other)} is given.")
        result = Sequential()
        for module in (*self, *other):
            result.append(module)
        return result

    def __iadd__(self, other):
        if not isinstance(other, Sequential):
            raise ValueError(f"add operator supports only objects of Sequential class, but {type(other)} is given.")
        return self.extend(other)

    def __mul__(self, times):
        return type(self)()._repeat(self, times)

    __rmul__ = __mul__

    def __imul__(self, times):
        return self._repeat(self, times, first=1)

    def _repeat(self, source, times, first=0):
        if not isinstance(times, int):
            raise TypeError(f"unsupported operand type(s) for *: {type(self)} and {type(times)}")
        if times <= 0:
            raise ValueError(f"Non-positive multiplication factor {times} for {type(self)}")
        modules = list(source)
        for module in modules * (times - first):
            self.append(module)
        return self

    def __dir__(self):
        return [name for name in super().__dir__() if not name.isdigit()]

    def forward(self, input):
        for module in self._modules.values():
            input = module(input)
        return input

    def append(self, module):
        """Add a module at the end."""
        self.add_module(str(len(self)), module)
        return self

    def pop(self, key):
        """Take out and return the module at `key`."""
        module = self[key]
        del self[key]
        return module

    def insert(self, index, module):
        """Put a module before `index`."""
        if not isinstance(module, Module):
            raise AssertionError(f"module should be of type: {Module}")
        n = len(self)
        if not -n <= index <= n:
            raise IndexError(f"Index out of range: {index} of {n}")
        modules = list(self._modules.values())
        modules.insert(index + n if index < 0 else index, module)
        self._modules = OrderedDict((str(i), m) for i, m in enumerate(modules))
        return self

    def extend(self, sequential):
        """Add all modules of another Sequential at the end."""
        for module in list(sequential):
            self.append(module)
        return self


class ModuleList(Module):
    """A list of modules.

    >>> layers = nn.ModuleList([nn.Linear(2, 2) for _ in range(3)])
    >>> len(layers), len(list(layers.parameters()))
    (3, 6)
    """

    def __init__(self, modules=None):
        super().__init__()
        if modules is not None:
            self += modules

    def _name_at(self, index):
        return str(_position(index, len(self), "ModuleList"))

    def __getitem__(self, index):
        if isinstance(index, slice):
            return type(self)(list(self._modules.values())[index])
        return self._modules[self._name_at(index)]

    def __setitem__(self, index, module):
        setattr(self, self._name_at(index), module)

    def __delitem__(self, index):
        numbers = range(len(self))[index] if isinstance(index, slice) else [int(self._name_at(index))]
        for number in numbers:
            delattr(self, str(number))
        self._modules = OrderedDict((str(i), module) for i, module in enumerate(self._modules.values()))

    def __len__(self):
        return len(self._modules)

    def __iter__(self):
        return iter(self._modules.values())

    def __iadd__(self, modules):
        return self.extend(modules)

    def __add__(self, other):
        combined = ModuleList()
        for i, module in enumerate(itertools.chain(self, other)):
            combined.add_module(str(i), module)
        return combined

    def __dir__(self):
        return [name for name in super().__dir__() if not name.isdigit()]

    def __repr__(self):
        """Like a module's, with runs of equal lines folded: (0-3): 4 x Linear(...)."""
        if not self._modules:
            return self._get_name() + "()"
        lines, start = [], 0
        for text, run in itertools.groupby(repr(module) for module in self):
            count = len(list(run))
            numbers, times = (f"({start})", "") if count == 1 else (f"({start}-{start + count - 1})", f"{count} x ")
            lines.append(f"{numbers}: {times}{_indented(text)}")
            start += count
        return f"{self._get_name()}(\n  " + "\n  ".join(lines) + "\n)"

    def insert(self, index, module):
        """Put a module before `index`."""
        modules = list(self._modules.values())
        modules.insert(index, module)
        for i, m in enumerate(modules):
            self._modules[str(i)] = m

    def append(self, module):
        """Add a module at the end."""
        self.add_module(str(len(self)), module)
        return self

    def pop(self, key):
        """Take out and return the module at `key`."""
        module = self[key]
        del self[key]
        return module

    def extend(self, modules):
        """Add modules at the end."""
        if not isinstance(modules, Iterable):
            raise TypeError(f"ModuleList.extend should be called with an iterable, but got {type(modules).__name__}")
        for module in list(modules):
            self.append(module)
        return self


class ModuleDict(Module):
    """A dictionary of modules, in the order of insertion.

    >>> heads = nn.ModuleDict({"a": nn.Linear(2, 1), "b": nn.Linear(2, 3)})
    >>> heads["b"](cresset.zeros(1, 2)).shape
    torch.Size([1, 3])
    """

    def __init__(self, modules=None):
        super().__init__()
        if modules is not None:
            self.update(modules)

    def __getitem__(self, key):
        return self._modules[key]

    def __setitem__(self, key, module):
        self.add_module(key, module)

    def __delitem__(self, key):
        del self._modules[key]

    def __len__(self):
        return len(self._modules)

    def __iter__(self):
        return iter(self._modules)

    def __contains__(self, key):
        return key in self._modules

    def clear(self):
        """Take out all modules."""
        self._modules.clear()

    def pop(self, key):
        """Take out and return the module under `key`."""
        return self._modules.pop(key)

    def keys(self):
        """The keys."""
        return self._modules.keys()

    def items(self):
        """The pairs of key and module."""
        return self._modules.items()

    def values(self):
        """The modules."""
        return self._modules.values()

    def update(self, modules):
        """Add the modules of a mapping, or of pairs of key and module; existing keys get new modules."""
        for key, module in _pairs(modules, "ModuleDict"):
            self[key] = module


def _pairs(values, who):
    """The pairs of a mapping, or of an iterable of pairs."""
    if not isinstance(values, Iterable):
        raise TypeError(
            f"{who}.update should be called with an iterable of key/value pairs, but got {type(values).__name__}"
        )
    if isinstance(values, (OrderedDict, Mapping, ModuleDict, ParameterDict)):
        return list(values.items())
    pairs = []
    for number, pair in enumerate(values):
        if not isinstance(pair, Iterable):
            raise TypeError(f"{who} update sequence element #{number} should be Iterable; is {type(pair).__name__}")
        pair = tuple(pair)
        if len(pair) != 2:
            raise ValueError(f"{who} update sequence element #{number} has length {len(pair)}; 2 is required")
        pairs.append(pair)
    return pairs


def _as_parameter(value):
    """A plain tensor becomes a parameter; everything else stays what it is."""
    return Parameter(value) if isinstance(value, cresset.Tensor) and not isinstance(value, Parameter) else value


class ParameterList(Module):
    """A list of parameters; tensors become parameters, other values are kept as they are.

    >>> scales = nn.ParameterList([cresset.ones(1), cresset.zeros(2)])
    >>> [name for name, _ in scales.named_parameters()]
    ['0', '1']
    """

    def __init__(self, values=None):
        super().__init__()
        self._size = 0
        if values is not None:
            self += values

    def __getitem__(self, index):
        if isinstance(index, slice):
            result = type(self)()
            for i in range(len(self))[index]:
                result.append(self[i])
            return result
        return getattr(self, str(_position(index, len(self), "ParameterList")))

    def __setitem__(self, index, value):
        setattr(self, str(_position(index, len(self), "ParameterList")), _as_parameter(value))

    def __len__(self):
        return self._size

    def __iter__(self):
        return iter([self[i] for i in range(len(self))])

    def __iadd__(self, values):
        return self.extend(values)

    def __dir__(self):
        return [name for name in super().__dir__() if not name.isdigit()]

    def append(self, value):
        """Add a value at the end."""
        number = len(self)
        self._size += 1
        self[number] = value
        return self

    def extend(self, values):
        """Add values at the end."""
        if not isinstance(values, Iterable) or isinstance(values, cresset.Tensor):
            raise TypeError(f"ParameterList.extend should be called with an iterable, but got {type(values).__name__}")
        for value in list(values):
            self.append(value)
        return self

    def extra_repr(self):
        return "\n".join(f"  ({i}): {_described(value, str)}" for i, value in enumerate(self))

    def __call__(self, *args, **kwargs):
        raise RuntimeError("ParameterList should not be called.")


def _described(value, name_of_type):
    if not isinstance(value, cresset.Tensor):
        return f"Object of type: {type(value).__name__}"
    size = "x".join(str(n) for n in value.size())
    place = "" if value.device.type in ("cpu", "meta") else f" ({value.device})"
    kind = "Parameter" if isinstance(value, Parameter) else "Tensor"
    type_name = value.dtype if name_of_type is str else value.type()
    return f"{kind} containing: [{type_name} of size {size}{place}]"


class ParameterDict(Module):
    """A dictionary of parameters, in the order of insertion (a plain dictionary's are inserted by name); tensors become
    parameters, other values stay.

    >>> nn.ParameterDict({"scale": cresset.ones(1)})["scale"].requires_grad
    True
    """

    def __init__(self, parameters=None):
        super().__init__()
        self._keys = {}
        if parameters is not None:
            self.update(parameters)

    def __getitem__(self, key):
        return getattr(self, self._name(key))

    def __setitem__(self, key, value):
        self._keys[key] = None
        setattr(self, self._name(key), _as_parameter(value))

    def __delitem__(self, key):
        del self._keys[key]
        delattr(self, self._name(key))

    def _name(self, key):
        if not isinstance(key, str):
            raise TypeError(
                "Index given to ParameterDict cannot be used as a key as it is not a string (type is "
                f"'{type(key).__name__}')."
            )
        return key

    def __len__(self):
        return len(self._keys)

    def __iter__(self):
        return iter(self._keys)

    def __reversed__(self):
        return reversed(self._keys)

    def __contains__(self, key):
        return key in self._keys

    def __or__(self, other):
        result = self.copy()
        result.update(other)
        return result

    def __ror__(self, other):
        result = other.copy()
        result.update(self)
        return result

    def __ior__(self, other):
        self.update(other)
        return self

    def copy(self):
        """Another ParameterDict with the same values."""
        return ParameterDict(OrderedDict((key, self[key]) for key in self._keys))

    def setdefault(self, key, default=None):
        """The value under `key`, which is `default` if there was none."""
        if key not in self:
            self[key] = default
        return self[key]

    def clear(self):
        """Take out all values."""
        for key in list(self._keys):
            del self[key]

    def pop(self, key):
        """Take out and return the value under `key`."""
        value = self[key]
        del self[key]
        return value

    def popitem(self):
        """Take out and return the last pair of key and value."""
        key, _ = self._keys.popitem()
        self._keys[key] = None
        return key, self.pop(key)

    def get(self, key, default=None):
        """The value under `key`, or `default`."""
        return self[key] if key in self._keys else default

    def fromkeys(self, keys, default=None):
        """A ParameterDict with the same value under all `keys`."""
        return ParameterDict((key, default) for key in keys)

    def keys(self):
        """The keys."""
        return self._keys.keys()

    def items(self):
        """The pairs of key and value."""
        return ((key, self[key]) for key in self._keys)

    def values(self):
        """The values."""
        return (self[key] for key in self._keys)

    def update(self, parameters):
        """Add the values of a mapping, or of pairs of key and value; existing keys get new values. A plain dictionary's
        are added by name.
        """
        pairs = _pairs(parameters, "ParameterDict")
        if isinstance(parameters, Mapping) and not isinstance(parameters, OrderedDict):
            pairs = sorted(pairs, key=lambda pair: pair[0])
        for key, value in pairs:
            self[key] = value

    def extra_repr(self):
        return "\n".join(f"  ({key}): {_described(value, type)}" for key, value in self.items())

    def __call__(self, input):
        raise RuntimeError("ParameterDict should not be called.")
