"""Settings of PyTorch's transforms, with its defaults. `check_custom_op_aliasing` is read where an operator of one's
own has run: whether its results are looked at for memory of its arguments. `fake_tensor_propagate_real_tensors` is
read when a FakeTensorMode is made: whether fake tensors carry what real ones would hold. The others are kept for
programs that set and read them.
"""

from .._dynamo.config import patching

activation_memory_budget = 1.0
aggressive_recomputation = False
autograd_cache_allow_custom_autograd_functions = False
ban_recompute_long_fusible_chains = True
ban_recompute_materialized_backward = True
ban_recompute_not_in_allowlist = True
ban_recompute_reductions = True
ban_recompute_used_far_apart = True
bundled_autograd_cache = False
check_custom_op_aliasing = True
cse = True
debug_assert = False
debug_partitioner = False
donated_buffer = False
enable_autograd_cache = False
error_on_custom_op_aliasing = True
fake_tensor_allow_unsafe_data_ptr_access = True
fake_tensor_propagate_real_tensors = False
functionalize_rng_ops = False
max_dist_from_bw = 1000
recompute_views = False
static_weight_shapes = True
strict_autograd_cache = False
treat_parameters_as_free_to_save = True
unlift_effect_tokens = False
view_replay_for_aliased_outputs = True

patch = patching(__name__)
