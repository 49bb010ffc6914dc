"""What the functions of linalg that are made of others ask of their arguments, and the error for a matrix without an
answer.
"""

import cresset

_HALVES = (cresset.float16, cresset.bfloat16)


class LinAlgError(RuntimeError):
    """A matrix without the asked-for inverse, factorization or decomposition."""

    __module__ = "torch.linalg"


def name_of(dtype):
    return str(dtype).rpartition(".")[2]


def check_floating(who, tensor, low_precision=False):
    """Raise unless the elements are floating-point or complex numbers, of at least single precision."""
    if not (tensor.is_floating_point() or tensor.is_complex()):
        raise RuntimeError(f"{who}: Expected a floating point or complex tensor as input. Got {name_of(tensor.dtype)}")
    if not low_precision and tensor.dtype in _HALVES:
        raise NotImplementedError(f"{who}: Low precision dtypes not supported. Got {name_of(tensor.dtype)}")


def check_matrix(who, tensor, name="A"):
    """Raise unless the tensor is a matrix or a batch of them, with elements that LAPACK knows."""
    check_matrix_shape(who, tensor, name)
    check_floating(who, tensor)


def check_matrix_shape(who, tensor, name="A"):
    """Raise unless the tensor is a matrix or a batch of them."""
    if not isinstance(tensor, cresset.Tensor):
        raise TypeError(f"{who}(): argument '{name}' must be Tensor, not {type(tensor).__name__}")
    if tensor.ndim < 2:
        raise RuntimeError(
            f"{who}: The input tensor {name} must have at least 2 dimensions, got shape {tuple(tensor.shape)}."
        )


def check_square(who, tensor, name="A"):
    """Raise unless the tensor is a square matrix or a batch of them."""
    check_matrix(who, tensor, name)
    check_square_shape(who, tensor, name)


def check_square_shape(who, tensor, name="A"):
    if tensor.ndim < 2:
        raise RuntimeError(
            f"{who}: The input tensor {name} must have at least 2 dimensions, got shape {tuple(tensor.shape)}."
        )
    if tensor.size(-1) != tensor.size(-2):
        raise RuntimeError(
            f"{who}: {name} must be batches of square matrices, but they are {tensor.size(-2)} by {tensor.size(-1)} "
            "matrices"
        )


def check_same_dtype(who, first, second, names=("A", "B")):
    if first.dtype != second.dtype:
        raise RuntimeError(
            f"{who}: Expected {names[0]} and {names[1]} to have the same dtype, but found {names[0]} of type "
            f"{name_of(first.dtype)} and {names[1]} of type {name_of(second.dtype)} instead"
        )


def real_dtype(dtype):
    """The dtype of absolute values: float32 of complex64."""
    return {
        cresset.complex64: cresset.float32,
        cresset.complex128: cresset.float64,
        cresset.complex32: cresset.float16,
    }.get(dtype, dtype)


def is_without_values(tensor):
    """Whether a tensor has a shape and no values: of the meta device, or fake."""
    return tensor.is_meta or getattr(tensor, "is_fake", False) is True
