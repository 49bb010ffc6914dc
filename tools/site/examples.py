"""Examples of the reference, which the build runs: a name's own, from its docstring; else one of the lists in
examples/; else, for operators and for what tensors have, a call with sample inputs. What is shown is what came out.

A list is a file `NAMESPACE.txt`. Its lines `>>> x = ...` define samples that examples may use, and `name: code` is an
example; ` ;; ` stands between its statements, and the value of the last one is shown. `name: ! code` has to raise.
`name: cuda code` runs on a GPU, the one that tests/cuda emulates where there is no other; `name: two code` runs in two
processes, whose number is `rank`, and the second is shown. `name: needs PACKAGE code` imports a package that cresset
does not: where it is missing, the page says so. `name: - why` says why there is none. A line that begins with # is a
comment.
"""

import ast
import contextlib
import doctest
import enum
import importlib.util
import inspect
import io
import json
import os
import re
import subprocess
import sys
import tempfile
import warnings

import cresset

HERE = os.path.dirname(os.path.abspath(__file__))
LISTS = os.path.join(HERE, "examples")
EMULATED = os.path.join(HERE, "..", "..", "tests", "cuda")
OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
SAMPLES = [
    "x = torch.tensor([0.25, 0.5, 0.75])", "y = torch.tensor([3.0, 1.0, 2.0])", "i = torch.tensor([6, 10, 15])",
    "j = torch.tensor([1, 2, 3])", "b = torch.tensor([True, False, True])",
    "m = torch.tensor([[2.0, 1.0], [1.0, 3.0]])", "z = torch.tensor([1 + 2j, 3 - 1j])",
]  # fmt: skip
CALLS = ["x", "x, y", "i", "i, j", "b", "b, b", "m", "m, m", "x, i", "i, y", "x, 0", "x, y, y", "m, 0"]
GUESSED = {
    "cresset",
    "cresset.special",
    "cresset.nn.functional",
}  # operators without an example of their own get a call


class Lists:
    """The lists of examples: {namespace: (samples, {name: code})}."""

    def __init__(self):
        self.found = {}
        for file in sorted(os.listdir(LISTS)):
            samples, examples = [], {}
            with open(os.path.join(LISTS, file), encoding="utf-8") as lines:
                for line in lines:
                    line = line.rstrip("\n")
                    if line.startswith(">>> "):
                        samples.append(line[4:])
                    elif line.strip() and not line.startswith("#"):
                        name, _, code = line.partition(": ")
                        assert code and name not in examples, f"{file}: {line}"
                        examples[name] = code
            self.found[file.removesuffix(".txt")] = (samples, examples)

    def of(self, namespace, name):
        samples, examples = self.found.get(namespace, ([], {}))
        return samples, examples.get(name)

    def for_places(self):
        """{place: {name: (samples, statements)}} of the examples that run elsewhere."""
        found = {place: {} for place in PLACES}
        for namespace, (samples, examples) in self.found.items():
            for name, code in examples.items():
                place, _, rest = code.partition(" ")
                if place in PLACES:
                    found[place][f"{namespace}.{name}"] = samples, rest.split(" ;; ")
        return found


def names_for_examples():
    return {
        "cresset": cresset,
        "torch": cresset,
        "nn": cresset.nn,
        "F": cresset.nn.functional,
        "optim": cresset.optim,
        "__name__": "__main__",
    }


def names_bound_by(line):
    """The names that an import or an assignment defines."""
    (statement,) = ast.parse(line).body
    if isinstance(statement, (ast.Import, ast.ImportFrom)):
        return {(alias.asname or alias.name).split(".")[0] for alias in statement.names}
    return {node.id for target in statement.targets for node in ast.walk(target) if isinstance(node, ast.Name)}


