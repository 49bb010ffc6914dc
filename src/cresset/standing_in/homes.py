"""Where PyTorch keeps the classes that cresset keeps elsewhere."""

__all__ = ["home_of"]

# A file of cresset -> PyTorch's module for its classes. What is not here has the same path under both names.
_FILES = {
    "_library.registration": "torch.library",
    "accelerator": "torch",
    "autograd.hooks": "torch.utils.hooks",
    "cuda.devices": "torch.cuda",
    "cuda.errors": "torch.cuda",
    "data.datasets": "torch.utils.data.dataset",
    "data.loader": "torch.utils.data.dataloader",
    "data.pipes": "torch.utils.data.datapipes.datapipe",
    "data.samplers": "torch.utils.data.sampler",
    "tensors.data_types": "torch",
    "distributions.transform": "torch.distributions.transforms",
    "distributions.vector_transforms": "torch.distributions.transforms",
    "fx.code": "torch.fx.graph",
    "multiprocessing.spawning": "torch.multiprocessing.spawn",
    "onnx.program": "torch.onnx",
    "ops.return_types": "torch.return_types",
    "optim.adafactor": "torch.optim",
    "optim.cycles": "torch.optim.lr_scheduler",
    "optim.muon": "torch.optim",
    "optim.scheduler": "torch.optim.lr_scheduler",
    "profiler.events": "torch.autograd.profiler_util",
    "profiler.ranges": "torch.autograd.profiler",
    "profiler.recording": "torch.profiler.profiler",
    "tensors.quantized": "torch",
    "serialization.names": "torch.serialization",
    "serialization.options": "torch.serialization",
    "serialization.records": "torch",
    "sparse.invariants": "torch.sparse",
    "tensors.symbolic": "torch",
    "utils.selective_checkpoint": "torch.utils.checkpoint",
    "ao.nn.intrinsic": "torch.ao.nn.intrinsic.modules.fused",
    "ao.nn.quantized.functional_modules": "torch.ao.nn.quantized.modules.functional_modules",
}
# Classes that PyTorch keeps apart from the others of their file.
_CLASSES = {
    "autograd._unsafe_preserve_version_counter": "torch.autograd.grad_mode",
    "cuda.errors.AcceleratorError": "torch",
    "cuda.errors.OutOfMemoryError": "torch",
    "cuda.streams.StreamContext": "torch.cuda",
    "data.samplers.DistributedSampler": "torch.utils.data.distributed",
    "nn.hooks.BackwardHook": "torch.utils.hooks",
    "nn.loss.LinearCrossEntropyOptions": "torch.nn.modules.linear_cross_entropy_options",
    "onnx.errors.OnnxExporterError": "torch.onnx",
    "optim.adam.AdamW": "torch.optim.adamw",
    "overrides.DisableTorchFunction": "torch._C",
    "overrides.DisableTorchFunctionSubclass": "torch._C",
    "_C.dispatch_keys.DispatchKeySet": "torch",
}


def home_of(module, name):
    """PyTorch's module of the class `name` of the file `module`.

    >>> home_of("cresset.data.loader", "DataLoader")
    'torch.utils.data.dataloader'
    """
    path = module.removeprefix("cresset").removeprefix(".")
    if found := _CLASSES.get(f"{path}.{name}") or _FILES.get(path):
        return found
    if path.startswith("nn.") and "." not in path[3:]:
        from ..nn import modules

        if found := modules.home_of(module, name):
            return found
    return f"torch.{path}" if path else "torch"
