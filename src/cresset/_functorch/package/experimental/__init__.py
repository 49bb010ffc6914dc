"""functorch.experimental: what functorch had not promised to keep."""

from ....func import chunk_vmap, functionalize, hessian, jacfwd, jvp, replace_all_batch_norm_modules_

__all__ = ["chunk_vmap", "functionalize", "hessian", "jacfwd", "jvp", "replace_all_batch_norm_modules_"]