def session(samples, statements, may_raise=False, more=()):
    """Run statements as Python's prompt would, which know names for examples and `more`: the text of the session.
    Samples that are not used are left out.
    """
    cresset.manual_seed(0)
    names, shown = {**names_for_examples(), **dict(more)}, []
    needed, left = set(re.findall(r"\b[A-Za-z_]\w*", " ".join(statements))), []
    for line in reversed(samples):
        if names_bound_by(line) & needed:
            needed |= set(re.findall(r"\b[A-Za-z_]\w*", line))
            left.insert(0, line)
    for statement in [*left, *statements]:
        tree, printed = ast.parse(statement), io.StringIO()
        shown.append(">>> " + statement)
        silent = contextlib.redirect_stderr(io.StringIO())  # progress, which says where files are just now
        with contextlib.redirect_stdout(printed), silent, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                if len(tree.body) == 1 and isinstance(tree.body[0], ast.Expr):
                    value = eval(compile(statement, "<example>", "eval"), names)
                    if value is not None:
                        print(repr(value))
                else:
                    exec(compile(statement, "<example>", "exec"), names)
            except Exception as error:
                if not may_raise or statement is not statements[-1]:
                    raise
                print("Traceback (most recent call last):", f"{type(error).__name__}: {error}", sep="\n    ...\n")
            else:
                assert not may_raise or statement is not statements[-1], f"should raise: {statement}"
        if text := printed.getvalue().rstrip():
            shown.append(text)
    return re.sub(r"\bcresset\.(?=tensor\()|(?<=at )0x[0-9a-f]+", "...", "\n".join(shown))


# Where examples run that need more than this process: what starts Python there, and what their sessions say first.
PLACES = {
    "cuda": ([], "# on a GPU"),
    "two": (
        ["-m", "cresset.distributed.run", "--standalone", "--nproc-per-node", "2"],
        "# the second of two processes",
    ),
}


def environment_of(place):
    """The environment of its processes: with the emulated GPU, unless there is another."""
    path = os.pathsep.join(sys.path)
    if place != "cuda" or cresset.cuda.is_available():
        return {**os.environ, "PYTHONPATH": path}
    sys.path.append(os.path.abspath(EMULATED))
    from emulator import build

    if build.problem():
        raise SystemExit(f"examples: those of CUDA need a GPU or its emulator: {build.problem()}")
    return {**os.environ, "PYTHONPATH": path, "CRESSET_CUDA_LIBRARIES": str(build.build())}


