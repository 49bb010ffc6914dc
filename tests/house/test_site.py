"""The pages of the site: every public name is there, and every link between pages leads somewhere."""

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import cresset

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site") / "docs"
    path = os.pathsep.join([os.path.dirname(os.path.dirname(cresset.__file__)), os.environ.get("PYTHONPATH", "")])
    subprocess.run(
        [sys.executable, "-W", "ignore", str(ROOT / "tools" / "site" / "pages.py"), str(folder), "--quick"],
        env={**os.environ, "PYTHONPATH": path},
        check=True,
        timeout=290,
    )
    return folder


def test_every_page_is_in_the_navigation_and_every_entry_is_a_page(site):
    listed = set(re.findall(r"(\S+\.md)$", (site.parent / "mkdocs.yml").read_text(), re.M))
    assert listed == {str(file.relative_to(site)) for file in site.rglob("*.md")}


def test_the_search_needs_nothing_from_elsewhere(site):
    """MkDocs Material would fetch a script of this name for pages that are read from the disk."""
    (scripts,) = re.findall(r"polyfills: \[(.*?)\]", (site.parent / "mkdocs.yml").read_text())
    assert "iframe-worker" in scripts and all((site / name.strip()).is_file() for name in scripts.split(","))


def test_every_link_between_pages_leads_to_one(site):
    broken = []
    for file in site.rglob("*.md"):
        text = re.sub(r"```.*?```|`[^`\n]*`", "", file.read_text(), flags=re.S)
        for target in re.findall(r"\]\(([^)\s#]+)[^)]*\)", text):
            if not re.match(r"[a-z]+:", target) and not (file.parent / target).exists():
                broken.append(f"{file.relative_to(site)}: {target}")
    assert not broken


@pytest.mark.parametrize("page, names", [
    ("cresset", ["add", "cumsum", "manual_seed", "save"]), ("nn", ["Linear", "RMSNorm"]), ("tensor", ["backward",
        "view"]),
    ("train", ["fit", "write_report"]), ("debug", ["preflight", "nan_guard"]), ("serve", ["serve", "ModelSettings"]),
])  # fmt: skip
def test_public_names_have_an_entry_with_signature_and_words(site, page, names):
    text = "\n".join(file.read_text() for file in (site / "reference").glob(f"{page}*.md"))
    for name in names:
        escaped = name.replace("_", "\\_")
        entry = re.search(rf"^## {re.escape(escaped)}\n\n```python\n(.*?)```\n\n(.+?)(?=^## |\Z)", text, re.M | re.S)
        assert entry and name in entry[1] and len(entry[2].strip()) > 20, name


def test_signatures_are_as_one_would_write_them(site):
    """Text with its quotation marks, things by their names, and no folder of the machine that made the page."""
    text = "\n".join(file.read_text() for file in (site / "reference").glob("*.md"))
    signatures = re.findall(r"^## [^\n]*\n\n```python\n(.*?)```", text, re.M | re.S)
    assert any("    mode='min',\n" in shown for shown in signatures)
    assert any("    activation=relu,\n" in shown for shown in signatures)
    assert not [shown for shown in signatures if re.search(r"<|~|collections\.abc|/python3", shown)]


def test_methods_of_bases_stand_there_only_with_words_of_their_own(site):
    text = (site / "reference" / "nn.md").read_text()
    assert "\n### Module.named_parameters\n" in text.replace("\\_", "_")
    assert "\n### Softmax.forward\n" not in text and "\n### Linear.extra" not in text


def test_every_name_of_an_all_has_an_entry(site):
    for module in (cresset.train, cresset.metrics, cresset.debug, cresset.serve):
        page = (site / "reference" / f"{module.__name__.removeprefix('cresset.').replace('.', '_')}.md").read_text()
        missing = [name for name in module.__all__ if f"\n## {name.replace('_', chr(92) + '_')}\n" not in page]
        inside = [
            name for name in missing if not isinstance(getattr(module, name), type(cresset))
        ]  # modules have pages
        assert not inside, (module.__name__, inside)


def test_names_have_an_example_that_ran_or_say_why_not(site):
    """An example that does not do what it shows stops the build. A new name may come some days before its example."""
    entries, reasons, missing = 0, [], []
    for page in (site / "reference").glob("*.md"):
        for entry in re.split(r"^## ", page.read_text(), flags=re.M)[1:]:
            entries += 1
            if reason := re.search(r"^No example is run here: (.*)$", entry, re.M):
                reasons.append(reason[1])
            elif ">>> " not in entry:
                missing.append(f"{page.stem}: {entry.splitlines()[0]}")
    needs = re.compile(r"it needs (\w+), which was not there when this page was made\.")
    for reason in reasons:
        package = needs.fullmatch(reason)
        assert package and importlib.util.find_spec(package[1]) is None, reason
    assert entries > 3000 and len(missing) < 0.01 * entries, missing


def test_sources_are_pages_with_lines(site):
    text = (site / "reference" / "nn.md").read_text()
    place, line = re.search(r"\.\./(source/src/cresset/nn/linear\.py\.html)#L(\d+)", text).groups()
    assert f'id="L{line}"' in (site / place).read_text()


def test_the_tools_beside_pytorch_are_found_from_the_package_and_the_readme():
    readme = (ROOT / "README.md").read_text()
    assert {"summary", "draw", "debug", "train"} <= set(dir(cresset))
    assert {"preflight", "nan_guard"} <= set(dir(cresset.debug)) and {"fit", "write_report"} <= set(dir(cresset.train))
    for name in ("torch.summary", "torch.draw", "debug.preflight", "debug.nan_guard", "cresset report", "train.fit"):
        assert f"`{name}" in readme or f"`cresset.{name}" in readme, name
