"""What carries the elements from process to process. An engine begins exchanges and is asked whether they are done;
some add up a list of tensors in one exchange (`sums_lists`), and then tensors of fewer than `copied` bytes are better
copied into one before.
"""

import enum

COPIED = 1 << 17  # bytes for which a message of its own costs more than to copy them twice


class Kind(enum.IntEnum):
    """What an exchange does; the numbers are those of native/distributed/mpi.h."""

    BARRIER = 0
    BROADCAST = 1
    ALL_REDUCE = 2
    REDUCE = 3
    ALL_GATHER = 4
    GATHER = 5
    SCATTER = 6
    REDUCE_SCATTER = 7
    ALL_TO_ALL = 8
    SEND = 9
    RECEIVE = 10
