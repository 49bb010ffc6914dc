"""Settings of the code generator, with PyTorch's defaults. They are kept for programs that set and read them; what
code is generated (cresset/compiler/printing.py) asks none of them.
"""

import types

from .._dynamo.config import patching

allow_buffer_reuse = True
aten_distributed_optimizations = types.SimpleNamespace(
    enable_overlap_scheduling=False, collective_bucketing=None, insert_overlap_deps=None
)
compile_threads = 1
conv_1x1_as_mm = False
coordinate_descent_check_all_directions = False
coordinate_descent_tuning = False
cpp_wrapper = False
debug = False
emulate_precision_casts = False
epilogue_fusion = True
force_disable_caches = False
freezing = False
fx_graph_cache = True
graph_partition = True
max_autotune = False
max_autotune_gemm = False
max_autotune_pointwise = False
pattern_matcher = True
post_grad_custom_post_pass = None
post_grad_custom_pre_pass = None
reorder_for_compute_comm_overlap = False
size_asserts = True
reorder_for_peak_memory = True
shape_padding = True
triton = types.SimpleNamespace(
    cudagraphs=False, cudagraph_trees=True, cudagraph_skip_dynamic_graphs=False, unique_kernel_names=True
)

patch = patching(__name__)
