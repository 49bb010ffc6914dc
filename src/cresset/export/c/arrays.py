"""A value of the file: an array, or a part of one."""

from .text import ctype


class Array:
    """A value in the file: where its elements are. `life` is the first and last step that needs it."""

    def __init__(self, shape, dtype, pointer=None):
        self.shape, self.dtype, self.pointer = tuple(shape), dtype, pointer
        self.root, self.offset = self, 0
        self.first = self.last = None

    @property
    def count(self):
        total = 1
        for size in self.shape:
            total *= size
        return total

    @property
    def ctype(self):
        return ctype(self.dtype)

    def part_of(self, root, offset):
        self.root, self.offset = root.root, root.offset + offset
        return self

    @property
    def name(self):
        pointer = self.root.pointer
        return pointer if not self.offset else f"({pointer} + {self.offset})"
