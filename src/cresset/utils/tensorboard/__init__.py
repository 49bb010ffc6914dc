"""Writing files for TensorBoard."""

from . import summary
from .writer import FileWriter, SummaryWriter

__all__ = ["FileWriter", "SummaryWriter", "summary"]
