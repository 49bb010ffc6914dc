"""Pages whose programs run: each block of Python is run, in order, in one process, and what it shows is put under it.

As in a notebook, a block shows what it prints and then its last expression: a picture where it has one, else its repr.
A comment before a block says what else is to happen with it:

    <!-- file: NAME -->     it is written to a file of this name
    <!-- run -->            a block of sh is run; `cresset`, `torchrun` and `python` are those of this Python
    <!-- raises -->         it has to raise, and the error is what it shows
    <!-- not run: WHY -->   it is only read

`python tools/site/programs.py PAGE RESULTS` runs the page in the current folder and writes what its blocks show, as
JSON.
"""

import ast
import base64
import contextlib
import io
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile

BLOCK = re.compile(r"^(?:<!-- (?P<mark>[^\n]*?) -->\n)?```(?P<language>\w+)\n(?P<code>.*?)^```$", re.M | re.S)
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
RUN = ("tutorials", "howto", "errors", "start.md", "coming_from_pytorch.md", "performance.md")  # of docs/


class Failure(Exception):
    """A block did not do what its page says."""


def pages():
    """The pages that are run, as paths from the repository's root."""
    found = []
    for name in RUN:
        path = os.path.join(ROOT, "docs", name)
        inside = [f"{name}/{file}" for file in sorted(os.listdir(path))] if os.path.isdir(path) else [name]
        found += [f"docs/{file}" for file in inside if file.endswith(".md")]
    return found


def blocks_of(text):
    """The match objects of the blocks that are to be run or written."""
    found = []
    for match in BLOCK.finditer(text):
        mark = match["mark"] or ""
        wanted = match["language"] == "python" or mark.startswith(("file:", "run"))
        if wanted and not mark.startswith("not run"):
            found.append(match)
    return found


def shown(value):
    """(kind, text) of a value as a notebook shows it; tensors as text."""
    for kind, name in (("html", "_repr_svg_"), ("html", "_repr_html_"), ("png", "_repr_png_")):
        if hasattr(value, name) and not hasattr(value, "requires_grad"):
            picture = getattr(value, name)()
            return kind, base64.b64encode(picture).decode() if kind == "png" else picture
    return "text", repr(value) + "\n"


def run_python(code, names, place, must_raise):
    """What a block shows: [(kind, text)]. `place` is for whoever mends the page; its readers see lines of
    program.py."""
    file = "program.py"
    tree, printed, found = ast.parse(code, place), io.StringIO(), []
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    with contextlib.redirect_stdout(printed):
        try:
            exec(compile(tree, file, "exec"), names)
            if last is not None:
                value = eval(compile(ast.Expression(last.value), file, "eval"), names)
                if value is not None:
                    found.append(shown(value))
        except Exception as error:
            if not must_raise:
                raise Failure(f"{place}: the program that begins here failed") from error
            kind = type(error)
            name = kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"
            found.append(("error", f"{name}: {error}\n"))
        else:
            if must_raise:
                raise Failure(f"{place}: should raise, and did not")
    return [("text", printed.getvalue())] * bool(printed.getvalue()) + found


def run_shell(code, place):
    """What commands print."""
    done = subprocess.run(["bash", "-eo", "pipefail", "-c", code], capture_output=True, text=True, timeout=200)
    if done.returncode:
        raise Failure(f"{place}: status {done.returncode}\n{done.stdout}{done.stderr}")
    return [("text", done.stdout)] * bool(done.stdout)


def commands(folder):
    """A folder with the commands that a reader has after installing, made of this Python."""
    for name, arguments in (("python", ""), ("cresset", " -m cresset"), ("torchrun", " -m cresset.distributed.run")):
        path = os.path.join(folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(f'#!/bin/sh\nexec "{sys.executable}"{arguments} "$@"\n')
        os.chmod(path, 0o755)
    return folder


def run_page(path):
    """What each block of a page shows, run in this process and folder."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    names, results = {"__name__": "__main__"}, []
    sys.path.insert(0, os.getcwd())  # a page's files are modules of its programs
    with tempfile.TemporaryDirectory() as folder:
        os.environ["PATH"] = commands(folder) + os.pathsep + os.environ["PATH"]
        for match in blocks_of(text):
            mark, place = (
                match["mark"] or "",
                f"{os.path.basename(path)}:{text[: match.start('code')].count(chr(10)) + 1}",
            )
            if mark.startswith("file:"):
                with open(mark.partition(":")[2].strip(), "w", encoding="utf-8") as file:
                    file.write(match["code"])
                results.append([])
            elif mark == "run":
                results.append(run_shell(match["code"], place))
            else:
                results.append(run_python(match["code"], names, place, mark == "raises"))
    return results


def start(path, folder):
    """Run a page in a process of its own, in `folder`; what its blocks show."""
    os.makedirs(folder, exist_ok=True)
    results = os.path.join(folder, ".results.json")
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    command = [sys.executable, "-W", "error", os.path.abspath(__file__), os.path.abspath(path), results]
    with tempfile.TemporaryFile("w+") as said:
        page = subprocess.Popen(command, cwd=folder, env=environment, stdout=said, stderr=said, start_new_session=True)
        try:
            page.wait(200)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(page.pid, signal.SIGKILL)  # a server that a page did not come to stop
            page.wait()
        if page.returncode:
            said.seek(0)
            raise Failure(f"{path}:\n{said.read()}")
    with open(results, encoding="utf-8") as file:
        text = file.read()
    for path in (os.path.realpath(folder), *sys.path):  # pages name no folders of this machine
        text = text.replace(path + "/", "") if path else text
    return json.loads(text.replace(f"on {socket.gethostname()}:", "on node1:"))


def with_results(text, results):
    """The page with what each block shows under it."""
    parts, at = [], 0
    for match, found in zip(blocks_of(text), results, strict=True):
        parts.append(text[at : match.end()])
        at = match.end()
        for kind, result in found:
            if kind in ("text", "error"):
                fence, classes = (
                    "```" if "```" not in result else "````",
                    ".text .output" + " .error" * (kind == "error"),
                )
                parts.append(f"\n\n{fence} {{ {classes} }}\n{result.rstrip()}\n{fence}")
            elif kind == "png":
                parts.append(
                    f'\n\n<img class="shown" alt="what the program drew" src="data:image/png;base64,{result}">'
                )
            else:
                flat = re.sub(r"\n\s*\n", "\n", result.strip())
                parts.append(f'\n\n<div class="shown">{flat}</div>')
    return "".join([*parts, text[at:]])


def pictures_in(results):
    """How many of the things shown are pictures."""
    return sum(kind in ("html", "png") for found in results for kind, _ in found)


if __name__ == "__main__":
    page, results = sys.argv[1:]
    found = run_page(page)
    with open(results, "w", encoding="utf-8") as out:
        json.dump(found, out)
