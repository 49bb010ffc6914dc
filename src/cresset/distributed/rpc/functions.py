"""Functions that answer later."""

import functools


def async_execution(fn):
    """A decorator: the function gives a Future, and its caller gets what that holds when it is done."""

    @functools.wraps(fn)
    def wrapper(*args, **kwargs):
        return fn(*args, **kwargs)

    wrapper._wrapped_async_rpc_function = wrapper
    return wrapper
