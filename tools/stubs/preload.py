"""Loads the native module that was just linked, so that the package in the source tree can be imported with it."""

import importlib.util
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "src"))
_spec = importlib.util.spec_from_file_location("cresset._native", sys.argv[1])
sys.modules["cresset._native"] = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(sys.modules["cresset._native"])
