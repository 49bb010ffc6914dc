"""A request's body as JSON or as form fields, read so that no body takes more memory than a request may."""

import contextlib
import email.parser
import email.policy
import json
import math
import zlib

import orjson

from .problems import Refused

# Only what Python's own writer takes: whether an answer can be written does not depend on which of them is asked.
PLAIN = orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_DATETIME | orjson.OPT_PASSTHROUGH_SUBCLASS


def load_json(data, bound):
    """The value of a JSON text. What it takes in memory is estimated from its marks before it is read."""
    cost = (
        72 * (data.count(b"[") + data.count(b"{"))
        + 40 * (data.count(b",") + 1)
        + 120 * data.count(b":")
        + 4 * len(data)
    )
    if bound and cost > bound:
        raise Refused(413, f"this JSON would take about {cost >> 20} MB of memory; a request may take {bound >> 20}")
    with contextlib.suppress(orjson.JSONDecodeError):
        return orjson.loads(data)
    # Python's own reader takes NaN and Infinity, which clients do send, and says in known words what is wrong.
    try:
        return json.loads(data, parse_constant=_no_constant)
    except RecursionError:
        raise Refused(400, "the JSON is nested too deeply") from None
    except ValueError as error:  # also bytes that are not UTF-8, and whole numbers of thousands of digits
        raise Refused(400, f"the body is not JSON: {error}") from None


def _no_constant(name):
    return {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}[name]


def dump_json(value):
    """The JSON text of a value; numbers that are not finite, which JSON does not have, become null."""
    with contextlib.suppress(TypeError):
        return orjson.dumps(value, option=PLAIN)
    # Python's own writer takes keys that are numbers, and whole numbers of any length.
    try:
        return json.dumps(value, separators=(",", ":"), allow_nan=False).encode()
    except ValueError:
        return json.dumps(_finite(value), separators=(",", ":"), allow_nan=False).encode()


def _finite(value):
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    return [_finite(item) for item in value] if isinstance(value, (list, tuple)) else value


def uncompressed(data, encoding, limit):
    """The body behind Content-Encoding; at most `limit` bytes of it."""
    if encoding in ("", "identity"):
        return data
    if encoding not in ("gzip", "deflate"):
        raise Refused(415, f"Content-Encoding {encoding!r} is not known; there are gzip and deflate")
    unpacker = zlib.decompressobj(31 if encoding == "gzip" else 15)
    try:
        found = unpacker.decompress(data, limit + 1)
    except zlib.error as error:
        raise Refused(400, f"the body is not {encoding}: {error}") from None
    if len(found) > limit:
        raise Refused(413, f"the body unpacks to more than {limit} bytes")
    if not unpacker.eof:
        raise Refused(400, f"the {encoding} body ends too early")
    return found


def form_fields(data, content_type):
    """The fields of a multipart form: bytes by name."""
    parser = email.parser.BytesParser(policy=email.policy.HTTP)
    message = parser.parsebytes(b"Content-Type: " + content_type.encode("latin-1", "replace") + b"\r\n\r\n" + data)
    fields = {}
    for part in message.iter_parts() if message.is_multipart() else ():
        name = part.get_param("name", header="content-disposition")
        if isinstance(name, str):
            fields[name] = part.get_payload(decode=True) or b""
    if not fields:
        raise Refused(400, "the multipart form has no named fields")
    return fields
