"""What sparse tensors of all layouts share: their rules for operators, and the errors of those who ask the wrong
layout.
"""

import cresset

from ..tensors.interpreted import InterpretedTensor

rules = {}  # operator name -> rule, for all sparse layouts

# What messages call a layout.
LAYOUT_NAMES = {
    "torch.strided": "Strided", "torch.sparse_coo": "Sparse", "torch.sparse_csr": "SparseCsr",
    "torch.sparse_csc": "SparseCsc",
    "torch.sparse_bsr": "SparseBsr", "torch.sparse_bsc": "SparseBsc", "torch.jagged": "Jagged",
}  # fmt: skip


def rule(*names):
    """Enter a function into the table as the rule of the named operators."""

    def decorate(function):
        for name in names:
            rules[name] = function
        return function

    return decorate


def check_masked(tensor, masked_grad):
    """Refuse gradients of elements that are not specified, which are not computed."""
    if masked_grad is False and tensor.requires_grad and cresset.is_grad_enabled():
        raise NotImplementedError(
            "to_dense: masked_grad=False is not supported for a tensor that requires gradients; they have its indices "
            "only"
        )


def check_format(who, memory_format):
    """Refuse a memory format other than torch.preserve_format, which strided tensors alone have."""
    if memory_format not in (None, cresset.preserve_format):
        raise RuntimeError(
            f"{who}: memory format option is only supported by strided tensors, got {memory_format} for a sparse one"
        )


def layout_error(name, wanted, tensor):
    """The error of one who asks a tensor for what its layout does not have."""
    return RuntimeError(f"{name} expected {wanted} tensor layout but got {LAYOUT_NAMES[str(tensor.layout)]}")


class SparseTensor(InterpretedTensor):
    """A tensor of which only the values that are not zero are kept, with their places."""

    rules = rules
    is_sparse_csr = False

    @property
    def layout(self):
        return self._layout

    @property
    def kind(self):
        return str(self._layout)[6:]

    def stride(self, dim=None):
        """0 in every dimension: the elements have no place in memory."""
        return (0,) * self.dim() if dim is None else 0

    def sparse_dim(self):
        """How many leading dimensions are sparse."""
        return self._sparse_dim

    def dense_dim(self):
        """How many trailing dimensions are dense, in the values."""
        return self.dim() - self._sparse_dim

    @property
    def T(self):
        return self.t()

    @property
    def mT(self):
        return self.transpose(-2, -1)

    def type(self, dtype=None, non_blocking=False, **kwargs):
        """The name of the tensor's type; with a dtype, the tensor converted to it."""
        if dtype is None:
            return cresset.empty(0, dtype=self.dtype).type().replace("torch.", "torch.sparse.")
        return self.to(cresset.empty(0).type(dtype, non_blocking, **kwargs).dtype)

    def __iter__(self):
        return iter(self.unbind(0))

    def __getitem__(self, index):
        from .shaping import getitem

        return getitem(self, index)

    def __len__(self):
        if self.dim() == 0:
            raise TypeError("len() of a 0-d tensor")
        return self.shape[0]

    def __deepcopy__(self, memo):
        if id(self) in memo:
            return memo[id(self)]
        import copy

        memo[id(self)] = new = self._with(copy.deepcopy(self._recorded, memo), copy_indices=True)
        return new

    def pin_memory(self, device=None):
        """A copy in page-locked memory."""
        return self._with(self._recorded.pin_memory(device))

    def share_memory_(self):
        """Move the memory of the values where other processes can see it."""
        self._recorded.share_memory_()
        return self

    def cuda(self, device=None, non_blocking=False, memory_format=None):
        """The tensor on a CUDA device."""
        check_format("cuda", memory_format)
        return self.to("cuda" if device is None else device, non_blocking=non_blocking)

    def cpu(self, memory_format=None):
        """The tensor on the CPU."""
        check_format("cpu", memory_format)
        return self.to("cpu")
