"""cresset: PyTorch's API as small, fast and truthful software. `import cresset as torch`."""

import importlib as _importlib
import math as _math
import os as _os

try:
    from . import _native
except ModuleNotFoundError as _error:
    raise ImportError(
        f"cresset: the native module is not built ({_error}). If this is the source tree, install it first: pip "
        "install ."
    ) from _error

from ._native import (  # noqa: F401
    Generator,
    Size,
    Tensor,
    can_cast,
    default_generator,
    device,
    dtype,
    get_default_dtype,
    get_num_threads,
    is_anomaly_check_nan_enabled,
    is_anomaly_enabled,
    is_grad_enabled,
    is_inference_mode_enabled,
    layout,
    memory_format,
    promote_types,
    result_type,
    set_default_dtype,
    set_flush_denormal,
    set_num_threads,
)  # fmt: skip
from .version import __version__  # noqa: F401

# Not __path__: an editable install may name the folder of what was compiled first.
_native.cuda.set_kernel_folder(_os.path.join(_os.path.dirname(__file__), "cuda", "kernels"))

for _name in dir(_native):
    if isinstance(getattr(_native, _name), (dtype, layout, memory_format)):
        globals()[_name] = getattr(_native, _name)

e, pi, inf, nan, newaxis = _math.e, _math.pi, _math.inf, _math.nan, None
legacy_contiguous_format = _native.contiguous_format
has_lapack, has_spectral = True, True  # decompositions and Fourier transforms are there
has_mkl, has_openmp = False, False  # and none of these libraries is used for them

from . import ops as _operators  # noqa: E402
from .autograd.grad_mode import enable_grad, inference_mode, no_grad, set_grad_enabled  # noqa: E402, F401
from .random import fork_rng, get_rng_state, initial_seed, manual_seed, seed, set_rng_state  # noqa: E402, F401
from .show import missing_names as _missing_names  # noqa: E402
from .show.printing import set_printoptions  # noqa: E402, F401
from .storage import TypedStorage, UntypedStorage, is_storage  # noqa: E402, F401
from .storage import legacy_storages as _legacy_storages  # noqa: E402
from .tensors import tensor as _tensor_methods  # noqa: E402
from .tensors import typed as _tensor_types  # noqa: E402
from .tensors.data_types import finfo, iinfo  # noqa: E402, F401
from .tensors.from_data import (  # noqa: E402, F401
    as_tensor,
    asarray,
    from_dlpack,
    from_file,
    from_numpy,
    frombuffer,
    get_default_device,
    set_default_device,
    set_default_tensor_type,
    tensor,
    to_dlpack,
)

globals().update(_operators.functions)
globals().update(_tensor_types.legacy_types)
_tensor_classes = set(_tensor_types.legacy_types.values())
_storage_classes = {UntypedStorage, TypedStorage, *_legacy_storages.values()}
globals().update(_legacy_storages)
_tensor_methods.install(_operators.methods)
typename = _tensor_types.typename

# Subpackages load when they are first used.
_SUBPACKAGES = {
    "autograd", "linalg", "fft", "special", "nn", "optim", "utils", "func", "distributions", "testing", "masked",
    "signal", "random", "storage", "overrides",
    "return_types", "__config__", "__future__", "types", "amp", "cuda", "backends", "jit", "onnx", "distributed",
    "multiprocessing",
    "serialization", "safetensors", "sparse", "library", "cpu", "xpu", "mps", "mtia", "accelerator",
    "quasirandom", "version", "torch_version",
    "_C", "_classes", "_custom_op", "_custom_ops", "_functorch", "_guards", "_ops", "_vmap_internals",
    "_export", "_library", "_subclasses", "dispatch", "_inductor", "_prims", "_prims_common", "_tensor", "_tensor_str",
    "_logging", "functional", "monitor", "package", "_VF",
    "fx", "nested", "ao", "quantization", "profiler", "futures", "hub", "compiler", "_dynamo", "_jit_internal", "graph",
    "export",
    "metrics", "train", "serve", "debug", "vision", "text",
}  # fmt: skip

# Functions of modules that load when they are first used.
_LATER = {"summary": "show.summary", "draw": "show.drawing"}

# Functions of nn.functional that PyTorch offers as torch.<name>, too.
_OF_NN = {
    "affine_grid_generator", "bilinear", "binary_cross_entropy_with_logits", "channel_shuffle", "constant_pad_nd",
    "cosine_embedding_loss", "cosine_similarity", "ctc_loss",
    "grid_sampler", "grid_sampler_2d", "grid_sampler_3d", "gru_cell", "hinge_embedding_loss", "kl_div", "lstm_cell",
    "margin_ranking_loss", "native_channel_shuffle", "pairwise_distance", "pixel_shuffle",
    "pixel_unshuffle", "poisson_nll_loss", "prelu", "rnn_relu_cell", "rnn_tanh_cell", "triplet_margin_loss",
}  # fmt: skip

