"""Random programs in the part of Python that torch.jit.script knows: the same result scripted, loaded from a file, and
run by Python itself.

    python -m tests.jit.random_scripts [--first 0] [--count 1000] [--show NUMBER]

A program depends on its number alone. Only what means the same in both languages is written: whole numbers, for
example, stay below 64 bits.
"""

import copy
import io
import math
import random
import re
import sys

import cresset

from .. import random_programs

# <T> is an expression of type T; |T| a variable of that type. `q` is bound by the comprehension that uses it.
EXPRESSIONS = {
    "int": """
        (<int> + <int>)   (<int> - <int>)   (<int> * <int>)   (<int> // 3)   (<int> % 4)   (-<int>)   abs(<int>)
        (<int> & <int>)   (<int> ^ <int>)   (<int> << 1)   int(<float>)   int(<bool>)   max(<int>, <int>)
        min(<int>, <int>)   sum(<List[int]>)   (<int> if <bool> else <int>)   len(<List[int]>)
        len(<List[str]>)   len(<str>)   len(<Dict[str, int]>)   len(<List[bool]>)
        <Dict[str, int]>.get(<str>, <int>)   <Tuple[int, float]>[0]   <str>.find(<str>)   <str>.count('a')
        <List[int]>.count(<int>)   <Tensor>.size(0)   <Tensor>.numel()   int(<Tensor>.sum().item())
        (<List[int]> + [<int>])[0]   (<List[int]> + [<int>])[-1]   len(<List[int]>[1:])   len(<List[Tensor]>)
        max(<List[int]> + [<int>])   twice(<int>)   last(<List[int]>, <int>)   either(<int>, None)
        either(<int>, <int>)   Pair(<int>, <float>).first   Tally(<int>).add(<int>).total
        len(Tally(<int>).seen)   hash_free(<str>)""",
    "float": """
        (<float> + <float>)   (<float> - <int>)   (<float> * <float>)   (<int> / 2)   float(<int>)
        float(<bool>)   abs(<float>)   (-<float>)   sum(<List[float]>)   max(<float>, <float>)
        (math.floor(<float>) * 0.5)   <Tuple[int, float]>[1]   (<float> if <bool> else <float>)
        float(<Tensor>.sum())   (<float> // 2.0)   (<float> % 3.0)   math.cos(<float>)
        (<List[float]> + [<float>])[-1]   Pair(<int>, <float>).second   half(number=<float>)
        half(<float>, by=<int>)""",
    "bool": """
        (<int> < <int>)   (<int> <= <float>)   (<int> == <int>)   (<float> != <float>)   (not <bool>)
        (<bool> and <bool>)   (<bool> or <bool>)   (<int> in <List[int]>)   (<str> in <Dict[str, int]>)
        (<str> == <str>)   (<str> < <str>)   all(<List[bool]>)   any(<List[bool]>)
        all([q > <int> for q in <List[int]>])   any([q != <str> for q in <List[str]>])   bool(<int>)
        (<List[int]> == <List[int]>)   <str>.startswith('a')   bool((<Tensor> > 0).any())   (1 < <int> <= 5)
        (<str> in <List[str]>)   (o is None)   (<int> not in <List[int]>)""",
    "str": """
        (<str> + <str>)   str(<int>)   <str>.upper()   <str>.replace('a', 'bc')   '-'.join(<List[str]>)
        <str>[1:]   <str>[:2]   <str>[::2]   '{}_{}'.format(<int>, <str>)   (<str> if <bool> else <str>)
        <str>.strip()   f'{a}:{s}'   ('%d %s' % (<int>, <str>))""",
    "List[int]": """
        [<int>, <int>]   [<int>]   (<List[int]> + <List[int]>)   [q * <int> for q in <List[int]>]
        [q for q in range(3)]   sorted(<List[int]>)   <List[int]>[1:]   <List[int]>[:-1]   <List[int]>[::2]
        <List[int]>.copy()   list(<List[int]>)   [len(q) for q in <List[str]>]
        (<List[int]> if <bool> else <List[int]>)   list(<Dict[str, int]>.values())   (<List[int]> * 2)
        list(<Tensor>.shape)   doubled(<List[int]>)   [q + w for q, w in zip(<List[int]>, <List[int]>)]
        Tally(<int>).add(<int>).seen""",
    "List[float]": """
        [<float>]   (<List[float]> + <List[float]>)   [float(q) for q in <List[int]>]
        [q * 0.5 for q in <List[float]>]   sorted(<List[float]>)""",
    "List[bool]": """
        [<bool>, <bool>]   [q > 1 for q in <List[int]>]   (<List[bool]> + <List[bool]>)""",
    "List[str]": """
        [<str>]   <str>.split('a')   [q + 'z' for q in <List[str]>]   [str(q) for q in <List[int]>]
        list(<Dict[str, int]>.keys())   (<List[str]> + <List[str]>)   sorted(<List[str]>)""",
    "List[Tensor]": """
        [<Tensor>]   (<List[Tensor]> + <List[Tensor]>)   [q * 2 for q in <List[Tensor]>]
        list(<Tensor>.split(1))""",
    "Dict[str, int]": """
        {<str>: <int>, 'q': <int>}   <Dict[str, int]>.copy()   {str(q): q * 2 for q in <List[int]>}""",
    "Tensor": """
        (<Tensor> + 2)   (<Tensor> * 0.5)   (<Tensor> - <Tensor>.sum())   <Tensor>.abs()   <Tensor>.flip(0)
        torch.cat([<Tensor>, <Tensor>])   torch.cat(<List[Tensor]> + [<Tensor>])   <Tensor>[1:]   <Tensor>[:2]
        torch.stack([<Tensor>.sum(), <Tensor>.mean()])   torch.relu(<Tensor>)   torch.full([2], <float>)
        <Tensor>.clamp(min=-0.5, max=3.0)   (<Tensor> if <bool> else <Tensor>)
        torch.tensor(<List[float]> + [1.0])   (<Tensor> + float(<int>))   <Tensor>.sort(descending=True)[0]
        <Tensor>.new_zeros([len(<List[int]>)])""",
    "Tuple[int, float]": """
        (<int>, <float>)   swapped((<float>, <int>))""",
}
LITERALS = {
    "int": ["0", "1", "2", "-1", "5"],
    "float": ["0.5", "1.25", "-2.0", "0.0"],
    "bool": ["True", "False"],
    "str": ["'a'", "''", "'xay'", "' b '"],
    "List[int]": ["[1, 2]", "[3]", "[2, -1, 0]"],
    "List[float]": ["[0.5]", "[1.5, -1.0]"],
    "List[bool]": ["[True]", "[False, True]"],
    "List[str]": ["['a']", "['b', 'ca']"],
    "List[Tensor]": ["[x]", "[x, x + 1]"],
    "Dict[str, int]": ["{'a': 1}", "{'b': 2, 'a': 0}"],
    "Tensor": ["x", "torch.ones(2)"],
    "Tuple[int, float]": ["(1, 0.5)", "(0, 2.0)"],
}
STATEMENTS = """
    |int| += <int>
    |int| -= <int>
    |float| *= 0.5
    |str| += <str>
    |List[int]|.append(<int>)
    |List[int]|.insert(0, <int>)
    |List[int]|.extend(<List[int]>)
    |List[int]| += [<int>]
    |List[int]|.reverse()
    |List[int]|.sort()
    |List[int]|.clear()
    |List[bool]|.append(<bool>)
    |List[str]|.append(<str>)
    |List[float]|.append(<float>)
    |List[float]|.append(<Tensor>.sum().item())
    |List[Tensor]|.append(<Tensor>)
    |Dict[str, int]|[<str>] = <int>
    |Dict[str, int]|.update(<Dict[str, int]>)
    |Tensor| = <Tensor>.clone(); |=|.add_(<float>)
    |Tensor| = <Tensor>.clone(); |=|[1:] = -1.0
    |Tensor| = torch.cat([<Tensor>, x]); |=|[0] = <float>
    |int|, |float| = <Tuple[int, float]>
    |str|, |List[int]| = <str>, <List[int]>
    if len(|List[int]|) > 0: |=|.pop()
    if len(|List[int]|) > 0: |=|[-1] = <int>
    if len(|List[int]|) > 1: del |=|[0]
    if 'a' in |Dict[str, int]|: del |=|['a']
    assert <bool> or True, 'never'
    grown(|List[int]|, <int>)
    with torch.no_grad(): |Tensor| = <Tensor>
""".strip().splitlines()
# After a change: nothing grows without end.
BOUNDS = {
    "int": "{0} = {0} % 1000",
    "float": "{0} = min(max({0}, -1000.0), 1000.0)",
    "str": "{0} = {0}[:9]",
    "List[int]": "if len({0}) > 9: {0} = {0}[:9]",
    "List[str]": "if len({0}) > 9: {0} = {0}[:9]",
    "List[bool]": "if len({0}) > 9: {0} = {0}[:9]",
    "List[float]": "if len({0}) > 9: {0} = {0}[:9]",
    "List[Tensor]": "if len({0}) > 9: {0} = {0}[:9]",
    "Tensor": "{0} = {0}[:9].clamp(-1000.0, 1000.0)",
}
LOOPS = {
    "for {0} in range({1}):": ["int"],
    "for {0} in <List[int]>.copy():": ["int"],
    "for {0} in range(4, 0, -2):": ["int"],
    "for {0}, {0}b in enumerate(<List[str]>.copy()):": ["int", "str"],
    "for {0}, {0}b in <Dict[str, int]>.copy().items():": ["str", "int"],
    "for {0}, {0}b in zip(<List[int]>.copy(), <List[str]>.copy()):": ["int", "str"],
    "for {0} in <Tensor>.clone():": ["Tensor0"],
}

