"""Where a node comes from: a piece of a program's text, for messages."""


class Source:
    """The text of a file or of one function.

    Args:
        text: its lines.
        filename: of the file it is from.
        first_line: the number in that file of the text's first line.
        indent: how many columns were cut off each line.
    """

    __slots__ = ("filename", "first_line", "indent", "text")

    def __init__(self, text, filename="<string>", first_line=1, indent=0):
        self.text, self.filename, self.first_line, self.indent = text, filename, first_line, indent

    def range_of(self, tree):
        """The range of a node of Python's syntax tree, parsed from this text."""
        line = getattr(tree, "lineno", 1)
        return SourceRange(
            self,
            line,
            getattr(tree, "col_offset", 0),
            getattr(tree, "end_lineno", line) or line,
            getattr(tree, "end_col_offset", 0) or 0,
        )


class SourceRange:
    """From `line`, `column` to `end_line`, `end_column` of a source; lines count from 1 at the text's beginning,
    columns from 0.
    """

    __slots__ = ("column", "end_column", "end_line", "line", "source")

    def __init__(self, source, line, column, end_line=None, end_column=None):
        self.source, self.line, self.column = source, line, column
        self.end_line, self.end_column = end_line or line, end_column if end_column is not None else column + 1

    @property
    def filename(self):
        return self.source.filename

    @property
    def file_line(self):
        """The line's number in the file."""
        return self.source.first_line + self.line - 1

    @property
    def start(self):
        return sum(len(line) + 1 for line in self.source.text.split("\n")[: self.line - 1]) + self.column

    @property
    def end(self):
        return sum(len(line) + 1 for line in self.source.text.split("\n")[: self.end_line - 1]) + self.end_column

    def __str__(self):
        return f"{self.filename}:{self.file_line}:{self.column + self.source.indent}"

    def highlight(self):
        """The place, its lines, and a caret under what is meant."""
        lines = self.source.text.split("\n")
        width = (self.end_column if self.end_line == self.line else len(lines[self.line - 1])) - self.column
        shown = lines[max(self.line - 4, 0) : self.line]
        mark = " " * self.column + "~" * max(width, 1) + " <--- HERE"
        return (
            f'  File "{self.filename}", line {self.file_line}\n'
            + "\n".join(f"    {text}".rstrip() for text in [*shown, mark, *lines[self.line : self.line + 2]])
            + "\n"
        )
