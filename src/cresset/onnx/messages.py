"""Writing ONNX files: the few messages of onnx.proto that a model is made of.

The numbers of the fields are those of the ONNX specification. Whole messages are bytes; a message inside of another is
a field that holds them.
"""

from ..utils.protobuf import integer, message, single

# TensorProto.DataType
DATA_TYPES = {
    "float32": 1, "uint8": 2, "int8": 3, "uint16": 4, "int16": 5, "int32": 6, "int64": 7, "bool": 9, "float16": 10,
    "float64": 11,
    "uint32": 12, "uint64": 13, "complex64": 14, "complex128": 15, "bfloat16": 16, "float8_e4m3fn": 17,
    "float8_e4m3fnuz": 18,
    "float8_e5m2": 19, "float8_e5m2fnuz": 20,
}  # fmt: skip

FLOAT, INT, STRING, TENSOR, FLOATS, INTS, STRINGS = 1, 2, 3, 4, 6, 7, 8  # AttributeProto.AttributeType
EXTERNAL = 1  # TensorProto.DataLocation


def model(graph, *, ir_version, opsets, producer, version):
    """A ModelProto. `opsets` maps domains to versions; "" is ONNX itself."""
    parts = [integer(1, ir_version), message(2, producer), message(3, version), message(7, graph)]
    parts += [message(8, message(1, domain) + integer(2, number)) for domain, number in opsets.items()]
    return b"".join(parts)


def graph(name, nodes, initializers, inputs, outputs):
    """A GraphProto of messages that are made already."""
    parts = [message(1, n) for n in nodes] + [message(2, name)] + [message(5, i) for i in initializers]
    return b"".join(parts + [message(11, i) for i in inputs] + [message(12, o) for o in outputs])


def node(op_type, inputs, outputs, name, domain, attributes):
    """A NodeProto; an input that is not given is the empty name."""
    parts = [message(1, i) for i in inputs] + [message(2, o) for o in outputs] + [message(3, name), message(4, op_type)]
    parts += [message(5, attribute(key, value)) for key, value in attributes.items()]
    return b"".join(parts + ([message(7, domain)] if domain else []))


def attribute(name, value):
    """An AttributeProto; the type is read off the value. Bytes are a TensorProto."""
    if isinstance(value, (bool, int)):
        return message(1, name) + integer(3, int(value)) + integer(20, INT)
    if isinstance(value, float):
        return message(1, name) + single(2, value) + integer(20, FLOAT)
    if isinstance(value, str):
        return message(1, name) + message(4, value) + integer(20, STRING)
    if isinstance(value, bytes):
        return message(1, name) + message(5, value) + integer(20, TENSOR)
    values = list(value)
    if all(isinstance(v, int) for v in values):
        return b"".join([message(1, name), *(integer(8, v) for v in values), integer(20, INTS)])
    if all(isinstance(v, str) for v in values):
        return b"".join([message(1, name), *(message(9, v) for v in values), integer(20, STRINGS)])
    return b"".join([message(1, name), *(single(7, v) for v in values), integer(20, FLOATS)])


def tensor(name, dtype, shape, raw=None, external=None):
    """A TensorProto with its elements (little-endian) inside, or in a file beside: `external` is (file, offset,
    length).
    """
    parts = [integer(1, size) for size in shape] + [integer(2, DATA_TYPES[dtype]), message(8, name)]
    if external is None:
        parts.append(message(9, raw))
    else:
        entries = zip(("location", "offset", "length"), map(str, external), strict=True)
        parts += [message(13, message(1, key) + message(2, value)) for key, value in entries] + [integer(14, EXTERNAL)]
    return b"".join(parts)


def value_info(name, dtype, shape):
    """A ValueInfoProto: a tensor's name, dtype and sizes, where a text names a size that is free."""
    sizes = b"".join(message(1, message(2, size) if isinstance(size, str) else integer(1, size)) for size in shape)
    return message(1, name) + message(2, message(1, integer(1, DATA_TYPES[dtype]) + message(2, sizes)))
