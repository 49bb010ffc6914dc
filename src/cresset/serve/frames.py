"""Messages between the front and a worker: a header in JSON and the bodies of requests or answers behind it.

A message is the lengths of both parts, eight bytes each, then the parts. Nothing in it can run code.
"""

import json
import struct

import orjson

LENGTHS = struct.Struct("<QQ")

# Note [Strings that are not Unicode]
# A handler may put half of a surrogate pair into a header, a path may hold one for a byte that is no letter. orjson
# refuses them, Python's own JSON writes and reads them: what orjson refuses goes that way.


def dump(header):
    try:
        return orjson.dumps(header)
    except TypeError:  # Note [Strings that are not Unicode]
        return json.dumps(header).encode()


def load(text):
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:  # Note [Strings that are not Unicode]
        return json.loads(text)


def pack(header, bodies=()):
    """The bytes of a message."""
    text = dump(header)
    return b"".join([LENGTHS.pack(len(text), sum(map(len, bodies))), text, *bodies])


def split(body, lengths):
    """The bodies that lie one behind the other in `body`."""
    found, at = [], 0
    for length in lengths:
        found.append(body[at : at + length])
        at += length
    return found


def read(file):
    """(header, body) from a blocking stream, or None at its end."""
    start = file.read(LENGTHS.size)
    if len(start) < LENGTHS.size:
        return None
    text, size = LENGTHS.unpack(start)
    header, body = file.read(text), file.read(size)
    return None if len(header) < text or len(body) < size else (load(header), body)


class Reader:
    """Messages out of the pieces in which they arrive."""

    def __init__(self):
        self.pending = bytearray()
        self.needed = LENGTHS.size

    def feed(self, data):
        """The messages that are complete now, as (header, body)."""
        self.pending += data
        while len(self.pending) >= self.needed:
            text, size = LENGTHS.unpack_from(self.pending)
            self.needed = LENGTHS.size + text + size
            if len(self.pending) < self.needed:
                return
            at = LENGTHS.size + text
            message = load(self.pending[LENGTHS.size : at]), bytes(self.pending[at : self.needed])
            del self.pending[: self.needed]
            self.needed = LENGTHS.size
            yield message
