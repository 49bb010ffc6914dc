"""torchtext.data.utils: text to tokens."""

import re

__all__ = ["get_tokenizer", "ngrams_iterator"]

# Signs that are tokens of their own, signs that vanish, and what is white space.
_APART, _GONE, _SPACE = re.compile(r"([.,()!?])"), re.compile(r'"'), re.compile(r"<br />|[;:]")


def _basic_english(line):
    """Lower case; most signs stand alone, an apostrophe begins a token; quotation marks, colons and semicolons
    vanish."""
    line = _SPACE.sub(" ", line.lower()).replace("'", " '  ")
    return _GONE.sub("", _APART.sub(r" \1 ", line)).split()


def _spaces(line):
    return line.split()


def get_tokenizer(tokenizer, language="en"):
    """A function from a line to its tokens.

    Args:
        tokenizer: None (parts between white space), "basic_english", "spacy" (which must be installed), or a function,
            which is given back.
        language: spaCy's name of the language.

    >>> get_tokenizer("basic_english")("You can now install, please!")
    ['you', 'can', 'now', 'install', ',', 'please', '!']
    """
    if tokenizer is None:
        return _spaces
    if callable(tokenizer):
        return tokenizer
    if tokenizer == "basic_english":
        if language != "en":
            raise ValueError(f"get_tokenizer: basic_english is for the language 'en', got {language!r}")
        return _basic_english
    if tokenizer == "spacy":
        import spacy

        model = spacy.load(language)
        return lambda line: [token.text for token in model.tokenizer(line)]
    raise ValueError(
        f"Requested tokenizer {tokenizer}, valid choices are a callable that takes a single string as input, "
        '"basic_english" and "spacy"'
    )


def ngrams_iterator(token_list, ngrams):
    """The tokens, then pairs of neighbors joined by a space, then triples, up to `ngrams`.

    >>> list(ngrams_iterator(["a", "b", "c"], 2))
    ['a', 'b', 'c', 'a b', 'b c']
    """
    for length in range(1, ngrams + 1):
        for start in range(len(token_list) - length + 1):
            yield " ".join(token_list[start : start + length])
