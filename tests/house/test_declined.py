"""The list of PyTorch's tests that are deliberately not passed can be read by a report."""

import fnmatch
import re
from pathlib import Path

LIST = Path(__file__).parents[1] / "compat" / "declined.txt"


def rows():
    return [line for line in LIST.read_text().splitlines() if line and not line.startswith("#")]


def test_each_line_has_a_pattern_of_test_ids_and_a_reason():
    for line in rows():
        match = re.fullmatch(r"([\w/]+\.py::\S+)\s+(\S.+)", line)
        assert match, line
        assert fnmatch.translate(match[1])


def test_no_pattern_takes_a_whole_file():
    for line in rows():
        assert not re.match(r"[\w/]+\.py::\*(\s|$|::\*\s)", line), line
