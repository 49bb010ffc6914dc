"""parallelize_module: styles for the parts of a model, by their names."""

import fnmatch
import warnings

from ..dtensor import current_mesh
from .style import ParallelStyle


def parallelize_module(module, device_mesh=None, parallelize_plan=None, *, src_data_rank=0):
    """Cut a model's layers over the processes of a grid of one dimension. All of them call this.

    Args:
        module: changed in place.
        device_mesh: the grid, one-dimensional (`mesh["tp"]`); by default that of `with mesh:`.
        parallelize_plan: a style for the module, or a dictionary of styles by the names of submodules, in which `*` and
            `?` stand for any text and any letter.
        src_data_rank: whose weights are taken; None: each takes its part of its own.
    """
    mesh = device_mesh if device_mesh is not None else current_mesh()
    if mesh.ndim > 1:
        raise ValueError(
            f"Device mesh must be 1D for tensor parallelism, but got {mesh.ndim}D: slice it, mesh['tp'], or flatten it"
        )
    if parallelize_plan is None:
        warnings.warn(
            "No parallelize_plan is provided and auto-parallel is not supported at the moment, so this "
            "parallelize_module will do nothing.",
            stacklevel=2,
        )
        return module
    if isinstance(parallelize_plan, ParallelStyle):
        parallelize_plan.src_data_rank = src_data_rank
        return parallelize_plan._apply(module, mesh)
    if not isinstance(parallelize_plan, dict):
        raise TypeError(
            "Expect Union[ParallelStyle, Dict[str, ParallelStyle]] for parallelize_plan, "
            f"{type(parallelize_plan)} found!"
        )
    for path, style in parallelize_plan.items():
        if path == "":
            parallelize_module(module, mesh, style, src_data_rank=src_data_rank)
            continue
        first, _, rest = path.partition(".")
        found = [child for name, child in module.named_children() if fnmatch.fnmatch(name, first)]
        if not found:
            warnings.warn(
                f"Parallelize plan key '{path}' could not be resolved: no submodule matching token '{first}' in module "
                f"{module}, skipping this plan entry.",
                stacklevel=2,
            )
        for child in found:
            parallelize_module(child, mesh, {rest: style} if rest else style, src_data_rank=src_data_rank)
    return module
