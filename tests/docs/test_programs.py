"""The programs of the tutorials, the how-to pages and the pages about errors run, in order, and do what the page
says."""

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def load_programs():
    spec = importlib.util.spec_from_file_location("programs", ROOT / "tools" / "site" / "programs.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


programs = load_programs()
PAGES = [page for page in programs.pages() if programs.blocks_of((ROOT / page).read_text())]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.removeprefix("docs/").removesuffix(".md"))
def test_the_programs_of_a_page_run(page, tmp_path):
    programs.start(ROOT / page, tmp_path)


def test_every_folder_of_pages_is_run():
    """The test above would say nothing if the walk found nothing."""
    kinds = [page.split("/")[1] for page in PAGES]
    assert kinds.count("tutorials") >= 8 and kinds.count("howto") >= 7 and kinds.count("errors") >= 15


def written(tmp_path, text):
    page = tmp_path / "page.md"
    page.write_text(text)
    return page


def test_a_block_shows_what_it_prints_and_its_last_expression(tmp_path):
    page = written(tmp_path, "```python\nx = 2\nprint('two')\n```\n\nwords\n\n```python\nx + 1\n```\n")
    results = programs.start(page, tmp_path)
    assert results == [[["text", "two\n"]], [["text", "3\n"]]]
    shown = programs.with_results(page.read_text(), results)
    assert shown.index("two\n```") < shown.index("words") < shown.index("3\n```")


def test_a_picture_is_shown_as_one(tmp_path):
    page = written(
        tmp_path,
        "```python\nimport cresset as torch\n\ntorch.draw(torch.nn.Linear(2, 3), torch.zeros(1, 2))\n```\n",
    )
    results = programs.start(page, tmp_path)
    assert programs.pictures_in(results) == 1
    assert '<div class="shown"><svg' in programs.with_results(page.read_text(), results)


def test_an_error_that_is_announced_is_shown(tmp_path):
    page = written(tmp_path, "<!-- raises -->\n```python\n1 / 0\n```\n")
    assert programs.start(page, tmp_path) == [[["error", "ZeroDivisionError: division by zero\n"]]]


@pytest.mark.parametrize(
    "text, why",
    [
        ("```python\n1 / 0\n```\n", "page.md:2: the program that begins here failed"),
        ("words\n\n<!-- raises -->\n```python\n1 + 1\n```\n", "page.md:5: should raise, and did not"),
        ("<!-- run -->\n```sh\nexit 3\n```\n", "page.md:3: status 3"),
        ("```python\nimport warnings\n\nwarnings.warn('old')\n```\n", "UserWarning: old"),
    ],
)
def test_a_page_that_does_not_do_what_it_says_fails(tmp_path, text, why):
    with pytest.raises(programs.Failure, match=why):
        programs.start(written(tmp_path, text), tmp_path)


def test_a_block_that_is_only_to_be_read_is_not_run(tmp_path):
    page = written(tmp_path, "<!-- not run: it would fail -->\n```python\n1 / 0\n```\n\n```sh\nexit 1\n```\n")
    assert programs.start(page, tmp_path) == []
