"""torch.ops.quantized: the operators of quantized layers, each with PyTorch's schema and PyTorch's rounding.

A file holds a topic; `packet` is asked by `torch.ops.quantized` for an operator by name.
"""

import functools

from cresset.ops.namespaces import OpOverloadPacket, PythonOverload, Schema

PACKETS = {}


def operator(*schemas):
    """Make a function an operator of torch.ops.quantized under these schemas; its own name stays the function."""

    def register(run):
        for text in schemas:
            schema = Schema("quantized::" + text.replace("Packed ", "__torch__.torch.classes.quantized.PackedParams "))
            packet = PACKETS.setdefault(schema.op, OpOverloadPacket(f"quantized::{schema.op}"))
            packet._overloads[schema.overload_name or "default"] = PythonOverload(packet, schema, run)
        return run

    return register


@functools.cache
def packets():
    """All operators by name."""
    from . import activation, arithmetic, convolution, linear, normalization  # noqa: F401

    return PACKETS


def needs_quantized(who, *tensors):
    """Refuse a floating-point tensor where a quantized one belongs."""
    for tensor in tensors:
        if not tensor.is_quantized:
            raise NotImplementedError(
                f"quantized::{who}: expected a quantized tensor, got {tensor.dtype}; put a QuantStub before it"
            )
