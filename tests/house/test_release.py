"""tools/release.py: from the sentences in changes/ to a section of CHANGELOG.md."""

import importlib.util
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def release():
    spec = importlib.util.spec_from_file_location("release", TOP / "tools" / "release.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def tree(tmp_path):
    (tmp_path / "changes").mkdir()
    (tmp_path / "changes/README.md").write_text("How to write them.\n")
    (tmp_path / "changes/topk-ties.fixed.md").write_text("`topk` gives equal values\nin PyTorch's order.\n")
    (tmp_path / "changes/serve.added.md").write_text("`cresset serve`.\n")
    (tmp_path / "CHANGELOG.md").write_text("# Changelog\n\nNewest first.\n\n## 0.1.0 (2026-01-01)\n\nThe first.\n")
    (tmp_path / "src/cresset").mkdir(parents=True)
    (tmp_path / "src/cresset/version.py").write_text('import x\n__version__ = "0.1.0"\ndebug = False\n')
    return tmp_path


def test_the_sentences_move_to_the_changelog_by_kind_and_newest_first(release, tree):
    release.gather(tree, "0.2.0", "2026-02-03")
    assert (tree / "CHANGELOG.md").read_text() == (
        "# Changelog\n\nNewest first.\n\n"
        "## 0.2.0 (2026-02-03)\n\n### Added\n\n- `cresset serve`.\n\n"
        "### Fixed\n\n- `topk` gives equal values in PyTorch's order.\n\n"
        "## 0.1.0 (2026-01-01)\n\nThe first.\n"
    )
    assert [file.name for file in (tree / "changes").iterdir()] == ["README.md"]


def test_a_version_is_released_once(release, tree):
    with pytest.raises(release.NotReady, match="0.1.0 already"):
        release.gather(tree, "0.1.0", "2026-02-03")
    assert len(list((tree / "changes").iterdir())) == 3


def test_a_file_of_an_unknown_kind_is_named(release, tree):
    (tree / "changes/other.improved.md").write_text("Better.\n")
    with pytest.raises(release.NotReady, match="other.improved.md: the kind is one of added, changed"):
        release.notes(tree, "0.2.0", "2026-02-03")


def test_nothing_new_is_no_release(release, tree):
    release.gather(tree, "0.2.0", "2026-02-03")
    with pytest.raises(release.NotReady, match="nothing new"):
        release.notes(tree, "0.3.0", "2026-02-04")


def test_the_version_is_set_in_its_one_place(release, tree):
    release.set_version(tree, "0.2.0rc1")
    assert (tree / "src/cresset/version.py").read_text() == 'import x\n__version__ = "0.2.0rc1"\ndebug = False\n'
    with pytest.raises(release.NotReady, match="no version"):
        release.set_version(tree, "v2")


def test_what_lies_in_changes_can_be_released(release):
    assert release.notes(TOP, "9.9.9", "2026-02-03").startswith("## 9.9.9 (2026-02-03)\n")
