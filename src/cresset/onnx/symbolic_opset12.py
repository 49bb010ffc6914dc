"""torch.onnx.symbolic_opset12: the same operators as in symbolic_opset9; all opsets that are written here are later
ones.
"""

from .symbolic_opset9 import cast, dropout, expand, masked_fill, select, softmax, squeeze, unsqueeze

__all__ = ["cast", "dropout", "expand", "masked_fill", "select", "softmax", "squeeze", "unsqueeze"]
