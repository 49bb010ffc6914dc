"""torch.onnx.utils: where PyTorch's older exporter keeps its functions."""

from . import export, is_in_onnx_export, register_custom_op_symbolic, unregister_custom_op_symbolic

__all__ = ["export", "is_in_onnx_export", "register_custom_op_symbolic", "unregister_custom_op_symbolic"]
