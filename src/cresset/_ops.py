"""torch._ops: the classes of operators, for programs that ask what they were given."""

from .ops.namespaces import OpNamespace as _OpNamespace  # noqa: F401
from .ops.namespaces import OpOverload, OpOverloadPacket

__all__ = ["OpOverload", "OpOverloadPacket"]
