"""Reading pickles as data: an interpreter of the opcodes that builds values and calls nothing but the constructors it
was given.

Python's own unpickler imports and calls whatever a file names. This one looks each name up in a closed list (`names`),
so a file can only choose among constructors of data. Lengths are compared with the bytes that are there before anything
is made of them, and what the values take is counted (`bounds`).
"""

import codecs
import collections
import pickle
import struct
import sys

__all__ = ["PickleReader", "global_names"]

_SLOT = (
    20  # what a place on the stack takes: the list's slot, its spare room, and the slice that is taken off at a MARK
)
_SLOTS = 1000  # places that are counted at once
_LIST_SLOT = _MEMO_SLOT = 12
_READ_INT, _READ_UINT, _READ_UINT8, _READ_DOUBLE = (struct.Struct(f).unpack_from for f in ("<i", "<I", "<Q", ">d"))


codecs.lookup("raw-unicode-escape")  # loaded now, so that reading a file imports nothing


class _Mark:
    """What MARK leaves on the stack."""


class PickleReader:
    """One pickle in `data`, from byte `at` on.

    Args:
        budget: what its values may take.
        names: called with (module, name), gives what a GLOBAL puts on the stack, or raises.
        makers: `makers.get(value, new)` is the function of a tuple of arguments that REDUCE (or NEWOBJ: `new`) applies;
            None refuses.
        persistent: called with a persistent id, gives the object.
        build: called with (instance, state) for BUILD on anything but a plain container.
        encoding: of the byte strings of Python 2.
    """

    def __init__(self, data, budget, names, makers, persistent, build, at=0, encoding="ascii"):
        self.data, self.at, self.size, self.budget = data, at, len(data), budget
        self.names, self.makers, self.persistent, self.build_instance, self.encoding = (
            names,
            makers,
            persistent,
            build,
            encoding,
        )

    def read(self):
        """The value. Afterwards `at` is behind the pickle."""
        self.stack, self.memo = [], Memo(self.budget)
        data, size, handlers, costs, stack, budget = self.data, self.size, _HANDLERS, _COSTS, self.stack, self.budget
        start, highest = self.at, 0
        try:
            while True:
                if self.at >= size:
                    raise pickle.UnpicklingError("the data ends before its STOP")
                opcode = data[self.at]
                self.at += 1
                if opcode == 0x2E:  # STOP
                    return self.pop()
                handler = handlers[opcode]
                if handler is None:
                    raise pickle.UnpicklingError(_refusal(opcode))
                if cost := costs[opcode]:
                    budget.left -= cost
                    if budget.left < 0:
                        budget.spend(0)
                handler(self)
                if len(stack) > highest:
                    highest += _SLOTS
                    budget.spend(_SLOT * _SLOTS)
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

    def put_items(self, items, opcode="SETITEMS"):
        target = self.top()
        if not isinstance(target, dict):
            raise pickle.UnpicklingError(
                f"Can only {opcode} for dict, collections.OrderedDict, collections.Counter: items can only be set in a "
                f"dictionary, not in {_kind(target)}"
            )
        if len(items) % 2:
            raise pickle.UnpicklingError("a dictionary's key has no value")
        items = iter(items)
        self.budget.fill_dict(target, zip(items, items, strict=True))

    def put_elements(self, items):
        target = self.top()
        if not isinstance(target, (list, collections.deque)):
            raise pickle.UnpicklingError(f"elements can only be appended to a list, not to {_kind(target)}")
        self.budget.spend(_LIST_SLOT * len(items))
        if type(target) is list:
            target.extend(items)
        else:
            for item in items:
                target.append(item)

    def apply(self, maker_of, arguments, verb, new=False):
        if type(arguments) is not tuple:
            raise pickle.UnpicklingError(f"the arguments of a constructor must be a tuple, got {_kind(arguments)}")
        maker = self.makers.get(maker_of, new)
        if maker is None:
            raise pickle.UnpicklingError(
                f"{verb} applies {_kind(maker_of)}{_named(maker_of)} which is not a constructor of data"
            )
        self.stack.append(maker(arguments))


