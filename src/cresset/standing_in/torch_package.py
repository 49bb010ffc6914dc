"""torch is cresset here: `cresset adopt` (or the distribution torch 2.13.0+cresset) put this file in PyTorch's place. `cresset adopt --undo` removes it."""

import os

try:
    from cresset import standing_in
except ImportError as error:
    raise ImportError(
        f"torch: this environment was given over to cresset, which cannot be imported ({error}). Install cresset again, or remove "
        f"{os.path.dirname(os.path.abspath(__file__))} (pip uninstall torch) and install PyTorch"
    ) from error

others = sorted({"_C", "nn", "lib"}.intersection(os.listdir(os.path.dirname(os.path.abspath(__file__)))))
if others:
    raise ImportError(
        f"torch: files of another torch lie in {os.path.dirname(os.path.abspath(__file__))} beside cresset's ({', '.join(others)}): PyTorch was installed over "
        "`cresset adopt`. Run pip uninstall torch until none is left, then install the one you want"
    )
standing_in.install(adopted=True)
