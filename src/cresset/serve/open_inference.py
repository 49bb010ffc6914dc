"""The Open Inference Protocol (KServe's version 2): requests become tensors by name, outputs become answers.

Tensors come as JSON, or as raw bytes behind the JSON (the binary tensor data extension); answers go the way the request
asks for.
"""

import math
import struct

import cresset

from .datatypes import DATATYPES, datatype_of, tensor_bytes, tensor_from_bytes
from .problems import Refused
from .reading import dump_json, load_json

MAX_DIMENSIONS = 32


class Question:
    """What was asked: tensors by name, and how the answer should look."""

    def __init__(self, inputs, identity, wanted, all_binary):
        self.inputs, self.identity, self.wanted, self.all_binary = inputs, identity, wanted, all_binary


def read_question(body, json_length, bound, strings=False):
    """The Question in a body whose first `json_length` bytes are JSON (None: all). `strings`: BYTES are welcome."""
    if json_length is not None and not 0 <= json_length <= len(body):
        raise Refused(400, f"Inference-Header-Content-Length is {json_length}, but the body has {len(body)} bytes")
    text, raw = (body, b"") if json_length is None else (body[:json_length], body[json_length:])
    request = load_json(text, bound)
    if not isinstance(request, dict):
        raise Refused(400, "the request should be a JSON object with inputs")
    entries, identity = request.get("inputs"), request.get("id", "")
    if not isinstance(entries, list) or not entries or not isinstance(identity, str):
        raise Refused(400, "the request should have a list of inputs that is not empty, and an id that is a string")
    inputs, at = {}, 0
    for entry in entries:
        name, shape, datatype = _description(entry)
        size = _parameters(entry).get("binary_data_size")
        if name in inputs:
            raise Refused(400, f"input {name!r} is there twice")
        if (size is None) == ("data" not in entry):
            raise Refused(400, f"input {name!r} should have either data or the parameter binary_data_size")
        if size is None:
            inputs[name] = _from_json(name, entry["data"], shape, datatype, strings)
        else:
            if type(size) is not int or not 0 <= size <= len(raw) - at:
                raise Refused(400, f"input {name!r}: binary_data_size is {size!r}, but {len(raw) - at} bytes are left")
            inputs[name] = _from_bytes(name, raw[at : at + size], shape, datatype, strings)
            at += size
    if at != len(raw):
        raise Refused(400, f"{len(raw) - at} bytes behind the last input belong to none")
    return Question(inputs, identity, _wanted(request), bool(_parameters(request).get("binary_data_output", False)))


def _parameters(entry):
    parameters = entry.get("parameters", {})
    if not isinstance(parameters, dict):
        raise Refused(400, "parameters should be an object")
    return parameters


def _description(entry):
    if not isinstance(entry, dict) or not isinstance(entry.get("name"), str):
        raise Refused(400, "each input should be an object with a name")
    name, shape, datatype = entry["name"], entry.get("shape"), entry.get("datatype")
    if (
        not isinstance(shape, list)
        or len(shape) > MAX_DIMENSIONS
        or not all(type(size) is int and 0 <= size < 2**40 for size in shape)
    ):
        raise Refused(400, f"input {name!r}: shape should be a list of sizes, got {str(shape)[:100]}")
    if not isinstance(datatype, str) or (datatype not in DATATYPES and datatype != "BYTES"):
        raise Refused(
            400,
            f"input {name!r}: datatype should be one of {', '.join(DATATYPES)} or BYTES, got {str(datatype)[:100]!r}",
        )
    return name, shape, datatype