class Memo:
    """What PUT has noted, by number. Picklers count from zero, so a list is enough for them; other numbers are kept
    apart.
    """

    def __init__(self, budget):
        self.row, self.others, self.budget = [], {}, budget

    def __getitem__(self, number):
        return self.row[number] if 0 <= number < len(self.row) else self.others[number]

    def __setitem__(self, number, value):
        row = self.row
        if number == len(row):
            self.budget.spend(_MEMO_SLOT)
            row.append(value)
            self.others.pop(number, None)
        elif 0 <= number < len(row):
            row[number] = value
        else:
            before = self.budget.size_before(self.others)
            self.others[self.budget.spend_value(number)] = value
            self.budget.grown(before, self.others)

    def append(self, value):
        """Note it under the next number: what MEMOIZE does."""
        self[len(self.row) + len(self.others)] = value


def _named(value):
    """', name,' of a class, a function or a method."""
    name, owner = getattr(value, "__name__", None), getattr(value, "__self__", None)
    if not isinstance(name, str):
        return ","
    if isinstance(owner, type):
        return f", {name} of {owner.__module__}.{owner.__qualname__},"
    return f", {getattr(value, '__module__', None)}.{name},"


def _kind(value):
    return f"a value of type {type(value).__name__}"


def _refusal(opcode):
    name = {
        0x69: "INST", 0x6F: "OBJ", 0x82: "EXT1", 0x83: "EXT2", 0x84: "EXT4", 0x97: "NEXT_BUFFER",
        0x98: "READONLY_BUFFER",
    }.get(opcode)  # fmt: skip
    if name is None:
        return f"{opcode:#04x} is not an opcode; the file is damaged, or is not a pickle"
    return f"the opcode {name} is not read: files written by save do not have it, and it can stand for any code"


# ---------------------------------------------------------------- the opcodes

_HANDLERS = [None] * 256
# Bytes of memory that an opcode takes whatever its argument; small numbers, None, True, False and () are there already.
_COSTS = [0] * 256
for _code, _cost in {
    pickle.BININT: 32, pickle.BININT2: 32, pickle.BINFLOAT: 32, pickle.FLOAT: 32, pickle.TUPLE1: 80, pickle.TUPLE2: 80,
    pickle.TUPLE3: 96,
    pickle.EMPTY_LIST: 88, pickle.EMPTY_DICT: 96, pickle.DICT: 96, pickle.EMPTY_SET: 240, pickle.LIST: 96,
    pickle.TUPLE: 96, pickle.FROZENSET: 240,
}.items():  # fmt: skip
    _COSTS[_code[0]] = _cost


def _opcode(code):
    def keep(handler):
        _HANDLERS[code[0]] = handler
        return handler

    return keep


def _pushes(code, make):
    def handler(self):
        self.stack.append(make(self))

    _HANDLERS[code[0]] = handler


def _pushes_sized(code, make):
    """For values whose size depends on the opcode's argument."""

    def handler(self):
        value, budget = make(self), self.budget
        budget.left -= sys.getsizeof(value) + 16  # spend_value, written here for speed
        if budget.left < 0:
            budget.spend(0)
        self.stack.append(value)

    _HANDLERS[code[0]] = handler


