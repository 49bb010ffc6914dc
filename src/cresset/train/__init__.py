"""Training: `fit` runs epochs, `Checkpoint` keeps everything a run needs to go on, `write_report` draws its curves."""

from .checkpoint import Checkpoint
from .loop import Run, evaluate, fit
from .records import read_records
from .report import write_report

__all__ = ["Checkpoint", "Run", "evaluate", "fit", "read_records", "write_report"]
