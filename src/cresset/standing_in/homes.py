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
    "data.pipes.branches": "torch.utils.data.datapipes.iter.combining",
    "data.pipes.determinism": "torch.utils.data.datapipes._decorator",
    "data.pipes.each": "torch.utils.data.datapipes.iter.callable",
    "data.pipes.groups": "torch.utils.data.datapipes.iter.grouping",
    "data.pipes.joins": "torch.utils.data.datapipes.iter.combining",
    "data.pipes.order": "torch.utils.data.datapipes.iter.combinatorics",
    "data.pipes.pipe": "torch.utils.data.datapipes.datapipe",
    "data.pipes.shares": "torch.utils.data.datapipes.iter.sharding",
    "data.pipes.wrapper": "torch.utils.data.datapipes.datapipe",
    "data.samplers": "torch.utils.data.sampler",
    "tensors.data_types": "torch",
    "dispatch.modes": "torch.utils._python_dispatch",
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
    "data.pipes.each.FilterIterDataPipe": "torch.utils.data.datapipes.iter.selecting",
    "data.pipes.each.IterableWrapperIterDataPipe": "torch.utils.data.datapipes.iter.utils",
    "data.pipes.files.FileListerIterDataPipe": "torch.utils.data.datapipes.iter.filelister",
    "data.pipes.files.FileOpenerIterDataPipe": "torch.utils.data.datapipes.iter.fileopener",
    "data.pipes.files.StreamReaderIterDataPipe": "torch.utils.data.datapipes.iter.streamreader",
    "data.pipes.files.StreamWrapper": "torch.utils.data.datapipes.utils.common",
    "data.pipes.groups.DataChunk": "torch.utils.data.datapipes.datapipe",
    "data.pipes.keyed.BatcherMapDataPipe": "torch.utils.data.datapipes.map.grouping",
    "data.pipes.keyed.ConcaterMapDataPipe": "torch.utils.data.datapipes.map.combining",
    "data.pipes.keyed.MapperMapDataPipe": "torch.utils.data.datapipes.map.callable",
    "data.pipes.keyed.SequenceWrapperMapDataPipe": "torch.utils.data.datapipes.map.utils",
    "data.pipes.keyed.ShufflerIterDataPipe": "torch.utils.data.datapipes.map.combinatorics",
    "data.pipes.keyed.ZipperMapDataPipe": "torch.utils.data.datapipes.map.combining",
    "data.pipes.pipe.functional_datapipe": "torch.utils.data.datapipes._decorator",
    "data.samplers.DistributedSampler": "torch.utils.data.distributed",
    "dispatch.modes.no_dispatch": "torch.utils._mode_utils",
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
