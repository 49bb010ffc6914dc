"""Models that stand outside of the test files, in which pytest rewrites assertions."""

import cresset

SCALE = cresset.tensor(3.0)


def asserting(x):
    assert x.sum() > 0
    return x * (SCALE.item() if SCALE > 0 else 1)
