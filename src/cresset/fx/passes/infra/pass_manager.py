"""PassManager: passes run one after another, in an order that satisfies given rules, until nothing changes."""

import functools
import inspect

from ....nn import Module
from ...graph_module import GraphModule
from .pass_base import PassResult

__all__ = ["PassManager", "pass_result_wrapper", "this_before_that_pass_constraint"]


def pass_result_wrapper(fn):
    """A function that changes a module, or gives another, as a pass: it gives a PassResult, always "modified"."""
    if fn is None:
        return None

    @functools.wraps(fn)
    def wrapped(module):
        result = fn(module)
        if result is None:
            return PassResult(module, True)
        return PassResult(result, True) if isinstance(result, Module) else result

    if not inspect.isfunction(fn):
        wrapped.__name__ = type(fn).__name__
    return wrapped


def this_before_that_pass_constraint(this, that):
    """A rule: `this` runs before `that`. Rules are functions of two passes: whether the first may run before the
    second.
    """
    return lambda a, b: a != that or b != this


class PassManager:
    """Runs passes.

    Args:
        passes: functions of a module that give a PassResult.
        constraints: rules for their order; without rules it is the order of the list.
        steps: how often to run all passes while they still change something.
        run_checks_after_each_pass: call `check`, which add_checks sets, after each, not only before the first.
        suppress_check_failures: kept as an attribute and not read, as in PyTorch.

    >>> from cresset.fx.passes.infra.pass_manager import PassManager, pass_result_wrapper
    >>> manager = PassManager([pass_result_wrapper(lambda module: module.graph.lint())])
    >>> manager(cresset.fx.symbolic_trace(lambda x: x + 1)).modified
    True
    """

    def __init__(
        self,
        passes=None,
        constraints=None,
        steps=None,
        run_checks_after_each_pass=False,
        suppress_check_failures=False,
    ):
        self.passes, self.constraints = passes or [], constraints or []
        self.steps = steps or 1
        self.run_checks_after_each_pass = run_checks_after_each_pass
        self.suppress_check_failures = suppress_check_failures
        self._validated = False

    def add_pass(self, _pass):
        """Run another pass."""
        self.passes.append(_pass)
        self._validated = False

    def add_constraint(self, constraint):
        """Mind another rule."""
        self.constraints.append(constraint)
        self._validated = False

    def add_checks(self, check):
        """Have `check(module)` called."""
        if len(inspect.signature(check).parameters) != 1:
            raise TypeError("PassManager check function should only take in one variable, a module")
        self.check = check

    def check(self, module):
        """What is to be true of a module; nothing until add_checks says otherwise."""

    def validate_constraints(self):
        """RuntimeError where the list's order breaks a rule."""
        if self._validated:
            return
        for i, first in enumerate(self.passes):
            for j, second in enumerate(self.passes[i + 1 :], i + 1):
                if not all(rule(first, second) for rule in self.constraints):
                    raise RuntimeError(
                        f"pass schedule constraint violated. Expected {first} before {second} but found {first} at "
                        f"index {i} and {second} at index {j} in pass list."
                    )
        self._validated = True

    def solve_constraints(self):
        """Bring the passes into an order that satisfies the rules; RuntimeError if there is none."""
        waiting = {
            one: [other for other in self.passes if other != one and not self._may_stand(one, other)]
            for one in self.passes
        }
        order = []
        while waiting:
            free = next((one for one, others in waiting.items() if not any(other in waiting for other in others)), None)
            if free is None:
                raise RuntimeError(f"Circular dependency detected within the following passes: {list(waiting)}")
            order.append(free)
            del waiting[free]
        if self.constraints:
            self.passes = order
        self._validated = True

    def _may_stand(self, first, second):
        return all(rule(first, second) for rule in self.constraints)

    def __call__(self, module):
        """Run the passes on a module; a PassResult."""
        if not self._validated:
            self.solve_constraints()
        self.check(module)
        changed = False
        for _ in range(self.steps):
            module, modified = self._run_once(module)
            changed = changed or modified
            if not modified:
                break
        return PassResult(module, changed)

    def _run_once(self, module):
        modified, done = False, []
        for one in self.passes:
            name = one.__name__ if inspect.isfunction(one) else type(one).__name__
            try:
                result = one(module)
                if not hasattr(result, "graph_module"):
                    raise TypeError(
                        f"The result of the pass {name} should be type PassResult.Please wrap it with "
                        "pass_result_wrapper()"
                    )
                module, modified = result.graph_module, modified or result.modified
                if isinstance(module, GraphModule):
                    module.recompile()
                if self.run_checks_after_each_pass:
                    self.check(module)
            except Exception as error:
                raise Exception(  # noqa: TRY002  PyTorch's class
                    f"An error occurred when running the '{name}' pass after the following passes: {done}"
                ) from error
            done.append(name)
        return module, modified
