"""The examples of docs/subclasses.md do what the page says."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[2] / "docs" / "subclasses.md"


def test_the_examples_of_the_page_run_one_after_the_other():
    examples = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.S)
    assert len(examples) == 5
    names = {"__name__": "page"}
    for number, example in enumerate(examples):
        code = compile(example, f"{PAGE.name}, example {number + 1}", "exec")
        exec(code, names)
