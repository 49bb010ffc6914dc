"""How requests and answers travel: a length, then fields, each with its length. Nothing in them is ever run."""

import struct

LENGTH = struct.Struct("<I")
LIMIT = 1 << 30  # no honest message is longer


def pack(fields):
    """The message of a list of bytes."""
    body = b"".join(LENGTH.pack(len(field)) + field for field in fields)
    return LENGTH.pack(len(body)) + body


def unpack(body):
    """The fields of a message without its length; ValueError if it is none."""
    fields, at = [], 0
    while at < len(body):
        if at + 4 > len(body):
            raise ValueError("a message ends in the middle of a length")
        (size,) = LENGTH.unpack_from(body, at)
        at += 4
        if at + size > len(body):
            raise ValueError("a field is longer than its message")
        fields.append(body[at : at + size])
        at += size
    return fields


def take(buffer):
    """The first whole message of a bytearray, which loses it; None if there is none yet."""
    if len(buffer) < 4:
        return None
    (size,) = LENGTH.unpack_from(buffer)
    if size > LIMIT:
        raise ValueError(f"a message of {size} bytes")
    if len(buffer) < 4 + size:
        return None
    body = bytes(buffer[4 : 4 + size])
    del buffer[: 4 + size]
    return unpack(body)
