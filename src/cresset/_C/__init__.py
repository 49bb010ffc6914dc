"""torch._C: the names that programs use of PyTorch's native module, each doing what it says. Ours is `cresset._native`,
with names of its own.

What belongs to machinery that is not here (dispatch keys beyond autocast's, graph executors) is left out or refused in
words.
"""

import importlib as _importlib
import os as _os
import sys as _sys
import weakref as _weakref

from .. import _native
from .. import overrides as _overrides
from .._native import (  # noqa: F401
    Generator,
    Size,
    StorageBase,
    Tensor,
    default_generator,
    device,
    dtype,
    layout,
    memory_format,
)
from ..overrides import DisableTorchFunction, DisableTorchFunctionSubclass  # noqa: F401
from ..show import missing_names as _missing_names
from .dispatch_keys import DispatchKey, DispatchKeySet, _ExcludeDispatchKeyGuard  # noqa: F401
from .executor_settings import (  # noqa: F401
    _jit_can_fuse_on_cpu,
    _jit_can_fuse_on_gpu,
    _jit_override_can_fuse_on_cpu,
    _jit_override_can_fuse_on_gpu,
    _jit_set_bailout_depth,
    _jit_set_nvfuser_enabled,
    _jit_set_nvfuser_guard_mode,
    _jit_set_profiling_executor,
    _jit_set_profiling_mode,
    _jit_set_texpr_fuser_enabled,
)

_GLIBCXX_USE_CXX11_ABI = True  # how std::string is laid out in the native module: the form since GCC 5

TensorBase = _TensorBase = Tensor  # one class here, two in PyTorch
_TensorMeta = type(Tensor)
_disabled_torch_function_impl = Tensor._disabled_torch_function
_disabled_torch_dispatch_impl = Tensor.__torch_dispatch__

# Where the rest of torch._C lives: loaded when it is first asked for.
_LATER = {
    "PyTorchFileReader": "serialization.records", "PyTorchFileWriter": "serialization.records",
    "_AutoDispatchBelowAutograd": "_library.operator",
    "_get_autograd_fallback_mode": "_library.fallback", "_set_autograd_fallback_mode": "_library.fallback",
    "_any_output_is_alias_to_input_or_output": "_library.utils", "_any_requires_grad": "_library.utils",
    "_LinAlgError": "linalg", "Tag": "ops.tags",
    "_SchemaArgType": "_library.schema_info", "_SchemaArgument": "_library.schema_info",
    "_SchemaInfo": "_library.schema_info",
    "_is_fwd_grad_enabled": "autograd.forward_ad", "_set_fwd_grad_enabled": "autograd.forward_ad",
    "Future": "futures", "_OutOfMemoryError": "cuda", "Event": "accelerator", "Stream": "accelerator",
}  # fmt: skip
# TorchScript's graphs and types.
_LATER |= dict.fromkeys(
    ["AnyType", "Argument", "Block", "BoolType", "ClassType", "ComplexType", "DeviceObjType", "DictType", "EnumType",
        "FloatType", "FunctionSchema", "FutureType", "Graph", "IntType", "InterfaceType", "ListType", "Node",
     "NoneType", "NumberType", "OptionalType", "RRefType", "StringType", "TensorType", "TupleType", "Type",
     "UnionType", "Use", "Value"],
    "graph",
)  # fmt: skip
_LATER |= {
    "ScriptModule": "jit.objects", "ScriptFunction": "jit", "_jit_set_emit_hooks": "jit.emit_hooks",
    "_jit_get_emit_hooks": "jit.emit_hooks", "_jit_clear_class_registry": "jit._state",
    "_ivalue_tags_match": "jit.inquiries", "_freeze_module": "jit.freezing",
    "_jit_get_inline_everything_mode": "graph.inline", "_jit_set_inline_everything_mode": "graph.inline",
}  # fmt: skip
_SUBMODULES = {"_VariableFunctions", "_autograd", "_cpu", "_distributed_rpc", "_dynamo", "_functions",
    "_functorch", "_nn", "_profiler"}  # fmt: skip
