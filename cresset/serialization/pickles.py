"""Reading pickles as data: an interpreter of the opcodes that builds values and calls nothing but the constructors it was given.

Python's own unpickler imports and calls whatever a file names. This one looks each name up in a closed list (`names`), so a file can only choose among
constructors of data. Lengths are compared with the bytes that are there before anything is made of them.
"""

import codecs
import pickle
import struct

__all__ = ["PickleReader", "global_names"]

_MAX_KEY_PARTS = (
    1000  # of a tuple that is a dictionary's key: hashing one walks it natively, however deep or shared it is
)
_SIMPLE_KEYS = {str, int, float, bool, bytes, complex, type(None)}
_READ_INT, _READ_UINT, _READ_UINT8, _READ_DOUBLE = (struct.Struct(f).unpack_from for f in ("<i", "<I", "<Q", ">d"))


codecs.lookup("raw-unicode-escape")  # loaded now, so that reading a file imports nothing


class _Mark:
    """What MARK leaves on the stack."""


class PickleReader:
    """One pickle in `data`, from byte `at` on.

    Args:
        names: called with (module, name), gives what a GLOBAL puts on the stack, or raises.
        makers: `makers.get(value, new)` is the function of a tuple of arguments that REDUCE (or NEWOBJ: `new`) applies; None refuses.
        persistent: called with a persistent id, gives the object.
        build: called with (instance, state) for BUILD on anything but a plain container.
        encoding: of the byte strings of Python 2.
    """

    def __init__(self, data, names, makers, persistent, build, at=0, encoding="ascii"):
        self.data, self.at, self.size = data, at, len(data)
        self.names, self.makers, self.persistent, self.build_instance, self.encoding = (
            names,
            makers,
            persistent,
            build,
            encoding,
        )

    def read(self):
        """The value. Afterwards `at` is behind the pickle."""
        self.stack, self.memo = [], {}
        data, size, handlers = self.data, self.size, _HANDLERS
        start = self.at
        try:
            while True:
                if self.at >= size:
                    raise pickle.UnpicklingError("the data ends before its STOP")
                opcode = data[self.at]
                self.at += 1
                if opcode == 0x2E:  # STOP
                    value = self.stack.pop()
                    if value is _Mark:
                        raise pickle.UnpicklingError("the value is missing")
                    return value
                handler = handlers[opcode]
                if handler is None:
                    raise pickle.UnpicklingError(_refusal(opcode))
                handler(self)
        except pickle.UnpicklingError as error:
            raise pickle.UnpicklingError(f"load: the pickle at byte {self.at - start}: {error}") from error.__cause__
        except (
            IndexError,
            KeyError,
            ValueError,
            TypeError,
            OverflowError,
            MemoryError,
            RecursionError,
            struct.error,
        ) as error:
            raise pickle.UnpicklingError(
                f"load: the pickle is damaged at byte {self.at - start}: {type(error).__name__}: {error}"
            ) from error

    # ---- pieces of the data

    def take(self, count):
        if count > self.size - self.at:
            raise pickle.UnpicklingError(f"{count} bytes are announced, {self.size - self.at} are left")
        piece = self.data[self.at : self.at + count]
        self.at += count
        return piece

    def take_bytes(self, count):
        return bytes(self.take(count))

    def number(self, read, width):
        if width > self.size - self.at:
            raise pickle.UnpicklingError("the data ends inside a number")
        (value,) = read(self.data, self.at)
        self.at += width
        return value

    def byte(self):
        value = self.data[self.at]
        self.at += 1
        return value

    def line(self):
        end = self.data.find(b"\n", self.at)
        if end < 0:
            raise pickle.UnpicklingError("a line does not end")
        text = bytes(self.data[self.at : end])
        self.at = end + 1
        return text

    def since_mark(self):
        """The values above the last MARK, taken off the stack together with it."""
        stack = self.stack
        for position in range(len(stack) - 1, -1, -1):
            if stack[position] is _Mark:
                items = stack[position + 1 :]
                del stack[position:]
                return items
        raise pickle.UnpicklingError("there is no MARK")

    def pop(self):
        value = self.stack.pop()
        if value is _Mark:
            raise pickle.UnpicklingError("a value is missing before this opcode")
        return value

    def top(self):
        value = self.stack[-1]
        if value is _Mark:
            raise pickle.UnpicklingError("a value is missing before this opcode")
        return value

    # ---- containers

    def put_items(self, items):
        target = self.top()
        if not isinstance(target, dict):
            raise pickle.UnpicklingError(f"items can only be set in a dictionary, not in {_kind(target)}")
        if len(items) % 2:
            raise pickle.UnpicklingError("a dictionary's key has no value")
        for key, value in zip(items[::2], items[1::2], strict=True):
            if type(key) not in _SIMPLE_KEYS:
                check_key(key)
            dict.__setitem__(target, key, value) if type(target) is dict else target.__setitem__(key, value)

    def put_elements(self, items):
        target = self.top()
        if type(target) is list:
            target.extend(items)
        elif isinstance(target, list) or type(target).__name__ == "deque":
            for item in items:
                target.append(item)
        else:
            raise pickle.UnpicklingError(f"elements can only be appended to a list, not to {_kind(target)}")

    def apply(self, maker_of, arguments, verb, new=False):
        if type(arguments) is not tuple:
            raise pickle.UnpicklingError(f"the arguments of a constructor must be a tuple, got {_kind(arguments)}")
        maker = self.makers.get(maker_of, new)
        if maker is None:
            raise pickle.UnpicklingError(f"{verb} applies {_kind(maker_of)}, which is not a constructor of data")
        self.stack.append(maker(arguments))


