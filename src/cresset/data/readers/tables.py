"""Text with one sample a line: TextLinesDataset, JsonLinesDataset, CsvDataset. The encoding must write line ends as
ASCII does, as UTF-8 does.

The file is read once to note where each record starts (eight bytes a record); later only the bytes of the record asked
for are read.
"""

import array
import csv
import operator
import os

from ..datasets import Dataset


class RecordFile(Dataset):
    """The records of a file by number: `starts[i]` is where record i starts, `lines[i]` the line it starts on, counted
    from one.

    Reading at a place does not move the file, so that workers and threads share it. A pickled dataset opens the file
    again.
    """

    def __init__(self, path, encoding, transform):
        self.path, self.encoding, self.transform = os.fspath(path), encoding, transform
        self.file = open(self.path, "rb")  # noqa: SIM115  (closed with the dataset)
        self.starts, self.lines = self.find_records()

    def __getstate__(self):
        return {**self.__dict__, "file": None}

    def __setstate__(self, state):
        self.__dict__.update(state)
        self.file = open(self.path, "rb")  # noqa: SIM115

    def __del__(self):
        if getattr(self, "file", None) is not None:
            self.file.close()

    def raw_lines(self):
        """(start, bytes) of each line of the file."""
        at = 0
        self.file.seek(0)
        for line in self.file:
            yield at, line
            at += len(line)
        self.end = at

    def find_records(self):
        """A record is a line that is not blank."""
        starts, lines = array.array("Q"), array.array("Q")
        for number, (at, line) in enumerate(self.raw_lines(), 1):
            if line.strip():
                starts.append(at)
                lines.append(number)
        return starts, lines

    def __len__(self):
        return len(self.starts)

    def text(self, index):
        """(the record's text without its line end, the number of its first line, counted from one)."""
        index = operator.index(index)
        if not -len(self) <= index < len(self):
            raise IndexError(
                f"{type(self).__name__}: index {index} is out of range; {self.path} has {len(self)} records"
            )
        index %= len(self)
        start, end = self.starts[index], self.starts[index + 1] if index + 1 < len(self) else self.end
        data = os.pread(self.file.fileno(), end - start, start)
        if len(data) != end - start:
            raise RuntimeError(
                f"{self.path}, line {self.lines[index]}: the file has become shorter since it was opened"
            )
        try:
            text = data.decode(self.encoding)
        except UnicodeDecodeError as error:
            raise ValueError(
                f"{self.path}, line {self.lines[index]}: not {self.encoding} ({error.reason} at byte {error.start})"
            ) from None
        return text.rstrip("\r\n"), self.lines[index]

    def finish(self, sample):
        return sample if self.transform is None else self.transform(sample)


class TextLinesDataset(RecordFile):
    """Sample i is line i of a text, without its line end.

    Args:
        path: the file.
        encoding: of the file.
        transform: a function of the line; its result is the sample.

    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile("w") as file:
    ...     _ = file.write("one\\ntwo\\nthree")
    ...     file.flush()
    ...     lines = cresset.utils.data.TextLinesDataset(file.name)
    ...     len(lines), lines[1], lines[-1]
    (3, 'two', 'three')
    """

    def __init__(self, path, encoding="utf-8", transform=None):
        super().__init__(path, encoding, transform)

    def find_records(self):
        """Blank lines are lines, too."""
        starts = array.array("Q", (at for at, _ in self.raw_lines()))
        return starts, range(1, len(starts) + 1)

    def __getitem__(self, index):
        text, _ = self.text(index)
        return self.finish(text)


class JsonLinesDataset(RecordFile):
    """Sample i is the i-th JSON value of a file with one a line; blank lines are left out.

    Args:
        path: the file.
        transform: a function of the value; its result is the sample.

    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile("w") as file:
    ...     _ = file.write('{"x": 1}\\n\\n{"x": 2}\\n')
    ...     file.flush()
    ...     list(cresset.utils.data.JsonLinesDataset(file.name))
    [{'x': 1}, {'x': 2}]
    """

    def __init__(self, path, transform=None):
        super().__init__(path, "utf-8", transform)

    def __getitem__(self, index):
        from ...serialization.bounds import read_json

        text, line = self.text(index)
        try:
            value = read_json(text.encode())
        except ValueError as error:
            raise ValueError(f"{self.path}, line {line}: not JSON: {error}") from None
        return self.finish(value)


class CsvDataset(RecordFile):
    """Sample i is row i of a table as a dictionary from the column's name to its text. A quoted field may contain line
    ends.

    Quotes belong around a whole field, and doubled inside of it.

    Args:
        path: the file.
        columns: the names of the columns that are wanted, in this order; None for all.
        types: functions by column, such as ``{"label": int}``; the others stay text.
        names: the names of the columns if the file's first row is not their names.
        delimiter: between the fields.
        encoding: of the file.
        transform: a function of the row; its result is the sample.

    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile("w") as file:
    ...     _ = file.write('text,label\\n"hello, you",1\\nbye,0\\n')
    ...     file.flush()
    ...     cresset.utils.data.CsvDataset(file.name, types={"label": int})[0]
    {'text': 'hello, you', 'label': 1}
    """

    def __init__(self, path, columns=None, types=None, names=None, delimiter=",", encoding="utf-8", transform=None):
        self.delimiter = delimiter
        super().__init__(path, encoding, transform)
        if names is None:
            if not len(self):
                raise ValueError(f"{self.path}: the file is empty; its first row should name the columns")
            self.names = self.fields(*self.text(0))
            self.names[0] = self.names[0].removeprefix("\ufeff")
            self.starts, self.lines = self.starts[1:], self.lines[1:]
        else:
            self.names = list(names)
        if len(set(self.names)) != len(self.names):
            raise ValueError(f"{self.path}: two columns have the same name: {self.names}")
        self.columns, self.types = list(self.names if columns is None else columns), dict(types or {})
        for name in (*self.columns, *self.types):
            if name not in self.names:
                raise ValueError(f"{self.path}: there is no column {name!r}; the columns are {', '.join(self.names)}")

    def find_records(self):
        """A row ends at a line end outside of quotes: where the quotes so far are even in number."""
        starts, lines, quotes = array.array("Q"), array.array("Q"), 0
        for number, (at, line) in enumerate(self.raw_lines(), 1):
            if quotes % 2 == 0 and line.strip(b"\r\n"):
                starts.append(at)
                lines.append(number)
            quotes += line.count(b'"')
        if quotes % 2:
            raise ValueError(f"{self.path}, line {lines[-1]}: a quote is opened and never closed")
        return starts, lines

    def fields(self, text, line):
        try:
            (row,) = csv.reader([text], delimiter=self.delimiter, strict=True)
        except (csv.Error, ValueError) as error:
            raise ValueError(f"{self.path}, line {line}: {error}") from None
        return row

    def __getitem__(self, index):
        text, line = self.text(index)
        row = self.fields(text, line)
        if len(row) != len(self.names):
            raise ValueError(
                f"{self.path}, line {line}: {len(row)} fields, expected {len(self.names)} ({', '.join(self.names)})"
            )
        found = dict(zip(self.names, row))
        sample = {}
        for name in self.columns:
            convert = self.types.get(name)
            try:
                sample[name] = found[name] if convert is None else convert(found[name])
            except (ValueError, TypeError, KeyError) as error:
                raise ValueError(
                    f"{self.path}, line {line}, column {name!r}: {found[name]!r} does not convert: {error}"
                ) from None
        return self.finish(sample)
