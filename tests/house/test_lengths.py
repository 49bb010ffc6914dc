"""A file says one thing: it has at most 700 lines."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LIMIT = 700


def lengths():
    for folder in ("native", "src/cresset", "tools", "tests", "benchmarks", "examples"):
        for suffix in ("py", "cpp", "h", "cuh"):
            for file in (ROOT / folder).rglob(f"*.{suffix}"):
                name = file.relative_to(ROOT).as_posix()
                if not name.startswith("src/cresset/include/"):  # copies that the build installs
                    yield name, file.read_bytes().count(b"\n")


def test_no_file_has_more_than_seven_hundred_lines():
    found = dict(lengths())
    assert len(found) > 1000
    assert {name: count for name, count in found.items() if count > LIMIT} == {}
