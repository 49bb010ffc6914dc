"""Whether new sparse tensors are checked beyond what memory safety asks for:
torch.sparse.check_sparse_tensor_invariants.
"""

import functools

_enabled = False


def is_enabled():
    """Whether checks are on."""
    return _enabled


class check_sparse_tensor_invariants:
    """Turn the checks of new sparse tensors on (or off): as a context, a decorator, or by enable() and disable().

    What could write beyond memory is always checked. This is about order and repetition.

    >>> with cresset.sparse.check_sparse_tensor_invariants():
    ...     cresset.sparse.check_sparse_tensor_invariants.is_enabled()
    True
    """

    def __init__(self, enable=True):
        self.state, self.before = enable, None

    @staticmethod
    def is_enabled():
        """Whether checks are on."""
        return _enabled

    @staticmethod
    def enable():
        """Turn the checks on."""
        global _enabled
        _enabled = True

    @staticmethod
    def disable():
        """Turn the checks off."""
        global _enabled
        _enabled = False

    def __enter__(self):
        global _enabled
        if self.before is not None:
            raise RuntimeError(
                "check_sparse_tensor_invariants: this context is already entered; make another one to nest them"
            )
        self.before, _enabled = _enabled, self.state

    def __exit__(self, *_):
        global _enabled
        _enabled, self.before = self.before, None

    def __call__(self, function):
        @functools.wraps(function)
        def checked(*args, **kwargs):
            with type(self)(self.state):
                return function(*args, **kwargs)

        return checked
