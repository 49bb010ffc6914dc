"""The examples in the documentation of train, metrics and debug give what they show."""

import doctest
import inspect

import pytest

import cresset
from cresset import debug, metrics, nn, train
from cresset.train import progress, records, report

OBJECTS = [
    *(getattr(module, name) for module in (train, metrics, metrics.functional, debug) for name in module.__all__),
    progress.duration, records.read_records, report._tick_text,
]  # fmt: skip


@pytest.mark.parametrize(
    "thing", [thing for thing in OBJECTS if ">>>" in (thing.__doc__ or "")], ids=lambda thing: thing.__name__
)
def test_its_examples_run(thing, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = {"cresset": cresset, "nn": nn, **vars(inspect.getmodule(thing))}
    test = doctest.DocTestParser().get_doctest(inspect.cleandoc(thing.__doc__), names, thing.__name__, None, 0)
    assert test.examples
    said = []
    cresset.manual_seed(0)
    doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(test, out=said.append)
    assert said == [], "".join(said)
