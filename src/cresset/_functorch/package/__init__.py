"""The package functorch, which PyTorch installs beside torch: `cresset.func` under its older names."""

from ...func.make_functional import FunctionalModule, FunctionalModuleWithBuffers
from ..deprecated import (
    combine_state_for_ensemble,
    functionalize,
    grad,
    grad_and_value,
    hessian,
    jacfwd,
    jacrev,
    jvp,
    make_functional,
    make_functional_with_buffers,
    vjp,
    vmap,
)

__all__ = [
    "FunctionalModule", "FunctionalModuleWithBuffers",
    "combine_state_for_ensemble", "functionalize", "grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp",
    "make_functional", "make_functional_with_buffers", "make_fx", "vjp", "vmap",
]  # fmt: skip


def __getattr__(name):
    if name == "make_fx":
        from ...fx.experimental.proxy_tensor import make_fx

        return make_fx
    if name == "__version__":
        from ... import __version__

        return __version__
    raise AttributeError(f"module 'functorch' has no attribute {name!r}")