# What the programs call: compiled together with them.
AROUND = """
import math
from typing import Dict, List, NamedTuple, Optional, Tuple
import cresset as torch
from cresset import Tensor


def twice(number: int) -> int:
    return number * 2


def last(numbers: List[int], otherwise: int) -> int:
    for number in numbers:
        if number > 2:
            return number
    return otherwise


def either(number: int, other: Optional[int]) -> int:
    if other is None:
        return number
    if other > 2:
        other = None
    return number if other is None else other


def half(number: float, by: int = 2) -> float:
    return number / (abs(by) + 1)


def doubled(numbers: List[int]) -> List[int]:
    made = torch.jit.annotate(List[int], [])
    for number in numbers:
        if number == 0:
            continue
        if len(made) > 4:
            break
        made.append(number * 2)
    return made


def grown(numbers: List[int], by: int):
    numbers.append(by)


def swapped(pair: Tuple[float, int]) -> Tuple[int, float]:
    first, second = pair
    return second, first


def hash_free(text: str) -> int:
    value, place = 0, 0
    while place < len(text):
        value = (value * 31 + ord(text[place])) % 1009
        place += 1
    return value


class Pair(NamedTuple):
    first: int
    second: float


@torch.jit.script
class Tally:
    def __init__(self, start: int):
        self.total = start
        self.seen: List[int] = []

    def add(self, number: int) -> "Tally":
        self.total += number
        self.seen.append(number)
        return self


"""
PARAMETERS = {
    "a": "int",
    "b": "float",
    "s": "str",
    "l": "List[int]",
    "x": "Tensor",
    "d": "Dict[str, int]",
    "o": "Optional[int]",
}
ATTRIBUTES = {
    "self.n": "int",
    "self.rate": "float",
    "self.items": "List[int]",
    "self.table": "Dict[str, int]",
    "self.kept": "Tensor",
}
MODULE = """class Program(torch.nn.Module):
    n: int
    rate: float
    items: List[int]
    table: Dict[str, int]

    def __init__(self):
        super().__init__()
        self.n, self.rate, self.items, self.table = 2, 0.5, [1, 2], {"a": 1}
        self.register_buffer("kept", torch.ones(2))

    def bumped(self, by: int) -> int:
        self.n += by
        return self.n

"""


