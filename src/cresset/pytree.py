"""Trees of containers: taking the leaves out of nested tuples, lists, dicts and registered types, and putting others in.

A tree is a container of trees, or a leaf: anything that is no registered container, None among them. Its TreeSpec is what is
left when the leaves are taken out.
"""

import dataclasses
import functools
import importlib
import json
import sys
import types
from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable, Hashable, Iterable
from typing import Any, TypeAlias

__all__ = [
    "Context", "DumpableContext", "FlattenFn", "FromDumpableContextFn", "LeafSpec", "PyTree", "PyTreeSpec", "ToDumpableContextFn", "TreeSpec", "UnflattenFn",
    "is_namedtuple", "is_namedtuple_class", "is_namedtuple_instance", "is_structseq", "is_structseq_class", "is_structseq_instance", "key_get", "keystr",
    "register_pytree_node", "tree_all", "tree_all_only", "tree_any", "tree_any_only", "tree_flatten", "tree_flatten_with_path", "tree_is_leaf", "tree_iter",
    "tree_leaves", "tree_leaves_with_path", "tree_map", "tree_map_", "tree_map_only", "tree_map_only_", "tree_map_with_path", "tree_structure", "tree_unflatten",
    "treespec_dumps", "treespec_loads", "treespec_pprint",
]  # fmt: skip

PyTree: TypeAlias = Any
Context: TypeAlias = Any
DumpableContext: TypeAlias = Any
FlattenFn = FlattenFunc = Callable[[PyTree], tuple[list[Any], Context]]
UnflattenFn = UnflattenFunc = Callable[[Iterable[Any], Context], PyTree]
FlattenWithKeysFn = FlattenWithKeysFunc = Callable[[PyTree], tuple[list[tuple[Any, Any]], Any]]
ToDumpableContextFn = FromDumpableContextFn = Callable[[Any], Any]

NodeDef = namedtuple("NodeDef", "type flatten_fn unflatten_fn flatten_with_keys_fn")
_SerializeNodeDef = namedtuple("_SerializeNodeDef", "typ serialized_type_name to_dumpable_context from_dumpable_context")

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
    _register(cls, flatten_fn, unflatten_fn, flatten_with_keys_fn, serialized_type_name, to_dumpable_context, from_dumpable_context)


def _register(cls, flatten_fn, unflatten_fn, flatten_with_keys_fn=None, name=None, to_dumpable=None, from_dumpable=None):
    if (to_dumpable is None) != (from_dumpable is None):
        raise ValueError(f"Both to_dumpable_context and from_dumpable_context for {cls} must be None or registered.")
    SUPPORTED_NODES[cls] = NodeDef(cls, flatten_fn, unflatten_fn, flatten_with_keys_fn)
    SUPPORTED_SERIALIZED_TYPES[cls] = _SerializeNodeDef(cls, name or NO_SERIALIZED_TYPE_NAME_FOUND, to_dumpable, from_dumpable)
    if name is not None:
        SERIALIZED_TYPE_TO_PYTHON_TYPE[name] = cls


_private_register_pytree_node = _register_pytree_node = register_pytree_node


def _deregister_pytree_node(cls):
    """Forget a registered class."""
    del SUPPORTED_NODES[cls]
    SERIALIZED_TYPE_TO_PYTHON_TYPE.pop(SUPPORTED_SERIALIZED_TYPES.pop(cls).serialized_type_name, None)
    CONSTANT_NODES.discard(cls)


def register_dataclass(cls, *, field_names=None, drop_field_names=None, serialized_type_name=None):
    """Register a dataclass: its fields are the children; those that are None, or in `drop_field_names`, belong to the context."""
    if field_names is None:
        if not dataclasses.is_dataclass(cls):
            raise ValueError(f"field_names must be specified with a list of all fields used to initialize the class, as it is not a dataclass: {cls!r}")
        field_names = [field.name for field in dataclasses.fields(cls) if field.init]
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

    register_pytree_node(cls, flatten, unflatten, serialized_type_name=serialized_type_name, flatten_with_keys_fn=flatten_with_keys)


@dataclasses.dataclass(frozen=True)
class ConstantNode:
    """The context of a registered constant."""

    value: Any


