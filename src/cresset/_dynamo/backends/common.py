"""`aot_autograd`: a backend of compilers of forward and backward graphs."""

from ..._functorch.aot_autograd import aot_module_simplified

__all__ = ["aot_autograd"]


def aot_autograd(**kwargs):
    """A backend for `compile` that gives forward and backward to a compiler each.

    Args:
        kwargs: `fw_compiler`, `bw_compiler` and what else `functorch.compile.aot_function` takes.

    >>> from functorch.compile import nop
    >>> from torch._dynamo.backends.common import aot_autograd
    >>> cresset.compile(lambda x: x.sin(), backend=aot_autograd(fw_compiler=nop))(cresset.zeros(2))
    tensor([0., 0.])
    """

    def backend(graph, example_inputs):
        return aot_module_simplified(graph, example_inputs, **kwargs)

    return backend
