"""torch._subclasses: tensors that have a shape and no memory (FakeTensor)."""

from .fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensor,
    FakeTensorMode,
    UnsupportedFakeTensorException,
    UnsupportedOperatorException,
)
from .fake_utils import CrossRefFakeMode

__all__ = [
    "CrossRefFakeMode", "DataDependentOutputException", "DynamicOutputShapeException", "FakeTensor", "FakeTensorMode",
    "UnsupportedFakeTensorException", "UnsupportedOperatorException",
]  # fmt: skip
