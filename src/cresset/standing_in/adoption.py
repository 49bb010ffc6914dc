"""`cresset adopt`: a distribution `torch` in this environment whose package hands over to cresset, and its removal.

What is written is what pip would have written for a wheel: the package, and a .dist-info with a RECORD of all files. So
pip sees the requirement `torch` met, and `pip uninstall torch` takes it out again.

Note [Pip is held to this torch]
A package that is tied to one release of PyTorch (torchvision) would have pip replace ours by the release of its latest
version. So the environment's pip.conf names a file of constraints: pip picks the version for our release instead, and
refuses to install PyTorch here.
"""

import importlib.machinery
import importlib.metadata
import os
import sys
import sysconfig

from .wheel_files import INFO, VERSION, contents, record

__all__ = ["VERSION", "AdoptionError", "adopt", "constraint_setting", "pip_settings", "site_packages", "undo"]

CONSTRAINTS = f"{INFO}/constraints.txt"


class AdoptionError(Exception):
    """The environment is not one in which this can be done."""


def site_packages():
    return sysconfig.get_path("purelib")


def pip_settings():
    """The file in which pip looks for the settings of this environment."""
    return os.path.join(sys.prefix, "pip.ini" if os.name == "nt" else "pip.conf")


def constraint_setting():
    """The line of pip's settings that holds pip to this torch; see Note [Pip is held to this torch]."""
    return f"constraint = {os.path.join(site_packages(), CONSTRAINTS)}"


def installed():
    """What is installed as torch: ("cresset" or "PyTorch", version, folder), or None."""
    folders = [*dict.fromkeys([site_packages(), *(os.path.abspath(p) for p in sys.path if p)])]
    for found in importlib.metadata.distributions(name="torch", path=folders):
        kind = (
            "cresset"
            if (found.read_text("INSTALLER") or "").strip() == "cresset" or found.version.endswith("+cresset")
            else "PyTorch"
        )
        return kind, found.version, str(found.locate_file(""))
    spec = importlib.machinery.PathFinder.find_spec("torch", folders)
    return (
        None
        if spec is None
        else ("a package torch without metadata", "unknown", os.path.dirname(spec.origin or "torch/"))
    )


def adopt():
    """Write the distribution; the files that were written. AdoptionError where torch is installed already."""
    there = installed()
    if there is not None and there[0] == "cresset":
        raise AdoptionError(
            f"adopt: this environment has torch {there[1]}, which is cresset, already; `cresset adopt --undo` "
            "removes it"
        )
    if there is not None:
        raise AdoptionError(
            f"adopt: {there[0]} {there[1]} is installed in {there[2]}, and stays; uninstall it first (pip uninstall "
            "torch), use another environment, "
            "or run single programs with `cresset run`"
        )
    folder = site_packages()
    files = contents() | {f"{INFO}/INSTALLER": "cresset\n", CONSTRAINTS: f"torch=={VERSION}\n"}
    if not os.path.exists(pip_settings()):
        files[os.path.relpath(pip_settings(), folder)] = f"# cresset adopt\n[install]\n{constraint_setting()}\n"
    files[f"{INFO}/RECORD"] = record(files)
    written = []
    try:
        for path, text in files.items():
            full = os.path.normpath(os.path.join(folder, path))
            os.makedirs(os.path.dirname(full), exist_ok=True)
            with open(full, "x", encoding="utf-8") as file:
                written.append(full)
                file.write(text)
    except OSError as error:
        remove(written, folder)
        raise AdoptionError(f"adopt: cannot write {error.filename}: {error.strerror}; nothing was changed") from None
    return written


def undo():
    """Remove what `adopt` wrote; the files that were removed."""
    there = installed()
    if there is None:
        raise AdoptionError("adopt --undo: there is no torch in this environment")
    if there[0] != "cresset":
        raise AdoptionError(
            f"adopt --undo: what is installed in {there[2]} is {there[0]} {there[1]}, not cresset; it stays"
        )
    folder = there[2]
    return remove([os.path.normpath(os.path.join(folder, path)) for path in recorded(folder)], folder)


def recorded(folder):
    """The files that RECORD names."""
    with open(os.path.join(folder, INFO, "RECORD"), encoding="utf-8") as file:
        return [line.split(",")[0] for line in file.read().splitlines() if line]


def remove(files, folder):
    """Delete these files, and the folders of the distribution if they are empty then."""
    gone = []
    for file in files:
        if os.path.exists(file):
            os.remove(file)
            gone.append(file)
    for name in ("torch", "functorch", INFO):
        path = os.path.join(folder, name)
        compiled = os.path.join(path, "__pycache__")
        if os.path.isdir(compiled):
            for entry in os.scandir(compiled):
                os.remove(entry.path)
            os.rmdir(compiled)
        if os.path.isdir(path) and not os.listdir(path):
            os.rmdir(path)
    return gone
