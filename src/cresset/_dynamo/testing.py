"""Backends that count and record, for tests."""

import cresset

__all__ = ["CompileCounter", "CompileCounterWithBackend", "EagerAndRecordGraphs", "same"]


def _calls(graph):
    return sum(node.op in ("call_function", "call_method", "call_module") for node in graph.graph.nodes)


class CompileCounter:
    """A backend that counts graphs and calls, and runs them as they are.

    >>> counter = cresset._dynamo.testing.CompileCounter()
    >>> cresset.compile(lambda x: x.sin() + 1, backend=counter)(cresset.zeros(1))
    tensor([1.])
    >>> counter.frame_count, counter.op_count
    (1, 2)
    """

    def __init__(self):
        self.clear()

    def __call__(self, gm, example_inputs):
        self.frame_count += 1
        self.op_count += _calls(gm)
        return gm.forward

    def clear(self):
        """Start at zero again."""
        self.frame_count = self.op_count = 0


class CompileCounterWithBackend(CompileCounter):
    """A backend that counts and keeps graphs, and gives them to another backend, by name or as a function."""

    def __init__(self, backend):
        super().__init__()
        self.backend = backend

    def __call__(self, gm, example_inputs):
        super().__call__(gm, example_inputs)
        self.graphs.append(gm)
        found = cresset._dynamo.lookup_backend(self.backend)
        return gm.forward if isinstance(found, str) else found(gm, example_inputs)

    def clear(self):
        """Start at zero again, without graphs."""
        super().clear()
        self.graphs = []


class EagerAndRecordGraphs:
    """A backend that keeps the graphs and runs them as they are."""

    def __init__(self):
        self.graphs = []

    def __call__(self, gm, example_inputs):
        self.graphs.append(gm)
        return gm.forward


def same(a, b, cos_similarity=False, tol=1e-4, equal_nan=False):
    """Whether two results, perhaps nested, are close.

    >>> cresset._dynamo.testing.same([cresset.ones(2)], [cresset.ones(2)])
    True
    """
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(same(x, y, cos_similarity, tol, equal_nan) for x, y in zip(a, b, strict=True))
    if isinstance(a, dict):
        return set(a) == set(b) and all(same(a[k], b[k], cos_similarity, tol, equal_nan) for k in a)
    if isinstance(a, cresset.Tensor):
        if a.dtype != b.dtype or a.shape != b.shape:
            return False
        if cos_similarity:
            x, y = a.flatten().double(), b.flatten().double()
            return bool(cresset.nn.functional.cosine_similarity(x, y, dim=0) >= 0.99)
        return cresset.allclose(a, b, atol=tol, rtol=tol, equal_nan=equal_nan)
    return a == b
