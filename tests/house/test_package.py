"""What the wheel promises: its size, what is in it, what it requires, and how fast it is imported.

CRESSET_WHEEL names a wheel to look at. Without it, the wheel is put together again from the installed files.
"""

import importlib
import importlib.metadata
import io
import os
import re
import statistics
import subprocess
import sys
import zipfile

import pytest

MEGABYTE = 10**6


def installed_as_wheel():
    """A wheel made of the installed files: the same names, compressed the same way."""
    try:
        distribution = importlib.metadata.distribution("cresset")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("cresset is not installed; install it or name a wheel in CRESSET_WHEEL")
    files = [f for f in distribution.files or [] if "__pycache__" not in f.parts and f.parts[0] != ".."]
    if not any(f.parts[0] == "cresset" and f.name.startswith("_native.") for f in files):
        pytest.skip("an editable install has no wheel to look at; name one in CRESSET_WHEEL")
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as wheel:
        for file in files:
            wheel.write(file.locate(), str(file))
    return archive


@pytest.fixture(scope="module")
def wheel():
    """The wheel as bytes in memory."""
    if path := os.environ.get("CRESSET_WHEEL"):
        with open(path, "rb") as file:
            return io.BytesIO(file.read())
    return installed_as_wheel()


@pytest.fixture(scope="module")
def names(wheel):
    return zipfile.ZipFile(wheel).namelist()


@pytest.fixture(scope="module")
def metadata(wheel, names):
    (name,) = (n for n in names if n.endswith(".dist-info/METADATA"))
    return zipfile.ZipFile(wheel).read(name).decode()


def test_the_wheel_has_at_most_10_megabytes(wheel):
    assert wheel.getbuffer().nbytes <= 10 * MEGABYTE


def test_one_native_module_is_inside(names):
    assert len([n for n in names if re.fullmatch(r"cresset/_native\.[^/]*(so|pyd)", n)]) == 1


def test_no_other_library_travels_inside(names):
    assert [n for n in names if re.search(r"\.(so|dll|dylib)(\.|$)", n) and not n.startswith("cresset/_native.")] == []


def test_type_checkers_are_told_that_there_are_types(names):
    assert "cresset/py.typed" in names


def test_the_licenses_are_inside(names):
    wanted = {"LICENSE", "nanobind.txt", "robin-map.txt"}
    assert wanted <= {n.rsplit("/", 1)[-1] for n in names if ".dist-info/licenses/" in n}


def test_only_the_package_is_installed(names):
    assert {n.split("/")[0].partition("-")[0].partition(".")[0] for n in names} == {"cresset"}


def test_nothing_is_left_over_from_the_build(names):
    assert [n for n in names if re.search(r"\.(cpp|o|a|cmake|pc)$|/(tests|build)/", n)] == []


def test_nothing_else_is_required(metadata):
    required = [line for line in metadata.splitlines() if line.startswith("Requires-Dist:") and "extra ==" not in line]
    assert required == []


def run(code, *options):
    """Run `code` in a bare interpreter that finds the cresset these tests found."""
    folder = os.path.dirname(os.path.dirname(importlib.import_module("cresset").__file__))
    code = f"import sys; sys.path.append({folder!r}); {code}"
    return subprocess.run([sys.executable, "-I", *options, "-c", code], capture_output=True, text=True, check=True)


def seconds_to_import():
    lines = run("import cresset", "-X", "importtime").stderr.splitlines()
    (microseconds,) = (int(line.split("|")[1]) for line in lines if line.split("|")[-1].strip() == "cresset")
    return microseconds / 1e6


@pytest.mark.alone
def test_the_import_takes_at_most_a_tenth_of_a_second():
    seconds_to_import()  # the first one reads the files from the disk
    times = [seconds_to_import() for _ in range(7)]
    assert statistics.median(times) <= 0.1, times


@pytest.mark.parametrize("module", ["numpy", "torch", "asyncio", "multiprocessing", "unittest", "ssl"])
def test_the_import_brings_in_nothing_heavy(module):
    code = "before = set(sys.modules); import cresset; print(*set(sys.modules) - before)"
    assert module not in run(code).stdout.split()
