"""A small reader of ONNX files, for tests: messages as dicts from field numbers to lists of values."""

import struct


def fields(content):
    found, at = {}, 0

    def varint():
        nonlocal at
        number = shift = 0
        while True:
            byte = content[at]
            at += 1
            number |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return number

    while at < len(content):
        key = varint()
        kind = key & 7
        if kind == 0:
            value = varint()
        elif kind == 5:
            value = struct.unpack("<f", content[at : at + 4])[0]
            at += 4
        else:
            assert kind == 2
            length = varint()
            value = content[at : at + length]
            at += length
        found.setdefault(key >> 3, []).append(value)
    return found


def text(message, field):
    return message.get(field, [b""])[0].decode()


class File:
    """What a test asks of a model."""

    def __init__(self, content):
        model = fields(content)
        graph = fields(model[7][0])
        self.ir_version, self.producer = model[1][0], text(model, 2)
        self.opset = fields(model[8][0])[2][0]
        nodes = [fields(n) for n in graph.get(1, [])]
        self.kinds = [text(n, 4) for n in nodes]
        self.nodes = [(text(n, 4), [i.decode() for i in n.get(1, [])], [o.decode() for o in n[2]]) for n in nodes]
        self.names = [text(n, 3) for n in nodes]
        self.attributes = [{text(fields(a), 1): fields(a) for a in n.get(5, [])} for n in nodes]
        self.initializers = {text(t, 8): t for t in map(fields, graph.get(5, []))}
        self.inputs = dict(map(_described, graph.get(11, [])))
        self.outputs = dict(map(_described, graph.get(12, [])))

    def elements(self, name, letter="f"):
        raw = self.initializers[name][9][0]
        return list(struct.unpack(f"<{len(raw) // struct.calcsize(letter)}{letter}", raw))


def _described(content):
    info = fields(content)
    tensor = fields(fields(info[2][0])[1][0])
    shape = [fields(d) for d in fields(tensor[2][0]).get(1, [])] if 2 in tensor else []
    return text(info, 1), (tensor[1][0], [d[2][0].decode() if 2 in d else d[1][0] for d in shape])
