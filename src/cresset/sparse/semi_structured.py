"""Matrices with two zeros in each four elements. Cards multiply them with libraries that are not used here, so that the
classes are names for programs to ask `isinstance`, and making one is an error that says so.
"""

import cresset

__all__ = [
    "SparseSemiStructuredTensor", "SparseSemiStructuredTensorCUSPARSELT", "SparseSemiStructuredTensorCUTLASS",
    "to_sparse_semi_structured",
]  # fmt: skip


class SparseSemiStructuredTensor(cresset.Tensor):
    """A matrix with two zeros in each four elements: a name only, none can be made.

    >>> isinstance(cresset.ones(4, 4), cresset.sparse.SparseSemiStructuredTensor)
    False
    """

    _DEFAULT_ALG_ID = 0

    @staticmethod
    def __new__(cls, *args, **kwargs):
        raise NotImplementedError(f"{cls.__name__}: products of matrices that are half zeros are not supported")

    @classmethod
    def from_dense(cls, original_tensor):
        """See `to_sparse_semi_structured`."""
        return to_sparse_semi_structured(original_tensor)

    @classmethod
    def _load_dispatch_table(cls, custom_dispatch_table=None):
        """Operators that such matrices would have: kept by nobody, since there are no such matrices."""


class SparseSemiStructuredTensorCUTLASS(SparseSemiStructuredTensor):
    """The same, of one library of NVIDIA's.

    >>> issubclass(cresset.sparse.SparseSemiStructuredTensorCUTLASS, cresset.sparse.SparseSemiStructuredTensor)
    True
    """

    BACKEND = "cutlass"


class SparseSemiStructuredTensorCUSPARSELT(SparseSemiStructuredTensor):
    """The same, of another.

    >>> issubclass(cresset.sparse.SparseSemiStructuredTensorCUSPARSELT, cresset.sparse.SparseSemiStructuredTensor)
    True
    """

    BACKEND = "cusparselt"


def to_sparse_semi_structured(original_tensor, transposed=False):
    """A matrix with two zeros in each four elements, packed: not supported; PyTorch has it on CUDA.

    >>> cresset.sparse.to_sparse_semi_structured(cresset.ones(32, 64, dtype=cresset.float16))
    Traceback (most recent call last):
    RuntimeError: Error original_tensor.device= cpu is not supported! Only CUDA tensors are currently supported.
    """
    if not original_tensor.is_cuda:
        raise RuntimeError(
            f"Error original_tensor.device= {original_tensor.device} is not supported! Only CUDA tensors are currently "
            "supported."
        )
    raise NotImplementedError("to_sparse_semi_structured: products of matrices that are half zeros are not supported")