# Functions of a subpackage that PyTorch offers as torch.<name>; the subpackage loads when the first of them is used.
_OF_SUBPACKAGES = {
    **dict.fromkeys(["save", "load"], "serialization"),
    **dict.fromkeys(["qscheme", "per_tensor_affine", "per_channel_affine", "per_tensor_symmetric",
        "per_channel_symmetric", "per_channel_affine_float_qparams"], "tensors.quantized"),
    **dict.fromkeys(["OutOfMemoryError", "AcceleratorError"], "cuda"),
    **dict.fromkeys(["PyTorchFileReader", "PyTorchFileWriter"], "serialization.records"),
    **dict.fromkeys(["Event", "Stream", "get_device_module"], "accelerator"),
    **dict.fromkeys(["get_float32_matmul_precision", "set_float32_matmul_precision"], "backends.precision"),
    **dict.fromkeys(
        ["autocast", "autocast_decrement_nesting", "autocast_increment_nesting", "clear_autocast_cache",
            "get_autocast_cpu_dtype", "get_autocast_dtype",
         "get_autocast_gpu_dtype", "get_autocast_ipu_dtype", "get_autocast_xla_dtype", "is_autocast_cache_enabled",
         "is_autocast_cpu_enabled", "is_autocast_enabled",
         "is_autocast_ipu_enabled", "is_autocast_xla_enabled", "set_autocast_cache_enabled", "set_autocast_cpu_dtype",
         "set_autocast_cpu_enabled", "set_autocast_dtype",
         "set_autocast_enabled", "set_autocast_gpu_dtype", "set_autocast_ipu_dtype", "set_autocast_ipu_enabled",
         "set_autocast_xla_dtype", "set_autocast_xla_enabled"],
        "amp.autocast_mode",
    ),
    **dict.fromkeys(
        ["are_deterministic_algorithms_enabled", "get_deterministic_debug_mode",
            "is_deterministic_algorithms_warn_only_enabled", "is_warn_always_enabled",
         "set_deterministic_debug_mode", "set_warn_always", "use_deterministic_algorithms"],
        "backends.determinism",
    ),
    **dict.fromkeys(
        ["SymBool", "SymFloat", "SymInt", "sym_float", "sym_int", "sym_ite", "sym_max", "sym_min", "sym_not",
            "sym_sqrt", "sym_sum"], "tensors.symbolic"
    ),
    **dict.fromkeys(["cond", "while_loop"], "func.control_flow"),
    **dict.fromkeys(["compiled_with_cxx11_abi", "get_num_interop_threads", "init_num_threads",
        "set_num_interop_threads"], "backends.threads"),
    **dict.fromkeys(["read_vitals", "set_vital", "vitals_enabled"], "profiler.vitals"),
    **dict.fromkeys(["DispatchKey", "DispatchKeySet"], "_C"),
    **dict.fromkeys(["DisableTorchFunction", "DisableTorchFunctionSubclass"], "overrides"),
    "Future": "futures", "classes": "_classes", "StorageBase": "_native",
    "GradScaler": "amp", "ScriptModule": "jit", "Tag": "ops.tags",
    **dict.fromkeys(
        ["AnyType", "BoolType", "ComplexType", "DeviceObjType", "DictType", "FloatType", "FunctionSchema",
            "FutureType", "IntType", "ListType", "Node", "NoneType", "NumberType", "OptionalType", "RRefType",
         "StringType", "TensorType", "TupleType", "UnionType", "Value"],
        "graph",
    ),
    "compile": "compiler", "_disable_dynamo": "compiler",
}  # fmt: skip


def __getattr__(name):
    if name in _OF_SUBPACKAGES:
        return getattr(_importlib.import_module("." + _OF_SUBPACKAGES[name], __name__), name)
    if name in _OF_NN:
        return _importlib.import_module(".nn.functional.root", __name__).functions[name]
    if name in _LATER:
        return getattr(_importlib.import_module("." + _LATER[name], __name__), name)
    if name in _SUBPACKAGES:
        try:
            return _importlib.import_module("." + name, __name__)
        except ModuleNotFoundError as error:
            if error.name != f"{__name__}.{name}":
                raise
    if name == "vmap":
        return _importlib.import_module(".func", __name__).vmap
    if name == "Storage":  # that of new tensors
        return next(kind for kind in _legacy_storages.values() if kind.dtype is _native.get_default_dtype())
    if name == "torch":  # PyTorch's module holds itself, too
        return _importlib.import_module(__name__)
    if name.startswith("_") and not name.startswith("__"):  # operators that PyTorch's own layers call
        run = _importlib.import_module(".ops.aten_forms", __name__).underscored(name)
        if run is not None:
            return run
    raise _missing_names.MissingName(__name__, name)


def __dir__():
    from importlib.util import find_spec

    return sorted(
        {
            *globals(),
            *_OF_NN,
            *_OF_SUBPACKAGES,
            *_LATER,
            "Storage",
            *(name for name in _SUBPACKAGES if find_spec(f"{__name__}.{name}")),
        }
    )


if "TORCH_LOGS" in _os.environ:  # what it asks for may be shown from now on, and a mistake in it is told now
    from . import _logging  # noqa: F401