class Program:
    """The text of program `number`: the source of `program`, a function or a module."""

    def __init__(self, number):
        self.chance = random.Random(number)
        self.lines, self.made, self.indent, self.loops = [], 0, 1, 0
        self.is_module = self.chance.random() < 0.3
        self.variables = {**PARAMETERS, **(ATTRIBUTES if self.is_module else {})}
        self.results = self.chance.choices(list(EXPRESSIONS), k=self.chance.randrange(2, 5))
        self.text = self.write()

    def write(self):
        if self.is_module:
            self.indent += 1
        for _ in range(self.chance.randrange(4, 13)):
            self.statement()
        self.put(f"return {self.result()}")
        self_ = "self, " if self.is_module else ""
        name, margin = ("forward", "    ") if self.is_module else ("program", "")
        parameters = ", ".join(f"{name}: {kind}" for name, kind in PARAMETERS.items())
        head = f"{margin}def {name}({self_}{parameters}) -> Tuple[{', '.join(self.results)}]:\n"
        module = MODULE if self.is_module else ""
        return AROUND + module + head + "\n".join(self.lines) + "\n"

    def put(self, line):
        self.lines.append("    " * self.indent + line)

    def variable(self, kind, assigned=False):
        fit = [name for name, known in self.variables.items() if known == kind and not (assigned and name[0] == "i")]
        return self.chance.choice(fit) if fit else None

    def expression(self, kind, depth=0):
        known = self.variable(kind)
        if known and self.chance.random() < (0.35 if depth < 3 else 0.8):
            return known
        if depth >= 3:
            return self.chance.choice(LITERALS[kind])
        forms = [form for form in re.split(r"\s{3,}|\n", EXPRESSIONS[kind]) if form.strip()]
        if kind == "int" and self.is_module:
            forms.append("self.bumped(<int>)")
        return self.fill(self.chance.choice([*forms, self.chance.choice(LITERALS[kind])]).strip(), depth + 1)

    def fill(self, form, depth=0):
        return re.sub(r"<([A-Z]?[a-zA-Z]+(?:\[[^<>]*?\])?)>", lambda found: self.expression(found[1], depth), form)

    def result(self):
        return "(" + ", ".join(map(self.expression, self.results)) + ")"

    def block(self, header, count, bound=()):
        """A header and statements under it; names that they make are forgotten."""
        self.put(header)
        before, self.indent = dict(self.variables), self.indent + 1
        self.variables.update(bound)
        for _ in range(count):
            self.statement()
        self.put("pass")
        self.variables, self.indent = before, self.indent - 1

    def statement(self):
        chance, kind = self.chance.random(), self.chance.choice(list(EXPRESSIONS))
        deep = self.indent > 3
        if chance < 0.35:
            self.made += 1
            name, value = f"v{self.made}", self.expression(kind)
            self.put(f"{name}: {kind} = {value}" if self.chance.random() < 0.5 else f"{name} = {value}")
            self.variables[name] = kind
        elif chance < 0.45:
            name = self.variable(kind, assigned=True)
            if name:
                self.put(f"{name} = {self.expression(kind)}")
                self.bound(name)
        elif chance < 0.72:
            self.change(self.chance.choice(STATEMENTS).strip())
        elif chance < 0.82 and not deep:
            self.block(f"if {self.expression('bool')}:", self.chance.randrange(1, 4))
            if self.chance.random() < 0.5:
                self.block("else:", self.chance.randrange(1, 3))
        elif chance < 0.92 and not deep:
            self.loop()
        elif chance < 0.96 and self.loops:
            self.put(f"if {self.expression('bool')}: {self.chance.choice(['break', 'continue'])}")
        elif chance < 0.98 and "o" in self.variables:
            self.put(f"if o is not None: o = o + {self.expression('int')}")
        elif self.indent > 2:
            self.put(f"if {self.expression('bool')}: return {self.result()}")

    def bound(self, name):
        if self.variables[name] in BOUNDS:
            self.put(BOUNDS[self.variables[name]].format(name))

    def change(self, form):
        changed = []
        for kind in re.findall(r"\|([^|=]+)\|", form):
            name = self.variable(kind, assigned=True)
            if name is None or (name.startswith("self.") and ", " in form.partition("=")[0]):
                return
            form = form.replace(f"|{kind}|", name, 1).replace("|=|", name)
            changed.append(name)
        self.put(self.fill(form))
        for name in changed:
            self.bound(name)

    def loop(self):
        self.made += 1
        name = f"i{self.made}"
        if self.chance.random() < 0.2:
            self.put(f"{name} = 0")
            self.loops += 1
            self.block(f"while {name} < 3 and {self.expression('bool')}:", 0)
            self.lines.pop()
            self.indent += 1
            self.put(f"{name} += 1")
            before = dict(self.variables)
            for _ in range(2):
                self.statement()
            self.variables, self.indent, self.loops = before, self.indent - 1, self.loops - 1
            return
        header = self.chance.choice(list(LOOPS))
        kinds = LOOPS[header]
        text = self.fill(header.format(name, self.chance.randrange(0, 4)))
        self.loops += 1
        self.block(text, self.chance.randrange(1, 4), dict(zip([name, name + "b"], kinds, strict=False)))
        self.loops -= 1


