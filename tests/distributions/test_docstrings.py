"""Every public class and function of `distributions` is documented, and its examples run."""

import doctest
import importlib
import inspect
import pkgutil

import pytest

import cresset

OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def offered():
    """(module.name, object) of what each module of the package defines itself."""
    found = []
    for info in pkgutil.iter_modules(cresset.distributions.__path__):
        module = importlib.import_module(f"cresset.distributions.{info.name}")
        for name, value in vars(module).items():
            is_ours = getattr(value, "__module__", None) == module.__name__
            if is_ours and not name.startswith("_") and (inspect.isclass(value) or inspect.isfunction(value)):
                found.append(pytest.param(value, id=f"{info.name}.{name}"))
    return found


OFFERED = offered()


@pytest.mark.parametrize("value", [p for p in OFFERED if p.id not in ("probs_or_logits.check_one_is_given",)])
def test_it_has_documentation(value):
    assert (value.__doc__ or "").strip()


@pytest.mark.parametrize("value", [p for p in OFFERED if ">>>" in (p.values[0].__doc__ or "")])
def test_its_examples_give_what_they_show(value):
    test = doctest.DocTestParser().get_doctest(
        inspect.cleandoc(value.__doc__), {"cresset": cresset}, value.__name__, None, 0
    )
    said = []
    cresset.manual_seed(0)
    doctest.DocTestRunner(optionflags=OPTIONS).run(test, out=said.append)
    assert said == [], "".join(said)


def test_every_distribution_and_transform_has_an_example():
    without = [
        name
        for name in cresset.distributions.__all__
        if inspect.isclass(value := getattr(cresset.distributions, name)) and ">>>" not in (value.__doc__ or "")
    ]
    assert without == ["ExponentialFamily"]
