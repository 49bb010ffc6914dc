"""The batching rules of the operators, by topic. Importing this package registers them."""

from . import elementwise, indexing, layers, products, randomness, reductions, shapes

__all__ = ["elementwise", "indexing", "layers", "products", "randomness", "reductions", "shapes"]
