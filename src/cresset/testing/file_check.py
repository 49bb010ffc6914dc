"""FileCheck: says what a text must hold, in which order, and what it must not hold in between (after LLVM's tool)."""

import re

__all__ = ["FileCheck"]

_COMMENT = re.compile(r"^\s*#\s*CHECK(?:-(?P<kind>[^:]*))?:(?P<text>.*)$")
_COUNT = re.compile(r"COUNT-(?P<exactly>EXACTLY-)?(?P<count>\d+)")


class FileCheck:
    """A list of checks, collected by chained calls and run on a text. A check that fails raises RuntimeError.

    >>> from cresset.testing import FileCheck
    >>> FileCheck().check("a").check_not("b").check("c").run("a, then c")
    >>> FileCheck().check("c").check("a").run("a, then c")
    Traceback (most recent call last):
    RuntimeError: FileCheck: Expected to find "a" but did not find it, searching from character 9
    Searched string:
    a, then c
    """

    def __init__(self):
        self._checks = []  # (kind, text, count)

    def __repr__(self):
        return f"FileCheck({self._checks})"

    def _add(self, kind, text, count=1):
        self._checks.append((kind, text, count))
        return self

    def check(self, text):
        """`text` comes after what was found before."""
        return self._add("find", text)

    def check_next(self, text):
        """`text` comes on the line after what was found before."""
        return self._add("next", text)

    def check_same(self, text):
        """`text` comes later on the line of what was found before."""
        return self._add("same", text)

    def check_not(self, text):
        """`text` does not come between what was found before and what is found next (or the end)."""
        return self._add("not", text)

    def check_count(self, text, count, exactly=False):
        """`text` comes `count` times; with `exactly`, not once more before what is found next."""
        if count == 0 and not exactly:
            raise RuntimeError("FileCheck: a count of 0 says nothing unless exactly=True")
        self._add("find", text, count)
        return self._add("not", text) if exactly else self

    def check_dag(self, text):
        """`text` comes after what was found before; neighboring check_dag may match in any order."""
        return self._add("dag", text)

    def check_regex(self, text):
        """A match of the regular expression comes after what was found before."""
        return self._add("regex", text)

    def check_source_highlighted(self, text):
        """`text` comes, and is underlined with ~ on the line below it."""
        return self._add("highlighted", text)

    def run(self, *texts):
        """Check a text; or, with two, read the checks from the comments of the first (`# CHECK: ...`) and check the
        second.
        """
        if len(texts) == 2:
            checks = FileCheck._of_comments(str(texts[0]))
            return checks.run(texts[1])
        (text,) = texts
        self._run(str(text))

    @staticmethod
    def _of_comments(source):
        checks = FileCheck()
        add = {
            None: checks.check, "NEXT": checks.check_next, "SAME": checks.check_same, "NOT": checks.check_not,
            "DAG": checks.check_dag, "REGEX": checks.check_regex, "SOURCE-HIGHLIGHTED": checks.check_source_highlighted,
        }  # fmt: skip
        for match in filter(None, map(_COMMENT.match, source.splitlines())):
            kind, text = match["kind"], match["text"].strip()
            if kind in add:
                add[kind](text)
            elif counted := _COUNT.match(kind):
                checks.check_count(text, int(counted["count"]), bool(counted["exactly"]))
            else:
                raise RuntimeError(f"FileCheck: cannot read the check {match[0].strip()!r}")
        return checks

    def _run(self, text):
        if not self._checks:
            raise RuntimeError(
                "FileCheck: there is nothing to check; add checks, or comments of the form '# CHECK: ...'"
            )
        end, forbidden, index = 0, [], 0
        while index < len(self._checks):
            kind = self._checks[index][0]
            if kind == "not":
                forbidden.append(self._checks[index][1])
                index += 1
                continue
            group = [self._checks[index]]
            if kind == "dag":
                while index + len(group) < len(self._checks) and self._checks[index + len(group)][0] == "dag":
                    group.append(self._checks[index + len(group)])
            found = [_search(text, end, *check) for check in group]
            _expect_none(text, end, min(start for start, _ in found), forbidden)
            end, forbidden = max(stop for _, stop in found), []
            index += len(group)
        _expect_none(text, end, len(text), forbidden)


def _fail(text, words):
    raise RuntimeError(f"FileCheck: {words}\nSearched string:\n{text}")


def _find(text, wanted, start):
    place = text.find(wanted, start)
    if place < 0:
        _fail(text, f'Expected to find "{wanted}" but did not find it, searching from character {start}')
    return place


def _search(text, start, kind, wanted, count):
    """Where the check matches: (start, end)."""
    if kind == "regex":
        match = re.compile(wanted).search(text, start)
        if match is None:
            _fail(text, f'Expected to find a match of "{wanted}" but did not find it, searching from character {start}')
        return match.span()
    if kind == "highlighted":
        return _find_highlighted(text, wanted, start)
    if count == 0:
        return start, start
    if kind in ("same", "next"):
        return _find_on_line(text, wanted, start, kind)
    place = first = _find(text, wanted, start)
    for _ in range(count - 1):
        place = _find(text, wanted, place + len(wanted))
    return first, place + len(wanted)


def _find_on_line(text, wanted, start, which):
    """On the line of `start`, behind it, or on the next one."""
    if which == "next":
        start = text.find("\n", start) + 1 or len(text)
    end = text.find("\n", start)
    place = text.find(wanted, start, len(text) if end < 0 else end)
    if place < 0:
        _fail(text, f'Expected to find "{wanted}" on the {which} line but did not find it: {text[start:end]!r}')
    return place, place + len(wanted)


def _find_highlighted(text, wanted, start):
    place = start
    while True:
        place = _find(text, wanted, place)
        line_start = text.rfind("\n", 0, place) + 1
        line_end = text.find("\n", place)
        if line_end >= 0:
            column, below = place - line_start, text[line_end + 1 :].split("\n", 1)[0]
            marks = below[column : column + len(wanted)]
            if marks and set(marks) == {"~"} and len(marks) == len(wanted):
                return place, line_end + 1 + column + len(wanted)
        place += len(wanted)


def _expect_none(text, start, end, forbidden):
    for unwanted in forbidden:
        place = text.find(unwanted, start, end)
        if place >= 0:
            _fail(text, f'Expected to not find "{unwanted}" but found it at character {place}')
