"""Lists and dicts that refuse changes: arguments of nodes, whose users the graph keeps track of."""

from .. import pytree

__all__ = ["immutable_dict", "immutable_list"]


def _refuse(self, *args, **kwargs):
    name = type(self).__name__
    raise TypeError(
        f"'{name}' object does not support mutation. If you are attempting to modify the kwargs or args of a "
        "torch.fx.Node object, "
        "instead create a new copy of it and assign the copy to the node: new_args = ...  # copy and mutate args; "
        "node.args = new_args"
    )


class immutable_list(list):
    """A list that cannot be changed."""

    append = clear = extend = insert = pop = remove = reverse = sort = _refuse
    __delitem__ = __iadd__ = __imul__ = __setitem__ = _refuse

    def __hash__(self):
        return hash(tuple(self))

    def __reduce__(self):
        return type(self), (list(self),)


class immutable_dict(dict):
    """A dict that cannot be changed."""

    clear = pop = popitem = setdefault = update = _refuse
    __delitem__ = __ior__ = __setitem__ = _refuse

    def __hash__(self):
        return hash(frozenset(self.items()))

    def __reduce__(self):
        return type(self), (dict(self),)


pytree.register_pytree_node(
    immutable_list,
    lambda x: (list(x), None),
    lambda values, _: immutable_list(values),
    flatten_with_keys_fn=lambda x: ([(pytree.SequenceKey(i), value) for i, value in enumerate(x)], None),
)
pytree.register_pytree_node(
    immutable_dict,
    lambda x: (list(x.values()), list(x)),
    lambda values, keys: immutable_dict(zip(keys, values)),
    flatten_with_keys_fn=lambda x: ([(pytree.MappingKey(key), value) for key, value in x.items()], list(x)),
)
