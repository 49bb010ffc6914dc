"""The decorator `@update`: how an optimizer changes a parameter and what it keeps for it, as one formula.

    @update
    def sgd(param, grad, momentum_buffer, *, lr, momentum, has_momentum: Flag):
        if has_momentum:
            momentum_buffer = grad = momentum * momentum_buffer + grad
        return {"param": param - lr * grad, "momentum_buffer": momentum_buffer}

Positional parameters are tensors of one shape: the parameter, its gradient, and what else is kept for it. Annotated
`Single` they are tensors of one element (a step count). Keyword-only ones are numbers, the same for all parameters of a
group; annotated `Flag` they are True or False when the formula is called, and each combination is a variant. The result
has the new value of all that changes, by name; None says that the variant has no meaning.

Called with expressions, an update prints as one loop that reads and writes in place; what depends on numbers alone is
computed in double before it. Called with tensors and numbers it is made of ordinary, differentiable operations.
"""

import inspect
import itertools

from .definition import Flag
from .expression import NUMBER, cast, leaves, variable
from .loops import INLINE, OPERATIONS, nodes
from .printing import TYPE_NAMES, print_body

COMPUTES = ("f32", "f64")  # the order of UpdateVariant::loops

updates = {}  # name -> Update, in the order of definition


class Single:
    """Annotation: a tensor of one element."""


class Update:
    """The rule of an optimizer."""

    def __init__(self, formula):
        self.formula, self.name, self.doc = formula, formula.__name__, inspect.cleandoc(formula.__doc__ or "")
        self.tensors, self.singles, self.numbers, self.flags = [], [], [], []
        self._variants = None
        for parameter in inspect.signature(formula).parameters.values():
            keyword, annotation = parameter.kind is parameter.KEYWORD_ONLY, parameter.annotation
            kind = (
                (self.flags if annotation is Flag else self.numbers)
                if keyword
                else (self.singles if annotation is Single else self.tensors)
            )
            kind.append(parameter.name)
        updates[self.name] = self

    def __call__(self, **values):
        """The new values by name; tensors that the variant does not use may be missing."""
        return self.formula(**{name: None for name in self.tensors if name not in values}, **values)

    def variants(self):
        """All that have a meaning."""
        if self._variants is None:
            self._variants = self._make_variants()
        return self._variants

    def _make_variants(self):
        made = []
        for number, flags in enumerate(itertools.product((False, True), repeat=len(self.flags))):
            variant = Variant(self, number, dict(zip(self.flags, flags, strict=True)))
            if variant.has_meaning:
                made.append(variant)
        return made


class Variant:
    """An update with its flags set. Its number has a bit a flag, the last flag lowest."""

    def __init__(self, update, number, flags):
        self.update, self.number, self.flags = update, number, flags
        self.name = "_".join([update.name, *(flag for flag, on in flags.items() if on)])
        self.results = {compute: self._call(compute) for compute in COMPUTES}
        self.has_meaning = self.results[COMPUTES[0]] is not None
        if self.has_meaning:
            results = self.results[COMPUTES[0]]
            used = set().union(*map(leaves, results.values()), results)
            self.tensors = [name for name in update.tensors if name in used]
            self.singles = update.singles
            self.written = [name for name in self.tensors if name in results]

    def _call(self, compute):
        update = self.update
        values = {name: variable(name, compute) for name in update.tensors}
        values |= {name: variable(name, NUMBER) for name in (*update.singles, *update.numbers)}
        results = update.formula(**values, **self.flags)
        if results is None:
            return None
        unchanged = [name for name, value in results.items() if value is values[name]]
        return {
            name: cast(value, compute if name in update.tensors else NUMBER)
            for name, value in results.items()
            if name not in unchanged
        }

    def text(self):
        """The functions of the variant: a loop for each type, and one that gives the new singles."""
        return "\n".join([*(self._loop(compute) for compute in COMPUTES), self._advance()])

    def _loop(self, compute):
        update, results = self.update, self.results[compute]
        results = {name: results[name] for name in self.written}
        constant = frozenset((*update.singles, *update.numbers))
        before, body = print_body([(f"{name}_[i]", value) for name, value in results.items()], constant)
        used = set().union(*map(leaves, results.values()))
        for node in {node for value in results.values() for node in nodes(value)}:
            inline = node.op in OPERATIONS or node.op in INLINE[compute] or leaves(node) <= constant
            assert inline, f"{self.name}: {node.op} does not vectorize"
        type = TYPE_NAMES[compute]
        return "\n".join([
            f"void {self.name}_{compute}(char* const* tensors, const double* numbers, int64_t count) {{",
            *self.read_numbers(used), *(f"  {line}" for line in before),
            *(f"  auto* {name}_ = reinterpret_cast<{type}*>(tensors[{at}]);" for at, name in enumerate(self.tensors)),
            "#pragma GCC ivdep", "  for (int64_t i = 0; i < count; ++i) {",
            *(f"    const {type} {name} = {name}_[i];" for name in self.tensors if name in used),
            *(f"    {line}" for line in body), "  }", "}", "",
        ])  # fmt: skip

    def _advance(self):
        return "\n".join([
            f"void {self.name}_advance([[maybe_unused]] const double* numbers, [[maybe_unused]] double* singles) {{",
            *self.advance_lines(), "}", "",
        ])  # fmt: skip

    def advance_lines(self):
        """The body of a function that sets `singles`, given `numbers`."""
        results = self.results["f64"]
        changed = {name: results[name] for name in self.singles if name in results}
        before, body = print_body([(f"singles[{self.singles.index(name)}]", value) for name, value in changed.items()])
        used = set().union(*map(leaves, changed.values())) if changed else set()
        return [*self.read_numbers(used), *(f"  {line}" for line in (*before, *body))]

    def read_numbers(self, used):
        """Lines that read the numbers and singles whose names are in `used`."""
        names = [*self.update.numbers, *self.update.singles]
        return [f"  const double {name} = numbers[{at}];" for at, name in enumerate(names) if name in used]


def update(formula):
    """Make an update of a formula; the build compiles it."""
    return Update(formula)
