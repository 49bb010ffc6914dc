"""How the compiler says no: RuntimeError with the place, and the chain of calls that led there."""


class CompileError(RuntimeError):
    """Source that has no meaning for the compiler. PyTorch raises RuntimeError, and so programs catch that."""

    def __init__(self, range, message):
        super().__init__(range, message)
        self.range, self.message, self.chain = range, message, []

    def called_from(self, name, caller, range):
        """Note that `name` was being compiled because `caller` calls it at `range`."""
        self.chain.append((name, caller, range))

    def __str__(self):
        text = f"\n{self.message}:\n{self.range.highlight() if self.range is not None else ''}"
        for name, caller, range in self.chain:
            text += f"'{name}' is being compiled since it was called from '{caller}'\n{range.highlight()}"
        return text


CompileError.__name__ = CompileError.__qualname__ = "RuntimeError"  # what a traceback shows
CompileError.__module__ = "builtins"