def arguments():
    return 3, 1.5, "xa", [1, -2, 4], cresset.tensor([1.0, -2.0, 3.0]), {"a": 2}, 4


def seen(value):
    """A value as something to compare: the types of containers apart, numbers to three digits."""
    if isinstance(value, cresset.Tensor):
        return ["tensor", str(value.dtype), list(value.shape), seen(value.tolist())]
    if isinstance(value, dict):
        return [[key, seen(item)] for key, item in value.items()]
    if isinstance(value, (list, tuple)):
        return [seen(item) for item in value]
    if isinstance(value, float):
        return float(f"{value:.3g}") if math.isfinite(value) else str(value)
    return value


def outcome(call):
    """What a call gives, or that it raises."""
    try:
        return seen(call(*arguments()))
    except Exception as error:  # any error of a program counts as one
        return f"raises {type(error).__name__}"


def load(number, folder):
    """The program of a number."""
    module = random_programs.load(f"program{number}", Program(number).text, folder)
    return getattr(module, "program", None) or module.Program()


def differences(number, folder):
    """What went otherwise than in Python: [(how it was run, what Python gave, what was given)]."""
    program = load(number, folder)
    is_module = isinstance(program, cresset.nn.Module)
    expected = outcome(copy.deepcopy(program) if is_module else program)
    try:
        scripted = cresset.jit.script(program)
    except RuntimeError as error:
        return [("compiled", expected, f"refused: {str(error).strip().splitlines()[0]}")]
    buffer = io.BytesIO()
    cresset.jit.save(scripted, buffer)
    buffer.seek(0)
    found = [("scripted", outcome(scripted)), ("loaded", outcome(cresset.jit.load(buffer)))]
    if isinstance(expected, str) and expected.startswith("raises"):
        return [(how, expected, got) for how, got in found if not (isinstance(got, str) and got.startswith("raises"))]
    return [(how, expected, got) for how, got in found if got != expected]


def findings(number, folder):
    return [f"{how}:\n  Python {expected}\n  got    {got}" for how, expected, got in differences(number, folder)]


if __name__ == "__main__":
    sys.exit(random_programs.command(__doc__, lambda number: Program(number).text.removeprefix(AROUND), findings))