_PUBLIC_NAMES = {
    "ScriptModule": "ModuleFace", "_jit_set_emit_hooks": "set_hooks", "_jit_get_emit_hooks": "hooks",
    "_jit_clear_class_registry": "clear_class_registry", "_ivalue_tags_match": "values_have_equal_types",
    "_freeze_module": "freeze_face", "_jit_get_inline_everything_mode": "is_everywhere",
    "_jit_set_inline_everything_mode": "set_everywhere",
    "_SchemaArgType": "SchemaArgType", "_SchemaArgument": "SchemaArgument", "_SchemaInfo": "SchemaInfo",
    "_get_autograd_fallback_mode": "get_mode", "_set_autograd_fallback_mode": "set_mode",
    "_LinAlgError": "LinAlgError", "_OutOfMemoryError": "OutOfMemoryError",
}  # fmt: skip
_missing = _missing_names.of(__name__)


def __getattr__(name):
    if name in _LATER:
        return getattr(_importlib.import_module(".." + _LATER[name], __name__), _PUBLIC_NAMES.get(name, name))
    if name in _SUBMODULES:
        return _importlib.import_module("." + name, __name__)
    return _missing(name)


# ---------------------------------------------------------------- what is going on


def _get_tracing_state():
    """What records this thread's calls for torch.jit.trace, None if nothing does. Its `push_scope` and `pop_scope`
    name what is recorded in between.
    """
    jit = _sys.modules.get(__package__.partition(".")[0] + ".jit")
    return jit._state.tracing() if jit is not None else None


def _cuda_getCurrentRawStream(device):
    """The address of a device's current stream. Triton asks for it at every launch: nothing is made on the way."""
    return _native.cuda.current_stream(device)


_logged = set()


def _log_api_usage_once(event):
    """Tell, once for each event, that a part of an API was used: a line on standard error if PYTORCH_API_USAGE_STDERR
    is set, nothing otherwise.
    """
    if event in _logged:
        return
    _logged.add(event)
    if _os.environ.get("PYTORCH_API_USAGE_STDERR"):
        print(f"PYTORCH_API_USAGE {event}", file=_sys.stderr)


def _current_autograd_node():
    """The node whose derivative or hook this thread's backward is running; None outside of backward."""
    return _native.running_node()


def parse_schema(schema):
    """The parsed form of a schema's text, "name(Type argument, ...) -> Type"."""
    from ..ops.namespaces import Schema

    return Schema(schema)


def _current_graph_task_id():
    """The number of this thread's backward; -1 outside of backward."""
    return _native.current_backward()


def _will_engine_execute_node(node):
    """Whether this thread's backward will run a node."""
    if not isinstance(node, _native.Node):
        raise RuntimeError(f"_will_engine_execute_node: expects an grad_fn, but got {type(node).__name__}")
    if _native.current_backward() < 0:
        raise RuntimeError("_will_engine_execute_node: should only be called during the backward pass")
    return _native.will_run(node)


class _WeakTensorRef:
    """A reference to a tensor that does not keep it; `expired()` once it is gone."""

    def __init__(self, tensor):
        self._reference = _weakref.ref(tensor)

    def expired(self):
        return self._reference() is None


def _is_alias_of(tensor, other):
    """Whether two tensors lie in the same storage; a list is no tensor."""
    return all(isinstance(value, Tensor) for value in (tensor, other)) and _overlaps(tensor, other)


def _overlaps(value, other):
    """Whether a tensor of the one lies in the storage of a tensor of the other; both may be lists of tensors."""
    from .._library.schema_info import overlap

    return overlap(value, other)


def _are_functorch_transforms_active():
    """Whether this thread runs inside a transform of torch.func: vmap, grad, vjp, jvp and what is made of them."""
    derivatives = _sys.modules.get(__package__.partition(".")[0] + ".func.derivatives")
    return derivatives is not None and derivatives.inside_a_transform()


def is_grad_enabled():
    """Whether operations are recorded in this thread."""
    return _native.is_grad_enabled()


