"""NumPy arrays of what is logged."""

import cresset


def make_np(x):
    """A NumPy array, with at least one dimension for a number, of a tensor, an array or a number.

    >>> cresset.utils.tensorboard._convert_np.make_np(cresset.ones(2))
    array([1., 1.], dtype=float32)
    """
    import numpy

    if isinstance(x, numpy.ndarray):
        return x
    if numpy.isscalar(x):
        return numpy.array([x])
    if isinstance(x, cresset.Tensor):
        x = x.detach().cpu()
        return (x.to(cresset.float16) if x.dtype == cresset.bfloat16 else x).numpy()
    raise NotImplementedError(f"make_np: expected a tensor, an array or a number, got {type(x)}")
