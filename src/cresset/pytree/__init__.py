"""Trees of containers: taking the leaves out of nested tuples, lists, dicts and registered types, and putting others
in.

A tree is a container of trees, or a leaf: anything that is no registered container, None among them. Its TreeSpec is
    what is
left when the leaves are taken out.
"""

import enum
import functools
import json
import types
from collections import OrderedDict, defaultdict, deque

from .containers import (  # noqa: F401
    BUILTIN_TYPES,
    CONSTANT_NODES,
    NO_SERIALIZED_TYPE_NAME_FOUND,
    SERIALIZED_TYPE_TO_PYTHON_TYPE,
    STANDARD_DICT_TYPES,
    SUPPORTED_NODES,
    SUPPORTED_SERIALIZED_TYPES,
    ConstantNode,
    Context,
    DumpableContext,
    FlattenFn,
    FlattenFunc,
    FlattenWithKeysFn,
    FlattenWithKeysFunc,
    FromDumpableContextFn,
    GetAttrKey,
    KeyEntry,
    KeyPath,
    MappingKey,
    NodeDef,
    PyTree,
    SequenceKey,
    ToDumpableContextFn,
    UnflattenFn,
    UnflattenFunc,
    _class_to_text,
    _deregister_pytree_node,
    _get_node_type,
    _is_leaf,
    _is_namedtuple_instance,
    _private_register_pytree_node,
    _register,
    _register_pytree_node,
    _SerializeNodeDef,
    class_of_text,
    is_constant_class,
    is_namedtuple,
    is_namedtuple_class,
    is_namedtuple_instance,
    is_structseq,
    is_structseq_class,
    is_structseq_instance,
    key_get,
    keystr,
    register_constant,
    register_dataclass,
    register_pytree_node,
    tree_is_leaf,
)

__all__ = [
    "Context", "DumpableContext", "FlattenFn", "FromDumpableContextFn", "LeafSpec", "PyTree", "PyTreeSpec",
    "ToDumpableContextFn", "TreeSpec", "UnflattenFn",
    "is_namedtuple", "is_namedtuple_class", "is_namedtuple_instance", "is_structseq", "is_structseq_class",
    "is_structseq_instance", "key_get", "keystr",
    "register_pytree_node", "tree_all", "tree_all_only", "tree_any", "tree_any_only", "tree_flatten",
    "tree_flatten_with_path", "tree_is_leaf", "tree_iter",
    "tree_leaves", "tree_leaves_with_path", "tree_map", "tree_map_", "tree_map_only", "tree_map_only_",
    "tree_map_with_path", "tree_structure", "tree_unflatten",
    "treespec_dumps", "treespec_loads", "treespec_pprint",
]  # fmt: skip

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
                f"treespec.unflatten(leaves): `leaves` has length {len(leaves)} but the spec refers to a pytree that "
                f"holds {self.num_leaves} items ({self})."
            )
        return self._filled(iter(leaves))

    def _filled(self, leaves):
        return SUPPORTED_NODES[self.type].unflatten_fn(
            [child._filled(leaves) for child in self._children], self._context
        )

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
            raise ValueError(
                f"Node context mismatch for node type {self.type!r}: expected {self._context!r}, got {context!r}."
            )
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
        raise ValueError(
            f"Did not find a flatten_with_keys_fn for type: {kind}. Please pass a flatten_with_keys_fn argument to "
            "register_pytree_node."
        )
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


class EnumEncoder(json.JSONEncoder):
    """Members of enumerations, which keys of dictionaries may be, by their names."""

    def default(self, o):
        if isinstance(o, enum.Enum):
            kind = type(o)
            return {"__enum__": True, "fqn": f"{kind.__module__}:{kind.__qualname__}", "name": o.name}
        return super().default(o)


def _enum_of(value):
    if "__enum__" not in value:
        return value
    kind = class_of_text(value["fqn"].replace(":", "."), lambda cls: issubclass(cls, enum.Enum), "enumeration")
    return kind[value["name"]]


def _to_json(spec):
    if spec.is_leaf():
        return {"type": None, "context": None, "children_spec": []}
    known = SUPPORTED_SERIALIZED_TYPES[spec.type]
    if known.serialized_type_name == NO_SERIALIZED_TYPE_NAME_FOUND:
        raise NotImplementedError(
            f"No registered serialization name for {spec.type} found. Please register it with a `serialized_type_name`."
        )
    if known.to_dumpable_context is not None:
        context = json.dumps(known.to_dumpable_context(spec.context), cls=EnumEncoder)
    else:
        try:
            context = json.dumps(spec.context, cls=EnumEncoder)
        except TypeError as error:
            raise TypeError(
                "Unable to serialize context. Please make the context json dump-able, or register a custom "
                f"serializer using register_pytree_node: {spec.context!r}"
            ) from error
    return {
        "type": known.serialized_type_name,
        "context": context,
        "children_spec": [_to_json(child) for child in spec.children_specs],
    }


def _of_json(value):
    if value["type"] is None and value["context"] is None and not value["children_spec"]:
        return _LEAF_SPEC
    if value["type"] not in SERIALIZED_TYPE_TO_PYTHON_TYPE:
        raise NotImplementedError(f"{value['type']} has not been registered.")
    kind = SERIALIZED_TYPE_TO_PYTHON_TYPE[value["type"]]
    context = json.loads(value["context"], object_hook=_enum_of)
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
