"""How many requests a second a server carries: the rate at which they may come for ever.

Note [The rate that is carried]
Clients that wait for their answers ask as fast as these come, and so can never ask too much: what they reach is no rate
at which requests may come by themselves. A rate is carried if, for a while, all requests were answered and the backlog
(requests that are due and not answered) did not grow: in the last third of the time it was, in the middle, at most what
it was in the first third and what comes in GROWTH seconds, and at most one request for each client that would wait
for its answer, so that no backlog stands either. The capacity is the highest rate that was carried below the
lowest that was not, once these differ by less than NEAR. Medians, since a pause of the machine is no growth.
"""

import statistics

from .drive import LoadError

GROWTH = 0.002  # seconds
NEAR = 1.05
STEP = 1.25  # between rates, until one is carried and one is not
LEAST = 1.0  # requests a second; less is not tried


def carried(backlog, rate, connections, statuses, lost):
    """Whether a run at a rate shows that it is carried (Note [The rate that is carried]).

    >>> carried([3, 4, 3, 5, 4, 3], 1000, 32, {200: 9}, 0), carried([3, 4, 9, 12, 15, 20], 1000, 32, {200: 9}, 0)
    (True, False)
    """
    if lost or any(status >= 300 for status in statuses) or len(backlog) < 3:
        return False
    first, last = thirds(backlog)
    return last <= min(first + rate * GROWTH, connections)


def thirds(backlog):
    """How many requests waited in the first third of a run and in the last: medians."""
    third = max(1, len(backlog) // 3)
    return statistics.median(backlog[:third]), statistics.median(backlog[-third:])


def search(carries, rate):
    """The capacity, from a rate that may be above or below it; carries(rate) tries one.

    >>> tried = []
    >>> round(search(lambda rate: tried.append(round(rate)) or rate < 1000, 800)), tried
    (976, [800, 1000, 894, 946, 973])
    """
    carried_rate = refused_rate = None
    while carried_rate is None or refused_rate is None or refused_rate / carried_rate > NEAR:
        if rate < LEAST:
            raise LoadError(f"bench-serve: the server does not carry {LEAST:g} request a second")
        if carries(rate):
            carried_rate = rate
        else:
            refused_rate = rate
        if refused_rate is None:
            rate = carried_rate * STEP
        elif carried_rate is None:
            rate = refused_rate / STEP
        else:
            rate = (carried_rate * refused_rate) ** 0.5
    return carried_rate
