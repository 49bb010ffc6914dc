"""What goes wrong in an export. The classes are PyTorch's."""

__all__ = ["OnnxExporterError", "OnnxExporterWarning", "SymbolicValueError", "UnsupportedOperatorError"]


class OnnxExporterError(RuntimeError):
    """The base of what goes wrong in an export."""


class OnnxExporterWarning(UserWarning):
    """Something in an export that may surprise."""


class UnsupportedOperatorError(OnnxExporterError):
    """An operator that cannot be written as ONNX.

    Args:
        name: the operator.
        version: the opset that was asked for.
        supported_version: the first opset that has it, if there is one.
        message: the whole sentence, instead of one made of the three.
    """

    def __init__(self, name, version=None, supported_version=None, message=None):
        later = f"; opset {supported_version} has it" if supported_version is not None else ""
        super().__init__(message or f"onnx.export: the operator {name} cannot be written in opset {version}{later}")
        self.name, self.version, self.supported_version = name, version, supported_version


class SymbolicValueError(OnnxExporterError):
    """A value that a rule cannot write."""

    def __init__(self, msg, value=None):
        super().__init__(msg)
        self.value = value
