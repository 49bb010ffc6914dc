"""Every operator and function that cresset offers is documented, and the examples in its documentation run."""

import doctest
import inspect

import pytest

import cresset
from cresset.ops import functions, methods

OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def offered():
    """(name, object), each object once: aliases share their documentation."""
    seen, found = set(), []
    for prefix, table in (("", functions), ("Tensor.", methods)):
        for name, value in table.items():
            if id(value) not in seen:
                seen.add(id(value))
                found.append(pytest.param(value, id=prefix + name))
    return found


OFFERED = offered()
WITH_EXAMPLES = [p for p in OFFERED if ">>>" in (p.values[0].__doc__ or "")]


def is_private(parameter):
    return parameter.id.removeprefix("Tensor.").startswith("_")


@pytest.mark.parametrize("function", [p for p in OFFERED if not is_private(p)])
def test_it_has_documentation(function):
    assert (function.__doc__ or "").strip()


@pytest.mark.parametrize("function", WITH_EXAMPLES)
def test_its_examples_give_what_they_show(function):
    names = {"cresset": cresset, "torch": cresset, "nn": cresset.nn, "F": cresset.nn.functional}
    finder_text = inspect.cleandoc(function.__doc__)
    test = doctest.DocTestParser().get_doctest(finder_text, names, function.__name__, None, 0)
    assert test.examples
    said = []
    cresset.manual_seed(0)
    doctest.DocTestRunner(optionflags=OPTIONS).run(test, out=said.append)
    assert said == [], "".join(said)


def test_most_have_an_example():
    """The tests above would say nothing if the walk found nothing."""
    assert len(OFFERED) > 500
    assert len(WITH_EXAMPLES) > 150


@pytest.mark.parametrize("name", ["add", "sigmoid", "sum", "cumsum", "matmul", "topk"])
def test_the_signature_says_what_can_be_given(name):
    function = functions[name]
    parameters = inspect.signature(function).parameters
    assert next(iter(parameters)) in ("input", "condition")
    assert parameters["out"].kind is inspect.Parameter.KEYWORD_ONLY
