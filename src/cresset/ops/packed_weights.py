"""Products with weights of 8 or 4 bits, which are widened as they are read: for inference of large language models.

The order of packed weights is cresset's own: it is not that of PyTorch's files.
"""

from .registry import operator

_weight_int8pack_mm = operator("_weight_int8pack_mm", """`input` times the transpose of weights in int8, each column of
    the result times its scale.

    Args:
        input: (M, K) in float32, float16 or bfloat16.
        mat2: (N, K) in int8.
        scales: (N,) in the dtype of `input`.

    >>> x, w = cresset.ones(1, 3), cresset.tensor([[1, 2, 3], [0, 0, -4]], dtype=cresset.int8)
    >>> cresset._weight_int8pack_mm(x, w, cresset.tensor([0.5, 2.0]))
    tensor([[ 3., -8.]])
    """)  # fmt: skip
_convert_weight_to_int4pack = operator("_convert_weight_to_int4pack", """Weights of four bits in the order in which
    `_weight_int4pack_mm` reads them.

    Args:
        input: (N, K / 2) in uint8: two weights from 0 to 15 in a byte, the first in its upper half.
        innerKTiles: 2, 4 or 8; it decides about the shape of the result, (N / 8, K / (16 innerKTiles), 32,
            innerKTiles / 2), and nothing else.
    """)  # fmt: skip
_convert_weight_to_int4pack_for_cpu = operator("_convert_weight_to_int4pack_for_cpu", """The same of weights in int32,
    as (N, K / 2) bytes for `_weight_int4pack_mm_for_cpu`.

    Args:
        input: (N, K) in int32, from 0 to 15.
        innerKTiles: for PyTorch's sake; the order does not depend on it.
    """)  # fmt: skip
_weight_int4pack_mm = operator("_weight_int4pack_mm", """`input` times the transpose of packed weights of four bits,
    which stand for (number - 8) scale + zero.

    Args:
        input: (M, K) in float32, float16 or bfloat16.
        mat2: what `_convert_weight_to_int4pack` gives.
        qGroupSize: how many weights along K share a scale and a zero: 32, 64, 128 or 256.
        qScaleAndZeros: (K / qGroupSize, N, 2) in the dtype of `input`.
    """)  # fmt: skip
_weight_int4pack_mm_for_cpu = operator("_weight_int4pack_mm_for_cpu", """The same with weights from
    `_convert_weight_to_int4pack_for_cpu`.

    >>> w = cresset.arange(16, dtype=cresset.int32).reshape(16, 1).expand(16, 32)
    >>> packed = cresset._convert_weight_to_int4pack_for_cpu(w, 2)
    >>> scales = cresset.tensor([0.5, 0.0]).expand(1, 16, 2)
    >>> cresset._weight_int4pack_mm_for_cpu(cresset.full((1, 32), 0.25), packed, 32, scales)[0, 6:11]
    tensor([-8., -4.,  0.,  4.,  8.])
    """)  # fmt: skip
