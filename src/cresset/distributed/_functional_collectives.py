"""torch.distributed._functional_collectives: collectives that give new tensors. They are complete when they return, so
that there is nothing to wait for.
"""

from . import nn

__all__ = ["all_to_all_single_autograd", "wait_tensor"]


def wait_tensor(tensor):
    """A tensor whose collective is complete: the tensor itself."""
    return tensor


def all_to_all_single_autograd(self, output_split_sizes, input_split_sizes, group, tag=""):
    """Rows of a tensor go to the processes in turn, and come from them; with a derivative.

    Args:
        output_split_sizes, input_split_sizes: how many rows come from and go to each process; equal parts if None.
        tag: of PyTorch's; a group is known by itself.
    """
    rows = self.shape[0] if output_split_sizes is None else sum(output_split_sizes)
    made = self.new_empty(rows, *self.shape[1:])
    return nn.all_to_all_single(made, self, output_split_sizes, input_split_sizes, group=group)
