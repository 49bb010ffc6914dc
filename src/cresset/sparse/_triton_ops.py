"""What Triton's kernels for block-sparse products are started with: names for programs that import them."""

import cresset

__all__ = [
    "broadcast_batch_dims", "launch_kernel", "prepare_inputs", "ptr_stride_extractor", "tile_to_blocksize",
]  # fmt: skip


def broadcast_batch_dims(f_name, *tensors):
    """The dimensions before the last two, broadcast.

    >>> cresset.sparse._triton_ops.broadcast_batch_dims("product", cresset.ones(3, 1, 2, 2), cresset.ones(4, 2, 2))
    torch.Size([3, 4])
    """
    try:
        return cresset.broadcast_shapes(*(tensor.shape[:-2] for tensor in tensors))
    except RuntimeError as error:
        raise ValueError(f"{f_name}: the batch dimensions do not broadcast: {error}") from None


def _refused(name):
    def refuse(*args, **kwargs):
        raise NotImplementedError(f"{name}: Triton's kernels for sparse matrices are not started here")

    refuse.__name__ = refuse.__qualname__ = name
    refuse.__doc__ = "Triton's kernels for sparse matrices are not started; an error says so."
    return refuse


launch_kernel, prepare_inputs, ptr_stride_extractor, tile_to_blocksize = map(_refused, __all__[1:])
