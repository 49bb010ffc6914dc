"""The containers that trees descend into: how each is taken apart and put together, and the keys that lead from the
root to a leaf.
"""

import dataclasses
import functools
import sys
import warnings
from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable, Hashable, Iterable
from typing import Any, TypeAlias

PyTree: TypeAlias = Any
Context: TypeAlias = Any
DumpableContext: TypeAlias = Any
FlattenFn = FlattenFunc = Callable[[PyTree], tuple[list[Any], Context]]
UnflattenFn = UnflattenFunc = Callable[[Iterable[Any], Context], PyTree]
FlattenWithKeysFn = FlattenWithKeysFunc = Callable[[PyTree], tuple[list[tuple[Any, Any]], Any]]
ToDumpableContextFn = FromDumpableContextFn = Callable[[Any], Any]

NodeDef = namedtuple("NodeDef", "type flatten_fn unflatten_fn flatten_with_keys_fn")
_SerializeNodeDef = namedtuple(
    "_SerializeNodeDef", "typ serialized_type_name to_dumpable_context from_dumpable_context"
)

SUPPORTED_NODES = {}  # type -> NodeDef
SUPPORTED_SERIALIZED_TYPES = {}  # type -> _SerializeNodeDef
SERIALIZED_TYPE_TO_PYTHON_TYPE = {}
CONSTANT_NODES = set()
NO_SERIALIZED_TYPE_NAME_FOUND = "NO_SERIALIZED_TYPE_NAME_FOUND"
BUILTIN_TYPES = frozenset({tuple, list, dict, namedtuple, OrderedDict, defaultdict, deque})
STANDARD_DICT_TYPES = frozenset({dict, OrderedDict, defaultdict})


# ---- paths: how to get from the root to a leaf


@dataclasses.dataclass(frozen=True)
class MappingKey:
    """`tree[key]` of a mapping."""

    key: Hashable

    def __str__(self):
        return f"[{self.key!r}]"

    def get(self, mapping):
        return mapping[self.key]


@dataclasses.dataclass(frozen=True)
class SequenceKey:
    """`tree[idx]` of a sequence."""

    idx: int

    def __str__(self):
        return f"[{self.idx!r}]"

    def get(self, sequence):
        return sequence[self.idx]


@dataclasses.dataclass(frozen=True)
class GetAttrKey:
    """`tree.name`."""

    name: str

    def __str__(self):
        return f".{self.name}"

    def get(self, obj):
        return getattr(obj, self.name)


KeyEntry = MappingKey | SequenceKey | GetAttrKey
KeyPath = tuple[KeyEntry, ...]


def keystr(kp):
    """A path as text.

    >>> keystr((MappingKey("a"), SequenceKey(0), GetAttrKey("x")))
    "['a'][0].x"
    """
    return "".join(map(str, kp))


def key_get(obj, kp):
    """The part of a tree that a path leads to."""
    return functools.reduce(lambda part, key: key.get(part), kp, obj)


# ---- registered containers


def register_pytree_node(
    cls,
    flatten_fn,
    unflatten_fn,
    *,
    serialized_type_name=None,
    to_dumpable_context=None,
    from_dumpable_context=None,
    flatten_with_keys_fn=None,
):
    """Let trees descend into objects of a class.

    Args:
        flatten_fn: gives the children as a list, and a context, which says the rest.
        unflatten_fn: makes an object from children and context.
        serialized_type_name: the class's name in `treespec_dumps`; without one, specs with it cannot be dumped.
        to_dumpable_context, from_dumpable_context: the context as something JSON can hold, and back.
        flatten_with_keys_fn: as flatten_fn, with (key, child) for each child, for paths.

    >>> class Pair:
    ...     def __init__(self, a, b):
    ...         self.a, self.b = a, b
    >>> register_pytree_node(Pair, lambda pair: ([pair.a, pair.b], None), lambda children, context: Pair(*children))
    >>> tree_leaves([Pair(1, 2), 3])
    [1, 2, 3]
    """
    if cls in SUPPORTED_NODES:
        raise ValueError(f"{cls!r} is already registered as pytree node.")
    _register(
        cls,
        flatten_fn,
        unflatten_fn,
        flatten_with_keys_fn,
        serialized_type_name,
        to_dumpable_context,
        from_dumpable_context,
    )


