"""Operators of one's own: defined by a schema or a Python function, with kernels for devices, a shape rule, a
derivative and a rule for vmap.

@torch.library.custom_op("mylib::scaled", mutates_args=())
def scaled(x: torch.Tensor, by: float) -> torch.Tensor:
    return x * by

y = torch.ops.mylib.scaled(x, 2.0)

What does the work stands in cresset/_library.
"""

from ._library.checking import OpCheckError, opcheck
from ._library.custom_ops import CustomOpDef, custom_op, triton_op, wrap_triton
from ._library.infer_schema import infer_schema
from ._library.operator import OpOverload
from ._library.registration import (
    Library,
    define,
    fallthrough_kernel,
    get_ctx,
    get_kernel,
    impl,
    impl_abstract,
    register_autocast,
    register_autograd,
    register_fake,
    register_kernel,
    register_torch_dispatch,
    register_vmap,
)
from ._library.registration import scoped_library as _scoped_library

__all__ = [
    "CustomOpDef", "Library", "OpCheckError", "OpOverload", "_scoped_library", "custom_op", "define",
    "fallthrough_kernel", "get_ctx", "get_kernel", "impl", "impl_abstract", "infer_schema", "opcheck",
    "register_autocast", "register_autograd", "register_fake", "register_kernel", "register_torch_dispatch",
    "register_vmap", "triton_op", "wrap_triton",
]  # fmt: skip
