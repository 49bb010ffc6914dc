"""Products of matrices of 8-bit floats that carry scales: scaled_mm."""

import enum

import cresset


class ScalingType(enum.IntEnum):
    """Which elements of a matrix share a scale.

    >>> F.ScalingType.RowWise.name
    'RowWise'
    """

    TensorWise = 0
    RowWise = 1
    BlockWise1x16 = 2
    BlockWise1x32 = 3
    BlockWise1x128 = 4
    BlockWise128x128 = 5


class SwizzleType(enum.IntEnum):
    """The order in which scales lie in memory.

    >>> F.SwizzleType.NO_SWIZZLE.name
    'NO_SWIZZLE'
    """

    NO_SWIZZLE = 0
    SWIZZLE_32_4_4 = 1


def _listed(value):
    return list(value) if isinstance(value, (list, tuple)) else [] if value is None else [value]


def scaled_mm(
    mat_a,
    mat_b,
    scale_a,
    scale_recipe_a,
    scale_b,
    scale_recipe_b,
    swizzle_a=None,
    swizzle_b=None,
    bias=None,
    output_dtype=cresset.bfloat16,
    contraction_dim=(),
    use_fast_accum=False,
):
    """`mat_a @ mat_b` of two matrices of 8-bit floats, times their scales.

    Args:
        scale_a, scale_b: tensors of float32, one scale for the matrix or one for each row of `mat_a` and each column
            of `mat_b`.
        scale_recipe_a, scale_recipe_b: `ScalingType.TensorWise` or `ScalingType.RowWise`; others are not supported.

    >>> x, half = cresset.tensor([[1.0, 2.0]]).to(cresset.float8_e4m3fn), cresset.tensor(0.5)
    >>> whole = F.ScalingType.TensorWise
    >>> F.scaled_mm(x, x.t(), half, whole, half, whole, output_dtype=cresset.float32)
    tensor([[1.2500]])
    """
    recipes = [[int(recipe) for recipe in _listed(given)] for given in (scale_recipe_a, scale_recipe_b)]
    swizzles = [[int(swizzle) for swizzle in _listed(given)] for given in (swizzle_a, swizzle_b)]
    return cresset._scaled_mm_v2(
        mat_a,
        mat_b,
        _listed(scale_a),
        recipes[0],
        swizzles[0],
        _listed(scale_b),
        recipes[1],
        swizzles[1],
        bias,
        output_dtype,
        contraction_dim,
        use_fast_accum,
    )


def scaled_grouped_mm(
    mat_a,
    mat_b,
    scale_a,
    scale_recipe_a,
    scale_b,
    scale_recipe_b,
    swizzle_a=None,
    swizzle_b=None,
    bias=None,
    offs=None,
    output_dtype=cresset.bfloat16,
    contraction_dim=(),
    use_fast_accum=False,
):
    """Products of groups of matrices of 8-bit floats: not supported; an error says so.

    >>> x, one = cresset.ones(1, 2, 2).to(cresset.float8_e4m3fn), cresset.ones(1, 2)
    >>> F.scaled_grouped_mm(x, x, one, F.ScalingType.RowWise, one, F.ScalingType.RowWise)
    Traceback (most recent call last):
    NotImplementedError: scaled_grouped_mm: not implemented; multiply group by group with scaled_mm
    """
    raise NotImplementedError("scaled_grouped_mm: not implemented; multiply group by group with scaled_mm")
