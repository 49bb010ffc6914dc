"""torch.onnx.symbolic_opset9: operators for symbolic functions of one's own. The nodes are those of the opsets that are
written here, 14 and later.
"""

import cresset

from .symbolic_helper import _is_value, _squeeze_helper, _unsqueeze_helper, parse_args

__all__ = ["cast", "dropout", "expand", "masked_fill", "select", "softmax", "squeeze", "unsqueeze"]


def unsqueeze(g, self, dim):
    """A length-one dimension at a place."""
    return _unsqueeze_helper(g, self, [dim])


def squeeze(g, self, dim=None):
    """The tensor without a length-one dimension; without all of them if none is named."""
    return g.op("Squeeze", self) if dim is None else _squeeze_helper(g, self, [dim])


def select(g, self, dim, index):
    """What stands at an index, or at a tensor of indices, of a dimension."""
    if not _is_value(index):
        index = g.op("Constant", value_t=cresset.tensor(index))
    return g.op("Gather", self, index, axis_i=dim)


def expand(g, self, size, implicit=None):
    """The tensor as if it had been repeated up to a size: a value of the graph or a list of ints, in which -1 keeps
    what is there.
    """
    if not _is_value(size):
        # ONNX broadcasts both ways: a 1 keeps what is there, as -1 does here.
        size = g.op(
            "Constant", value_t=cresset.tensor([1 if length < 0 else length for length in size], dtype=cresset.int64)
        )
    return g.op("Expand", self, size)


def masked_fill(g, self, mask, value):
    """`value` where the mask is true."""
    if not _is_value(value):
        value = g.op("Constant", value_t=cresset.as_tensor(value, dtype=getattr(self, "dtype", None)))
    elif getattr(self, "dtype", None) is not None:
        value = g.op("CastLike", value, self)
    return g.op("Where", g.op("Cast", mask, to_i=9), value, self)


def cast(g, self, dtype):
    """The tensor in another dtype."""
    from .graph import data_type

    return g.op("Cast", self, to_i=data_type(dtype))


def softmax(g, input, dim, dtype=None):
    """Softmax along a dimension."""
    made = g.op("Softmax", input, axis_i=dim)
    return made if dtype is None else cast(g, made, dtype)


@parse_args("v", "f", "b")
def dropout(g, input, p, train):
    """Dropout: the tensor itself unless `train`."""
    if not train:
        return input
    ratio, mode = g.op("Constant", value_t=cresset.tensor(p)), g.op("Constant", value_t=cresset.tensor(True))
    return g.op("Dropout", input, ratio, mode)
