"""torch.distributed.config: PyTorch's switches of the compiler's collectives. Neither has a compiled collective to
change here: both are off, and turning one on is refused.
"""

import contextlib
import sys
import types

compile_on_one_rank = False
use_torchcomms = False
_SWITCHES = ("compile_on_one_rank", "use_torchcomms")


@contextlib.contextmanager
def patch(**changes):
    """A context in which switches have other values.

    >>> with cresset.distributed.config.patch(use_torchcomms=False):
    ...     cresset.distributed.config.use_torchcomms
    False
    """
    module = sys.modules[__name__]
    before = {name: getattr(module, name) for name in changes}
    try:
        for name, value in changes.items():
            setattr(module, name, value)
        yield
    finally:
        for name, value in before.items():
            setattr(module, name, value)


class _Config(types.ModuleType):
    def __setattr__(self, name, value):
        if name in _SWITCHES and value is not False:
            raise NotImplementedError(f"torch.distributed.config.{name}: can only be False in cresset, not {value!r}")
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Config
