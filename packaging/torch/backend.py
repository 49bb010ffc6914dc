"""Builds the wheel of the distribution `torch` whose package hands over to cresset; its files are described in
cresset's own sources.
"""

import importlib.util
import zipfile
from pathlib import Path

SOURCES = Path(__file__).resolve().parents[2] / "src" / "cresset"


def _wheel_files():
    spec = importlib.util.spec_from_file_location("wheel_files", SOURCES / "standing_in" / "wheel_files.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """Write the wheel; its file name."""
    described = _wheel_files()
    files = described.contents()
    name = f"torch-{described.VERSION}-py3-none-any.whl"
    with zipfile.ZipFile(Path(wheel_directory) / name, "w", zipfile.ZIP_DEFLATED) as wheel:
        for path, text in {**files, f"{described.INFO}/RECORD": described.record(files)}.items():
            wheel.writestr(path, text)
    return name


def get_requires_for_build_wheel(config_settings=None):
    return []