def _register(
    cls, flatten_fn, unflatten_fn, flatten_with_keys_fn=None, name=None, to_dumpable=None, from_dumpable=None
):
    if (to_dumpable is None) != (from_dumpable is None):
        raise ValueError(f"Both to_dumpable_context and from_dumpable_context for {cls} must be None or registered.")
    SUPPORTED_NODES[cls] = NodeDef(cls, flatten_fn, unflatten_fn, flatten_with_keys_fn)
    SUPPORTED_SERIALIZED_TYPES[cls] = _SerializeNodeDef(
        cls, name or NO_SERIALIZED_TYPE_NAME_FOUND, to_dumpable, from_dumpable
    )
    if name is not None:
        SERIALIZED_TYPE_TO_PYTHON_TYPE[name] = cls


_private_register_pytree_node = register_pytree_node


def _register_pytree_node(cls, flatten_fn, unflatten_fn, **kwargs):
    """The older name of `register_pytree_node`."""
    warnings.warn(
        "torch.utils._pytree._register_pytree_node is deprecated. Please use "
        "torch.utils._pytree.register_pytree_node instead.",
        FutureWarning,
        stacklevel=2,
    )
    if cls in SUPPORTED_NODES:
        warnings.warn(
            f"{cls!r} is already registered as pytree node. Overwriting the previous registration.", stacklevel=2
        )
        _deregister_pytree_node(cls)
    register_pytree_node(cls, flatten_fn, unflatten_fn, **kwargs)


def _deregister_pytree_node(cls):
    """Forget a registered class."""
    del SUPPORTED_NODES[cls]
    SERIALIZED_TYPE_TO_PYTHON_TYPE.pop(SUPPORTED_SERIALIZED_TYPES.pop(cls).serialized_type_name, None)
    CONSTANT_NODES.discard(cls)


def register_dataclass(cls, *, field_names=None, drop_field_names=None, serialized_type_name=None):
    """Register a dataclass: its fields are the children; those that are None, or in `drop_field_names`, belong to the
    context.
    """
    if field_names is None:
        if not dataclasses.is_dataclass(cls):
            raise ValueError(
                "field_names must be specified with a list of all fields used to initialize the class, as it is not "
                f"a dataclass: {cls!r}"
            )
        field_names = [field.name for field in dataclasses.fields(cls) if field.init]
    elif dataclasses.is_dataclass(cls):
        given = {*field_names, *(drop_field_names or ())}
        fields = {field.name for field in dataclasses.fields(cls) if field.init}
        for words, names in (("Unexpected fields", given - fields), ("Missing fields", fields - given)):
            if names:
                raise ValueError(f"register_dataclass: {words} of {cls}: {sorted(names)}")
    names = [name for name in field_names if name not in set(drop_field_names or ())]

    def flatten(obj):
        given = [name for name in names if getattr(obj, name) is not None]
        return [getattr(obj, name) for name in given], [given, [name for name in names if name not in given]]

    def flatten_with_keys(obj):
        children, (given, missing) = flatten(obj)
        return [(GetAttrKey(name), child) for name, child in zip(given, children, strict=True)], [given, missing]

    def unflatten(children, context):
        given, missing = context
        return cls(**dict(zip(given, children, strict=True)), **dict.fromkeys(missing))

    register_pytree_node(
        cls, flatten, unflatten, serialized_type_name=serialized_type_name, flatten_with_keys_fn=flatten_with_keys
    )


@dataclasses.dataclass(frozen=True)
class ConstantNode:
    """The context of a registered constant."""

    value: Any


