"""Blocks that are decorators, as packages derive theirs from, and classes of compiled libraries."""

import pytest

import cresset
from cresset.utils._contextlib import _DecoratorContextManager, _NoParamDecoratorContextManager, context_decorator


class Counting(_DecoratorContextManager):
    entered = 0

    def __enter__(self):
        Counting.entered += 1

    def __exit__(self, *_):
        pass


def test_a_block_of_ones_own_is_a_decorator():
    calls = Counting()(lambda: Counting.entered)
    assert calls() + 1 == calls()
    assert context_decorator(Counting, lambda: 3)() == 3
    with pytest.raises(AssertionError, match="which is meant"):
        context_decorator(Counting(), len)


def test_a_block_without_arguments_needs_no_parentheses():
    class Quiet(_NoParamDecoratorContextManager):
        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

    @Quiet
    def one():
        return 1

    assert one() == 1


def test_classes_of_compiled_libraries_are_not_there_and_say_so():
    with pytest.raises(RuntimeError, match="class 'pyg.HashMap', but it does not exist"):
        cresset.classes.pyg.HashMap
    assert not hasattr(cresset.classes, "__path__") and not cresset.classes.loaded_libraries
