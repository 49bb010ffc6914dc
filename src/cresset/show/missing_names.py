"""What a module says to a name it does not have: AttributeError, with the nearest name that is there.

`__getattr__ = missing_names.of(__name__)` is all that a module needs. The words are made when they are read, so that
`hasattr` costs nothing. On a tensor, Python itself adds "Did you mean" to the error it prints.
"""

import sys


class MissingName(AttributeError):
    """An AttributeError that looks for the nearest name when it is printed."""

    def __init__(self, module, name):
        super().__init__(module, name)
        self.module, self.missing = module, name

    def __str__(self):
        import difflib

        text = f"module {self.module!r} has no attribute {self.missing!r}"
        there = [known for known in dir(sys.modules[self.module]) if not known.startswith("_")]
        near = difflib.get_close_matches(self.missing, there, 1)
        return text + (f"; did you mean {near[0]!r}?" if near else "; it is not there yet")


MissingName.__name__ = MissingName.__qualname__ = "AttributeError"  # what a traceback shows
MissingName.__module__ = "builtins"


def of(module):
    """A module's `__getattr__`."""

    def __getattr__(name):
        raise MissingName(module, name)

    return __getattr__
