"""Finding where a wrong gradient comes from: each node remembers the call that made it, and nan gradients raise."""

import warnings

from cresset import _native

__all__ = ["detect_anomaly", "set_detect_anomaly"]


class set_detect_anomaly:
    """Switch anomaly detection on or off: at once when called, until the end of the block when used in `with`.

    Args:
        mode: whether each recorded call remembers where it was made, so that an error in backward can tell.
        check_nan: whether a nan in a gradient raises.

    >>> x = cresset.zeros(1, requires_grad=True)
    >>> with cresset.autograd.set_detect_anomaly(True):
    ...     (x.sqrt() * 0).sum().backward()
    Traceback (most recent call last):
    RuntimeError: Function 'SqrtBackward0' returned nan values in its 0th output.
    """

    def __init__(self, mode, check_nan=True):
        self.prev = switch(mode, check_nan)

    def __enter__(self):
        pass

    def __exit__(self, *_):
        switch(*self.prev)


class detect_anomaly:
    """set_detect_anomaly(True) for a block, with a warning that it is slow."""

    def __init__(self, check_nan=True):
        self.check_nan = check_nan
        self.prev = _native.is_anomaly_enabled(), _native.is_anomaly_check_nan_enabled()
        warnings.warn(
            (
                "Anomaly Detection has been enabled. This mode will increase the runtime and should only be enabled "
                "for "
                "debugging."
            ),
            stacklevel=2,
        )

    def __enter__(self):
        self.prev = switch(True, self.check_nan)

    def __exit__(self, *_):
        switch(*self.prev)


def switch(mode, check_nan):
    return _native.set_anomaly(mode), _native.set_anomaly_check_nan(check_nan)


# Called by the core in this mode: when a node is made, and when its backward fails.


def note(node):
    import traceback

    node.metadata["traceback_"] = "".join(traceback.format_stack()[:-1])


def explain(node):
    place = node.metadata.get("traceback_")
    if place is None:
        warnings.warn(
            f"Error detected in {node.name()}. No forward pass information available. "
            "Enable detect anomaly during forward pass for more information.",
            stacklevel=2,
        )
    else:
        warnings.warn(
            f"Error detected in {node.name()}. Traceback of forward call that caused the error:\n{place}", stacklevel=2
        )
