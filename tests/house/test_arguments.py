"""Every argument of a public function does something, or docs/ignored_arguments.md says why not.

The package's syntax is read, not run. An argument is ignored if the body never reads its name; if it only hands it to a
function of the package that ignores it; or if it only keeps it as an attribute that nobody reads. A name with an
underscore in front is not for users, and neither are the methods that Python itself calls. A function that only refuses
(raises) ignores nothing, and neither does an abstract method, which says what those of other classes take.
"""

import ast
import contextlib
import fnmatch
import functools
import re
import warnings
from pathlib import Path

import pytest

import cresset
from cresset.autograd.grad_mode import Remembered
from cresset.backends.settings import Kept

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "cresset"
PAGE = ROOT / "docs" / "ignored_arguments.md"
FUNCTION = (ast.FunctionDef, ast.AsyncFunctionDef)
CALLED_BY_AUTOGRAD = {"ctx"}  # the first argument of a Function's methods
# Tables of rules, each called by the package with all arguments of its operator.
RULES = ("onnx.operators.", "ops.pointwise.", "ops.formulas.", "jit.compiling.", "jit.functional.",
         "distributed.tensor.words.", "distributed.tensor.views.", "distributed.tensor.losses.",
         "distributed.tensor.random.")  # fmt: skip


class Function:
    """A function of the package: where it is, what it takes, and what its body reads."""

    def __init__(self, module, path, node, imports, bases):
        self.module, self.path, self.node, self.imports, self.bases = module, path, node, imports, bases
        arguments = node.args
        self.positional = [a.arg for a in (*arguments.posonlyargs, *arguments.args)]
        if len(path) > 1 and not any(ast.unparse(d) == "staticmethod" for d in node.decorator_list):
            self.positional = self.positional[1:]  # self
        more = [a for a in (arguments.vararg, *arguments.kwonlyargs, arguments.kwarg) if a is not None]
        self.arguments = [*self.positional, *(a.arg for a in more)]
        self.parents = {child: parent for parent in ast.walk(node) for child in ast.iter_child_nodes(parent)}

    @property
    def name(self):
        return ".".join((*self.module, *self.path))

    @property
    def is_public(self):
        *owners, own = self.path
        names = [*self.module, *owners, *([] if own in ("__init__", "__new__") else [own])]
        return not any(name.startswith("_") for name in names)

    @property
    def only_refuses(self):
        returns = any(isinstance(n, (ast.Return, ast.Yield)) for n in ast.walk(self.node))
        return isinstance(self.node.body[-1], ast.Raise) and not returns

    @property
    def is_abstract(self):
        return any(ast.unparse(d).endswith("abstractmethod") for d in self.node.decorator_list)

    def reads(self, argument):
        """The places where the body reads an argument, and that count: not to throw it away."""
        return self._reads.get(argument, [])

    @functools.cached_property
    def _reads(self):
        found = {}
        for statement in self.node.body:
            for n in ast.walk(statement):
                if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load) and not self._is_thrown_away(n):
                    found.setdefault(n.id, []).append(n)
        return found

    def _is_thrown_away(self, read):
        parent = self.parents[read]
        return isinstance(parent, ast.Assign) and all(isinstance(t, ast.Name) and t.id == "_" for t in parent.targets)

    def handed_to(self, read):
        """(the possible names of a function, its argument's name or place) if a read is an argument of a call."""
        parent = self.parents[read]
        keyword = parent.arg if isinstance(parent, ast.keyword) else None
        call = self.parents[parent] if isinstance(parent, ast.keyword) else parent
        if not isinstance(call, ast.Call) or not (keyword or read in call.args):
            return (), None
        which = keyword or call.args.index(read)
        if isinstance(call.func, ast.Name):  # a function, or a class
            target = self.resolved(call.func.id)
            return (target, f"{target}.__init__"), which
        owner = ast.unparse(call.func.value) if isinstance(call.func, ast.Attribute) else None
        if owner == "super()":
            return tuple(f"{base}.{call.func.attr}" for base in self.bases), which
        if owner == "self":
            return (".".join((*self.module, *self.path[:-1], call.func.attr)),), which
        return (), None

    def resolved(self, name):
        return self.imports.get(name, ".".join((*self.module, name)))

    def kept_as(self, read):
        """The attribute of self that a read is assigned to, as it is."""
        parent = self.parents[read]
        if isinstance(parent, ast.Tuple) and isinstance(self.parents[parent], ast.Assign):
            target, place = self.parents[parent].targets[0], parent.elts.index(read)
            target = (
                target.elts[place] if isinstance(target, ast.Tuple) and len(target.elts) == len(parent.elts) else None
            )
        else:
            target = parent.targets[0] if isinstance(parent, ast.Assign) else None
        return target.attr if isinstance(target, ast.Attribute) else None


