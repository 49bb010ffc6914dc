"""The errors of torch.jit's compiler. Each shows the file, the line and a caret under what is meant."""


class FrontendError(Exception):
    """Source that cannot be compiled."""

    def __init__(self, source_range, msg):
        super().__init__(source_range, msg)
        self.source_range, self.msg = source_range, msg

    def __str__(self):
        return f"{self.msg}:\n{self.source_range.highlight()}" if self.source_range is not None else str(self.msg)


class NotSupportedError(FrontendError):
    """Python that is no part of TorchScript."""


class UnsupportedNodeError(NotSupportedError):
    """A kind of statement or expression that is no part of TorchScript."""

    def __init__(self, source_range, tree, reason=""):
        super().__init__(
            source_range, f"{_words(type(tree).__name__)} aren't supported{': ' + reason if reason else ''}"
        )


class FrontendTypeError(FrontendError):
    """An annotation that is no type."""


def _words(name):
    """'AsyncFunctionDef' -> 'async function definitions', for the kinds that people meet."""
    known = {
        "AsyncFunctionDef": "async function definitions", "Yield": "yield expressions",
        "YieldFrom": "yield from expressions", "Lambda": "lambda functions", "Import": "import statements",
        "ImportFrom": "import statements", "ClassDef": "class definitions", "Try": "try blocks",
        "Global": "global variables", "Nonlocal": "nonlocal variables", "With": "with statements",
        "AsyncFor": "async for loops", "AsyncWith": "async with statements", "GeneratorExp": "generator expressions",
        "Set": "sets", "SetComp": "set comprehensions",
        "NamedExpr": "assignment expressions", "FunctionDef": "function definitions", "Match": "match statements",
        "Await": "await expressions",
    }  # fmt: skip
    return known.get(name, name)