def run_elsewhere(place, tasks):
    """What {name: (samples, statements)} show at a place, as {name: (text, error)}."""
    start, _ = PLACES[place]
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "tasks.json")
        with open(file, "w", encoding="utf-8") as out:
            json.dump(tasks, out)
        command = [sys.executable, *start, os.path.abspath(__file__), place, file]
        done = subprocess.run(
            command,
            cwd=folder,
            env=environment_of(place),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=600,
        )
        if done.returncode:
            raise SystemExit(f"examples: {place} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
        with open(file + ".done", encoding="utf-8") as found:
            return json.load(found)


def run_here(place, file):
    """The other side of `run_elsewhere`."""
    first, found = PLACES[place][1], {}
    rank = int(os.environ.get("RANK", "1"))
    with open(file, encoding="utf-8") as tasks:
        todo = json.load(tasks)
    for name, (samples, statements) in todo.items():
        if place == "two":
            cresset.distributed.init_process_group("gloo")
        may_raise = statements[0].startswith("! ")
        statements[0] = statements[0].removeprefix("! ")
        try:
            text, error = session(samples, statements, may_raise, {"rank": rank} if place == "two" else {}), None
        except Exception as problem:
            text, error = "", f"{type(problem).__name__}: {problem}"
        found[name] = f">>> {first}\n{text}", error
        if cresset.distributed.is_initialized():
            cresset.distributed.destroy_process_group()
    if rank == 1:
        with open(file + ".done", "w", encoding="utf-8") as out:
            json.dump(found, out)


def from_docstring(text, where, value):
    """Run the examples of a docstring, which may use the names of its module; they have to give what they show."""
    module = sys.modules.get(getattr(inspect.unwrap(value) if callable(value) else value, "__module__", None))
    names = {**vars(module), **names_for_examples()} if module else names_for_examples()
    test = doctest.DocTestParser().get_doctest(inspect.cleandoc(text), names, where, None, 0)
    said = []
    cresset.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        doctest.DocTestRunner(optionflags=OPTIONS).run(test, out=said.append)
    if said:
        raise AssertionError("".join(said))


def guesses(namespace, name, value):
    """Calls with sample inputs that could be an example."""
    if namespace == "cresset.Tensor":
        plain = [f"{letter}.{name}" for letter in "xzm"]
        if not callable(value):
            return plain
        return [f"{c.partition(', ')[0]}.{name}({c.partition(', ')[2]})" for c in [*CALLS, "z", "z, z"]]
    if namespace in GUESSED:
        short = {"cresset": "torch", "cresset.special": "torch.special", "cresset.nn.functional": "F"}[namespace]
        return [f"{short}.{name}({call})" for call in [*CALLS, "z", "z, z"]]
    return []


class Examples:
    """Finds, runs and counts."""

    def __init__(self):
        self.lists, self.ran, self.kept = Lists(), {}, {}
        self.reasons, self.missing, self.failed = {}, [], []
        self.count = {"docstring": 0, "list": 0, "samples": 0}
        self.elsewhere = {
            place: run_elsewhere(place, tasks) for place, tasks in self.lists.for_places().items() if tasks
        }

    def of(self, namespace, name, value):
        """The text of a session to put after the docstring, or "" where that has its own, or None."""
        text = inspect.getdoc(value) if callable(value) or isinstance(value, property) else None
        where = f"{namespace}.{name}"
        if inspect.isclass(value) and text == inspect.getdoc(enum.Enum):
            text = None  # Python's own words
        if text and ">>>" in text:
            if text not in self.kept:
                self.kept[text] = self.attempt(where, lambda: from_docstring(text, where, value)) is not None
            self.count["docstring"] += self.kept[text]
            return "" if self.kept[text] else None
        samples, code = self.lists.of(namespace, name)
        if code is not None and code.startswith("- "):
            self.reasons[where] = code[2:]
            return None
        if code is not None and code.startswith("needs "):
            _, package, code = code.split(" ", 2)
            if importlib.util.find_spec(package) is None:
                self.reasons[where] = f"it needs {package}, which was not there when this page was made"
                return None
        if code is not None and (place := code.partition(" ")[0]) in PLACES:
            shown, error = self.elsewhere[place][where]
            if error is not None:
                self.failed.append(f"{where}: {error}")
                return None
            self.count["list"] += 1
            return shown
        if code is not None:
            may_raise = code.startswith("! ")
            statements = code.removeprefix("! ").split(" ;; ")
            shown = self.attempt(where, lambda: session(samples, statements, may_raise))
            self.count["list"] += shown is not None
            return shown
        return self.guessed(namespace, name, value)

    def guessed(self, namespace, name, value):
        """A call with samples, or what kind of thing a class or value is."""
        path, facts = f"{namespace.replace('cresset', 'torch', 1)}.{name}", []
        if isinstance(value, cresset.dtype):
            facts = [f"torch.ones(2, dtype={path})", f"{path}.itemsize"]
        elif inspect.isclass(value) and issubclass(value, Exception):
            bases = [kind.__name__ for kind in value.__mro__ if kind.__module__ == "builtins" and kind is not value]
            facts = [f"issubclass({path}, {bases[0]})"]
        elif inspect.isclass(value) and issubclass(value, enum.Enum):
            facts = [f"list({path})"]
        elif not callable(value) and namespace != "cresset.Tensor" and len(repr(value)) < 500:
            facts = [path]
        for fact in facts:
            with contextlib.suppress(Exception):
                shown = session([], [fact])
                self.count["samples"] += 1
                return shown
        behind = cresset._native.function_behind
        is_operator = behind(cresset.ops.functions.get(name)) is behind(value)
        if namespace in GUESSED and not is_operator and not hasattr(value, "examples"):
            self.missing.append(f"{namespace}.{name}")
            return None
        for call in guesses(namespace, name, value):
            try:
                shown = session(SAMPLES, [call])
            except Exception:
                continue
            if shown.count("\n") < 20 and "<built-in" not in shown and "<bound method" not in shown:
                self.count["samples"] += 1
                return shown
        self.missing.append(f"{namespace}.{name}")
        return None

    def attempt(self, where, run):
        """What `run` gives, True for None; failures are collected, so that one build tells all of them."""
        try:
            with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):  # some write files
                found = run()
            if cresset.distributed.is_initialized():
                cresset.distributed.destroy_process_group()
        except Exception as error:
            self.failed.append(f"{where}: {type(error).__name__}: {error}")
            return None
        return True if found is None else found

    def summary(self):
        ran, kinds = sum(self.count.values()), self.count
        return (
            f"{ran} names have an example that ran ({kinds['docstring']} from docstrings, {kinds['list']} from lists, "
            f"{kinds['samples']} with sample inputs); {len(self.reasons)} say why they have none here"
        )


if __name__ == "__main__":
    run_here(*sys.argv[1:])
