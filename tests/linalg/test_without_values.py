"""linalg of tensors that have a shape and no values (of the meta device, fake ones), and of those whose class answers
for them.
"""

import contextlib

import pytest

import cresset
from cresset import linalg
from cresset._subclasses import FakeTensorMode
from cresset.utils._pytree import tree_map_only

CALLS = {
    "cholesky_ex": lambda A, S, B: linalg.cholesky_ex(S),
    "cond": lambda A, S, B: linalg.cond(S, 1),
    "det": lambda A, S, B: linalg.det(S),
    "eig": lambda A, S, B: linalg.eig(S),
    "eigh": lambda A, S, B: linalg.eigh(S),
    "eigvals": lambda A, S, B: linalg.eigvals(S),
    "geqrf": lambda A, S, B: cresset.geqrf(A),
    "householder_product": lambda A, S, B: linalg.householder_product(*cresset.geqrf(A)),
    "inv_ex": lambda A, S, B: linalg.inv_ex(S),
    "ldl_solve": lambda A, S, B: linalg.ldl_solve(*linalg.ldl_factor(S), B),
    "lstsq": lambda A, S, B: linalg.lstsq(A, A),
    "lu": lambda A, S, B: linalg.lu(A),
    "lu_solve": lambda A, S, B: linalg.lu_solve(*linalg.lu_factor(S), B),
    "matrix_rank": lambda A, S, B: linalg.matrix_rank(A),
    "ormqr": lambda A, S, B: cresset.ormqr(*cresset.geqrf(S), B),
    "pinv": lambda A, S, B: linalg.pinv(A),
    "qr": lambda A, S, B: linalg.qr(A, "complete"),
    "slogdet": lambda A, S, B: linalg.slogdet(S),
    "solve": lambda A, S, B: linalg.solve(S, B),
    "solve_triangular": lambda A, S, B: linalg.solve_triangular(S, B, upper=True),
    "svd": lambda A, S, B: linalg.svd(A),
    "svdvals": lambda A, S, B: linalg.svdvals(A),
}


def about(results):
    return [(tuple(r.shape), r.dtype, r.stride()) for r in (results if isinstance(results, tuple) else (results,))]


@pytest.mark.parametrize("kind", ["meta", "fake"])
@pytest.mark.parametrize("dtype", [cresset.float32, cresset.complex128], ids=str)
@pytest.mark.parametrize("batch", [(), (2,)], ids=str)
@pytest.mark.parametrize("name", CALLS)
def test_shapes_dtypes_and_strides_are_those_of_real_ones(name, batch, dtype, kind):
    A, B = cresset.randn(*batch, 4, 3, dtype=dtype), cresset.randn(*batch, 3, 2, dtype=dtype)
    S = A.mH @ A + cresset.eye(3, dtype=dtype)
    mode = FakeTensorMode() if kind == "fake" else contextlib.nullcontext()
    without = [mode.from_tensor(x) if kind == "fake" else x.to("meta") for x in (A, S, B)]
    with mode:
        found = CALLS[name](*without)
    assert about(found) == about(CALLS[name](A, S, B))
    first = found[0] if isinstance(found, tuple) else found
    assert first.is_meta if kind == "meta" else type(first).__name__ == "FakeTensor"


def test_so_is_the_shape_of_an_exponential():  # whose strides depend on how large the matrix is
    assert linalg.matrix_exp(cresset.ones(2, 3, 3, device="meta")).shape == (2, 3, 3)


def test_gradients_have_shapes_too():
    A = cresset.randn(3, 3, device="meta", requires_grad=True)
    linalg.svdvals(A).sum().backward()
    assert A.grad.is_meta and A.grad.shape == (3, 3)


class Held(cresset.Tensor):
    """A tensor that holds another, which does the work; `seen` has the operators."""

    seen: list = []

    @staticmethod
    def __new__(cls, held):
        made = cresset.Tensor._make_wrapper_subclass(cls, held.shape, strides=held.stride(), dtype=held.dtype)
        made.held = held
        return made

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        cls.seen.append(str(func))
        args, kwargs = tree_map_only(cls, lambda x: x.held, (args, kwargs or {}))
        return tree_map_only(cresset.Tensor, cls, func(*args, **kwargs))


@pytest.mark.parametrize("name", CALLS)
def test_a_wrapped_matrix_gives_what_it_wraps_gives(name):
    A, B = cresset.randn(4, 3, dtype=cresset.float64), cresset.randn(3, 2, dtype=cresset.float64)
    S = A.mH @ A + cresset.eye(3, dtype=cresset.float64)
    found, expected = CALLS[name](*map(Held, (A, S, B))), CALLS[name](A, S, B)
    for one, other in zip(*(r if isinstance(r, tuple) else (r,) for r in (found, expected)), strict=True):
        cresset.testing.assert_close(one.held if isinstance(one, Held) else one, other)


def test_its_class_sees_the_routine_and_whether_it_failed():
    Held.seen.clear()
    with pytest.raises(linalg.LinAlgError, match="not positive-definite"):
        linalg.cholesky(Held(-cresset.eye(2)))
    assert Held.seen == ["aten.linalg_cholesky_ex.default", "aten._linalg_check_errors.default"]