def check_key(key):
    """Refuse keys that would take long, or too much of the native stack, to hash."""
    pending, parts = [key], 0
    while pending:
        part = pending.pop()
        parts += 1
        if parts > _MAX_KEY_PARTS:
            raise pickle.UnpicklingError(f"a key of a dictionary or set has more than {_MAX_KEY_PARTS} parts")
        if isinstance(part, tuple):
            pending.extend(part)


def _kind(value):
    return f"a value of type {type(value).__name__}"


def _refusal(opcode):
    name = {
        0x69: "INST", 0x6F: "OBJ", 0x82: "EXT1", 0x83: "EXT2", 0x84: "EXT4", 0x97: "NEXT_BUFFER", 0x98: "READONLY_BUFFER",
    }.get(opcode)  # fmt: skip
    if name is None:
        return f"{opcode:#04x} is not an opcode; the file is damaged, or is not a pickle"
    return f"the opcode {name} is not read: files written by save do not have it, and it can stand for any code"


# ---------------------------------------------------------------- the opcodes

_HANDLERS = [None] * 256


def _opcode(code):
    def keep(handler):
        _HANDLERS[code[0]] = handler
        return handler

    return keep


def _pushes(code, make):
    def handler(self):
        self.stack.append(make(self))

    _HANDLERS[code[0]] = handler


def _integer_line(self):
    text = self.line()
    if text in (b"00", b"01"):
        return text == b"01"
    return int(text)


def _long_line(self):
    text = self.line()
    return int(text[:-1] if text.endswith(b"L") else text)


def _string_line(self):
    text = self.line()
    if len(text) < 2 or text[0] != text[-1] or text[:1] not in (b'"', b"'"):
        raise pickle.UnpicklingError("a quoted string does not end")
    return _text(self, codecs.escape_decode(text[1:-1])[0])


def _text(self, raw):
    return raw if self.encoding == "bytes" else raw.decode(self.encoding)


def _signed(self, count):
    if count < 0:
        raise pickle.UnpicklingError(f"an integer of {count} bytes")
    return int.from_bytes(self.take(count), "little", signed=True)


def _short_string(self, count):
    if count < 0:
        raise pickle.UnpicklingError(f"a string of {count} bytes")
    return _text(self, self.take_bytes(count))


