"""The two names of PyTorch's `torch.testing._utils` that tests of operators import: both leave the streams of random
numbers as they were.
"""

import cresset

freeze_rng_state = cresset.random.fork_rng


def wrapper_set_seed(op, *args, **kwargs):
    """What `op` gives when the streams of random numbers start from 42."""
    with freeze_rng_state():
        cresset.manual_seed(42)
        return op(*args, **kwargs)
