"""torch.quantization: the names of torch.ao.quantization at their old place."""

from cresset.ao.quantization import *  # noqa: F403
