"""How long until a fresh interpreter has imported it?"""

import subprocess
import sys
from pathlib import Path

from .harness import benchmark


@benchmark(unit="ms", seconds=1.0)
def start_python_alone(lib):
    return lambda: subprocess.run([sys.executable, "-I", "-c", "pass"], check=True)


@benchmark(unit="ms", seconds=1.0)
def start_python_and_import(lib):
    # The folder lib was found in, so that both processes import the same one.
    folder = str(Path(lib.__file__).parents[1])
    code = f"import sys; sys.path.append({folder!r}); import {lib.__name__}"
    return lambda: subprocess.run([sys.executable, "-I", "-c", code], check=True)
