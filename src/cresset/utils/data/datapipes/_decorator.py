"""PyTorch's place for the decorators of classes of pipes."""

from ....data.pipes.determinism import guaranteed_datapipes_determinism, non_deterministic  # noqa: F401
from ....data.pipes.pipe import functional_datapipe  # noqa: F401