def _whole_list(self):
    items = self.since_mark()
    self.budget.spend(8 * len(items))
    return items


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
_pushes_sized(pickle.INT, _integer_line)
_pushes(pickle.BININT, lambda self: self.number(_READ_INT, 4))
_pushes(pickle.BININT1, lambda self: self.byte())
_pushes(pickle.BININT2, lambda self: self.byte() | self.byte() << 8)
_pushes_sized(pickle.LONG, _long_line)
_pushes_sized(pickle.LONG1, lambda self: _signed(self, self.byte()))
_pushes_sized(pickle.LONG4, lambda self: _signed(self, self.number(_READ_INT, 4)))
_pushes(pickle.FLOAT, lambda self: float(self.line()))
_pushes(pickle.BINFLOAT, lambda self: self.number(_READ_DOUBLE, 8))
_pushes_sized(pickle.STRING, _string_line)
_pushes_sized(pickle.BINSTRING, lambda self: _short_string(self, self.number(_READ_INT, 4)))
_pushes_sized(pickle.SHORT_BINSTRING, lambda self: _short_string(self, self.byte()))
_pushes_sized(pickle.UNICODE, lambda self: self.line().decode("raw-unicode-escape"))
_pushes_sized(pickle.BINUNICODE, lambda self: _unicode(self, self.number(_READ_UINT, 4)))
_pushes_sized(pickle.SHORT_BINUNICODE, lambda self: _unicode(self, self.byte()))
_pushes_sized(pickle.BINUNICODE8, lambda self: _unicode(self, self.number(_READ_UINT8, 8)))
_pushes_sized(pickle.BINBYTES, lambda self: self.take_bytes(self.number(_READ_UINT, 4)))
_pushes_sized(pickle.SHORT_BINBYTES, lambda self: self.take_bytes(self.byte()))
_pushes_sized(pickle.BINBYTES8, lambda self: self.take_bytes(self.number(_READ_UINT8, 8)))
_pushes_sized(pickle.BYTEARRAY8, lambda self: bytearray(self.take(self.number(_READ_UINT8, 8))))
_pushes(pickle.EMPTY_LIST, lambda self: [])
_pushes(pickle.EMPTY_TUPLE, lambda self: ())
_pushes(pickle.EMPTY_DICT, lambda self: {})
_pushes(pickle.EMPTY_SET, lambda self: set())
_pushes(pickle.MARK, lambda self: _Mark)
_pushes(pickle.LIST, _whole_list)
_pushes(pickle.TUPLE, lambda self: tuple(_whole_list(self)))
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
    self.put_items([key, value], "SETITEM")


@_opcode(pickle.SETITEMS)
def _(self):
    self.put_items(self.since_mark())


@_opcode(pickle.APPEND)
def _(self):
    self.put_elements([self.pop()])


@_opcode(pickle.APPENDS)
def _(self):
    self.put_elements(self.since_mark())


@_opcode(pickle.ADDITEMS)
def _(self):
    items, target = self.since_mark(), self.top()
    if type(target) is not set:
        raise pickle.UnpicklingError(f"elements can only be added to a set, not to {_kind(target)}")
    self.budget.fill_set(target, items)


@_opcode(pickle.FROZENSET)
def _(self):
    elements = set()
    self.budget.fill_set(elements, self.since_mark())
    self.stack.append(frozenset(elements))


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
    self.memo.append(self.top())


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


def global_names(data, budget, at=0):
    """All (module, name) that the pickle in `data` names, without building anything, and the byte after it."""
    import io
    import pickletools

    found, memo, noted = {}, {}, 0
    before, last = "", ""  # the two latest texts: what STACK_GLOBAL names, as picklers write it
    stream = io.BytesIO(bytes(data[at:]))
    try:
        for opcode, argument, _position in pickletools.genops(stream):
            text = None
            if opcode.name in ("GLOBAL", "INST"):
                found[tuple(argument.split(" ", 1))] = budget.spend(300)
            elif opcode.name == "STACK_GLOBAL":
                found[before, last] = budget.spend(300)
            elif "UNICODE" in opcode.name:
                text = argument
            elif opcode.name == "MEMOIZE" or "PUT" in opcode.name:
                budget.spend(200)
                memo[noted if opcode.name == "MEMOIZE" else argument] = last
                noted += 1
            elif "GET" in opcode.name:
                text = memo.get(argument)
            if text is not None:
                before, last = last, text
    except ValueError as error:
        raise pickle.UnpicklingError(f"load: the pickle is damaged: {error}") from error
    return list(found), at + stream.tell()
