"""Tokenizers and vocabularies in torchtext's place."""

import subprocess
import sys

import pytest

from cresset.text.data import get_tokenizer, ngrams_iterator, to_map_style_dataset
from cresset.text.vocab import Vocab, build_vocab_from_iterator, vocab


def test_basic_english_separates_signs_and_drops_quotation_marks():
    tokens = get_tokenizer("basic_english")('It\'s "here"; (so) she said:<br />Why? A.B')
    assert tokens == ["it", "'", "s", "here", "(", "so", ")", "she", "said", "why", "?", "a", ".", "b"]


def test_other_tokenizers():
    assert get_tokenizer(None)("a  b\tc") == ["a", "b", "c"] and get_tokenizer(str.split) is str.split
    with pytest.raises(ValueError, match="Requested tokenizer moses, valid choices"):
        get_tokenizer("moses")
    with pytest.raises(ValueError, match="basic_english is for the language 'en'"):
        get_tokenizer("basic_english", "de")


def test_ngrams_and_streams_as_datasets():
    assert list(ngrams_iterator(["a", "b", "c"], 3)) == ["a", "b", "c", "a b", "b c", "a b c"]
    data = to_map_style_dataset(iter("xyz"))
    assert len(data) == 3 and data[1] == "y"


def test_a_vocabulary_is_ordered_by_frequency_then_alphabet():
    words = build_vocab_from_iterator([["b", "c", "c"], ["a", "d"]], specials=["<unk>", "<pad>"], max_tokens=5)
    assert words.get_itos() == ["<unk>", "<pad>", "c", "a", "b"] and len(words) == 5 and "d" not in words
    assert build_vocab_from_iterator(
        [["a", "b", "b"]], min_freq=2, specials=["<s>"], special_first=False
    ).get_stoi() == {
        "b": 0,
        "<s>": 1,
    }
    assert vocab({"x": 1, "y": 5}).lookup_tokens([1, 0]) == ["y", "x"]
    with pytest.raises(AssertionError, match="greater than the number of special tokens"):
        build_vocab_from_iterator([["a"]], specials=["<s>"], max_tokens=1)


def test_a_token_that_is_not_there():
    words = Vocab(["a"])
    with pytest.raises(RuntimeError, match="Token z not found and default index is not set"):
        words["z"]
    words.set_default_index(0)
    assert words(["z", "a"]) == [0, 0] and words.get_default_index() == 0
    words.insert_token("first", 0)
    assert words.get_itos() == ["first", "a"] and words["a"] == 1
    with pytest.raises(RuntimeError, match="already exists"):
        words.append_token("a")
    with pytest.raises(RuntimeError, match="out of bounds"):
        words.lookup_token(2)
    with pytest.raises(RuntimeError, match="between 0 and 2"):
        words.insert_token("far", 9)


def test_a_program_that_imports_torchtext_finds_it(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "import importlib.metadata, torchtext\n"
        "from torchtext.data.utils import get_tokenizer\n"
        "from torchtext.vocab import build_vocab_from_iterator\n"
        "print(importlib.metadata.version('torchtext'), get_tokenizer('basic_english')('A b'))\n"
    )
    done = subprocess.run([sys.executable, "-m", "cresset", "run", str(program)], capture_output=True, text=True)
    assert done.stdout == "0.18.0+cresset ['a', 'b']\n", done.stderr
