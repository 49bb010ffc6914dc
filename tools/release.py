#!/usr/bin/env python3
"""A release, step by step: the sentences of changes/ go to CHANGELOG.md, the version is set, all of CI runs, and wheels
are built and looked at.

    tools/release.py VERSION            all steps; stops at the first that fails
    tools/release.py VERSION --notes    only prints what CHANGELOG.md would say

The last line says what is left to a person: to look, to tag and to upload.
"""

import argparse
import datetime
import re
import subprocess
import sys
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent
KINDS = {"added": "Added", "changed": "Changed", "fixed": "Fixed", "removed": "Removed", "faster": "Faster"}


class NotReady(Exception):
    """What keeps this tree from being released."""


def notes(top, version, day):
    """What changes/ says, as the next section of CHANGELOG.md."""
    said = {kind: [] for kind in KINDS}
    for file in sorted((top / "changes").glob("*.md")):
        if file.name == "README.md":
            continue
        kind = file.name.removesuffix(".md").rpartition(".")[2]
        if kind not in said:
            raise NotReady(f"changes/{file.name}: the kind is one of {', '.join(KINDS)}")
        said[kind].append(" ".join(file.read_text().split()))
    if not any(said.values()):
        raise NotReady("changes/ says nothing new")
    parts = [f"## {version} ({day})\n"]
    parts += [f"### {KINDS[kind]}\n\n" + "".join(f"- {text}\n" for text in said[kind]) for kind in KINDS if said[kind]]
    return "\n".join(parts)


def gather(top, version, day):
    """Move the sentences of changes/ to CHANGELOG.md, before what earlier releases said."""
    section = notes(top, version, day)
    log = top / "CHANGELOG.md"
    head, mark, earlier = log.read_text().partition("\n## ")
    if f"\n## {version} " in mark + earlier:
        raise NotReady(f"CHANGELOG.md has a section {version} already")
    log.write_text(f"{head.rstrip()}\n\n{section}{mark}{earlier}")
    for file in (top / "changes").glob("*.md"):
        if file.name != "README.md":
            file.unlink()


def set_version(top, version):
    """Write the version to the one place that has it."""
    if not re.fullmatch(r"\d+\.\d+\.\d+((a|b|rc)\d+)?", version):
        raise NotReady(f"{version!r} is no version such as 1.2.3 or 1.2.3rc1")
    file = top / "src/cresset/version.py"
    text, count = re.subn(r'^__version__ = ".*"$', f'__version__ = "{version}"', file.read_text(), flags=re.MULTILINE)
    if count != 1:
        raise NotReady(f"{file} sets __version__ {count} times")
    file.write_text(text)


def run(*command):
    print("+", *command, flush=True)
    subprocess.run(command, cwd=TOP, check=True)


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0])
    parser.add_argument("version")
    parser.add_argument("--notes", action="store_true", help="only print what CHANGELOG.md would say")
    chosen = parser.parse_args(arguments)
    day = datetime.date.today().isoformat()
    try:
        if chosen.notes:
            print(notes(TOP, chosen.version, day))
            return 0
        if subprocess.run(["git", "status", "--porcelain"], cwd=TOP, capture_output=True, check=True).stdout:
            raise NotReady("there are changes that are not committed")
        set_version(TOP, chosen.version)
        gather(TOP, chosen.version, day)
        run(".ci/run")
        run("tools/wheels.sh")
    except NotReady as reason:
        print(f"release: {reason}", file=sys.stderr)
        return 1
    except subprocess.CalledProcessError as failure:
        print(f"release: {' '.join(failure.cmd)} ended with status {failure.returncode}", file=sys.stderr)
        return 1
    print(f"dist/ has the wheels of {chosen.version}. Left: look at them, commit, tag v{chosen.version}, upload.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
