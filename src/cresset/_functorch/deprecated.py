"""The transforms under the names of the package functorch, which say where they are today."""

import functools
import warnings

import cresset

from .. import func

__all__ = [
    "combine_state_for_ensemble", "functionalize", "grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp",
    "make_functional", "make_functional_with_buffers", "vjp", "vmap",
]  # fmt: skip

# What took their place, where it is not the function of the same name in torch.func.
_TODAY = {
    "combine_state_for_ensemble": "torch.func.stack_module_state",
    "make_functional": "torch.func.functional_call",
    "make_functional_with_buffers": "torch.func.functional_call",
    "vmap": "torch.vmap",
}


def _warning(name):
    function = cresset.vmap if name == "vmap" else getattr(func, name)
    today = _TODAY.get(name, f"torch.func.{name}")

    @functools.wraps(function)
    def older(*args, **kwargs):
        warnings.warn(
            f"functorch.{name} is an older name: functorch is part of PyTorch now. Please use `{today}` instead",
            FutureWarning,
            stacklevel=2,
        )
        return function(*args, **kwargs)

    return older


combine_state_for_ensemble = _warning("combine_state_for_ensemble")
functionalize = _warning("functionalize")
grad = _warning("grad")
grad_and_value = _warning("grad_and_value")
hessian = _warning("hessian")
jacfwd = _warning("jacfwd")
jacrev = _warning("jacrev")
jvp = _warning("jvp")
make_functional = _warning("make_functional")
make_functional_with_buffers = _warning("make_functional_with_buffers")
vjp = _warning("vjp")
vmap = _warning("vmap")