def _from_json(name, data, shape, datatype, strings):
    if not isinstance(data, list):
        data = [data]
    count = math.prod(shape)
    if datatype == "BYTES":
        if not strings:
            raise Refused(400, f"input {name!r}: this model takes numbers, not BYTES")
        flat = _flat(data)
        if len(flat) != count or not all(isinstance(item, str) for item in flat):
            raise Refused(400, f"input {name!r}: shape {shape} asks for {count} strings")
        return [item.encode() for item in flat]
    dtype = DATATYPES[datatype]
    if not dtype.is_floating_point:
        kinds = {type(item) for item in _flat(data)}
        if kinds - ({bool, int} if datatype == "BOOL" else {int}):
            raise Refused(
                400, f"input {name!r}: {datatype} asks for {'booleans' if datatype == 'BOOL' else 'whole numbers'}"
            )
    try:
        tensor = cresset.tensor(data, dtype=dtype)
    except (TypeError, ValueError, RuntimeError, OverflowError) as error:
        raise Refused(400, f"input {name!r}: data is not a list of {datatype}: {error}") from None
    if tensor.numel() != count:
        raise Refused(400, f"input {name!r}: shape {shape} asks for {count} elements, data has {tensor.numel()}")
    return tensor.reshape(shape)


def _flat(data):
    if not any(isinstance(item, list) for item in data):
        return data
    found, open_lists = [], [iter(data)]
    while open_lists:
        for item in open_lists[-1]:
            if isinstance(item, list):
                open_lists.append(iter(item))
                break
            found.append(item)
        else:
            open_lists.pop()
    return found


def _from_bytes(name, data, shape, datatype, strings):
    count = math.prod(shape)
    if datatype == "BYTES":
        if not strings:
            raise Refused(400, f"input {name!r}: this model takes numbers, not BYTES")
        return _strings(name, data, count)
    dtype = DATATYPES[datatype]
    if len(data) != count * dtype.itemsize:
        raise Refused(
            400, f"input {name!r}: {datatype} of shape {shape} has {count * dtype.itemsize} bytes, got {len(data)}"
        )
    return tensor_from_bytes(data, dtype, shape)


def _strings(name, data, count):
    found, at = [], 0
    while at + 4 <= len(data):
        (length,) = struct.unpack_from("<I", data, at)
        if at + 4 + length > len(data):
            break
        found.append(data[at + 4 : at + 4 + length])
        at += 4 + length
    if at != len(data) or len(found) != count:
        raise Refused(400, f"input {name!r}: the bytes are not {count} strings, each behind its length")
    return found


def _wanted(request):
    """{name: whether as bytes} of the outputs asked for; None: all."""
    entries = request.get("outputs")
    if entries is None or entries == []:
        return None
    if not isinstance(entries, list):
        raise Refused(400, "outputs should be a list")
    wanted = {}
    for entry in entries:
        if not isinstance(entry, dict) or not isinstance(entry.get("name"), str):
            raise Refused(400, "each output should be an object with a name")
        wanted[entry["name"]] = _parameters(entry).get("binary_data")
    return wanted


def write_answer(question, outputs, name, version):
    """(content type, headers, body) of the outputs: tensors, or lists of bytes, by name."""
    wanted = question.wanted if question.wanted is not None else dict.fromkeys(outputs)
    entries, parts = [], []
    for output, binary in wanted.items():
        if output not in outputs:
            raise Refused(400, f"there is no output {output[:100]!r}; there are {', '.join(outputs)}")
        value = outputs[output]
        as_bytes = question.all_binary if binary is None else bool(binary)
        if isinstance(value, list):
            entry = {"name": output, "datatype": "BYTES", "shape": [len(value)]}
            data = b"".join(struct.pack("<I", len(item)) + item for item in value) if as_bytes else None
            plain = None if as_bytes else [item.decode("utf-8", "replace") for item in value]
        else:
            entry = {"name": output, "datatype": datatype_of(value.dtype), "shape": list(value.shape)}
            data = tensor_bytes(value) if as_bytes else None
            plain = None if as_bytes else value.reshape(-1).tolist()
        if data is None:
            entry["data"] = plain
        else:
            entry["parameters"] = {"binary_data_size": len(data)}
            parts.append(data)
        entries.append(entry)
    answer = {"model_name": name, "model_version": version, "outputs": entries}
    if question.identity:
        answer["id"] = question.identity
    text = dump_json(answer)
    if not parts:
        return "application/json", [], text
    headers = [["inference-header-content-length", str(len(text))]]
    return "application/octet-stream", headers, b"".join([text, *parts])