def parse():
    """All functions that are not inside of others, by name; and the names of all attributes that are read anywhere."""
    functions, attributes = {}, set()
    for file in sorted(PACKAGE.rglob("*.py")):
        relative = file.relative_to(PACKAGE).with_suffix("")
        module = relative.parts[:-1] if relative.name == "__init__" else relative.parts
        tree = ast.parse(file.read_text())
        imports = {}
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.level:
                package = relative.parts[: len(relative.parts) - node.level]
                source = (*package, *(node.module.split(".") if node.module else ()))
                imports.update({alias.asname or alias.name: ".".join((*source, alias.name)) for alias in node.names})
            elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load):
                attributes.add(node.attr)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.isidentifier():
                attributes.add(node.value)  # getattr and its variants

        def enter(node, path, bases=(), module=module, imports=imports):
            for child in ast.iter_child_nodes(node):
                if isinstance(child, ast.ClassDef):
                    names = [
                        imports.get(base.id, ".".join((*module, base.id)))
                        for base in child.bases
                        if isinstance(base, ast.Name)
                    ]
                    enter(child, (*path, child.name), names)
                elif isinstance(child, FUNCTION):
                    function = Function(module, (*path, child.name), child, imports, bases)
                    functions[function.name] = function
                else:
                    enter(child, path, bases)

        enter(tree, ())
    return functions, attributes


def find_ignored():
    """{function: arguments} that are ignored, private functions included."""
    functions, attributes = parse()
    judged = [f for f in functions.values() if not f.only_refuses and not f.is_abstract]
    ignored = {(f.name, a) for f in judged for a in f.arguments if not f.reads(a)}

    def leads_nowhere(function, argument, read):
        attribute = function.kept_as(read)
        if attribute is not None:
            return attribute not in attributes
        targets, which = function.handed_to(read)
        target = next((target for target in targets if target in functions), None)
        if target is None:
            return False
        if isinstance(which, int):
            which = functions[target].positional[which] if which < len(functions[target].positional) else None
        return (target, which) in ignored or (target, which) == (function.name, argument)  # handed on to itself

    while True:
        more = {
            (f.name, a) for f in functions.values() for a in f.arguments
            if (f.name, a) not in ignored and f.reads(a) and all(leads_nowhere(f, a, read) for read in f.reads(a))
        }  # fmt: skip
        if not more:
            break
        ignored |= more
    return {
        (name, argument) for name, argument in ignored
        if functions[name].is_public and not name.startswith(RULES) and not argument.startswith("_") and argument not in CALLED_BY_AUTOGRAD  # noqa: E501
    }  # fmt: skip


