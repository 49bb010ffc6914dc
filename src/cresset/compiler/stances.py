"""Stances: how compiled functions behave for a while."""

import contextlib

STANCES = (
    "default",
    "force_eager",
    "eager_on_recompile",
    "fail_on_recompile",
    "eager_then_compile",
    "aot_eager_then_compile",
)

in_force = [None]  # the set_stance in force; None: the default one


def current():
    """The stance in force as a `set_stance`, None for the default one."""
    return in_force[0]


class set_stance(contextlib.ContextDecorator):
    """Say how compiled functions behave. A statement, a context manager or a decorator.

    Args:
        stance: "force_eager" runs functions as if they were not compiled. With "eager_on_recompile" and
            "fail_on_recompile" a graph that a backend of one's own has not seen runs without it, or is an error;
            nothing else is ever compiled again, so the others are like "default".
        force_backend: the backend of all functions that have one, with the default stance only.

    >>> with cresset.compiler.set_stance("force_eager"):
    ...     cresset.compile(lambda x: x + 1)(cresset.ones(1))
    tensor([2.])
    """

    def __init__(self, stance="default", *, skip_guard_eval_unsafe=False, force_backend=None):
        if stance not in STANCES:
            raise RuntimeError(
                f"set_stance: invalid torch.compile stance {stance!r}; the stances are {', '.join(STANCES)}"
            )
        if force_backend is not None and stance != "default":
            raise RuntimeError(
                f"set_stance: cannot specify force_backend together with the stance {stance!r}, only with 'default'"
            )
        self.stance, self.force_backend = stance, force_backend
        self._before = in_force[0]
        self._set()

    def _set(self):
        in_force[0] = self if self.stance != "default" or self.force_backend is not None else None

    def __call__(self, function):
        in_force[0] = self._before  # as a decorator it is in force during the calls alone
        return super().__call__(function)

    def __enter__(self):
        self._set()
        return self

    def __exit__(self, *exception):
        in_force[0] = self._before
        return False
