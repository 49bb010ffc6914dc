"""Tools to find what is wrong with a model: `nan_guard` names the operation that made the first NaN or Inf, `preflight`
checks a model on shapes alone, before data and time are spent on it."""

from .nan_guard import NonFiniteError, nan_guard
from .preflight import Preflight, preflight

__all__ = ["NonFiniteError", "Preflight", "nan_guard", "preflight"]
