"""Formulas of symbols: whole numbers as sums of products, conditions on them, and what is known of both from the ranges
of the symbols.
"""

import math

__all__ = ["Condition", "Formula", "ValueRanges", "int_oo"]

int_oo = math.inf  # larger than every whole number


class ValueRanges:
    """The numbers from `lower` to `upper`.

    >>> from cresset.fx.experimental.formulas import ValueRanges
    >>> ValueRanges(2, 10)
    VR[2, 10]
    """

    def __init__(self, lower, upper):
        self.lower, self.upper = lower, upper
        if lower > upper:
            raise ValueError(f"ValueRanges: invalid ranges [{lower}:{upper}]")

    def __and__(self, other):
        return ValueRanges(max(self.lower, other.lower), min(self.upper, other.upper))

    def __contains__(self, number):
        return self.lower <= number <= self.upper

    def is_singleton(self):
        return self.lower == self.upper

    def __eq__(self, other):
        return isinstance(other, ValueRanges) and (self.lower, self.upper) == (other.lower, other.upper)

    def __hash__(self):
        return hash((self.lower, self.upper))

    def __repr__(self):
        return f"VR[{_limit(self.lower)}, {_limit(self.upper)}]"


def _limit(number):
    return ("-" if number < 0 else "") + "int_oo" if math.isinf(number) else str(number)


