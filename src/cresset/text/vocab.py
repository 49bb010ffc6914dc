"""torchtext.vocab: tokens and their numbers."""

from collections import Counter

from cresset.nn import Module

__all__ = ["Vocab", "build_vocab_from_iterator", "vocab"]


class Vocab(Module):
    """Numbers for tokens, and back.

    Args:
        tokens: in the order of their numbers.

    >>> words = Vocab(["<unk>", "a", "b"])
    >>> words.set_default_index(words["<unk>"])
    >>> words(["b", "zebra"])
    [2, 0]
    """

    def __init__(self, tokens):
        super().__init__()
        self.itos, self.stoi, self.default_index = [], {}, None
        for token in tokens:
            self.append_token(token)

    def forward(self, tokens):
        return self.lookup_indices(tokens)

    def __len__(self):
        return len(self.itos)

    def __contains__(self, token):
        return token in self.stoi

    def __getitem__(self, token):
        number = self.stoi.get(token, self.default_index)
        if number is None:
            raise RuntimeError(f"Token {token} not found and default index is not set")
        return number

    def set_default_index(self, index):
        """The number of a token that is not there; None: such a token is an error."""
        self.default_index = index

    def get_default_index(self):
        return self.default_index

    def insert_token(self, token, index):
        """Put a token at a number; those from there on move up."""
        if not 0 <= index <= len(self.itos):
            raise RuntimeError(f"insert_token: the number lies between 0 and {len(self.itos)}, got {index}")
        if token in self.stoi:
            raise RuntimeError(f"Token {token} already exists in the Vocab with index: {self.stoi[token]}")
        self.itos.insert(index, token)
        self.stoi = {token: number for number, token in enumerate(self.itos)}

    def append_token(self, token):
        if token in self.stoi:
            raise RuntimeError(f"Token {token} already exists in the Vocab with index: {self.stoi[token]}")
        self.stoi[token] = len(self.itos)
        self.itos.append(token)

    def lookup_token(self, index):
        if not 0 <= index < len(self.itos):
            raise RuntimeError(f"Specified index {index} is out of bounds for vocab of size {len(self.itos)}")
        return self.itos[index]

    def lookup_tokens(self, indices):
        return [self.lookup_token(index) for index in indices]

    def lookup_indices(self, tokens):
        return [self[token] for token in tokens]

    def get_stoi(self):
        return dict(self.stoi)

    def get_itos(self):
        return list(self.itos)


def vocab(ordered_dict, min_freq=1, specials=None, special_first=True):
    """A Vocab of the tokens in a dict from tokens to counts, in its order.

    Args:
        min_freq: how often a token must have been seen.
        specials: tokens that are there whatever was seen, in front or at the end.
    """
    specials = list(specials or [])
    found = [token for token, count in ordered_dict.items() if count >= min_freq and token not in specials]
    return Vocab(specials + found if special_first else found + specials)


def build_vocab_from_iterator(iterator, min_freq=1, specials=None, special_first=True, max_tokens=None):
    """A Vocab of the tokens in lists of tokens, the most frequent first, equally frequent ones by the alphabet.

    Args:
        iterator: gives lists of tokens.
        max_tokens: how many there are at most, with the special ones.

    >>> build_vocab_from_iterator([["a", "b", "a"], ["c"]], specials=["<unk>"]).get_itos()
    ['<unk>', 'a', 'b', 'c']
    """
    counts = Counter()
    for tokens in iterator:
        counts.update(tokens)
    ordered = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    if max_tokens is not None:
        room = max_tokens - len(specials or [])
        if room <= 0:
            raise AssertionError(
                f"build_vocab_from_iterator: max_tokens must be greater than the number of special tokens, got "
                f"{max_tokens} and {len(specials or [])}"
            )
        ordered = ordered[:room]
    return vocab(dict(ordered), min_freq, specials, special_first)