def _unicode(self, count):
    return str(self.take(count), "utf-8", "surrogatepass")


_pushes(pickle.NONE, lambda self: None)
_pushes(pickle.NEWTRUE, lambda self: True)
_pushes(pickle.NEWFALSE, lambda self: False)
_pushes(pickle.INT, _integer_line)
_pushes(pickle.BININT, lambda self: self.number(_READ_INT, 4))
_pushes(pickle.BININT1, lambda self: self.byte())
_pushes(pickle.BININT2, lambda self: self.byte() | self.byte() << 8)
_pushes(pickle.LONG, _long_line)
_pushes(pickle.LONG1, lambda self: _signed(self, self.byte()))
_pushes(pickle.LONG4, lambda self: _signed(self, self.number(_READ_INT, 4)))
_pushes(pickle.FLOAT, lambda self: float(self.line()))
_pushes(pickle.BINFLOAT, lambda self: self.number(_READ_DOUBLE, 8))
_pushes(pickle.STRING, _string_line)
_pushes(pickle.BINSTRING, lambda self: _short_string(self, self.number(_READ_INT, 4)))
_pushes(pickle.SHORT_BINSTRING, lambda self: _short_string(self, self.byte()))
_pushes(pickle.UNICODE, lambda self: self.line().decode("raw-unicode-escape"))
_pushes(pickle.BINUNICODE, lambda self: _unicode(self, self.number(_READ_UINT, 4)))
_pushes(pickle.SHORT_BINUNICODE, lambda self: _unicode(self, self.byte()))
_pushes(pickle.BINUNICODE8, lambda self: _unicode(self, self.number(_READ_UINT8, 8)))
_pushes(pickle.BINBYTES, lambda self: self.take_bytes(self.number(_READ_UINT, 4)))
_pushes(pickle.SHORT_BINBYTES, lambda self: self.take_bytes(self.byte()))
_pushes(pickle.BINBYTES8, lambda self: self.take_bytes(self.number(_READ_UINT8, 8)))
_pushes(pickle.BYTEARRAY8, lambda self: bytearray(self.take(self.number(_READ_UINT8, 8))))
_pushes(pickle.EMPTY_LIST, lambda self: [])
_pushes(pickle.EMPTY_TUPLE, lambda self: ())
_pushes(pickle.EMPTY_DICT, lambda self: {})
_pushes(pickle.EMPTY_SET, lambda self: set())
_pushes(pickle.MARK, lambda self: _Mark)
_pushes(pickle.LIST, lambda self: self.since_mark())
_pushes(pickle.TUPLE, lambda self: tuple(self.since_mark()))
_pushes(pickle.TUPLE1, lambda self: (self.pop(),))
_pushes(pickle.DUP, lambda self: self.top())
_pushes(pickle.BINGET, lambda self: self.memo[self.byte()])
_pushes(pickle.LONG_BINGET, lambda self: self.memo[self.number(_READ_UINT, 4)])
_pushes(pickle.GET, lambda self: self.memo[int(self.line())])
_pushes(pickle.PERSID, lambda self: self.persistent(self.line().decode("ascii")))
_pushes(pickle.BINPERSID, lambda self: self.persistent(self.pop()))


@_opcode(pickle.PROTO)
def _(self):
    version = self.byte()
    if version > pickle.HIGHEST_PROTOCOL:
        raise pickle.UnpicklingError(f"unsupported pickle protocol: {version}")


@_opcode(pickle.FRAME)
def _(self):
    self.number(_READ_UINT8, 8)  # frames help those who read in pieces; the data is whole here


@_opcode(pickle.POP)
def _(self):
    self.stack.pop()


@_opcode(pickle.POP_MARK)
def _(self):
    self.since_mark()


@_opcode(pickle.TUPLE2)
def _(self):
    second, first = self.pop(), self.pop()
    self.stack.append((first, second))


@_opcode(pickle.TUPLE3)
def _(self):
    third, second, first = self.pop(), self.pop(), self.pop()
    self.stack.append((first, second, third))