def register_constant(cls):
    """Let objects of a class count as part of the structure, without leaves. They must have `__eq__` and `__hash__`."""
    if cls.__eq__ is object.__eq__ or cls.__hash__ is None:
        raise TypeError(f"register_constant: {cls} needs an __eq__ and a __hash__ of its own")
    register_pytree_node(cls, lambda x: ([], ConstantNode(x)), lambda _, context: context.value, flatten_with_keys_fn=lambda x: ([], ConstantNode(x)))
    CONSTANT_NODES.add(cls)


def is_constant_class(cls):
    return isinstance(cls, type) and cls in CONSTANT_NODES


def is_namedtuple_class(cls):
    """Whether a class was made by namedtuple (or is a subclass of such a one)."""
    if not (isinstance(cls, type) and issubclass(cls, tuple)):
        return False
    fields = getattr(cls, "_fields", None)
    return isinstance(fields, tuple) and all(isinstance(field, str) for field in fields) and callable(getattr(cls, "_make", None))


def is_namedtuple_instance(obj):
    """Whether an object is a namedtuple."""
    return is_namedtuple_class(type(obj))


def is_namedtuple(obj):
    """Whether an object is a namedtuple, or a class of such."""
    return is_namedtuple_class(obj if isinstance(obj, type) else type(obj))


_is_namedtuple_instance = is_namedtuple_instance


