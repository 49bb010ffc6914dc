"""gradcheck passes what is right and finds what is wrong."""

import pytest

import cresset
from cresset.autograd import Function, gradcheck, gradgradcheck
from cresset.autograd.gradcheck import GradcheckError, get_analytical_jacobian, get_numerical_jacobian


def real(*shape):
    return cresset.randn(
        shape, dtype=cresset.float64, generator=cresset.Generator(cresset.get_default_device()).manual_seed(1)
    ).requires_grad_()


def complex_(*shape):
    return cresset.randn(
        shape, dtype=cresset.complex128, generator=cresset.Generator(cresset.get_default_device()).manual_seed(1)
    ).requires_grad_()


RIGHT = [
    (lambda x: x.exp() * x, (real(3),)),
    (lambda x, y: (x * y, y.sum(0)), (real(3), real(2, 3))),
    (lambda x: x.t() @ x, (real(2, 3).detach().t().requires_grad_(),)),
    (lambda z: z * z.conj(), (complex_(3),)),
    (lambda z: z.abs(), (complex_(3),)),
    (lambda z: z**2 * 1j, (complex_(2),)),
    (lambda z, x: z * x, (complex_(2), real(2))),
    (lambda x: cresset.complex(x, x * 2), (real(2),)),
    (lambda x: x.sum(), (real(0, 2),)),
]


@pytest.mark.parametrize("fast", [False, True])
@pytest.mark.parametrize("function, inputs", RIGHT)
def test_right_derivatives_pass(function, inputs, fast):
    assert gradcheck(
        function, inputs, fast_mode=fast, check_forward_ad=True, check_batched_grad=True, check_grad_dtypes=True
    )
    assert gradgradcheck(function, inputs, fast_mode=fast)


def test_forward_over_reverse_passes():
    assert gradgradcheck(lambda x: x.exp() * x, (real(3),), check_fwd_over_rev=True, gen_non_contig_grad_outputs=True)


def twice(backward, forward=lambda ctx, x: x * 2):
    return type("Twice", (Function,), {"forward": staticmethod(forward), "backward": staticmethod(backward)}).apply


@pytest.mark.parametrize("fast", [False, True])
@pytest.mark.parametrize(
    "function, phrase",
    [
        (twice(lambda ctx, g: g * 3), "Jacobian mismatch for output 0 with respect to input 0"),
        (twice(lambda ctx, g: g * 2 + 1e-9 * cresset.rand(3) * g), "Backward is not reentrant"),
        (twice(lambda ctx, g: g * 2 + 1e-7), "not multiplied by grad_output"),
        (lambda x: x.detach() * 2, "expected to be zero"),
    ],
)
def test_wrong_derivatives_are_found(function, phrase, fast):
    x = real(3)
    with pytest.raises(GradcheckError, match=phrase):
        gradcheck(function, (x,), fast_mode=fast)
    assert gradcheck(function, (x,), fast_mode=fast, raise_exception=False) is False


def test_a_backward_that_cannot_take_none_is_found():
    def backward(ctx, a, b):
        if a is None and b is None:
            raise RuntimeError("nothing to add")
        return (0 if a is None else a * 2) + (0 if b is None else b * 3)

    def forward(ctx, x):
        ctx.set_materialize_grads(False)
        return x * 2, x * 3

    with (
        pytest.raises(GradcheckError, match="handle undefined output grads"),
        pytest.warns(UserWarning, match="check_undefined_grad=False"),
    ):
        gradcheck(twice(backward, forward), (real(2),))
    assert gradcheck(twice(backward, forward), (real(2),), check_undefined_grad=False)


