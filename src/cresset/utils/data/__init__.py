"""PyTorch's place for cresset.data."""

from ...data import *  # noqa: F403
from ...data import __all__  # noqa: F401
from ...data.loader import _DatasetKind  # noqa: F401
from . import _utils, dataloader, datapipes, dataset, distributed, graph, graph_settings, sampler  # noqa: F401
