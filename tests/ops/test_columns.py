"""fold, and its gradients, on every device."""

import pytest

import cresset
import cresset.nn.functional as F
from cresset.autograd import gradcheck, gradgradcheck

pytestmark = pytest.mark.kernels


def by_definition(columns, size, kernel, dilation, padding, stride):
    """Each patch added where it was, in a padded image."""
    (height, width), planes = size, columns.unflatten(1, (-1, *kernel))
    image = cresset.zeros(*planes.shape[:2], height + 2 * padding[0], width + 2 * padding[1], dtype=columns.dtype)
    reach = [(k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True)]
    across = (width + 2 * padding[1] - reach[1]) // stride[1] + 1
    for place in range(columns.size(2)):
        top, left = place // across * stride[0], place % across * stride[1]
        image[:, :, top : top + reach[0] : dilation[0], left : left + reach[1] : dilation[1]] += planes[..., place]
    return image[:, :, padding[0] : padding[0] + height, padding[1] : padding[1] + width]


CASES = [
    ((5, 6), (2, 2), (1, 1), (0, 0), (1, 1)),
    ((7, 5), (3, 2), (1, 2), (1, 0), (1, 2)),
    ((6, 9), (2, 3), (2, 1), (2, 1), (3, 2)),
    ((4, 4), (2, 2), (1, 1), (0, 0), (2, 2)),
    ((3, 3), (1, 1), (1, 1), (1, 1), (2, 2)),
]


def columns_for(size, kernel, dilation, padding, stride, dtype=cresset.float32):
    places = [
        (n + 2 * p - d * (k - 1) - 1) // s + 1
        for n, k, d, p, s in zip(size, kernel, dilation, padding, stride, strict=True)
    ]
    return (cresset.randn(2, 3 * kernel[0] * kernel[1], places[0] * places[1]) * 4).to(dtype)


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16", "complex64", "int64"])
def test_patches_are_added_where_they_were(case, dtype):
    x = columns_for(*case, dtype=getattr(cresset, dtype))
    image = F.fold(x, *case)
    wide = by_definition(x.to(cresset.float64) if dtype == "bfloat16" else x, *case)
    tolerance = 2e-2 if dtype == "bfloat16" else 1e-5
    cresset.testing.assert_close(image, wide.to(x.dtype), rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_its_derivatives_of_both_orders(case):
    x = columns_for(*case, dtype=cresset.float64)[:1, : case[1][0] * case[1][1]].requires_grad_()
    assert gradcheck(lambda x: F.fold(x, *case), (x,)) and gradgradcheck(lambda x: F.fold(x, *case), (x,))


def test_samples_of_vmap_are_more_images():
    x = columns_for(*CASES[1])
    expected = F.fold(x, *CASES[1])
    assert cresset.equal(cresset.vmap(lambda x: F.fold(x, *CASES[1]))(x), expected)


def test_it_refuses_columns_of_other_images():
    with pytest.raises(RuntimeError, match="one for each of 4 places"):
        cresset._from_columns(cresset.zeros(4, 5), [3, 3], [2, 2], [1, 1, 1, 1], [0, 0])
    with pytest.raises(RuntimeError, match="are positive"):
        cresset._from_columns(cresset.zeros(4, 4), [3, 3], [2, 2], [1, 1, 0, 1], [0, 0])
    with pytest.raises(RuntimeError, match="two numbers each"):
        cresset._from_columns(cresset.zeros(4, 4), [3], [2, 2], [1, 1, 1, 1], [0, 0])
