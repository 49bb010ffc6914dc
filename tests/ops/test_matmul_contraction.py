"""einsum and the products that can be said with it."""

import pytest

import cresset


def matrix(rows, columns):
    return cresset.arange(rows * columns, dtype=cresset.float64).reshape(rows, columns)


def test_einsum_says_known_products():
    a, b = matrix(2, 3), matrix(3, 4)
    assert cresset.equal(cresset.einsum("ij,jk->ik", a, b), a @ b)
    assert cresset.equal(cresset.einsum("ij,jk", a, b), a @ b)
    assert cresset.equal(cresset.einsum("ij->ji", a), a.t())
    assert cresset.equal(cresset.einsum("ij->", a), a.sum())
    assert cresset.equal(cresset.einsum("ii->i", matrix(3, 3)), matrix(3, 3).diagonal())
    assert cresset.equal(cresset.einsum("i,j->ij", a[0], b[0]), cresset.outer(a[0], b[0]))
    assert cresset.equal(cresset.einsum("ij,ij->ij", a, a), a * a)


def test_einsum_without_arrow_sorts_capitals_first():
    assert cresset.einsum("bA", cresset.zeros(2, 3)).shape == (3, 2)


def test_einsum_ellipsis_broadcasts():
    a, b = cresset.ones(5, 1, 2, 3), cresset.ones(4, 3, 6)
    assert cresset.equal(cresset.einsum("...ij,...jk->...ik", a, b), a @ b)
    assert cresset.einsum("...ij->ij", a).shape == (2, 3)


def test_einsum_takes_a_list_or_numbers_for_letters():
    a, b = matrix(2, 3), matrix(3, 4)
    assert cresset.equal(cresset.einsum("ij,jk->ik", [a, b]), a @ b)
    assert cresset.equal(cresset.einsum(a, [0, 1], b, [1, 2], [0, 2]), a @ b)
    assert cresset.equal(cresset.einsum(a, [..., 1], b, [1, 2]), a @ b)


def test_einsum_of_many_is_the_product_of_all():
    a, b, c, d = matrix(2, 3), matrix(3, 4), matrix(4, 2), matrix(2, 2)
    assert cresset.allclose(cresset.einsum("ij,jk,kl,lm->im", a, b, c, d), a @ b @ c @ d)


def test_gradients_flow_through_einsum():
    a = matrix(2, 3).requires_grad_()
    b = matrix(3, 4)
    cresset.einsum("ij,jk->", a, b).backward()
    assert cresset.equal(a.grad, b.sum(1).expand(2, 3))


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (("ij",), ValueError, "must specify the equation string and at least one operand"),
        (("ij,jk", cresset.zeros(2, 3)), RuntimeError, "fewer operands were provided"),
        (("ij", cresset.zeros(2), cresset.zeros(2)), RuntimeError, "more operands were provided"),
        (("i1", cresset.zeros(2, 3)), RuntimeError, "invalid subscript given at index 1"),
        (("i.j", cresset.zeros(2, 3)), RuntimeError, "not part of any ellipsis"),
        (("...i...", cresset.zeros(2, 3)), RuntimeError, "an ellipsis was already found"),
        (("i", cresset.zeros(2, 3)), RuntimeError, r"subscripts in the equation \(1\) does not match .* \(2\)"),
        (("ij->k", cresset.zeros(2, 3)), RuntimeError, "output subscript k does not appear"),
        (("ij->ii", cresset.zeros(2, 3)), RuntimeError, "output subscript i appears more than once"),
        (("ii", cresset.zeros(2, 3)), RuntimeError, "i is repeated for operand 0 but the sizes don't match, 3 != 2"),
        (("ij,jk", cresset.zeros(2, 3), cresset.zeros(2, 3)), RuntimeError, "j has size 2 for operand 1"),
        ((cresset.zeros(2), [52]), ValueError, r"not within the valid range \[0, 52\), got 52"),
    ],
)
def test_einsum_error_says_what_is_wrong(arguments, error, message):
    with pytest.raises(error, match=message):
        cresset.einsum(*arguments)