def test_a_missing_tangent_must_count_as_zeros():
    class Product(cresset.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.set_materialize_grads(False)
            ctx.save_for_forward(x, y)
            return x * y

        @staticmethod
        def jvp(ctx, x_tangent, y_tangent):
            x, y = ctx.saved_tensors
            if y_tangent is None:
                return x_tangent  # wrong: it is to be multiplied by y
            return x * y_tangent if x_tangent is None else x_tangent * y + x * y_tangent

    only_forward = {"check_forward_ad": True, "check_backward_ad": False}
    inputs = real(2), (3 * real(2)).detach().requires_grad_()
    assert gradcheck(Product.apply, inputs, **only_forward, check_undefined_grad=False)
    with pytest.raises(GradcheckError, match="whether that of input 1 is undefined or zero"):
        gradcheck(Product.apply, inputs, **only_forward)


def test_what_asks_for_backward_mode_is_refused_without_it():
    only_forward = {"check_fwd_over_rev": True, "check_rev_over_rev": False}
    for check in ("check_undefined_grad", "check_batched_grad"):
        with pytest.raises(AssertionError, match=f"{check}=True requires check_rev_over_rev"):
            gradgradcheck(lambda x: x**3, (real(3),), **only_forward, **{"check_undefined_grad": False, check: True})
    assert gradgradcheck(lambda x: x**3, (real(3),), **only_forward, check_undefined_grad=False)


def test_inputs_are_looked_at():
    with pytest.raises(ValueError, match="at least one input tensor to require gradient"):
        gradcheck(lambda x: x, (cresset.ones(2),))
    with pytest.warns(UserWarning, match="not a double precision"):
        gradcheck(lambda x: x * 2, (cresset.ones(2, requires_grad=True),), eps=1e-2, atol=1e-2)
    with pytest.raises(RuntimeError, match="stride 0"):
        gradcheck(lambda x: x * 2, (real(1).detach().expand(3).requires_grad_(),))


def test_inputs_are_left_as_they_were():
    x = real(3)
    before, version = x.tolist(), x._version
    gradcheck(lambda x: x.exp(), (x,))
    gradcheck(lambda x: x.exp(), (x,), fast_mode=True)
    assert x.tolist() == before and x._version == version


def test_the_jacobians_alone():
    x = cresset.tensor([1.0, 2.0], dtype=cresset.float64, requires_grad=True)
    with pytest.warns(FutureWarning, match="`get_numerical_jacobian` was part of PyTorch's private API"):
        (numerical,) = get_numerical_jacobian(lambda inputs: inputs[0] ** 2, (x,), eps=1e-6)
    with pytest.warns(FutureWarning, match="`get_analytical_jacobian` was part of PyTorch's private API"):
        (analytical,), *fine = get_analytical_jacobian((x,), x**2)
    assert analytical.tolist() == [[2, 0], [0, 4]] and fine == [True, True, True]
    assert cresset.allclose(numerical, analytical)


class TestSparseInputs:
    """`masked` says which elements of a sparse input vary."""

    def matrix(self, layout):
        dense = cresset.tensor([[0.0, 2.0, 0.0], [3.0, 0.0, 4.0]], dtype=cresset.float64)
        return dense.to_sparse(layout=layout).requires_grad_()

    @pytest.mark.parametrize("layout", [cresset.sparse_coo, cresset.sparse_csr, cresset.sparse_csc], ids=str)
    @pytest.mark.parametrize("fast", [False, True])
    def test_the_specified_elements_are_checked(self, layout, fast):
        x = self.matrix(layout)
        assert gradcheck(lambda x: x.to_dense().exp(), (x,), masked=True, fast_mode=fast)

        class Wrong(Function):
            @staticmethod
            def forward(ctx, x):
                return x * 2

            @staticmethod
            def backward(ctx, grad):
                return grad * 3

        with pytest.raises(GradcheckError):
            gradcheck(lambda x: Wrong.apply(x.to_dense()), (x,), masked=True, fast_mode=fast)

    @pytest.mark.parametrize("masked", [False, None])
    def test_all_elements_are_checked_otherwise(self, masked):
        def off_at_the_zeros(x):
            return Unlike.apply(x.to_dense())

        class Unlike(Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                return x * 2

            @staticmethod
            def backward(ctx, grad):
                return grad * 2 * (ctx.saved_tensors[0] != 0)

        x = self.matrix(cresset.sparse_coo)
        assert gradcheck(lambda x: x.to_dense(), (x,), masked=masked)
        assert gradcheck(off_at_the_zeros, (x,), masked=True)
        with pytest.raises(GradcheckError):
            gradcheck(off_at_the_zeros, (x,), masked=masked)

    def test_a_sparse_output_is_refused(self):
        with pytest.raises(ValueError, match="Sparse output is not supported at gradcheck yet"):
            gradcheck(lambda x: x * 2, (self.matrix(cresset.sparse_coo),), masked=True)

    def test_dense_inputs_are_the_same_either_way(self):
        x = cresset.ones(2, dtype=cresset.float64, requires_grad=True)
        assert gradcheck(cresset.exp, (x,), masked=True) and gradcheck(cresset.exp, (x,), masked=False)


@pytest.mark.parametrize("fast", [False, True])
@pytest.mark.parametrize("other", [lambda x: cresset.cat([x, x]), lambda x: x.float()], ids=["shape", "dtype"])
def test_outputs_keep_their_form_when_inputs_change(fast, other):
    x = cresset.ones(1, dtype=cresset.float64, requires_grad=True)
    with pytest.raises(AssertionError, match="when inputs are perturbed"):
        gradcheck(lambda x: other(x) if bool((x >= 1).all()) else x, (x,), fast_mode=fast)


def test_the_wrong_part_of_a_complex_output_is_said():
    x = cresset.ones(2, dtype=cresset.complex128, requires_grad=True)

    def shifted(x):
        y = x.clone()
        y.register_hook(lambda grad: grad + 0.01)
        return y

    with pytest.raises(RuntimeError, match="While considering the imaginary part"):
        gradcheck(shifted, (x,))


def test_in_forward_mode_all_inputs_have_tangents_and_need_no_gradient():
    def looks(x, y):
        if cresset.autograd.forward_ad._current_level >= 0:
            assert cresset.autograd.forward_ad.unpack_dual(y).tangent is not None
            assert not x.requires_grad
        return x + y

    assert gradcheck(looks, (real(2), real(2)), check_forward_ad=True, check_undefined_grad=False)


def test_the_two_derivatives_by_a_complex_element_are_held_to_its_size():
    class Imaginary(cresset.autograd.Function):
        @staticmethod
        def forward(ctx, z):
            return 1000 * z.imag

        @staticmethod
        def backward(ctx, grad):
            return grad * (0.5 + 1000j)  # the derivative is 1000j

    assert gradcheck(Imaginary.apply, (complex_(2),), rtol=1e-3)
    with pytest.raises(GradcheckError, match="Jacobian mismatch"):
        gradcheck(Imaginary.apply, (complex_(2),), rtol=1e-4)
