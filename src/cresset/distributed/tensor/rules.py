"""All placement rules that have a word, by it."""

from . import losses, random, views, words

RULES = {**words.RULES, **views.RULES, **losses.RULES, **random.RULES}
