"""`torch.testing`: comparison of tensors and containers of them, random tensors for tests, and checks of text."""

from ..show import missing_names as _missing_names
from . import _utils  # noqa: F401
from .comparison import assert_allclose, assert_close
from .creation import make_tensor
from .file_check import FileCheck

__all__ = ["FileCheck", "assert_allclose", "assert_close", "make_tensor"]

__getattr__ = _missing_names.of(__name__)
