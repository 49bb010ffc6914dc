"""Setting weights to zero while a model is made or trained: PyTorch's torch.ao.pruning. A sparsifier keeps a mask for
each weight, and its own rule says which elements go.
"""

from .sparsifier import BaseSparsifier, FakeSparsity, fqn_to_module, get_arg_info_from_tensor_fqn, module_to_fqn

__all__ = ["BaseSparsifier", "FakeSparsity", "fqn_to_module", "get_arg_info_from_tensor_fqn", "module_to_fqn"]
