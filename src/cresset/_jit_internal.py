"""The names of PyTorch's torch._jit_internal that packages import; they live in torch.jit."""

from .jit.annotations import (  # noqa: F401
    Any,
    BroadcastingList1,
    BroadcastingList2,
    BroadcastingList3,
    BroadcastingList4,
    BroadcastingList5,
    BroadcastingList6,
    Dict,
    Future,
    List,
    Optional,
    Tuple,
    Union,
)
from .jit.emit_hooks import disabled as _disable_emit_hooks  # noqa: F401
from .jit.marks import (  # noqa: F401
    Final,
    FunctionModifiers,
    _copy_to_script_wrapper,
    _drop,
    _get_fn_overloads,
    _get_overloaded_methods,
    _IgnoreContextManager,
    _overload,
    _overload_method,
    _qualified_name,
    copy_torchscript_modifier,
    export,
    get_torchscript_modifier,
    ignore,
    is_ignored_fn,
    is_scripting,
    isinstance,
    should_drop,
    unused,
)

_isinstance = isinstance


def boolean_dispatch(arg_name, arg_index, default, if_true, if_false, module_name, func_name):
    """A function that is one of two others by the value of one of its arguments, which a compiled program must know
    beforehand.
    """

    def fn(*args, **kwargs):
        flag = args[arg_index] if arg_index < len(args) else kwargs.get(arg_name, default)
        return if_true(*args, **kwargs) if flag else if_false(*args, **kwargs)

    fn.__doc__ = if_true.__doc__ or if_false.__doc__
    fn.__name__, fn.__module__ = func_name or fn.__name__, module_name or fn.__module__
    fn._boolean_dispatch = {
        "if_true": if_true,
        "if_false": if_false,
        "index": arg_index,
        "default": default,
        "arg_name": arg_name,
    }
    return fn