def _set_grad_enabled(mode):
    """Say whether operations are recorded in this thread from now on. Graphs of make_fx(pre_dispatch=True) call it."""
    _native.set_grad_mode(bool(mode))


def _is_torch_function_enabled():
    """Whether subclasses of Tensor see the calls."""
    return _native.answering() == _overrides.MODES_AND_CLASSES


def _len_torch_function_stack():
    """How many function modes are active."""
    return _native.function_mode_depth()


def _is_torch_function_mode_enabled():
    """Whether a function mode sees the calls."""
    return _native.function_mode_depth() > 0 and _native.answering() != _overrides.NOBODY


def _is_torch_function_all_disabled():
    """Whether neither subclasses of Tensor nor function modes see the calls."""
    return _native.answering() == _overrides.NOBODY


def _storage_Use_Count(address):  # noqa: N802  (PyTorch's name)
    """How many tensors and storages hold the storage whose `_cdata` this is."""
    return _native.storage_use_count(address)


def _storage_address(tensor):
    """What tells the tensor's storage from others; the same as `untyped_storage()._cdata`."""
    return _native.storage_address(tensor)


def _data_address(tensor):
    """The address of the tensor's first element, for somebody who only looks."""
    return _native.address_for_readers(tensor)


def _is_cow_tensor(tensor):
    """Whether the tensor's storage shares its memory with a lazy clone, until one of both is written to."""
    return _native.shares_lazily(tensor)


def _set_conj(tensor, conjugate):
    """Say whether a tensor shows its elements conjugated: as it does already; `conj()` makes one that does."""
    if bool(conjugate) != tensor.is_conj():
        raise NotImplementedError("_set_conj: what a tensor shows cannot be changed here; conj() gives another tensor")


def _set_neg(tensor, negated):
    """Say whether a tensor shows its elements negated, which none does here."""
    if negated:
        raise NotImplementedError("_set_neg: tensors that are negated when they are read do not exist here; use neg()")


# ---------------------------------------------------------------- devices


def _get_default_device():
    """The type of the device on which new tensors are made, as a string."""
    return _native.default_device().type


def _get_accelerator(check=None):
    """The accelerator of this machine; the CPU if there is none, which with check=True is an error."""
    from ..accelerator import current_accelerator

    found = current_accelerator()
    if found is None and check:
        raise RuntimeError(
            "_get_accelerator: this machine has no accelerator (Cannot access accelerator device when none is "
            "available)"
        )
    return found or device("cpu")


def _get_privateuse1_backend_name():
    """What PyTorch's slot for a device of somebody else's is called."""
    return "privateuseone"


def _get_mkldnn_enabled():
    """The setting `backends.mkldnn.enabled`."""
    from ..backends import mkldnn

    return mkldnn.enabled


def _set_mkldnn_enabled(enabled):
    """The setting `backends.mkldnn.enabled`, also where `flags` alone may change settings."""
    from ..backends import mkldnn

    type(mkldnn).enabled.put(enabled)


def _get_deterministic_fill_uninitialized_memory():
    """The setting `utils.deterministic.fill_uninitialized_memory`."""
    from ..utils import deterministic

    return deterministic.fill_uninitialized_memory


def _set_deterministic_fill_uninitialized_memory(enabled):
    """The setting `utils.deterministic.fill_uninitialized_memory`."""
    from ..utils import deterministic

    deterministic.fill_uninitialized_memory = enabled


def _parallel_info():
    """How many threads work on one operation, and what decided it."""
    from ..__config__ import parallel_info

    return parallel_info() + "\n"


def _get_math_sdp_allow_fp16_bf16_reduction():
    """What `backends.cuda.fp16_bf16_reduction_math_sdp_allowed` says."""
    from ..backends.cuda import fp16_bf16_reduction_math_sdp_allowed

    return fp16_bf16_reduction_math_sdp_allowed()


def _set_math_sdp_allow_fp16_bf16_reduction(enabled):
    """The setting `backends.cuda.allow_fp16_bf16_reduction_math_sdp`."""
    from ..backends.cuda import allow_fp16_bf16_reduction_math_sdp

    allow_fp16_bf16_reduction_math_sdp(enabled)
