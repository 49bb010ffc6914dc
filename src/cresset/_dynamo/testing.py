"""Backends that count and record, and variants of test classes, for tests."""

import contextlib
import functools
import re
import unittest
from unittest import mock

import cresset

__all__ = [
    "AotEagerAndRecordGraphs", "CompileCounter", "CompileCounterWithBackend", "EagerAndRecordGraphs",
    "make_test_cls_with_patches", "normalize_gm", "same",
]  # fmt: skip


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


class AotEagerAndRecordGraphs:
    """A backend that keeps the graphs, and those of what they and their derivatives compute; all run as they are."""

    def __init__(self):
        self.graphs, self.fw_graphs, self.bw_graphs = [], [], []

    def __call__(self, gm, example_inputs):
        def kept_in(graphs):
            def compiler(gm, example_inputs):
                graphs.append(gm)
                return gm.forward

            return compiler

        from .backends.common import aot_autograd  # late: it loads torch.fx

        self.graphs.append(gm)
        backend = aot_autograd(fw_compiler=kept_in(self.fw_graphs), bw_compiler=kept_in(self.bw_graphs))
        return backend(gm, example_inputs)


def normalize_gm(gm_str):
    """The code of a graph without its comments, spaces at ends of lines, and blank lines after another.

    >>> cresset._dynamo.testing.normalize_gm("x = 1  \\n# here\\n\\n\\ny = 2")
    'x = 1\\n\\ny = 2'
    """
    lines = [line.rstrip() for line in re.sub(r"(?m)^ *#.*\n?", "", gm_str).split("\n")]
    return "\n".join(line for before, line in zip(["x", *lines], lines, strict=False) if line or before)


def make_test_cls_with_patches(cls, cls_prefix, fn_suffix, *patches, xfail_prop=None, decorator=lambda test: test):
    """A variant of a test class whose tests run under patches.

    Args:
        cls_prefix: stands before the name of the class; `fn_suffix` stands behind those of its tests.
        patches: each of (object, name of an attribute, value).
        xfail_prop: tests that have this attribute are expected to fail.
        decorator: of each test.
    """

    def patched(test):
        @functools.wraps(test)
        def run(*args, **kwargs):
            with contextlib.ExitStack() as stack:
                for patch in patches:
                    stack.enter_context(mock.patch.object(*patch))
                return test(*args, **kwargs)

        run.__name__ = test.__name__ + fn_suffix
        fails = xfail_prop is not None and hasattr(test, xfail_prop)
        return decorator(unittest.expectedFailure(run) if fails else run)

    variant = type(cls_prefix + cls.__name__, cls.__bases__, {})
    for name in dir(cls):
        value = getattr(cls, name)
        if name.startswith("test_"):
            is_test = callable(value)
            setattr(variant, name + fn_suffix if is_test else name, patched(value) if is_test else value)
        elif not hasattr(variant, name):
            setattr(variant, name, value)
    return variant


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
