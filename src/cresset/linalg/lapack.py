"""Where LAPACK may lie: in the OpenBLAS that NumPy or scipy-openblas64 brings. Native linear algebra
(native/ops/lapack.h) asks when it calls the first routine.
"""

import importlib.util
from pathlib import Path


def places():
    """The libraries that may hold LAPACK, best first."""
    found = []
    for package, folders in (("scipy_openblas64", ["lib"]), ("numpy", ["../numpy.libs", ".dylibs", ".libs"])):
        spec = importlib.util.find_spec(package)
        if spec is None or not spec.submodule_search_locations:
            continue
        home = Path(next(iter(spec.submodule_search_locations)))
        for folder in folders:
            found += sorted(str(path) for path in (home / folder).glob("*openblas64*") if path.suffix != ".a")
    return found
