"""PyTorch's names of parts and kinds of messages (`artifacts`), which TORCH_LOGS and `set_logs` take.

What `torch.compile` tells here is said beside the kinds that have it (docs/compile.md); the others are of steps that do
not exist here (bytecode, guards, a joint graph), and programs of one's own may use them by `getArtifactLogger`.
"""

_DYNAMIC = [f"torch.fx.experimental.{name}" for name in ("symbolic_shapes", "sym_node", "recording")]

# name -> the loggers that it stands for
LOGS = {
    "torch": ["torch"],
    "dynamo": ["torch._dynamo", *_DYNAMIC],
    "aot": ["torch._functorch.aot_autograd", "torch._functorch._aot_autograd"],
    "autograd": ["torch.autograd"],
    "inductor": ["torch._inductor", "torch._inductor.cudagraph_trees"],
    "async_compile": ["torch._inductor.async_compile", "torch._inductor.compile_worker.tracked_process_pool"],
    "cache": ["torch._inductor.remote_cache", "torch._inductor.fb.remote_cache"],
    "dynamic": _DYNAMIC,
    "fake_tensor": ["torch._subclasses.fake_tensor"],
    "distributed": ["torch.distributed", "torch._dynamo.backends.distributed", "torch.nn.parallel.distributed"],
    "c10d": ["torch.distributed.distributed_c10d", "torch.distributed.rendezvous"],
    "ddp": ["torch.nn.parallel.distributed", "torch._dynamo.backends.distributed"],
    "pp": ["torch.distributed.pipelining"],
    "fsdp": ["torch.distributed.fsdp", "torch.distributed._composable.fsdp"],
    "dtensor": ["torch.distributed._tensor", "torch.distributed.tensor"],
    "onnx": ["torch.onnx"],
    "native_dsl": ["torch._native"],
    "export": [
        "torch._dynamo", "torch.export", "torch.export.dynamic_shapes", *_DYNAMIC, "torch._export.converter",
        "torch._export.non_strict_utils", "torch._export.serde.serialize", "torch.fx.experimental.proxy_tensor",
    ],
}  # fmt: skip

# Told by torch.compile: kind -> (the logger that tells it, what it tells).
TOLD = {
    "graph": ("torch._dynamo.output_graph", "the table of a graph that goes to a backend of one's own"),
    "graph_code": ("torch._dynamo.output_graph", "the Python code of such a graph"),
    "graph_sizes": ("torch._dynamo.output_graph", "the sizes of what such a graph reads"),
    "graph_breaks": ("torch._dynamo.symbolic_convert", "why and where a graph ends before the program does"),
    "recompiles": ("torch._dynamo.guards", "that a backend is asked for a function again, and what was different"),
    "recompiles_verbose": ("torch._dynamo.guards", "the same, beside each graph that the backend made before"),
    "output_code": ("torch._inductor.graph", "the C++ code of a group of pointwise operators"),
    "kernel_code": ("torch._inductor.codecache", "the same, when it has been compiled"),
    "schedule": ("torch._inductor.scheduler", "the groups that a compiled region computed, and who asked for each"),
    "fusion": ("torch._inductor.scheduler", "the operators of each group, and what it reads and writes"),
}
ARTIFACTS = {
    *TOLD, "annotation", "aot_graphs", "aot_graphs_effects", "aot_joint_graph", "auto_chunker", "autotuning",
    "benchmarking", "bytecode", "caching", "compiled_autograd", "compiled_autograd_verbose", "compute_dependencies",
    "cudagraph_static_inputs", "cudagraphs", "custom_format_test_artifact", "ddp_graphs", "graph_code_verbose",
    "graph_region_expansion", "guards", "hierarchical_compile", "incremental", "inductor_metrics", "ir_post_fusion",
    "ir_pre_fusion", "loop_ordering", "loop_tiling", "node_runtime_estimation", "not_implemented", "onnx_diagnostics",
    "overlap", "overlap_scheduling", "perf_hints", "post_grad_graphs", "pre_grad_graphs", "side_effects", "sym_node",
    "trace_bytecode", "trace_call", "trace_shape_events", "trace_source", "verbose_guards",
}  # fmt: skip
# Shown only when they are named: the level of the part they belong to is not enough.
OFF_BY_DEFAULT = {
    "annotation", "auto_chunker", "autotuning", "benchmarking", "bytecode", "caching", "compiled_autograd_verbose",
    "compute_dependencies", "cudagraph_static_inputs", "fusion", "graph_region_expansion", "hierarchical_compile",
    "incremental", "inductor_metrics", "ir_post_fusion", "ir_pre_fusion", "kernel_code", "loop_ordering", "loop_tiling",
    "node_runtime_estimation", "onnx_diagnostics", "output_code", "overlap", "overlap_scheduling", "perf_hints",
    "recompiles_verbose", "schedule", "sym_node", "trace_shape_events", "verbose_guards",
}  # fmt: skip
