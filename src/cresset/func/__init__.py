"""Functions of functions: vmap over a batch, derivatives as functions, modules as functions of their parameters.

They nest in any order: `vmap(grad(f))` is the gradient for each sample, `jacfwd(jacrev(f))` the Hessian.
"""

from .derivatives import grad, grad_and_value, hessian, jacfwd, jacrev, jvp, linearize, vjp
from .make_functional import combine_state_for_ensemble, make_functional, make_functional_with_buffers
from .modules import functional_call, replace_all_batch_norm_modules_, stack_module_state
from .rearranging import rearrange
from .vmapping import chunk_vmap, debug_unwrap, functionalize, vmap

__all__ = [
    "chunk_vmap", "combine_state_for_ensemble", "debug_unwrap", "functional_call", "functionalize", "grad",
    "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp",
    "linearize", "rearrange", "replace_all_batch_norm_modules_",
    "make_functional", "make_functional_with_buffers", "stack_module_state", "vjp", "vmap",
]  # fmt: skip
