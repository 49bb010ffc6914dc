"""RemovableHandle: what every `register_..._hook` gives back."""

import itertools
import weakref
from collections import OrderedDict


class RemovableHandle:
    """Takes a hook out again, by `remove()` or at the end of a `with` block.

    Args:
        hooks_dict: the ordered dictionary that holds the hook under this handle's `id`. It is not kept alive.
        extra_dict: a dictionary, or a list of them, from which the same `id` is deleted too.

    >>> hooks = OrderedDict()
    >>> handle = RemovableHandle(hooks)
    >>> hooks[handle.id] = print
    >>> handle.remove()
    >>> hooks
    OrderedDict()
    """

    next_id = 0

    def __init__(self, hooks_dict, *, extra_dict=None):
        self.hooks_dict_ref = weakref.ref(hooks_dict)
        extra = [] if extra_dict is None else extra_dict if isinstance(extra_dict, list) else [extra_dict]
        self.extra_dict_ref = tuple(weakref.ref(hooks) for hooks in extra)
        self.id = RemovableHandle.next_id
        RemovableHandle.next_id += 1

    def remove(self):
        for ref in itertools.chain([self.hooks_dict_ref], self.extra_dict_ref):
            hooks = ref()
            if hooks is not None:
                hooks.pop(self.id, None)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.remove()

    # The dictionaries travel with the handle, so that a copy of a module has handles to its own hooks.

    def __getstate__(self):
        return self.hooks_dict_ref(), self.id, tuple(ref() for ref in self.extra_dict_ref)

    def __setstate__(self, state):
        hooks, self.id, *extra = state
        self.hooks_dict_ref = weakref.ref(OrderedDict() if hooks is None else hooks)
        self.extra_dict_ref = tuple(
            weakref.ref(hooks) for hooks in (extra[0] or () if extra else ()) if hooks is not None
        )
        RemovableHandle.next_id = max(RemovableHandle.next_id, self.id + 1)
