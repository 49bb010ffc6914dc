"""The least cut of a network, by its greatest flow (Edmonds and Karp)."""

import collections
import math


def least_cut(capacities, source, sink):
    """The nodes on the source's side of the cut with the least capacity.

    Args:
        capacities: {(from, to): how much may flow}.

    >>> sorted(least_cut({("s", "a"): 3, ("a", "t"): 2, ("s", "b"): 1, ("b", "t"): 5}, "s", "t"))
    ['a', 's']
    """
    left, beside = collections.defaultdict(int), collections.defaultdict(set)
    for (start, end), capacity in capacities.items():
        left[start, end] += capacity
        beside[start].add(end)
        beside[end].add(start)
    while True:
        came_from, waiting = {source: None}, collections.deque([source])
        while waiting and sink not in came_from:
            node = waiting.popleft()
            for other in beside[node]:
                if other not in came_from and left[node, other] > 0:
                    came_from[other] = node
                    waiting.append(other)
        if sink not in came_from:
            return set(came_from)
        path, node = [], sink
        while came_from[node] is not None:
            path.append((came_from[node], node))
            node = came_from[node]
        flow = min(left[edge] for edge in path)
        if flow == math.inf:
            raise ValueError("least_cut: no cut has a finite capacity")
        for start, end in path:
            left[start, end] -= flow
            left[end, start] += flow