def register_constant(cls):
    """Let objects of a class count as part of the structure, without leaves. They must have `__eq__` and `__hash__`."""
    for method in ("__eq__", "__hash__"):
        if getattr(cls, method) in (None, getattr(object, method)):
            raise TypeError(
                f"register_constant(cls) expects `cls` to have a non-default `{method}` implementation. {cls} has none"
            )
    register_pytree_node(
        cls,
        lambda x: ([], ConstantNode(x)),
        lambda _, context: context.value,
        flatten_with_keys_fn=lambda x: ([], ConstantNode(x)),
    )
    CONSTANT_NODES.add(cls)


def is_constant_class(cls):
    return isinstance(cls, type) and cls in CONSTANT_NODES


def is_namedtuple_class(cls):
    """Whether a class was made by namedtuple (or is a subclass of such a one)."""
    if not (isinstance(cls, type) and issubclass(cls, tuple)):
        return False
    fields = getattr(cls, "_fields", None)
    return (
        isinstance(fields, tuple)
        and all(isinstance(field, str) for field in fields)
        and callable(getattr(cls, "_make", None))
    )


def is_namedtuple_instance(obj):
    """Whether an object is a namedtuple."""
    return is_namedtuple_class(type(obj))


def is_namedtuple(obj):
    """Whether an object is a namedtuple, or a class of such."""
    return is_namedtuple_class(obj if isinstance(obj, type) else type(obj))


_is_namedtuple_instance = is_namedtuple_instance


_CAN_BE_A_BASE = 1 << 10  # of a type's flags; struct sequences do not have it


def is_structseq_class(cls):
    """Whether a class is a struct sequence, such as those of torch.return_types."""
    return (
        isinstance(cls, type)
        and cls.__bases__ == (tuple,)
        and not cls.__flags__ & _CAN_BE_A_BASE
        and all(
            isinstance(getattr(cls, name, None), int) for name in ("n_fields", "n_sequence_fields", "n_unnamed_fields")
        )
    )


def is_structseq_instance(obj):
    """Whether an object is a struct sequence."""
    return is_structseq_class(type(obj))


def is_structseq(obj):
    """Whether an object is a struct sequence, or a class of such."""
    return is_structseq_class(obj if isinstance(obj, type) else type(obj))


def _tuple_flatten(d):
    return list(d), None


def _tuple_unflatten(values, context):
    return tuple(values)


def _tuple_flatten_with_keys(d):
    return [(SequenceKey(i), value) for i, value in enumerate(d)], None


def _list_flatten(d):
    return d, None


def _list_unflatten(values, context):
    return list(values)


_list_flatten_with_keys = _tuple_flatten_with_keys


def _dict_flatten(d):
    return list(d.values()), list(d)


def _dict_unflatten(values, context):
    return dict(zip(context, values, strict=True))


def _dict_flatten_with_keys(d):
    return [(MappingKey(key), value) for key, value in d.items()], list(d)


def _ordereddict_flatten(d):
    return list(d.values()), list(d)


def _ordereddict_unflatten(values, context):
    return OrderedDict(zip(context, values, strict=True))


_ordereddict_flatten_with_keys = _dict_flatten_with_keys
_odict_flatten, _odict_unflatten = _ordereddict_flatten, _ordereddict_unflatten


def _namedtuple_flatten(d):
    return list(d), type(d)


def _namedtuple_unflatten(values, context):
    return context(values) if is_structseq_class(context) else context(*values)


def _namedtuple_flatten_with_keys(d):
    return [
        (GetAttrKey(name), value)
        for name, value in zip(getattr(d, "_fields", None) or type(d).__match_args__, d, strict=True)
    ], type(d)


def _defaultdict_flatten(d):
    return list(d.values()), [d.default_factory, list(d)]


def _defaultdict_unflatten(values, context):
    factory, keys = context
    return defaultdict(factory, zip(keys, values, strict=True))


def _defaultdict_flatten_with_keys(d):
    return _dict_flatten_with_keys(d)[0], [d.default_factory, list(d)]


def _deque_flatten(d):
    return list(d), d.maxlen