def read_table():
    """(functions, arguments, reason) of each row of the page's first table."""
    rows = []
    for line in PAGE.read_text().partition("## Settings")[0].splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")] if line.startswith("| `") else []
        if cells:
            arguments, functions, reason = cells
            rows.append((re.findall(r"`([^`]+)`", functions), re.findall(r"`([^`]+)`", arguments), reason))
    return rows


def covers(row, name, argument):
    functions, arguments, _ = row
    return argument in arguments and any(fnmatch.fnmatchcase(name, pattern) for pattern in functions)


@pytest.fixture(scope="module")
def ignored():
    return find_ignored()


def test_every_argument_that_is_ignored_is_in_the_table(ignored):
    rows = read_table()
    missing = sorted(
        f"{name}({argument}=)" for name, argument in ignored if not any(covers(row, name, argument) for row in rows)
    )
    assert not missing, (
        "read these arguments, refuse what they ask, or say in docs/ignored_arguments.md why not:\n"
        + "\n".join(missing)
    )


def test_every_row_of_the_table_is_about_arguments_that_are_ignored(ignored):
    for functions, arguments, reason in read_table():
        assert len(reason.split()) >= 4, f"{arguments} of {functions}: the reason is missing"
        for pattern in functions:
            assert any(covers(([pattern], arguments, reason), *one) for one in ignored), (
                f"{pattern} ignores none of {arguments}"
            )
        for argument in arguments:
            assert any(covers((functions, [argument], reason), *one) for one in ignored), (
                f"{argument} is read by all of {functions}"
            )


def resolve(path):
    found = cresset
    for part in path.split(".") if path else ():
        found = getattr(found, part)
    return found


def settings_without_effect():
    """The settings of cresset.backends that nobody is told of, and that another value can be given to."""
    found = set()
    for module in vars(cresset.backends).values():
        for name, setting in vars(type(module)).items():
            if isinstance(setting, Kept) and setting.tell is None:
                before = getattr(module, name)
                another = (
                    not before if isinstance(before, bool) else {"x86": "fbgemm", "auto": "native"}.get(str(before), 7)
                )
                with warnings.catch_warnings(), contextlib.suppress(RuntimeError, ValueError):
                    warnings.simplefilter("ignore")
                    setattr(module, name, another)
                if getattr(module, name) != before:
                    setattr(module, name, before)
                    found.add(f"{module.__name__.removeprefix('cresset.')}.{name}")
    return found


def test_every_setting_that_nobody_is_told_of_is_in_the_table_of_settings():
    rows = re.findall(r"^\| `([^`]+)` \| (.+) \|$", PAGE.read_text().partition("## Settings")[2], re.M)
    listed = [setting for setting, _ in rows]
    assert len(set(listed)) == len(listed) and all(len(reason.split()) >= 4 for _, reason in rows)
    kept = {
        setting
        for setting in listed
        if isinstance(getattr(type(resolve(setting.rpartition(".")[0])), setting.rpartition(".")[2], None), Kept)
    }
    assert settings_without_effect() == kept
    for setting in listed:
        resolve(setting)
    remembered = {f"autograd.grad_mode.{kind.__name__}" for kind in Remembered.__subclasses__()}
    assert remembered <= set(listed)


@pytest.mark.parametrize("foreach, fused", [(True, None), (False, None), (None, True)])
def test_an_optimizers_hints_change_no_bit(foreach, fused):
    def stepped(**how):
        cresset.manual_seed(0)
        parameter = cresset.nn.Parameter(cresset.randn(5))
        parameter.grad = cresset.randn(5)
        cresset.optim.AdamW([parameter], **how).step()
        return parameter.tolist()

    assert stepped(foreach=foreach, fused=fused) == stepped()


def test_the_walk_sees_what_is_not_read(tmp_path, monkeypatch):
    (tmp_path / "one.py").write_text(
        "def plain(a, b): return a\n"
        "def thrown(a):\n    _ = a\n"
        "def handed(a): return plain(1, a)\n"
        "def named(a): return plain(1, b=a)\n"
        "def used(a): return plain(a, 1)\n"
        "def refuses(a): raise ValueError\n"
        "class Says:\n    @abc.abstractmethod\n    def says(self, a): pass\n"
        "def inside(a):\n    def deeper():\n        return a\n    return deeper\n"
        "def _hidden(a): return 1\n"
        "class Kept:\n    def __init__(self, a, b):\n        self.a, self.b = a, b\n    def f(self): return self.b\n"
        "class More(Kept):\n    def __init__(self, a, b): super().__init__(a, b)\n    def g(self, a): return "
        "self.h(a)\n    def h(self, a): return 1\n"
        "def makes(a): return Kept(a, 1)\n"
        "def again(a, n): return again(a, n - 1) if n else 0\n"
    )
    monkeypatch.setitem(globals(), "PACKAGE", tmp_path)
    assert find_ignored() == {
        ("one.plain", "b"), ("one.thrown", "a"), ("one.handed", "a"), ("one.named", "a"), ("one.Kept.__init__", "a"),
        ("one.More.__init__", "a"),
        ("one.More.g", "a"), ("one.More.h", "a"), ("one.makes", "a"), ("one.again", "a"),
    }  # fmt: skip
