"""Small tools: stacks that are kept, a device for a function, modules that may be missing, calls as text."""

import os
import traceback

import cresset
from cresset._utils import render_call, try_import
from cresset.utils._device import set_device
from cresset.utils._traceback import CapturedTraceback, format_traceback_short, report_compile_source_on_error


def test_a_stack_is_shown_later():
    kept = CapturedTraceback.extract()
    assert "test_a_stack_is_shown_later" in kept.format()[-1]
    assert kept.summary()[-1].name == "test_a_stack_is_shown_later"
    assert len(CapturedTraceback.format_all([kept, kept])) == 2
    assert CapturedTraceback.extract(skip=1).summary()[-1].name != "test_a_stack_is_shown_later"


def test_the_place_of_an_error_in_short():
    try:
        raise ValueError
    except ValueError as error:
        text = format_traceback_short(error.__traceback__)
    assert os.path.basename(__file__) in text and text.endswith(" in test_the_place_of_an_error_in_short")


def test_code_made_of_a_text_shows_its_lines():
    text = "def fails():\n    raise ValueError  # this line\n"
    space = {"__compile_source__": text}
    exec(compile(text, "<made of a text>", "exec"), space)
    try:
        with report_compile_source_on_error():
            space["fails"]()
    except ValueError as error:
        assert "this line" in "".join(traceback.format_tb(error.__traceback__))


def test_a_decorated_function_makes_tensors_on_its_device():
    @set_device("meta")
    def made():
        return cresset.empty(2)

    @set_device("meta")
    def several():
        yield cresset.empty(2)
        yield cresset.empty(3)

    assert made().is_meta and all(tensor.is_meta for tensor in several())
    assert not cresset.empty(2).is_meta


def test_a_module_that_may_be_missing():
    assert try_import("os") is os
    assert try_import("no_module_of_this_name") is None


def test_a_call_as_text():
    assert render_call(cresset.sum, [cresset.ones(100)], {"dim": 0}) == "torch.sum(tensor([...], size=(100,)), dim=0)"
