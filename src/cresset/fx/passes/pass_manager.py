"""The older PassManager: passes are functions from a module to a module, and rules are checked, not solved."""

import functools
import inspect
import logging

__all__ = [
    "PassManager",
    "inplace_wrapper",
    "log_hook",
    "loop_pass",
    "these_before_those_pass_constraint",
    "this_before_that_pass_constraint",
]

logger = logging.getLogger(__name__)


def inplace_wrapper(fn):
    """A pass of a function that changes a module in place: it gives the module."""

    @functools.wraps(fn)
    def wrapped(gm, *args, **kwargs):
        fn(gm, *args, **kwargs)
        return gm

    return wrapped


def log_hook(fn, level=logging.INFO):
    """A pass that writes the module it was given to the log, then does what `fn` does."""

    @functools.wraps(fn)
    def wrapped(gm):
        value = fn(gm)
        logger.log(level, "Ran pass %s\n Return value: %s", fn, value)
        return value

    return wrapped


def loop_pass(base_pass, n_iter=None, predicate=None):
    """A pass run `n_iter` times, or as long as `predicate(module)` holds; one of the two must be given."""
    if (n_iter is None) == (predicate is None):
        raise AssertionError("Exactly one of `n_iter`or `predicate` must be specified.")
    if n_iter is not None and n_iter <= 0:
        raise RuntimeError(f"loop_pass must be given positive int n_iter (given {n_iter}) xor predicate (given None)")

    @functools.wraps(base_pass)
    def wrapped(source):
        output = source
        if n_iter is not None:
            for _ in range(n_iter):
                output = base_pass(output)
        else:
            while predicate(output):
                output = base_pass(output)
        return output

    return wrapped


def this_before_that_pass_constraint(this, that):
    """A rule: `this` stands before `that`."""
    return lambda a, b: a != that or b != this


def these_before_those_pass_constraint(these, those):
    """A rule for passes made by the same function: those that `these` made stand before those that `those` made."""
    return lambda a, b: inspect.unwrap(a) != those or inspect.unwrap(b) != these


class PassManager:
    """Runs passes in the order of its list, once the list has been checked against the rules.

    Args:
        passes: functions of a module that give a module.
        constraints: functions of two passes: whether the first may stand before the second.

    >>> from cresset.fx.passes.pass_manager import PassManager, inplace_wrapper
    >>> manager = PassManager([inplace_wrapper(lambda module: module.graph.lint())])
    >>> manager(cresset.fx.symbolic_trace(lambda x: x + 1))(1)
    2
    """

    def __init__(self, passes=None, constraints=None):
        self.passes, self.constraints, self._validated = passes or [], constraints or [], False

    @classmethod
    def build_from_passlist(cls, passes):
        """A manager of these passes without rules."""
        return cls(passes)

    def add_pass(self, _pass):
        """Run another pass."""
        self.passes.append(_pass)
        self._validated = False

    def add_constraint(self, constraint):
        """Mind another rule."""
        self.constraints.append(constraint)
        self._validated = False

    def remove_pass(self, _passes):
        """Leave the passes out that have these names."""
        self.passes = [one for one in self.passes if one.__name__ not in set(_passes)]
        self._validated = False

    def replace_pass(self, _target, _replacement):
        """Put a pass in the place of one that has the same name as `_target`."""
        self.passes = [_replacement if one.__name__ == _target.__name__ else one for one in self.passes]
        self._validated = False

    def validate(self):
        """RuntimeError where the order breaks a rule."""
        if self._validated:
            return
        for rule in self.constraints:
            for i, first in enumerate(self.passes):
                for second in self.passes[i + 1 :]:
                    if not rule(first, second):
                        raise RuntimeError(f"pass schedule constraint violated. Expected {second} before {first}")
        self._validated = True

    def __call__(self, source):
        """Run the passes."""
        self.validate()
        for one in self.passes:
            source = one(source)
        return source
