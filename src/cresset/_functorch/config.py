"""Settings of PyTorch's transforms, with its defaults. `check_custom_op_aliasing` is read where an operator of one's
own has run: whether its results are looked at for memory of its arguments. The others are kept for programs that set
and read them.
"""

from .._dynamo.config import patching

activation_memory_budget = 1.0
check_custom_op_aliasing = True
donated_buffer = False
enable_autograd_cache = False
error_on_custom_op_aliasing = True
functionalize_rng_ops = False

patch = patching(__name__)
