"""Optimizers and learning-rate schedules: PyTorch's torch.optim. One algorithm, one file."""

# ruff: noqa: F401  (the names are here to be imported)

from ..show import missing_names as _missing_names
from . import lr_scheduler, swa_utils
from ._stateless import swap_in_optimizer_params_and_state
from .adadelta import Adadelta
from .adafactor import Adafactor
from .adagrad import Adagrad
from .adam import Adam, AdamW
from .adamax import Adamax
from .asgd import ASGD
from .eight_bit import Adam8bit, AdamW8bit
from .lbfgs import LBFGS
from .muon import Muon
from .nadam import NAdam
from .optimizer import Optimizer
from .radam import RAdam
from .rmsprop import RMSprop
from .rprop import Rprop
from .sgd import SGD
from .sparse_adam import SparseAdam

__getattr__ = _missing_names.of(__name__)
