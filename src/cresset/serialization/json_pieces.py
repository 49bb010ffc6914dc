"""JSON that is read a piece at a time, so that a large text is never in memory as a whole, nor its values.

A dictionary of JSON takes 64 bytes and more for the two of `{}`. Who builds something else from a text (a graph, say)
needs one piece after the other only: a `Piece` knows where a value begins, and gives its parts as pieces.
"""

import json
import re

from .bounds import json_cost

__all__ = ["Piece", "Text"]

_WINDOW = 8192  # bytes that are tried at once; the values of so short a text take at most 40 times as much
_HELD = 65536  # bytes that are read from the source at once
_MOST = 1 << 19  # memory that the values of one piece may take
_DEEPEST = 100
_FIELDS = 1000
_SPACE = re.compile(rb"[ \t\n\r]*")
_ENDS = re.compile(rb'["\\]')
_MARKS = re.compile(rb'"(?:[^"\\]*(?:\\.[^"\\]*)*")?|[\[\]{}]', re.DOTALL)  # strings, or their beginning, and brackets
_decode = json.JSONDecoder().scan_once  # type: ignore[attr-defined]  # which typeshed does not know


class Text:
    """The bytes of a JSON text: `read(at, count)` gives some of them, `size` is how many there are.

    >>> from cresset.serialization.json_pieces import Text
    >>> text = b'{"a": [1, {"b": 2}], "c": "d"}'
    >>> whole = Text(lambda at, count: text[at : at + count], len(text)).whole()
    >>> [(key, piece.value()) for key, piece in whole.items()]
    [('a', [1, {'b': 2}]), ('c', 'd')]
    """

    def __init__(self, read, size):
        self.read, self.size, self.start, self.held = read, size, 0, b""

    def bytes(self, at, count=_WINDOW):
        """At most `count` bytes from position `at` on."""
        count = min(count, self.size - at)
        if at < self.start or at + count > self.start + len(self.held):
            if count > _HELD:
                return self.read(at, count)
            self.start, self.held = at, self.read(at, min(_HELD, self.size - at))
        return self.held[at - self.start : at - self.start + count]

    def after_space(self, at):
        """The position of the first byte from `at` on that is no space, and the byte (nothing at the end)."""
        while at < self.size:
            some = self.bytes(at, 64)
            spaces = _SPACE.match(some).end()
            at += spaces
            if spaces < len(some):
                return at, some[spaces : spaces + 1]
        return at, b""

    def whole(self):
        """The piece that is the whole text."""
        piece = Piece(self, self.after_space(0)[0], 0)
        end, more = self.after_space(piece.end())
        if more:
            raise ValueError(f"JSON: there is more text behind the value, from byte {end} on")
        return piece


class Piece:
    """One value of a text, from position `at` on."""

    __slots__ = ("text", "at", "depth", "_end")

    def __init__(self, text, at, depth):
        self.text, self.at, self.depth, self._end = text, at, depth, None
        if depth > _DEEPEST:
            raise ValueError(f"JSON: values are nested more than {_DEEPEST} deep at byte {at}")

    def _short(self):
        """(the value,) if a window holds it, else nothing."""
        given = self.text.bytes(self.at)
        is_cut = self.at + len(given) < self.text.size
        try:
            words = given.decode("utf-8", "surrogateescape")
            value, end = _decode(words, 0)
            taken = end if words.isascii() else len(words[:end].encode("utf-8"))
        except RecursionError:
            raise ValueError(f"JSON: values are nested too deeply at byte {self.at}") from None
        except (ValueError, StopIteration):
            if is_cut:
                return ()
            raise ValueError(f"JSON: there is no value at byte {self.at}") from None
        if is_cut and taken == len(given):
            return ()  # a number may go on
        self._end = self.at + taken
        return (value,)

    def end(self):
        """The position behind the value."""
        if self._end is None and not self._short():
            mark = self.text.bytes(self.at, 1)
            if mark not in (b'"', b"[", b"{"):
                raise ValueError(f"JSON: there is no value at byte {self.at}")
            self._end = self._end_of_string(self.at) if mark == b'"' else self._end_of_brackets()
        return self._end

    def _end_of_string(self, start):
        at = start + 1
        while at < self.text.size:
            some = self.text.bytes(at)
            found = _ENDS.search(some)
            if found is None:
                at += len(some)
            elif found[0] == b'"':
                return at + found.end()
            else:
                at += found.end() + 1
        raise ValueError(f"JSON: the string at byte {start} has no end")

    def _end_of_brackets(self):
        """What is only passed over is not looked at: brackets are counted."""
        at, depth = self.at, self.depth
        while at < self.text.size:
            some, next_at = self.text.bytes(at, _HELD), at + _HELD
            for found in _MARKS.finditer(some):
                mark = found[0]
                if mark in (b"[", b"{"):
                    depth += 1
                    if depth > _DEEPEST:
                        raise ValueError(f"JSON: values are nested more than {_DEEPEST} deep at byte {at}")
                elif mark in (b"]", b"}"):
                    depth -= 1
                    if depth == self.depth:
                        return at + found.end()
                elif len(mark) == 1:
                    next_at = self._end_of_string(at + found.start())
                    break
            at = next_at
        raise ValueError(f"JSON: the value at byte {self.at} has no end")

    def value(self):
        """The whole value; a ValueError if it is large."""
        if found := self._short():
            return found[0]
        size = self.end() - self.at
        given = self.text.bytes(self.at, size) if size <= _MOST else b""
        if size > _MOST or json_cost(given) > _MOST:
            raise ValueError(f"JSON: one value, of {size} bytes at byte {self.at}, takes more than {_MOST >> 10} kB")
        try:
            return json.loads(given.decode("utf-8"))
        except RecursionError:
            raise ValueError(f"JSON: values are nested too deeply at byte {self.at}") from None

    def _parts(self, opening):
        text, closing = self.text, b"}" if opening == b"{" else b"]"
        at, mark = text.after_space(self.at)
        if mark != opening:
            raise ValueError(f"JSON: expected {'an object' if opening == b'{' else 'a list'} at byte {at}")
        at, mark = text.after_space(at + 1)
        while mark != closing:
            key = None
            if opening == b"{":
                name = Piece(text, at, self.depth)
                key = name.value()
                at, mark = text.after_space(name.end())
                if type(key) is not str or mark != b":":
                    raise ValueError(f"JSON: expected a name and a colon before byte {at}")
                at, _ = text.after_space(at + 1)
            part = Piece(text, at, self.depth + 1)
            yield key, part
            at, mark = text.after_space(part.end())
            if mark == b",":
                at, mark = text.after_space(at + 1)
                if mark == closing:
                    raise ValueError(f"JSON: a comma without a value behind it before byte {at}")
            elif mark != closing:
                raise ValueError(f"JSON: expected a comma or an end at byte {at}")
        self._end = at + 1

    def items(self):
        """Each name of an object with the piece of its value; nothing if the value is null."""
        return iter(()) if self.text.bytes(self.at, 4) == b"null" else self._parts(b"{")

    def elements(self):
        """The pieces of a list."""
        return (part for _, part in self._parts(b"["))

    def fields(self):
        """The pieces of an object that has few names, by name."""
        found = {}
        for name, part in self._parts(b"{"):
            found[name] = part
            if len(found) > _FIELDS:
                raise ValueError(f"JSON: the object at byte {self.at} has more than {_FIELDS} names")
        return found
