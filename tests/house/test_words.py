"""The words of docs/vocabulary.md: those that it replaces stay out of the package, of the native half and of the
documents."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "vocabulary.md"

REPLACED = {
    r"\b(quanti|normali|vectori|initiali|materiali|synchroni|parametri|regulari|finali|speciali|recogni|minimi|optimi)s(e|ed|es|ing|ation|ations)\b": "-ize",  # noqa: E501
    r"\b(un)?(behaviour|colour|neighbour|favour|honour)\w*": "-or",
    r"\b(centre|centres|centred|grey|greys|labelled|modelled|licence)\b": "center, gray, labeled, modeled, license",
    r"\btruth values\b|\ba truth value\b": "bool",
    r"\b(tensor|list|sum|mean|product|median|batch) of nothing\b": "empty",
    r"\band (its|their) kind\b(?!\.)": "and its variants",
    r"\b(of|for|among|in|the) halves\b|\bHalves (are|is)\b": "half precision",
}  # fmt: skip


def files():
    found = [
        *(ROOT / "src" / "cresset").rglob("*.py"),
        *(ROOT / "src" / "cresset" / "cuda" / "kernels").glob("*.cuh"),
        *(ROOT / "native").rglob("*.cpp"),
        *(ROOT / "native").rglob("*.h"),
        *(ROOT / "docs").rglob("*.md"),
        *ROOT.glob("*.md"),
        *(ROOT / "changes").glob("*.md"),
    ]
    return [file for file in found if file != PAGE]


def problems(text):
    """(line number, word, what to write) for each word that is not used."""
    return [
        (number, match[0], instead)
        for number, line in enumerate(text.splitlines(), 1)
        for pattern, instead in REPLACED.items()
        for match in re.finditer(pattern, line)
    ]


def test_the_words_stay_out():
    found = [
        f"{file.relative_to(ROOT)}:{number}: {word!r}; write {instead!r}"
        for file in files()
        for number, word, instead in problems(file.read_text())
    ]
    assert not found, "\n" + "\n".join(found)


@pytest.mark.parametrize(
    "text",
    [
        "a quantised tensor",
        "the neighbouring lanes",
        "attention of halves",
        "sums of truth values",
        "index_add and its kind, too",
    ],
)
def test_a_word_that_is_not_used_is_found(text):
    assert len(problems(text)) == 1


@pytest.mark.parametrize(
    "text",
    ["Unrecognised padding mode", "halves the scale", "rounded to halves", "a cat and its kind.", "steps of nothing"],
)
def test_other_words_are_left_alone(text):
    assert problems(text) == []