def is_structseq_class(cls):
    """Whether a class is a struct sequence, such as those of torch.return_types."""
    return (
        isinstance(cls, type)
        and cls.__bases__ == (tuple,)
        and all(isinstance(getattr(cls, name, None), int) for name in ("n_fields", "n_sequence_fields", "n_unnamed_fields"))
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
    return [(GetAttrKey(name), value) for name, value in zip(getattr(d, "_fields", None) or type(d).__match_args__, d, strict=True)], type(d)


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


def _class_to_text(cls):
    return f"{cls.__module__}.{cls.__qualname__}"


def _class_of_text(text):
    """A class by its full name; only what its module already has, nothing is run."""
    module, _, name = text.rpartition(".")
    found = getattr(sys.modules.get(module) or importlib.import_module(module), name)
    if not isinstance(found, type):
        raise TypeError(f"treespec_loads: {text} is no class")
    return found


_register(tuple, _tuple_flatten, _tuple_unflatten, _tuple_flatten_with_keys, "builtins.tuple")
_register(list, _list_flatten, _list_unflatten, _list_flatten_with_keys, "builtins.list")
_register(dict, _dict_flatten, _dict_unflatten, _dict_flatten_with_keys, "builtins.dict")
_register(namedtuple, _namedtuple_flatten, _namedtuple_unflatten, _namedtuple_flatten_with_keys, "collections.namedtuple", _class_to_text, _class_of_text)
_register(OrderedDict, _ordereddict_flatten, _ordereddict_unflatten, _ordereddict_flatten_with_keys, "collections.OrderedDict")
_register(
    defaultdict, _defaultdict_flatten, _defaultdict_unflatten, _defaultdict_flatten_with_keys, "collections.defaultdict",
    lambda context: {"default_factory_module": context[0].__module__, "default_factory_name": context[0].__qualname__, "dict_context": context[1]},
    lambda context: [_class_of_text(f"{context['default_factory_module']}.{context['default_factory_name']}"), context["dict_context"]],
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


# ---- structure


class TreeSpec:
    """The structure of a tree: the type of the container, its context, and the specs of the children."""

    __slots__ = ("_children", "_context", "num_children", "num_leaves", "num_nodes", "type")

    def __init__(self, type, context=None, children_specs=()):
        self.type, self._context, self._children = type, context, list(children_specs)
        self.num_children = len(self._children)
        self.num_nodes = 1 + sum(child.num_nodes for child in self._children)
        self.num_leaves = sum(child.num_leaves for child in self._children)

    context = property(lambda self: self._context, doc="What the container says beside its children.")
    children_specs = property(lambda self: self._children, doc="The specs of the children.")

    def children(self):
        """The specs of the children."""
        return list(self._children)

    def child(self, index):
        """The spec of one child."""
        return self._children[index]

    def is_leaf(self):
        return False

    def __eq__(self, other):
        if not isinstance(other, TreeSpec):
            return NotImplemented
        return (self.type, self._context, self._children) == (other.type, other._context, other._children)

    def __hash__(self):
        context = tuple(self._context) if self.type in (dict, OrderedDict) else repr(self._context)
        return hash((self.type, context, tuple(self._children)))

    def __repr__(self, indent=0):
        inner = (",\n" + " " * (indent + 2)).join(child.__repr__(indent + 2) for child in self._children)
        return f"TreeSpec({self.type.__name__}, {self._context}, [{inner}])"

    def unflatten(self, leaves):
        """The tree of this structure with other leaves."""
        leaves = list(leaves)
        if len(leaves) != self.num_leaves:
            raise ValueError(
                f"treespec.unflatten(leaves): `leaves` has length {len(leaves)} but the spec refers to a pytree that holds {self.num_leaves} items ({self})."
            )
        return self._filled(iter(leaves))

    def _filled(self, leaves):
        return SUPPORTED_NODES[self.type].unflatten_fn([child._filled(leaves) for child in self._children], self._context)

    def flatten_up_to(self, tree):
        """The parts of `tree` that stand where this structure has leaves."""
        found = []
        self._collect(tree, found)
        return found

    def _collect(self, tree, found):
        kind = _get_node_type(tree)
        both_dicts = kind in STANDARD_DICT_TYPES and self.type in STANDARD_DICT_TYPES
        if kind is not self.type and not both_dicts:
            raise ValueError(f"Node type mismatch; expected {self.type!r}, but got {kind!r}.")
        children, context = SUPPORTED_NODES[kind].flatten_fn(tree)
        if len(children) != self.num_children:
            raise ValueError(f"Node arity mismatch; expected {self.num_children}, but got {len(children)}.")
        if both_dicts:
            keys = self._context[1] if self.type is defaultdict else self._context
            if set(keys) != set(tree):
                missing, extra = set(keys) - set(tree), set(tree) - set(keys)
                raise ValueError(f"Node keys mismatch; missing key(s): {missing}; extra key(s): {extra}.")
            children = [tree[key] for key in keys]
        elif self.type is not deque and context != self._context:
            raise ValueError(f"Node context mismatch for node type {self.type!r}: expected {self._context!r}, got {context!r}.")
        for child, spec in zip(children, self._children, strict=True):
            spec._collect(child, found)


PyTreeSpec = TreeSpec


class LeafSpec(TreeSpec):
    """The structure of a leaf."""

    __slots__ = ()

    def __init__(self):
        self.type, self._context, self._children = None, None, []
        self.num_children, self.num_nodes, self.num_leaves = 0, 1, 1

    def is_leaf(self):
        return True

    def __repr__(self, indent=0):
        return "*"

    def _filled(self, leaves):
        return next(leaves)

    def _collect(self, tree, found):
        found.append(tree)


_LEAF_SPEC = LeafSpec()


def treespec_leaf():
    """The spec of a leaf."""
    return _LEAF_SPEC


def treespec_tuple(iterable=(), /):
    """The spec of a tuple of trees."""
    return TreeSpec(tuple, None, list(iterable))


def treespec_dict(mapping=(), /, **kwargs):
    """The spec of a dict of trees."""
    specs = dict(mapping, **kwargs)
    return TreeSpec(dict, list(specs), list(specs.values()))


# ---- taking apart and putting together


def _flatten(tree, leaves, is_leaf):
    kind = _get_node_type(tree)
    if kind not in SUPPORTED_NODES or (is_leaf is not None and is_leaf(tree)):
        leaves.append(tree)
        return _LEAF_SPEC
    children, context = SUPPORTED_NODES[kind].flatten_fn(tree)
    return TreeSpec(kind, context, [_flatten(child, leaves, is_leaf) for child in children])


def tree_flatten(tree, is_leaf=None):
    """The leaves as a list, and the structure. `is_leaf(part)`: do not descend into this part.

    >>> leaves, spec = tree_flatten({"a": (1, 2), "b": None})
    >>> leaves
    [1, 2, None]
    >>> tree_unflatten("xyz", spec)
    {'a': ('x', 'y'), 'b': 'z'}
    """
    leaves = []
    return leaves, _flatten(tree, leaves, is_leaf)


def tree_unflatten(leaves, treespec):
    """The tree of a structure and leaves."""
    if not isinstance(treespec, TreeSpec):
        raise TypeError(f"Expected `treespec` to be an instance of PyTreeSpec but got item of type {type(treespec)}.")
    return treespec.unflatten(leaves)


def tree_iter(tree, is_leaf=None):
    """The leaves, one after another."""
    yield from tree_leaves(tree, is_leaf)


def tree_leaves(tree, is_leaf=None):
    """The leaves as a list.

    >>> tree_leaves([1, (2, {"a": 3})])
    [1, 2, 3]
    """
    return tree_flatten(tree, is_leaf)[0]


def arg_tree_leaves(*args, **kwargs):
    """The leaves of all arguments."""
    return tree_leaves((*args, *kwargs.values()))


def tree_structure(tree, is_leaf=None):
    """The structure."""
    return tree_flatten(tree, is_leaf)[1]


def tree_map(func, tree, *rests, is_leaf=None):
    """The tree of `func(leaf, ...)`, with the corresponding parts of further trees as further arguments.

    >>> tree_map(lambda a, b: a + b, {"x": 1, "y": [2]}, {"x": 10, "y": [20]})
    {'x': 11, 'y': [22]}
    """
    leaves, spec = tree_flatten(tree, is_leaf)
    return spec.unflatten(map(func, leaves, *(spec.flatten_up_to(rest) for rest in rests)))


def tree_map_(func, tree, *rests, is_leaf=None):
    """Call `func` on the leaves for what it does, and give the tree back."""
    leaves, spec = tree_flatten(tree, is_leaf)
    deque(map(func, leaves, *(spec.flatten_up_to(rest) for rest in rests)), maxlen=0)
    return tree


def map_only(type_or_types_or_pred, /):
    """Decorator: a function that leaves everything but these types (or what a predicate says) as it is."""
    if isinstance(type_or_types_or_pred, (type, tuple, types.UnionType)):

        def chosen(x):
            return isinstance(x, type_or_types_or_pred)

    elif callable(type_or_types_or_pred):
        chosen = type_or_types_or_pred
    else:
        raise TypeError("Argument must be a type, a tuple of types, or a callable.")

    def decorate(func):
        return functools.wraps(func)(lambda x: func(x) if chosen(x) else x)

    return decorate


def tree_map_only(type_or_types_or_pred, /, func, tree, is_leaf=None):
    """tree_map for leaves of these types; the others stay.

    >>> tree_map_only(int, lambda x: x + 1, [1, "a"])
    [2, 'a']
    """
    return tree_map(map_only(type_or_types_or_pred)(func), tree, is_leaf=is_leaf)


def tree_map_only_(type_or_types_or_pred, /, func, tree, is_leaf=None):
    """tree_map_ for leaves of these types."""
    return tree_map_(map_only(type_or_types_or_pred)(func), tree, is_leaf=is_leaf)


def tree_all(pred, tree, is_leaf=None):
    """Whether `pred` holds for all leaves."""
    return all(map(pred, tree_leaves(tree, is_leaf)))


def tree_any(pred, tree, is_leaf=None):
    """Whether `pred` holds for some leaf."""
    return any(map(pred, tree_leaves(tree, is_leaf)))


def tree_all_only(type_or_types, /, pred, tree, is_leaf=None):
    """Whether `pred` holds for all leaves of these types."""
    return all(pred(leaf) for leaf in tree_leaves(tree, is_leaf) if isinstance(leaf, type_or_types))


def tree_any_only(type_or_types, /, pred, tree, is_leaf=None):
    """Whether `pred` holds for some leaf of these types."""
    return any(pred(leaf) for leaf in tree_leaves(tree, is_leaf) if isinstance(leaf, type_or_types))


def _broadcast_to_and_flatten(tree, treespec, is_leaf=None):
    """The leaves of `tree` repeated over the structure, where `tree` is a prefix of it; None if it is not."""
    if tree_is_leaf(tree, is_leaf):
        return [tree] * treespec.num_leaves
    kind = _get_node_type(tree)
    if treespec.is_leaf() or kind is not treespec.type:
        return None
    children, context = SUPPORTED_NODES[kind].flatten_fn(tree)
    if len(children) != treespec.num_children or context != treespec.context:
        return None
    found = []
    for child, spec in zip(children, treespec.children_specs, strict=True):
        part = _broadcast_to_and_flatten(child, spec, is_leaf)
        if part is None:
            return None
        found += part
    return found


# ---- with paths


def _with_paths(tree, path, is_leaf):
    if tree_is_leaf(tree, is_leaf):
        yield path, tree
        return
    kind = _get_node_type(tree)
    flatten = SUPPORTED_NODES[kind].flatten_with_keys_fn
    if flatten is None:
        raise ValueError(f"Did not find a flatten_with_keys_fn for type: {kind}. Please pass a flatten_with_keys_fn argument to register_pytree_node.")
    for key, child in flatten(tree)[0]:
        yield from _with_paths(child, (*path, key), is_leaf)


_generate_key_paths = _with_paths


def tree_leaves_with_path(tree, is_leaf=None):
    """(path, leaf) for each leaf."""
    return list(_with_paths(tree, (), is_leaf))


def tree_flatten_with_path(tree, is_leaf=None):
    """(path, leaf) for each leaf, and the structure.

    >>> tree_flatten_with_path({"a": [1]})[0]
    [((MappingKey(key='a'), SequenceKey(idx=0)), 1)]
    """
    return tree_leaves_with_path(tree, is_leaf), tree_structure(tree, is_leaf)


def tree_map_with_path(func, tree, *rests, is_leaf=None):
    """tree_map of `func(path, leaf, ...)`."""
    pairs, spec = tree_flatten_with_path(tree, is_leaf)
    paths, leaves = ([pair[i] for pair in pairs] for i in (0, 1))
    return spec.unflatten(map(func, paths, leaves, *(spec.flatten_up_to(rest) for rest in rests)))


# ---- specs as text


def _to_json(spec):
    if spec.is_leaf():
        return {"type": None, "context": None, "children_spec": []}
    known = SUPPORTED_SERIALIZED_TYPES[spec.type]
    if known.serialized_type_name == NO_SERIALIZED_TYPE_NAME_FOUND:
        raise NotImplementedError(f"No registered serialization name for {spec.type} found. Please register it with a `serialized_type_name`.")
    if known.to_dumpable_context is not None:
        context = json.dumps(known.to_dumpable_context(spec.context))
    else:
        try:
            context = json.dumps(spec.context)
        except TypeError as error:
            raise TypeError(
                f"Unable to serialize context. Please make the context json dump-able, or register a custom serializer using register_pytree_node: {spec.context!r}"
            ) from error
    return {"type": known.serialized_type_name, "context": context, "children_spec": [_to_json(child) for child in spec.children_specs]}


def _of_json(value):
    if value["type"] is None and value["context"] is None and not value["children_spec"]:
        return _LEAF_SPEC
    if value["type"] not in SERIALIZED_TYPE_TO_PYTHON_TYPE:
        raise NotImplementedError(f"{value['type']} has not been registered.")
    kind = SERIALIZED_TYPE_TO_PYTHON_TYPE[value["type"]]
    context = json.loads(value["context"])
    if SUPPORTED_SERIALIZED_TYPES[kind].from_dumpable_context is not None:
        context = SUPPORTED_SERIALIZED_TYPES[kind].from_dumpable_context(context)
    return TreeSpec(kind, context, [_of_json(child) for child in value["children_spec"]])


def treespec_dumps(treespec, protocol=None):
    """A structure as JSON.

    >>> spec = tree_structure([1, {"a": 2}])
    >>> treespec_loads(treespec_dumps(spec)) == spec
    True
    """
    if not isinstance(treespec, TreeSpec):
        raise TypeError(f"Expected `treespec` to be an instance of TreeSpec but got item of type {type(treespec)}.")
    if protocol not in (None, 1):
        raise ValueError(f"Unknown protocol {protocol}. Available protocols: [1]")
    return json.dumps([1, _to_json(treespec)])


def treespec_loads(serialized):
    """The structure that treespec_dumps has written."""
    protocol, value = json.loads(serialized)
    if protocol != 1:
        raise ValueError(f"Unknown protocol {protocol}. Available protocols: [1]")
    return _of_json(value)


def treespec_pprint(treespec):
    """A structure as the text of a tree of stars."""

    class Star:
        def __repr__(self):
            return "*"

    return repr(tree_unflatten([Star()] * treespec.num_leaves, treespec))
