"""Protobuf's wire format: a message is a sequence of fields, each its number and layout, then the value. Each function
gives the bytes of one field.
"""

import struct


def varint(value):
    """A whole number, seven bits a byte, the lowest first; a negative one as its 64 bits."""
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def integer(number, value):
    return varint(number << 3) + varint(int(value))


def double(number, value):
    return varint(number << 3 | 1) + struct.pack("<d", value)


def single(number, value):
    return varint(number << 3 | 5) + struct.pack("<f", value)


def message(number, *parts):
    """A nested message, bytes or text."""
    body = b"".join(part.encode() if isinstance(part, str) else part for part in parts)
    return varint(number << 3 | 2) + varint(len(body)) + body


def doubles(number, values):
    return message(number, struct.pack(f"<{len(values)}d", *values))


def singles(number, values):
    return message(number, struct.pack(f"<{len(values)}f", *values))
