"""Stand-ins for this system's C library as an older one was, to link with: what is linked so runs on older systems.

    python tools/older_glibc.py 2.28 FOLDER     then link with -L FOLDER

glibc keeps every version of a function that it ever had, and the linker takes the newest one that it finds. Here it
finds libraries without code that have only those of the version that is asked for. What that version had not at all is
named by the linker; native/base/older_glibc.cpp has its own for what we use.
"""

import argparse
import re
import subprocess
import sysconfig
from pathlib import Path

LIBRARIES = {"c": "libc.so.6", "m": "libm.so.6"}
# Until version 2.34 these were libraries of their own. A program that wants one of their functions has to name them.
MERGED = {"pthread": ("libpthread.so.0", re.compile("_*pthread_|sem_")), "dl": ("libdl.so.2", re.compile("dl[a-z]"))}
LINE = re.compile(r"^\S+ (.{7}) \S+\s+([0-9a-f]+)\s+\(?GLIBC_([0-9.]+)\)?\s+(?!GLIBC_)(\S+)$")


def number(version):
    """A version as numbers that can be compared."""
    return tuple(map(int, version.split(".")))


def symbols(library, newest):
    """{name: (version, newest version, is data, size)} of a library, each in the last version up to `newest`."""
    found, last = {}, {}
    listed = subprocess.run(["objdump", "-T", library], capture_output=True, text=True, check=True).stdout
    for flags, size, version, name in (m.groups() for m in map(LINE.match, listed.splitlines()) if m):
        last[name] = max(last.get(name, "0"), version, key=number)
        if number(version) <= newest and (name not in found or number(found[name][0]) < number(version)):
            found[name] = (version, flags[-1] == "O", int(size, 16))
    return {name: (version, last[name], *rest) for name, (version, *rest) in found.items()}


def write(folder, name, soname, chosen):
    """A library without code that has these symbols."""
    lines, versions = [], sorted({version for version, *_ in chosen.values()}, key=number)
    for symbol, (version, _, is_data, size) in sorted(chosen.items()):
        kind, place = ("object", ".data") if is_data else ("function", ".text")
        lines += [place, f".globl s_{symbol}", f".type s_{symbol}, @{kind}", f".size s_{symbol}, {max(size, 1)}"]
        lines += [f"s_{symbol}: .zero {max(size, 1) if is_data else 1}"]
        lines += [f".symver s_{symbol}, {symbol}@@GLIBC_{version}"]
    (folder / f"{name}.s").write_text("\n".join([*lines, '.section .note.GNU-stack,"",@progbits', ""]))
    nodes = "".join(f"GLIBC_{version} {{}};\n" for version in versions)
    (folder / f"{name}.map").write_text(nodes + "NONE { local: s_*; };\n")
    made = ["-shared", "-nostdlib", f"-Wl,-soname,{soname}", f"-Wl,--version-script={folder}/{name}.map"]
    subprocess.run(["cc", *made, "-o", str(folder / soname), str(folder / f"{name}.s")], check=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("version")
    parser.add_argument("folder", type=Path)
    given = parser.parse_args()
    newest, folder = number(given.version), given.folder.absolute()
    folder.mkdir(parents=True, exist_ok=True)
    system = Path("/lib") / (sysconfig.get_config_var("MULTIARCH") or "x86_64-linux-gnu")
    scripts = {}
    for name, soname in LIBRARIES.items():
        every = symbols(system / soname, newest)
        for merged, (old, pattern) in MERGED.items() if name == "c" else ():
            moved = {s: every.pop(s) for s in list(every) if pattern.match(s) and number(every[s][1]) > newest}
            write(folder, merged, old, moved)
        write(folder, name, soname, every)
        scripts[name] = [folder / soname]
    loader = next(system.glob("ld-linux*.so.*"))
    compiler = ["cc", "-print-file-name=libc_nonshared.a"]  # what each program has of its own
    own = subprocess.run(compiler, capture_output=True, text=True, check=True).stdout.strip()
    scripts["c"] += [own, *(f"AS_NEEDED({file})" for file in [*(folder / old for old, _ in MERGED.values()), loader])]
    for name, files in scripts.items():
        (folder / f"lib{name}.so").write_text(f"GROUP({' '.join(map(str, files))})\n")


if __name__ == "__main__":
    main()
