"""Run a graph once and note at each node what it gave."""

import contextlib
from collections import namedtuple

import cresset

from ..interpreter import Interpreter
from ..node import map_aggregate

__all__ = ["ShapeProp", "TensorMetadata"]

TensorMetadata = namedtuple("TensorMetadata", "shape dtype requires_grad stride memory_format is_quantized qparams")
_FORMATS = (cresset.contiguous_format, cresset.channels_last, cresset.channels_last_3d)


def _extract_tensor_metadata(result, include_contiguity=True):
    """What is to be known of a tensor without its numbers."""
    formats = (
        form
        for form in _FORMATS
        if include_contiguity and _fits(result, form) and result.is_contiguous(memory_format=form)
    )
    quantized = result.is_quantized
    qparams = {"qscheme": result.qscheme()} if quantized else {}
    if quantized and qparams["qscheme"] in (cresset.per_tensor_affine, cresset.per_tensor_symmetric):
        qparams.update(scale=result.q_scale(), zero_point=result.q_zero_point())
    return TensorMetadata(
        result.shape, result.dtype, result.requires_grad, result.stride(), next(formats, None), quantized, qparams
    )


def _fits(tensor, form):
    return form is cresset.contiguous_format or tensor.dim() == (4 if form is cresset.channels_last else 5)


class ShapeProp(Interpreter):
    """Runs a module on example inputs; `node.meta["tensor_meta"]` then holds shape, dtype and layout,
    `node.meta["type"]` the type.

    Args:
        fake_mode: a FakeTensorMode to run in, so that nothing is computed.

    >>> module = cresset.fx.symbolic_trace(nn.Linear(3, 4))
    >>> _ = cresset.fx.passes.shape_prop.ShapeProp(module).propagate(cresset.ones(2, 3))
    >>> [tuple(node.meta["tensor_meta"].shape) for node in module.graph.nodes if "tensor_meta" in node.meta][-1]
    (2, 4)
    """

    def __init__(self, gm, fake_mode=None):
        super().__init__(gm)
        self.real_module, self.fake_mode = self.module, fake_mode

    def fetch_attr(self, target):
        value = super().fetch_attr(target)
        if self.fake_mode is None:
            return value
        from ..._subclasses.fake_utils import faked

        return faked(value, self.fake_mode)

    def run_node(self, n):
        try:
            with contextlib.nullcontext() if self.fake_mode is None else self.fake_mode:
                result = super().run_node(n)
        except Exception as error:
            raise RuntimeError(f"ShapeProp error for: node={n.format_node()} with meta={n.meta}") from error
        found = False

        def note(value):
            nonlocal found
            if isinstance(value, cresset.Tensor):
                found = True
                return _extract_tensor_metadata(value)
            return value

        meta = map_aggregate(result, note)
        if found:
            n.meta["tensor_meta"] = meta
        n.meta["type"] = type(result)
        return result

    def propagate(self, *args):
        """Run on these inputs; returns what comes out."""
        if self.fake_mode is not None:
            args = [
                self.fake_mode.from_tensor(a, static_shapes=True) if isinstance(a, cresset.Tensor) else a for a in args
            ]
        return super().run(*args)
