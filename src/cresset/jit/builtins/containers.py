"""Lists and dicts, under TorchScript's names. Text shares some of these: what a name means is Python's to tell apart by
the value.
"""

from . import strings


def get_item(container, key):
    if isinstance(container, dict):
        if key not in container:
            raise RuntimeError(f"KeyError: {key}")
        return container[key]
    if isinstance(container, str):
        return strings._index(container, key)
    if not -len(container) <= key < len(container):
        raise RuntimeError("list index out of range")
    return container[key]


def set_item(container, key, value):
    if isinstance(container, list) and not -len(container) <= key < len(container):
        raise RuntimeError("list index out of range")
    container[key] = value
    return container


def delete(container, key):
    if isinstance(container, dict):
        if key not in container:
            raise RuntimeError(f"KeyError: {key}")
    elif not -len(container) <= key < len(container):
        raise RuntimeError("list index out of range")
    del container[key]


def append(container, item):
    container.append(item)
    return container


def extend(container, items):
    container.extend(items)


def insert(container, index, item):
    container.insert(index, item)


def pop(container, *arguments):
    if isinstance(container, dict):
        key, *default = arguments
        if key not in container and not default:
            raise RuntimeError(f"KeyError: {key}")
        return container.pop(key, *default)
    if not container:
        raise RuntimeError("pop from empty list")
    return container.pop(*arguments)


def slice_of(container, start=None, end=None, step=1):
    return container[slice(start, end, step)]


def contains(container, item):
    return item in container


def same_contents(first, second):
    return first == second


def find(container, *rest):
    if isinstance(container, str):
        return strings._bounded("index")(container, *rest)
    if rest[0] not in container:
        raise RuntimeError(f"'{rest[0]}' is not in list")
    return container.index(rest[0])


def count(container, *rest):
    return strings._bounded("count")(container, *rest) if isinstance(container, str) else container.count(rest[0])


def remove(container, item):
    if item not in container:
        raise RuntimeError("list.remove(x): x not in list")
    container.remove(item)


def sort(container, reverse=False):
    container.sort(reverse=reverse)


def add_in_place(container, items):
    container.extend(items)
    return container


def multiply_in_place(container, times):
    container *= times
    return container


def get(container, key, default=None):
    return container.get(key, default)


def set_default(container, key, default):
    return container.setdefault(key, default)


def pop_last(container):
    if not container:
        raise RuntimeError("popitem(): dictionary is empty")
    return container.popitem()


def copied(container):
    return container.copy()


def index_of_module(container, key):
    """`prim::ModuleContainerIndex`: a submodule by its name or place."""
    found = list(container._modules.values())[key] if isinstance(key, int) else container._modules.get(key)
    if found is None:
        raise RuntimeError(f"KeyError: {key}")
    return found


builtins = {
    "aten::__getitem__": get_item, "aten::_set_item": set_item, "aten::Delete": delete, "aten::append": append,
    "aten::extend": extend, "aten::insert": insert, "aten::pop": pop,
    "aten::slice": slice_of, "aten::__contains__": contains, "aten::index": find, "aten::count": count,
    "aten::remove": remove, "aten::sort": sort,
    "aten::sorted": lambda container: sorted(container), "aten::reverse": lambda container: container.reverse(),
    "aten::clear": lambda container: container.clear(), "aten::copy": copied,
    "aten::list": list, "aten::dict": lambda items=(): dict(items), "aten::keys": lambda container: list(container),
    "aten::values": lambda container: list(container.values()),
    "aten::items": lambda container: list(container.items()), "aten::get": get, "aten::setdefault": set_default,
    "aten::update": lambda container, other: container.update(other),
    "aten::popitem": pop_last, "aten::add_": add_in_place, "aten::mul_": multiply_in_place, "aten::all": all,
    "aten::any": any, "aten::sum": sum, "aten::Size": list,
    "prim::ModuleContainerIndex": index_of_module,
}  # fmt: skip