def _deque_unflatten(values, context):
    return deque(values, maxlen=context)


def _deque_flatten_with_keys(d):
    return _tuple_flatten_with_keys(d)[0], d.maxlen


_NAMES_OF_NAMEDTUPLES = {}  # those of `_register_namedtuple`


def _register_namedtuple(cls, *, serialized_type_name):
    """Give a namedtuple the name that it has in a structure as text."""
    _NAMES_OF_NAMEDTUPLES[cls] = serialized_type_name


def _class_to_text(cls):
    """The name by which `_namedtuple_of_text` finds a class again."""
    if cls in _NAMES_OF_NAMEDTUPLES:
        return _NAMES_OF_NAMEDTUPLES[cls]
    if getattr(sys.modules.get(cls.__module__), cls.__qualname__, None) is not cls:
        raise NotImplementedError(
            f"treespec_dumps: {cls} cannot be found by the name {cls.__module__}.{cls.__qualname__}. "
            "Please register using `_register_namedtuple`."
        )
    return f"{cls.__module__}.{cls.__qualname__}"


def class_of_text(text, is_wanted, what):
    """A class by its full name, of a module that is there already: structures come from files, and a file imports
    nothing and names no class that does more than hold values.
    """
    module, _, name = text.rpartition(".")
    if module not in sys.modules:
        raise ValueError(f"treespec_loads: {text} is of a module that is not imported; import it first")
    found = getattr(sys.modules[module], name, None)
    if not isinstance(found, type) or not is_wanted(found):
        raise ValueError(f"treespec_loads: {text} is no {what}")
    return found


def _namedtuple_of_text(text):
    for cls, name in _NAMES_OF_NAMEDTUPLES.items():
        if name == text:
            return cls
    return class_of_text(text, lambda cls: is_namedtuple_class(cls) or is_structseq_class(cls), "namedtuple")


def _factory_of_text(context):
    text = f"{context['default_factory_module']}.{context['default_factory_name']}"
    return [class_of_text(text, _FACTORIES.__contains__, "class of plain values"), context["dict_context"]]


_FACTORIES = {list, dict, set, tuple, int, float, bool, str, OrderedDict, deque}  # what a defaultdict may make


_register(tuple, _tuple_flatten, _tuple_unflatten, _tuple_flatten_with_keys, "builtins.tuple")
_register(list, _list_flatten, _list_unflatten, _list_flatten_with_keys, "builtins.list")
_register(dict, _dict_flatten, _dict_unflatten, _dict_flatten_with_keys, "builtins.dict")
_register(
    namedtuple,
    _namedtuple_flatten,
    _namedtuple_unflatten,
    _namedtuple_flatten_with_keys,
    "collections.namedtuple",
    _class_to_text,
    _namedtuple_of_text,
)
_register(
    OrderedDict, _ordereddict_flatten, _ordereddict_unflatten, _ordereddict_flatten_with_keys, "collections.OrderedDict"
)
_register(
    defaultdict, _defaultdict_flatten, _defaultdict_unflatten, _defaultdict_flatten_with_keys,
    "collections.defaultdict",
    lambda context: {"default_factory_module": context[0].__module__, "default_factory_name": context[0].__qualname__,
        "dict_context": context[1]},
    _factory_of_text,
)  # fmt: skip
_register(deque, _deque_flatten, _deque_unflatten, _deque_flatten_with_keys, "collections.deque")


def _get_node_type(tree):
    kind = type(tree)
    if kind in SUPPORTED_NODES:
        return kind
    return namedtuple if is_namedtuple_class(kind) or is_structseq_class(kind) else kind


def tree_is_leaf(tree, is_leaf=None):
    """Whether a tree is a single leaf.

    >>> tree_is_leaf(None), tree_is_leaf([1])
    (True, False)
    """
    return (is_leaf is not None and is_leaf(tree)) or _get_node_type(tree) not in SUPPORTED_NODES


_is_leaf = tree_is_leaf
