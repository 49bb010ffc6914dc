from ..graph.sizes import Fraction, Size  # noqa: F401