def test_tensordot_pairs_dimensions():
    a, b = cresset.ones(2, 3, 4), cresset.ones(4, 3, 5)
    assert cresset.tensordot(a, b, dims=([1, 2], [1, 0])).tolist() == [[12.0] * 5] * 2
    assert cresset.tensordot(a, a, 0).shape == (2, 3, 4, 2, 3, 4)
    assert cresset.tensordot(a, a, 3).item() == 24


def test_kron_of_different_dimensions():
    assert cresset.kron(cresset.tensor([1, 2]), cresset.tensor([[1], [10]])).tolist() == [[1, 2], [10, 20]]


def test_chain_is_multiplied_in_the_cheapest_order():
    a, b, c = matrix(2, 30), matrix(30, 3), matrix(3, 4)
    assert cresset.allclose(cresset.chain_matmul(a, b, c), a @ b @ c)


def test_cross_product_is_orthogonal_to_both():
    a, b = cresset.tensor([[1, 2, 3]]), cresset.tensor([[-2, 0, 5]])
    result = cresset.cross(a, b, dim=1)
    assert (result * a).sum().item() == (result * b).sum().item() == 0


@pytest.mark.parametrize("name", ["addmv", "addr", "addbmm"])
def test_input_does_not_matter_if_beta_is_zero(name):
    shapes = {"addmv": [(2,), (2, 3), (3,)], "addr": [(2, 3), (2,), (3,)], "addbmm": [(2, 4), (5, 2, 3), (5, 3, 4)]}
    nan, *others = (cresset.ones(shape) for shape in shapes[name])
    result = getattr(cresset, name)(nan * float("nan"), *others, beta=0, alpha=2)
    assert not result.isnan().any()


def test_adding_a_product_in_place():
    x = cresset.ones(2, 2)
    assert x.addr_(cresset.ones(2), cresset.ones(2), alpha=3) is x
    assert x.tolist() == [[4.0, 4.0], [4.0, 4.0]]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: cresset.tensordot(x, x, 3), "but got dims=3"),
        (lambda x: cresset.tensordot(x, x, ([0], [1])), "contracted dimensions need to match"),
        (lambda x: cresset.tensordot(x, x, ([0, 0], [0, 0])), "appears multiple times"),
        (lambda x: cresset.outer(x, x[0]), "Expected 1-D argument self, but got 2-D"),
        (lambda x: cresset.inner(x, x[:, :2]), "the last dimension must match"),
        (lambda x: cresset.inner(x, x.long()), "same dtype"),
        (lambda x: cresset.cross(x, x, 0), "must have length 3. Got 2 and 2"),
        (lambda x: cresset.cross(x[:, :2], x[:, :2]), "no dimension of size 3"),
        (lambda x: cresset.chain_matmul(x, x), "cannot be multiplied"),
        (lambda x: cresset.addmv(x[0], x, x[0]), "size mismatch"),
        (lambda x: cresset.addbmm(x, x, x), "must be 3D tensors"),
        (lambda x: cresset.addr(x.long(), x.long()[:, 0], x.long()[0], beta=0.5), "must not be a floating point"),
    ],
)
def test_error_says_what_is_wrong(call, message):
    with pytest.raises(RuntimeError, match=message):
        call(cresset.zeros(2, 3))


def test_a_chain_of_three_equal_matrices_begins_on_the_left():
    left, right = cresset.tensor([[1e30, 0.0], [0.0, 1.0]]), cresset.tensor([[1e-30, 0.0], [0.0, 1.0]])
    assert cresset.linalg.multi_dot([left, left, right])[0, 0].item() == float("inf")


def test_einsum_asks_others_with_its_operands_one_by_one():
    class Asked(cresset.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return func, args

    x = cresset.ones(2, 2).as_subclass(Asked)
    for operands in ([x, x], (x, x)):
        assert cresset.einsum("ij,jk->ik", operands) == (cresset.einsum, ("ij,jk->ik", x, x))
    assert cresset.einsum("ij,jk->ik", x, x) == (cresset.einsum, ("ij,jk->ik", x, x))
    assert cresset.einsum(cresset.ones(2, 3), [0, 1]).shape == (2, 3)  # numbers for letters are no operands
