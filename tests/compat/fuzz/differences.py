"""Where a random program of cresset goes another way than PyTorch's on purpose: which step, what differs, with which operands, and why."""

import re

# (the step, what the difference says, what the operands look like before it, why)
KNOWN = []


def known(step, why, operands):
    """The reason for a difference that is known, or None."""
    for in_step, in_why, in_operands, reason in KNOWN:
        if re.search(in_step, step) and re.search(in_why, why) and re.search(in_operands, operands):
            return reason
    return None
