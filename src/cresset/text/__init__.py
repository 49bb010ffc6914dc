"""What torchtext taught, in its place: tokenizers and vocabularies. torchtext itself is no longer released for new
versions of PyTorch.
"""

from . import data, vocab

__all__ = ["data", "vocab"]