class Formula:
    """A whole number: `terms` has the factor of each product of atoms, () for the constant. An atom is a symbol's name,
    or (function, formula, formula) for what is no polynomial.
    """

    def __init__(self, terms):
        self.terms = {product: factor for product, factor in terms.items() if factor}

    @staticmethod
    def of(value):
        """The formula of a whole number or an atom."""
        if isinstance(value, Formula):
            return value
        return Formula({(): value} if isinstance(value, int) else {(value,): 1})

    def constant(self):
        """The number, if it depends on no symbol; None otherwise."""
        return self.terms.get((), 0) if all(product == () for product in self.terms) else None

    def __add__(self, other):
        terms = dict(self.terms)
        for product, factor in Formula.of(other).terms.items():
            terms[product] = terms.get(product, 0) + factor
        return Formula(terms)

    def __mul__(self, other):
        terms = {}
        for product, factor in self.terms.items():
            for more, other_factor in Formula.of(other).terms.items():
                joined = tuple(sorted(product + more, key=str))
                terms[joined] = terms.get(joined, 0) + factor * other_factor
        return Formula(terms)

    def __sub__(self, other):
        return self + Formula.of(other) * -1

    def applied(self, function, other):
        """floordiv, mod, max or min of two formulas."""
        other = Formula.of(other)
        a, b = self.constant(), other.constant()
        if a is not None and b is not None:
            return Formula.of(_FUNCTIONS[function](a, b))
        if function == "floordiv" and b is not None and b > 0 and all(f % b == 0 for f in self.terms.values()):
            return Formula({product: factor // b for product, factor in self.terms.items()})
        if function == "mod" and b is not None and b > 0 and all(f % b == 0 for f in self.terms.values()):
            return Formula.of(0)
        first, second = (self, other) if function in ("floordiv", "mod") else sorted((self, other), key=str)
        return Formula.of((function, first, second))

    def symbols(self):
        found = set()
        for product in self.terms:
            for atom in product:
                found |= {atom} if isinstance(atom, str) else atom[1].symbols() | atom[2].symbols()
        return found

    def value(self, numbers):
        """The number for these numbers of the symbols."""
        total = 0
        for product, factor in self.terms.items():
            for atom in product:
                factor *= (
                    numbers[atom]
                    if isinstance(atom, str)
                    else _FUNCTIONS[atom[0]](atom[1].value(numbers), atom[2].value(numbers))
                )
            total += factor
        return total

    def replaced(self, numbers):
        """The formula with numbers in the places of some symbols."""
        total = Formula.of(0)
        for product, factor in self.terms.items():
            part = Formula.of(factor)
            for atom in product:
                if isinstance(atom, str):
                    part = part * numbers.get(atom, atom)
                else:
                    part = part * atom[1].replaced(numbers).applied(atom[0], atom[2].replaced(numbers))
            total = total + part
        return total

    def range(self, ranges):
        """The least and the largest that it can be, or wider."""
        low = high = 0
        for product, factor in self.terms.items():
            part = (factor, factor)
            for atom in dict.fromkeys(product):
                part = _product(part, _power(_atom_range(atom, ranges), product.count(atom)))
            low, high = low + part[0], high + part[1]
        return low, high

    def __eq__(self, other):
        return isinstance(other, Formula) and self.terms == other.terms

    def __hash__(self):
        return hash(frozenset(self.terms.items()))

    def __str__(self):
        words = ""
        for product in sorted(self.terms, key=lambda product: (-len(product), str(product))):
            factor = self.terms[product]
            sign = ("-" if factor < 0 else "") if not words else " - " if factor < 0 else " + "
            names = "*".join(
                _atom_text(atom) + (f"**{product.count(atom)}" if product.count(atom) > 1 else "")
                for atom in dict.fromkeys(product)
            )
            number = str(abs(factor)) if abs(factor) != 1 or not names else ""
            words += sign + "*".join(part for part in (number, names) if part)
        return words or "0"

    __repr__ = __str__


_FUNCTIONS = {"floordiv": lambda a, b: a // b, "mod": lambda a, b: a % b, "max": max, "min": min}
_WRITTEN = {"mod": "PythonMod({}, {})", "max": "Max({}, {})", "min": "Min({}, {})"}


def _atom_text(atom):
    if isinstance(atom, str):
        return atom
    function, a, b = atom
    if function == "floordiv":
        return f"({a}//{b})" if len(a.terms) == 1 else f"(({a})//{b})"
    return _WRITTEN[function].format(a, b)


def _product(a, b):
    corners = [0 if 0 in (x, y) else x * y for x in a for y in b]
    return min(corners), max(corners)


def _power(limits, count):
    result = limits
    for _ in range(count - 1):
        result = _product(result, limits)
    if count % 2 == 0 and limits[0] < 0 < limits[1]:
        result = (0, result[1])
    return result


def _atom_range(atom, ranges):
    if isinstance(atom, str):
        known = ranges.get(atom)
        return (known.lower, known.upper) if known is not None else (-int_oo, int_oo)
    function, a, b = atom[0], atom[1].range(ranges), atom[2].range(ranges)
    if function in ("max", "min"):
        run = _FUNCTIONS[function]
        return run(a[0], b[0]), run(a[1], b[1])
    if b[0] != b[1] or b[0] <= 0:
        return -int_oo, int_oo
    if function == "floordiv":
        return tuple(limit if math.isinf(limit) else limit // b[0] for limit in a)
    return (0, min(a[1], b[0] - 1)) if a[0] >= 0 else (0, b[0] - 1)


class Condition:
    """`a kind b` of two formulas, or And, Or of conditions; `True` and `False` are plain bools."""

    KINDS = {
        "eq": "Eq({}, {})",
        "ne": "Ne({}, {})",
        "lt": "{} < {}",
        "le": "{} <= {}",
        "gt": "{} > {}",
        "ge": "{} >= {}",
    }
    OPPOSITE = {"eq": "ne", "ne": "eq", "lt": "ge", "ge": "lt", "gt": "le", "le": "gt", "And": "Or", "Or": "And"}

    def __init__(self, kind, a, b):
        self.kind, self.a, self.b = kind, a, b

    def known(self, ranges):
        """True or False where the ranges of the symbols say it, None where they do not."""
        if self.kind in ("And", "Or"):
            parts = [part if isinstance(part, bool) else part.known(ranges) for part in (self.a, self.b)]
            decisive = self.kind == "Or"
            return decisive if decisive in parts else None if None in parts else not decisive
        low, high = (self.a - self.b).range(ranges)
        if self.kind in ("eq", "ne"):
            same = True if low == high == 0 else False if low > 0 or high < 0 else None
            return same if same is None or self.kind == "eq" else not same
        if self.kind in ("lt", "ge"):
            less = True if high < 0 else False if low >= 0 else None
            return less if less is None or self.kind == "lt" else not less
        more = True if low > 0 else False if high <= 0 else None
        return more if more is None or self.kind == "gt" else not more

    def value(self, numbers):
        """Whether it holds for these numbers of the symbols."""
        if self.kind in ("And", "Or"):
            parts = [part if isinstance(part, bool) else part.value(numbers) for part in (self.a, self.b)]
            return all(parts) if self.kind == "And" else any(parts)
        difference = (self.a - self.b).value(numbers)
        return {
            "eq": difference == 0, "ne": difference != 0, "lt": difference < 0, "le": difference <= 0,
            "gt": difference > 0, "ge": difference >= 0,
        }[self.kind]  # fmt: skip

    def negated(self):
        if self.kind not in ("And", "Or"):
            return Condition(self.OPPOSITE[self.kind], self.a, self.b)
        return Condition(
            self.OPPOSITE[self.kind],
            *(not part if isinstance(part, bool) else part.negated() for part in (self.a, self.b)),
        )

    def symbols(self):
        return set().union(*(set() if isinstance(part, bool) else part.symbols() for part in (self.a, self.b)))

    def __eq__(self, other):
        return isinstance(other, Condition) and (self.kind, self.a, self.b) == (other.kind, other.a, other.b)

    def __hash__(self):
        return hash((self.kind, self.a, self.b))

    def __str__(self):
        return self.KINDS.get(self.kind, self.kind + "({}, {})").format(self.a, self.b)

    __repr__ = __str__
