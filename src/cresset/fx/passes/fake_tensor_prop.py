"""Run a graph on fake tensors, without memory, and note at each node what it gives."""

import cresset

from ..._subclasses.fake_tensor import FakeTensorMode
from ..._subclasses.fake_utils import faked
from ...dispatch import handling
from ..interpreter import Interpreter
from ..node import map_aggregate

__all__ = ["FakeTensorProp"]


class FakeTensorProp(Interpreter):
    """Runs a module on fake tensors; `node.meta["val"]` then holds one with the shape, dtype and device of the result.

    Args:
        mode: the FakeTensorMode to run in, by default a new one.

    >>> from cresset.fx.passes.fake_tensor_prop import FakeTensorProp
    >>> traced = cresset.fx.symbolic_trace(lambda x: x @ x.mT)
    >>> FakeTensorProp(traced).propagate(cresset.ones(3, 2)).shape
    torch.Size([3, 3])
    """

    def __init__(self, module, mode=None):
        super().__init__(module)
        self._mode = FakeTensorMode() if mode is None else mode

    def fetch_attr(self, target):
        return faked(super().fetch_attr(target), self._mode)

    def run_node(self, n):
        result = super().run_node(n)

        def kept(value):
            if isinstance(value, cresset.Tensor):
                with handling.without_modes():
                    return self._mode.from_tensor(value, static_shapes=True).detach()
            return value if isinstance(value, (bool, int, float)) else None

        known = map_aggregate(result, kept)
        if known is not None:
            n.meta["val"] = known
        return result

    def propagate(self, *args):
        """Run on inputs, real or fake."""
        fake = [self._mode.from_tensor(a, static_shapes=True) if isinstance(a, cresset.Tensor) else a for a in args]
        return self.propagate_dont_convert_inputs(*fake)

    def propagate_dont_convert_inputs(self, *args):
        """Run on inputs as they are."""
        with self._mode:
            return super().run(*args)
