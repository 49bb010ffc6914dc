"""The cross product, on every device."""

import pytest

import cresset
from cresset.autograd import gradcheck, gradgradcheck

pytestmark = pytest.mark.kernels


def by_parts(a, b, dim):
    """The definition, in three pieces."""
    (x, y, z), (u, v, w) = a.unbind(dim), b.unbind(dim)
    return cresset.stack([y * w - z * v, z * u - x * w, x * v - y * u], dim)


@pytest.mark.parametrize("shape, dim", [((3,), 0), ((7, 3), 1), ((2, 3, 5), 1), ((3, 4), 0), ((1001, 3), -1)])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16", "int32", "uint8", "complex64"])
def test_it_is_its_definition_in_every_dtype_and_along_any_dimension(dtype, shape, dim):
    dtype = getattr(cresset, dtype)
    a, b = (cresset.randn(shape, dtype=cresset.complex128 if dtype.is_complex else cresset.float64) for _ in range(2))
    a, b = (
        (t.abs() * 100).to(dtype) if not (dtype.is_complex or dtype.is_floating_point) else t.to(dtype) for t in (a, b)
    )
    result = cresset.linalg.cross(a, b, dim=dim)
    assert result.dtype == dtype and result.is_contiguous()
    cresset.testing.assert_close(result, by_parts(a, b, dim))


def test_the_other_dimensions_broadcast_and_strides_do_not_matter():
    a, b = cresset.randn(3, 6).t(), cresset.randn(4, 1, 3)
    expanded = a.expand(4, 6, 3)
    assert cresset.equal(cresset.linalg.cross(a.unsqueeze(0), b), by_parts(expanded, b.expand(4, 6, 3), -1))
    shifted = cresset.arange(31.0)[1:].reshape(10, 3)  # vectors that are not aligned for wide loads
    assert cresset.equal(cresset.linalg.cross(shifted, shifted.flip(1)), by_parts(shifted, shifted.flip(1), -1))


def test_without_vectors_there_is_no_product():
    assert cresset.linalg.cross(cresset.ones(0, 3), cresset.ones(1, 3)).shape == (0, 3)


def test_its_derivatives():
    a, b = (cresset.randn(shape, dtype=cresset.complex128, requires_grad=True) for shape in ((2, 1, 3), (1, 2, 3)))
    assert gradcheck(cresset.linalg.cross, (a, b)) and gradgradcheck(cresset.linalg.cross, (a, b))


def test_inside_vmap_the_dimension_is_one_of_a_sample():
    a, b = cresset.randn(3, 5), cresset.randn(3)
    result = cresset.vmap(lambda x, y: cresset.linalg.cross(x, y, dim=0), in_dims=(1, None))(a, b)
    assert cresset.equal(result, by_parts(a.t(), b.expand(5, 3), -1))


@pytest.mark.parametrize(
    "shapes, error, message",
    [
        (((2, 3), (3,)), RuntimeError, "same number of dimensions, got 2 and 1"),
        (((2, 4), (2, 4)), RuntimeError, r"dimension 1 must have length 3. Got shapes \[2, 4\]"),
        (((), ()), IndexError, "tensor has no dimensions"),
    ],
)
def test_what_it_refuses(shapes, error, message):
    with pytest.raises(error, match=message):
        cresset.linalg.cross(*(cresset.ones(shape) for shape in shapes))


def test_bools_have_none():
    with pytest.raises(NotImplementedError, match='"cross" not implemented'):
        cresset.linalg.cross(cresset.ones(3, dtype=cresset.bool), cresset.ones(3, dtype=cresset.bool))
