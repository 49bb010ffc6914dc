"""TorchServe's `/predictions/NAME`: the body is what the model is asked, the answer is what it says.

A handler gets the body as TorchServe gives it: JSON read, a form as its fields, the rest as bytes. A program gets one
sample as JSON: nested lists, or an object of them by the inputs' names; its answer is the sample's part of the output.
"""

import cresset

from .datatypes import DATATYPES
from .problems import Refused
from .reading import dump_json, form_fields, load_json


def read_body(body, content_type, bound):
    """A handler's datum: {"body": ...}, or the fields of a form."""
    kind = content_type.partition(";")[0].strip().lower()
    if kind == "application/json":
        return {"body": load_json(body, bound)}
    if kind == "multipart/form-data":
        return form_fields(body, content_type)
    return {"body": bytearray(body)}


def read_sample(body, bound, names, datatypes):
    """A program's inputs by name, each with a first dimension of one."""
    value = load_json(body, bound)
    if not isinstance(value, dict):
        value = {names[0]: value}
    inputs = {}
    for name, data in value.items():
        dtype = DATATYPES.get(datatypes.get(name, ""))
        try:
            inputs[name] = cresset.tensor([data], dtype=dtype)
        except (TypeError, ValueError, RuntimeError, OverflowError) as error:
            raise Refused(400, f"input {name[:100]!r} is not a list of numbers: {error}") from None
    return inputs


def write_sample(outputs):
    """The sample's part of the outputs: the list alone if there is one output, else by name."""
    values = {name: value[0].tolist() for name, value in outputs.items()}
    return "application/json", [], dump_json(next(iter(values.values())) if len(values) == 1 else values)


def write_value(value, content_type=None):
    """(content type, headers, body) of what a handler gave for one request."""
    if isinstance(value, cresset.Tensor):
        value = value.tolist()
    if isinstance(value, (bytes, bytearray)):
        return content_type or "application/octet-stream", [], bytes(value)
    if isinstance(value, str):
        return content_type or "text/plain; charset=utf-8", [], value.encode()
    try:
        return content_type or "application/json", [], dump_json(value)
    except (TypeError, RecursionError) as error:
        raise Refused(500, f"the handler's answer cannot be written as JSON: {error}") from None
