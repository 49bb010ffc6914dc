"""Print the folder that holds oneDNN's include/ and lib/, as the package onednn-devel-cpu-gomp installs them."""

import pathlib
import sys
import sysconfig
from importlib import metadata

candidates = [pathlib.Path(sysconfig.get_path("data")), pathlib.Path(sys.prefix)]
try:
    for file in metadata.files("onednn-devel-cpu-gomp") or ():
        if file.name == "dnnl.h":
            candidates.insert(0, pathlib.Path(file.locate()).resolve().parents[1])
except metadata.PackageNotFoundError:
    pass
for root in [p for c in candidates for p in (c, c.parent)]:
    if (root / "include" / "dnnl.h").exists() and list((root / "lib").glob("libdnnl.so*")):
        print(root)
        break
else:
    sys.exit("oneDNN's headers were not found")
