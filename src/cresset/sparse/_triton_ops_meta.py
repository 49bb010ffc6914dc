"""Settings of Triton's kernels for block-sparse products, as programs that tune such kernels keep them.

Nothing is known of any device in advance: `get_meta` finds what `update` has entered.
"""

import cresset

__all__ = ["get_meta", "minimize", "update"]

_known = {}  # (op, device name, version): {key: settings}


def _device():
    return cresset.cuda.get_device_name() if cresset.cuda.is_available() else "cpu"


def get_meta(op, key, device_name=None, version=(0, cresset.float16, 0.5), exact=False):
    """The settings that `update` entered for an operator and a key; None where there are none. Without `exact` those
    of another device do as well. A key with "*" in it stands for all keys that are the same elsewhere: {key: settings}.
    """
    device_name = device_name or _device()
    tables = [_known.get((op, device_name, version), {})]
    if not exact:
        tables += [table for (name, _, made), table in _known.items() if (name, made) == (op, version)]
    for table in tables:
        found = {
            known: settings
            for known, settings in table.items()
            if len(known) == len(key) and all(b in ("*", a) for a, b in zip(known, key, strict=True))
        }
        if found:
            return found if "*" in key else found[tuple(key)]
    return None


def update(op, device_name, version, key, value):
    """Enter settings for an operator, a device and a key.

    >>> from cresset.sparse import _triton_ops_meta as meta
    >>> meta.update("product", "card", 0, (16, 16), {"num_warps": 4})
    >>> meta.get_meta("product", (16, 16), "card", 0)
    {'num_warps': 4}
    """
    _known.setdefault((op, device_name, version), {})[tuple(key)] = value


def minimize(target_func, initial_parameters, reference_parameters, step_func, max_step=2, verbose=False,
             all_values=None):  # fmt: skip
    """The search for the fastest settings is not supported; an error says so."""
    raise NotImplementedError("minimize: settings of Triton's kernels are not tuned here; give them to update()")
