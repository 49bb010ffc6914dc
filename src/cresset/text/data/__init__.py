"""torchtext.data: tokenizers, n-grams, streams as datasets."""

from . import functional, utils
from .functional import to_map_style_dataset
from .utils import get_tokenizer, ngrams_iterator

__all__ = ["functional", "get_tokenizer", "ngrams_iterator", "to_map_style_dataset", "utils"]