@_opcode(pickle.DICT)
def _(self):
    items = self.since_mark()
    self.stack.append({})
    self.put_items(items)


@_opcode(pickle.SETITEM)
def _(self):
    value, key = self.pop(), self.pop()
    self.put_items([key, value])


@_opcode(pickle.SETITEMS)
def _(self):
    self.put_items(self.since_mark())


@_opcode(pickle.APPEND)
def _(self):
    self.put_elements([self.pop()])


@_opcode(pickle.APPENDS)
def _(self):
    self.put_elements(self.since_mark())


def checked_elements(items):
    """`items` as elements of a set."""
    for item in items:
        if type(item) not in _SIMPLE_KEYS:
            check_key(item)
    return items


@_opcode(pickle.ADDITEMS)
def _(self):
    items, target = self.since_mark(), self.top()
    if type(target) is not set:
        raise pickle.UnpicklingError(f"elements can only be added to a set, not to {_kind(target)}")
    target.update(checked_elements(items))


@_opcode(pickle.FROZENSET)
def _(self):
    self.stack.append(frozenset(checked_elements(self.since_mark())))


@_opcode(pickle.BINPUT)
def _(self):
    self.memo[self.byte()] = self.top()


@_opcode(pickle.LONG_BINPUT)
def _(self):
    self.memo[self.number(_READ_UINT, 4)] = self.top()


@_opcode(pickle.PUT)
def _(self):
    self.memo[int(self.line())] = self.top()


@_opcode(pickle.MEMOIZE)
def _(self):
    self.memo[len(self.memo)] = self.top()


@_opcode(pickle.GLOBAL)
def _(self):
    module, name = self.line().decode("utf-8"), self.line().decode("utf-8")
    self.stack.append(self.names(module, name))


@_opcode(pickle.STACK_GLOBAL)
def _(self):
    name, module = self.pop(), self.pop()
    if type(name) is not str or type(module) is not str:
        raise pickle.UnpicklingError("STACK_GLOBAL needs two strings")
    self.stack.append(self.names(module, name))


@_opcode(pickle.REDUCE)
def _(self):
    arguments = self.pop()
    self.apply(self.pop(), arguments, "REDUCE")


@_opcode(pickle.NEWOBJ)
def _(self):
    arguments = self.pop()
    self.apply(self.pop(), arguments, "NEWOBJ", new=True)


@_opcode(pickle.NEWOBJ_EX)
def _(self):
    keywords, arguments = self.pop(), self.pop()
    if keywords != {}:
        raise pickle.UnpicklingError("NEWOBJ_EX with keyword arguments is not read")
    self.apply(self.pop(), arguments, "NEWOBJ_EX", new=True)


@_opcode(pickle.BUILD)
def _(self):
    state = self.pop()
    self.build_instance(self.top(), state)


def global_names(data, at=0):
    """All (module, name) that the pickle in `data` names, without building anything, and the byte after it."""
    import io
    import pickletools

    found, texts, memo = [], [], {}
    stream = io.BytesIO(bytes(data[at:]))
    try:
        for opcode, argument, _position in pickletools.genops(stream):
            if opcode.name == "GLOBAL" or opcode.name in ("INST",):
                found.append(tuple(argument.split(" ", 1)))
            elif opcode.name == "STACK_GLOBAL" and len(texts) > 1:
                found.append((texts[-2], texts[-1]))
            elif "UNICODE" in opcode.name:
                texts.append(argument)
            elif opcode.name == "MEMOIZE":
                memo[len(memo)] = texts[-1] if texts else ""
            elif "PUT" in opcode.name:
                memo[argument] = texts[-1] if texts else ""
            elif "GET" in opcode.name and isinstance(memo.get(argument), str):
                texts.append(memo[argument])
    except ValueError as error:
        raise pickle.UnpicklingError(f"load: the pickle is damaged: {error}") from error
    return found, at + stream.tell()
