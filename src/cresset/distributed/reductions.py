"""How elements of several processes become one."""

import enum

import cresset


class RedOpType(enum.IntEnum):
    """The ways to reduce, by PyTorch's names and numbers."""

    SUM = 0
    AVG = 1
    PRODUCT = 2
    MIN = 3
    MAX = 4
    BAND = 5
    BOR = 6
    BXOR = 7
    PREMUL_SUM = 8

    def __str__(self):
        return f"RedOpType.{self.name}"

    def __call__(self, factor):
        """PREMUL_SUM with its factor."""
        if self is not RedOpType.PREMUL_SUM:
            raise RuntimeError(f"Only PREMUL_SUM supports calling with a factor, got {self}")
        return ReduceOp(self, factor)


class _Names(type):
    def __instancecheck__(cls, instance):
        return isinstance(instance, RedOpType) or type.__instancecheck__(cls, instance)


class ReduceOp(metaclass=_Names):
    """A way to reduce: SUM, AVG, PRODUCT, MIN, MAX, BAND, BOR, BXOR; of `_make_nccl_premul_sum`, a sum of products with
    a factor.

    >>> cresset.distributed.ReduceOp.SUM
    <RedOpType.SUM: 0>
    """

    RedOpType = RedOpType
    SUM, AVG, PRODUCT, MIN, MAX = RedOpType.SUM, RedOpType.AVG, RedOpType.PRODUCT, RedOpType.MIN, RedOpType.MAX
    BAND, BOR, BXOR, PREMUL_SUM = RedOpType.BAND, RedOpType.BOR, RedOpType.BXOR, RedOpType.PREMUL_SUM

    def __init__(self, op, factor=None):
        self.op, self.factor = RedOpType(op), factor

    def __eq__(self, other):
        return (other.op if type(other) is ReduceOp else other) == self.op

    def __hash__(self):
        return hash(self.op)

    def __repr__(self):
        return repr(self.op)


ReduceOp.__module__ = "torch.distributed"


def _make_nccl_premul_sum(factor):
    """The sum of the elements times a factor."""
    return ReduceOp(RedOpType.PREMUL_SUM, factor)


class Reduction:
    """What an engine does for a ReduceOp: multiply before, reduce, divide after."""

    NATIVE = {  # the numbers of native/distributed/mpi.h
        RedOpType.SUM: 0, RedOpType.AVG: 0, RedOpType.PREMUL_SUM: 0, RedOpType.PRODUCT: 1, RedOpType.MIN: 2,
        RedOpType.MAX: 3, RedOpType.BAND: 4, RedOpType.BOR: 5, RedOpType.BXOR: 6,
    }  # fmt: skip
    KNOWN = {}

    def __init__(self, op, who):
        self.factor = op.factor if type(op) is ReduceOp else None
        op = op.op if type(op) is ReduceOp else op
        if not isinstance(op, int) or isinstance(op, bool) or op not in self.NATIVE:
            raise TypeError(f"{who}: op must be a ReduceOp, not {op!r}")
        self.op = RedOpType(op)
        if self.op is RedOpType.PREMUL_SUM and self.factor is None:
            raise ValueError(f"{who}: ReduceOp.PREMUL_SUM needs its factor")
        self.number, self.name = self.NATIVE[self.op], self.op.name

    @classmethod
    def of(cls, op, who):
        """The Reduction of a ReduceOp; those without a factor are made once."""
        known = cls.KNOWN.get(op) if type(op) is RedOpType else None
        if known is None:
            known = cls(op, who)
            if type(op) is RedOpType:
                cls.KNOWN[op] = known
        return known

    def check(self, tensor, who):
        if self.number == 0:  # sums are for all
            return self
        if self.op in (RedOpType.BAND, RedOpType.BOR, RedOpType.BXOR) and (
            tensor.is_floating_point() or tensor.is_complex()
        ):
            raise RuntimeError(f"{who}: Cannot use ReduceOp.{self.op.name} with tensors of {tensor.dtype}")
        if self.op in (RedOpType.MIN, RedOpType.MAX) and tensor.is_complex():
            raise RuntimeError(f"{who}: all_reduce does not support {self.op.name} on complex tensors")
        return self

    def before(self, tensor):
        """Change the elements that are sent."""
        if self.factor is not None:
            with cresset.no_grad():
                tensor.mul_(self.factor)

    def after(self, tensor, size):
        """Change the elements that came."""
        if self.op is RedOpType.AVG and size > 1:
            if tensor.is_floating_point() or tensor.is_complex():
                tensor.div_(size)
            else:
                tensor.copy_(cresset.div(tensor, size, rounding_mode="trunc"))
