"""What sparse tensors of all layouts share: their rules for operators, and the errors of those who ask the wrong
layout.
"""

import operator

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
    """Refuse gradients of elements that are not specified, which are not computed: those of a sparse leaf that does
    not specify all of them. Everywhere else an element that is not specified is a zero that depends on nothing.
    """
    if masked_grad is not False or not tensor.requires_grad or not cresset.is_grad_enabled():
        return
    if any(leaf.__dict__.get("_is_partial") for leaf in _leaves(tensor._recorded)):
        raise NotImplementedError(
            "to_dense: masked_grad=False is not supported for a tensor that requires gradients and has elements that "
            "are not specified; the gradient has its indices only"
        )


def _leaves(values):
    """The tensors that a backward from `values` ends at."""
    if values.grad_fn is None:
        yield values
        return
    seen, waiting = set(), [values.grad_fn]
    while waiting:
        node = waiting.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if getattr(node, "variable", None) is not None:
            yield node.variable
        waiting += [next_node for next_node, _ in node.next_functions]


def check_format(who, memory_format):
    """Refuse a memory format other than torch.preserve_format, which strided tensors alone have."""
    if memory_format not in (None, cresset.preserve_format):
        raise RuntimeError(
            f"{who}: memory format option is only supported by strided tensors, got {memory_format} for a sparse one"
        )


def dtype_word(dtype):
    """What messages call a dtype."""
    return cresset.empty(0, dtype=dtype).type().removeprefix("torch.").removesuffix("Tensor")


def layout_error(name, wanted, tensor):
    """The error of one who asks a tensor for what its layout does not have."""
    return RuntimeError(f"{name} expected {wanted} tensor layout but got {LAYOUT_NAMES[str(tensor.layout)]}")


class SparseTensor(InterpretedTensor):
    """A tensor of which only the values that are not zero are kept, with their places."""

    rules = rules
    factories = ("empty", "zeros")
    is_sparse_csr = False

    @property
    def _base(self):
        return self.__dict__.get("_source")

    def _is_view(self):
        """Whether the parts are those of another tensor, `_base`."""
        return self._base is not None

    def _showing(self, source):
        """This tensor, whose parts are those of another."""
        self.__dict__["_source"] = source if source._base is None else source._base
        return self

    @property
    def requires_grad(self):
        return self._recorded.requires_grad

    @requires_grad.setter
    def requires_grad(self, on):
        self.requires_grad_(on)

    def requires_grad_(self, requires_grad=True):
        """Want (or no longer want) gradients for this leaf: those of the elements that it specifies."""
        self._recorded.requires_grad_(requires_grad)
        self._recorded.__dict__["_is_partial"] = not self._is_full()
        return self

    def _is_full(self):
        """Whether all elements are specified, each once."""
        return self._recorded.numel() == self.numel() and getattr(self, "_is_coalesced", True)

    def backward(self, gradient=None, retain_graph=None, create_graph=False, inputs=None):
        """Add to each leaf's `.grad` the gradient of this tensor, weighted by `gradient`, a tensor of the same shape:
        of it, the elements that this tensor specifies.
        """
        cresset.autograd.backward(self, gradient, retain_graph, create_graph, inputs=inputs)

    def _backward_start(self, gradient):
        if not isinstance(gradient, cresset.Tensor) or gradient.shape != self.shape:
            return gradient._recorded if isinstance(gradient, InterpretedTensor) else gradient
        places = gradient._parts[:-1] if isinstance(gradient, SparseTensor) else ()
        if len(places) == len(self._parts) - 1 and all(map(operator.is_, places, self._parts)):
            return gradient._recorded
        from .shaping import sparse_mask

        return sparse_mask(gradient, self)._recorded

    @property
    def layout(self):
        return self._layout

    @property
    def kind(self):
        return str(self._layout)[6:]

    def new(self, *args, size=None, device=None):
        """A tensor of the same dtype and layout from sizes or parts (the old way)."""
        from .creating import legacy_new

        return legacy_new(self, *args, size=size, device=device)

    def resize_as_(self, other, memory_format=None):
        """Give the tensor the size and the sparse dimensions of `other`, in place."""
        return self.rules["resize_as_"](self, other, memory_format)

    def resize_as_sparse_(self, the_template):
        """The same; the other one must be sparse, too."""
        return self.rules["resize_as_"](self, the_template)

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

    def __setitem__(self, index, value):
        raise TypeError(f"Cannot assign to a sparse tensor, which is {self.kind} here; call to_dense() first")

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
        new._copy_grad_given(self, memo)
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
