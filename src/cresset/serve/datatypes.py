"""The Open Inference Protocol's names of element types, and tensors as the bytes it prescribes (little endian, row by
row)."""

import cresset

from .problems import Refused

DATATYPES = {
    "BOOL": cresset.bool, "UINT8": cresset.uint8, "UINT16": cresset.uint16, "UINT32": cresset.uint32,
    "UINT64": cresset.uint64, "INT8": cresset.int8, "INT16": cresset.int16, "INT32": cresset.int32,
    "INT64": cresset.int64, "FP16": cresset.float16, "FP32": cresset.float32, "FP64": cresset.float64,
    "BF16": cresset.bfloat16,
}  # fmt: skip
NAMES = {dtype: name for name, dtype in DATATYPES.items()}


def datatype_of(dtype):
    """The protocol's name of a dtype; complex and quantized numbers have none."""
    if dtype not in NAMES:
        raise Refused(500, f"the model's output has dtype {dtype}, which the protocol has no name for")
    return NAMES[dtype]


def tensor_from_bytes(data, dtype, shape):
    """A tensor with memory of its own."""
    if not data:
        return cresset.empty(shape, dtype=dtype)
    return cresset.frombuffer(bytearray(data), dtype=dtype).reshape(shape)


def tensor_bytes(tensor):
    """The elements as bytes, row by row."""
    tensor = tensor.detach().cpu().contiguous()
    if tensor.numel() == 0:
        return b""
    return memoryview(tensor.reshape(-1).view(cresset.uint8)).tobytes()
