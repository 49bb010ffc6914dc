"""In-place changes and views: whose history is rewritten, and which changes are refused."""

import pytest

import cresset


def leaf(*values):
    return cresset.tensor(values if len(values) > 1 else values[0], requires_grad=True)


def test_a_change_of_a_view_reaches_the_base():
    x = leaf(1.0, 2.0, 3.0)
    y = x * 1
    y[1:].pow_(2)
    y.sum().backward()
    assert x.grad.tolist() == [1, 4, 6]


def test_a_change_of_the_base_reaches_its_views():
    x = leaf(1.0, 2.0, 3.0)
    y = x * 1
    tail = y[1:]
    y.mul_(2)
    (tail * tail).sum().backward()
    assert tail.tolist() == [4, 6] and x.grad.tolist() == [0, 16, 24]


@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize("view, slopes", [
    (lambda y: y.expand(3, 4), [6.0, 12.0, 18.0, 24.0]),
    (lambda y: y.unfold(0, 2, 1), [2.0, 8.0, 12.0, 8.0]),
    (lambda y: y.as_strided((2, 3), (1, 1)), [2.0, 8.0, 12.0, 8.0]),
    (lambda y: y[1:].as_strided((2, 2), (0, 1), 2), [0.0, 0.0, 12.0, 16.0]),
])  # fmt: skip
def test_a_change_of_the_base_reaches_views_whose_elements_share_memory(view, slopes, create_graph):
    y = cresset.ones(4)
    seen = view(y)
    x = leaf(1.0, 2.0, 3.0, 4.0)
    y.mul_(x)
    (grad,) = cresset.autograd.grad((seen * seen).sum(), x, create_graph=create_graph)
    assert grad.tolist() == slopes
    if create_graph:
        assert cresset.autograd.grad(grad.sum(), x)[0].tolist() == [a / b for a, b in zip(slopes, x.tolist())]


@pytest.mark.parametrize("view", [
    lambda y: cresset.view_as_real(y).expand(2, 3, 2),
    lambda y: cresset.view_as_real(y[1:]).unfold(0, 2, 1)[1:],
    lambda y: cresset.view_as_complex(cresset.view_as_real(y)).expand(2, 3),
])  # fmt: skip
def test_a_change_of_the_base_reaches_overlapping_views_as_real_numbers(view):
    x = cresset.tensor([1 + 2j, 3 - 1j, 2j], requires_grad=True)
    y = cresset.ones(3, dtype=cresset.complex64)
    seen = view(y)
    y.mul_(x)
    seen.abs().square().sum().backward()
    expected = cresset.autograd.grad(view(x * 1).abs().square().sum(), x)[0]
    assert cresset.allclose(x.grad, expected)


def test_a_change_of_real_numbers_reaches_overlapping_views_as_complex_ones():
    def seen_of(y):
        return cresset.view_as_complex(y.view(3, 2)).expand(2, 3)

    x = leaf(1.0, 2.0, 3.0, 4.0, 5.0, 6.0)
    y = cresset.ones(6)
    seen = seen_of(y)
    y.mul_(x)
    seen.abs().square().sum().backward()
    assert x.grad.tolist() == [4 * v for v in x.tolist()]


def test_a_change_of_a_view_reaches_the_other_views():
    x = leaf(1.0, 2.0, 3.0)
    y = x * 1
    a, b = y[:2], y[1:]
    a.mul_(10)
    b.sum().backward()
    assert b.tolist() == [20, 3] and x.grad.tolist() == [0, 10, 1]


def test_values_flow_through_a_buffer():
    buffer, x = cresset.zeros(3), leaf(1.0, 2.0)
    buffer[1:] = x * 2
    (buffer * buffer).sum().backward()
    assert buffer.requires_grad and x.grad.tolist() == [8, 16]


def test_a_view_of_a_buffer_follows_it_into_the_graph():
    buffer, x = cresset.zeros(2, 2), leaf(1.0, 2.0)
    row = buffer[0]
    buffer.add_(x)
    row.mul_(5)
    (buffer * buffer).sum().backward()
    assert row.requires_grad and x.grad.tolist() == [52, 104]


def test_a_retained_gradient_is_that_of_the_value_after_a_change_of_a_view():
    x = leaf(1.0, 2.0)
    y = x * 1
    y.retain_grad()
    y[-1:].neg_()
    (y * y).sum().backward()
    assert y.grad.tolist() == [2, -4] and x.grad.tolist() == [2, 4]


@pytest.mark.parametrize("change", [lambda base, view: base.neg_(), lambda base, view: view.neg_()])
def test_the_retained_gradient_of_a_view_is_that_of_the_value_after_a_change(change):
    x = leaf(1.0, 2.0)
    y = x * 1
    view = y[1:]
    view.retain_grad()
    change(y, view)
    (view * view).sum().backward()
    assert view.grad.tolist() == [-4] and x.grad.tolist() == [0, 4]


def test_overwritten_values_have_no_gradient():
    x = leaf(1.0, 2.0, 3.0)
    y = x * 2
    y[1] = 7.0
    y.sum().backward()
    assert x.grad.tolist() == [2, 0, 2]


COMPLEX_OF_REAL = {
    "all": cresset.view_as_complex,
    "transposed": lambda b: cresset.view_as_complex(b).t(),
    "a row": lambda b: cresset.view_as_complex(b)[1],
    "of a part": lambda b: cresset.view_as_complex(b[1]),
    "real part of it": lambda b: cresset.view_as_complex(b).real,
}
REAL_OF_COMPLEX = {
    "both parts": cresset.view_as_real,
    "one part": lambda b: cresset.view_as_real(b)[..., 1],
    "real": lambda b: b.real,
    "imag, transposed": lambda b: b.imag.transpose(0, 2),
    "of a row": lambda b: b[1].imag,
}


@pytest.mark.parametrize(
    ("dtype", "view"),
    [(cresset.float64, v) for v in COMPLEX_OF_REAL.values()]
    + [(cresset.complex128, v) for v in REAL_OF_COMPLEX.values()],
    ids=[*COMPLEX_OF_REAL, *REAL_OF_COMPLEX],
)
def test_a_change_of_a_view_as_complex_or_real_numbers_reaches_the_base_and_its_other_views(dtype, view):
    x = cresset.arange(8, dtype=cresset.float64).sub(2).div(3).reshape(2, 2, 2).to(dtype).requires_grad_()

    def changed(x):
        base = x * (1 + 2j if dtype.is_complex else 1)
        other = view(base)
        part = view(base)
        part.mul_(2).sub_(other * 3)
        part.exp_()
        return base, part, other, base[1]

    assert cresset.autograd.gradcheck(changed, x) and cresset.autograd.gradgradcheck(changed, x)


def test_second_derivative_through_a_changed_view():
    x = leaf(1.0, 2.0)
    y = x * 1
    y[0].pow_(3)
    (slope,) = cresset.autograd.grad((y * y).sum(), x, create_graph=True)
    (second,) = cresset.autograd.grad(slope.sum(), x)
    assert slope.tolist() == [6, 4] and second.tolist() == [30, 2]


def test_a_view_gets_a_new_node():
    x = leaf(1.0, 2.0) * 1
    v = x[0]
    assert v.grad_fn.name() == "SelectBackward0"
    x[1].mul_(2)
    assert x.grad_fn.name().endswith("CopySlices") and v.grad_fn.name() == "AsStridedBackward0"


def test_without_recording_a_leaf_may_change():
    x = leaf(1.0, 2.0)
    with cresset.no_grad():
        x.mul_(3)
        x[0] = 5.0
    (x * x).sum().backward()
    assert x.is_leaf and x.grad.tolist() == [10, 12]


def no_grad_view(x):
    with cresset.no_grad():
        return x[0]


@pytest.mark.parametrize(
    "run, phrase",
    [
        (lambda x: x.add_(1), "a leaf Variable that requires grad is being used in an in-place operation"),
        (lambda x: x[0].add_(1), "a view of a leaf Variable that requires grad is being used in an in-place operation"),
        (lambda x: (x * 1).unbind()[0].add_(1), "function that returns multiple views"),
        (lambda x: no_grad_view(x * 1).add_(1), "created in no_grad mode"),
        (lambda x: (x * 1)[0].detach_(), "Can't detach views in-place"),
        (lambda x: cresset.exp(x, out=cresset.empty(2)), "don't support automatic differentiation"),
    ],
)
def test_what_is_refused(run, phrase):
    x = leaf(1.0, 2.0)
    with pytest.raises(RuntimeError, match=phrase):
        run(x)
    assert x.tolist() == [1, 2]


class TestAViewThatIsALeaf:
    """A view whose base wants no gradient can be made to want one itself; then neither it nor its own views may
    change."""

    def view(self):
        return cresset.arange(6.0).view(2, 3).requires_grad_()

    @pytest.mark.parametrize(
        "change",
        [
            lambda x: x.mul_(2),
            lambda x: x.zero_(),
            lambda x: x.copy_(cresset.ones(2, 3)),
            lambda x: x.normal_(),
            lambda x: x[0].mul_(2),
            lambda x: x.__setitem__(0, 1.0),
            lambda x: x.index_put_((cresset.tensor([0]),), cresset.tensor(1.0)),
            lambda x: cresset.nn.functional.relu(x, inplace=True),
            lambda x: cresset._foreach_mul_([x], 2.0),
            lambda x: x.t().clamp_(0),
        ],
    )
    def test_a_change_is_refused(self, change):
        x = self.view()
        with pytest.raises(RuntimeError, match="a view of a leaf Variable that requires grad"):
            change(x)
        assert x.is_leaf and x.tolist() == [[0, 1, 2], [3, 4, 5]]

    def test_without_recording_and_through_detach_and_data_it_may_change(self):
        x = self.view()
        with cresset.no_grad():
            x.mul_(2)
        x.detach().add_(1)
        x.data.add_(1)
        cresset.nn.init.zeros_(x)
        assert x.is_leaf and x.tolist() == [[0, 0, 0], [0, 0, 0]]

    def test_its_base_may_change(self):
        base = cresset.arange(3.0)
        x = base.view(3).requires_grad_()
        base.mul_(2)
        assert not base.requires_grad and x.is_leaf and x.tolist() == [0, 2, 4]

    def test_a_function_that_marks_a_view_of_a_leaf_dirty_is_refused(self):
        class Double(cresset.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.mark_dirty(x)
                return x.mul_(2)

            @staticmethod
            def backward(ctx, grad):
                return 2 * grad

        with pytest.raises(RuntimeError, match="a view of a leaf Variable"):
            Double.apply(leaf(1.0, 2.0)[:1])
        y = leaf(1.0, 2.0) * 1
        assert Double.apply(y[:1]).tolist() == [2] and y.tolist() == [2, 2]


class TestAViewAndItsBase:
    def test_a_view_requires_grad_once_its_base_does(self):
        x = cresset.ones(3)
        view = x[:2]
        x.requires_grad_()
        assert view.requires_grad and view.is_leaf and (view * 2).requires_grad
        (view * 2).sum().backward()  # the view was made before: no gradient flows
        assert x.grad is None
        with pytest.raises(RuntimeError, match="requires grad"):
            view.numpy()

    def test_a_view_made_without_recording_requires_grad_as_its_base_does(self):
        x = leaf(1.0, 2.0)
        with cresset.no_grad():
            view = x[:1]
            assert not (view * 2).requires_grad
        assert view.requires_grad and not view.detach().requires_grad
        with pytest.raises(RuntimeError, match="created in no_grad mode"):
            view[:1].mul_(2)

    @pytest.mark.parametrize(
        ("view", "phrase"),
        [
            (no_grad_view, "created in no_grad mode and its base"),
            (lambda x: x.unbind()[0], "multiple views"),
            (lambda x: x.split(1)[0], "multiple views"),
        ],
    )
    def test_a_change_of_the_base_leaves_some_views_without_a_history(self, view, phrase):
        y = leaf(1.0, 2.0) * 1
        part = view(y)
        y.mul_(2)
        for use in (lambda: part.grad_fn, lambda: part.is_leaf, lambda: part * 2):
            with pytest.raises(RuntimeError, match=phrase):
                use()
        assert part.requires_grad and "grad_fn=<Invalid>" in repr(part)
        with cresset.no_grad():
            assert (part * 2).sum().item() == 4

    def test_a_view_of_other_dtype_has_no_history(self):
        y = leaf(1.0, 2.0) * 1
        for dtype in (cresset.int32, cresset.float16, cresset.complex64, cresset.float32):
            bits = y.view(dtype)
            assert bits._base is None and not bits.requires_grad and bits.grad_fn is None

    def test_callables_are_not_differentiable(self):
        x = leaf(1.0, 2.0)
        for change in (lambda: x.apply_(abs), lambda: x.map_(x, max), lambda: (x * 1).apply_(abs)):
            with pytest.raises(RuntimeError, match="on Variable that requires grad"):
                change()


@pytest.mark.parametrize("create_graph", [False, True])
def test_a_change_of_a_part_of_a_tensor_with_gaps(create_graph):
    x = cresset.arange(8.0).view(4, 2).requires_grad_()
    column = x.unbind(1)[0]  # every other element of the memory
    y = cresset.slice_scatter(column, column[:1] * 3, 0, 1, 2)
    assert y.stride() == (2,)
    y[2:].mul_(5)
    (slope,) = cresset.autograd.grad((y * y).sum(), x, create_graph=create_graph)
    # y is x0, 3 x0, 5 x2, 5 x3
    assert slope.tolist() == [[0, 0], [0, 0], [50 * 4, 0], [50 * 6, 0]]


@pytest.mark.parametrize("change", [lambda v: v.t_(), lambda v: v.unsqueeze_(0), lambda v: v.as_strided_((2,), (1,))])
def test_views_that_may_not_change_keep_their_sizes(change):
    y = cresset.ones(2, 2, 2, requires_grad=True) * 1
    with cresset.no_grad():
        unrecorded = y[0]
    for view, phrase in ((y.unbind()[0], "multiple views"), (unrecorded, "created in no_grad mode")):
        with pytest.raises(RuntimeError, match=phrase):
            change(view)
        assert view.shape == (2, 2)


@pytest.mark.parametrize("name", ["eq_", "ne_", "lt_", "le_", "gt_", "ge_", "less_", "greater_equal_"])
def test_a_comparison_in_place_passes_no_gradient_on(name):
    x = leaf(1.0, 2.0)
    y = x * 3
    assert getattr(y, name)(cresset.tensor([3.0, 4.0])) is y and y._version == 1
    y.sum().backward()
    assert x.grad.tolist() == [0, 0] and set(y.tolist()) <= {0.0, 1.0}
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        getattr(x, name)(1)


PRODUCTS = {
    "matmul": lambda a, b: a @ b,
    "mm": cresset.mm,
    "bmm": lambda a, b: cresset.bmm(a[None], b[None]),
    "mv": lambda a, b: cresset.mv(a, b[0]),
    "dot": lambda a, b: cresset.dot(a[0], b[0]),
    "addmm": lambda a, b: cresset.addmm(cresset.zeros(2), a, b),
    "baddbmm": lambda a, b: cresset.baddbmm(cresset.zeros(2), a[None], b[None]),
    "linear": cresset.nn.functional.linear,
}


class TestWhatIsKeptForBackward:
    @pytest.mark.parametrize("name", PRODUCTS)
    @pytest.mark.parametrize("trained", [0, 1])
    def test_of_a_product_the_factor_that_has_no_gradient_alone(self, name, trained):
        start = [cresset.tensor([[1.0, 2.0], [3.0, 4.0]]), cresset.tensor([[5.0, 6.0], [7.0, 8.0]])]
        factors = [x.clone() for x in start]
        factors[trained].requires_grad_()
        result = PRODUCTS[name](*factors).sum()
        with cresset.no_grad():
            factors[trained].zero_()
        result.backward()
        both = [x.clone().requires_grad_() for x in start]
        PRODUCTS[name](*both).sum().backward()
        assert factors[trained].grad.tolist() == both[trained].grad.tolist()

    def test_the_factor_that_a_gradient_reads_may_not_change(self):
        weight, x = leaf([[1.0, 2.0]]), cresset.ones(1, 2)
        y = cresset.nn.functional.linear(x, weight)
        x.zero_()
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            y.backward()

    def test_a_bias_alone_keeps_no_factor(self):
        held = []

        def note(tensor):
            held.append(tuple(tensor.shape))
            return tensor

        with cresset.autograd.graph.saved_tensors_hooks(note, lambda x: x):
            y = cresset.nn.functional.linear(cresset.ones(3, 2), cresset.ones(4, 2), cresset.zeros(4).requires_grad_())
        assert held == [] and y.grad_fn is not None

    def test_tangents_and_second_derivatives_find_what_they_read(self):
        a, b = cresset.tensor([[1.0, 2.0], [3.0, 4.0]]), cresset.tensor([[5.0, 6.0], [7.0, 8.0]])
        for product in (cresset.mm, cresset.matmul, cresset.nn.functional.linear):
            value, moved = cresset.func.jvp(lambda x, product=product: product(x, b), (a,), (cresset.ones(2, 2),))
            assert moved.tolist() == product(cresset.ones(2, 2), b).tolist()
            x = a.clone().requires_grad_()
            (slope,) = cresset.autograd.grad((product(x, b) ** 2).sum(), x, create_graph=True)
            slope.sum().backward()
            assert x.grad.shape == (2, 2)


class TestResultsOfFunctions:
    """What a function makes as a view of something inside is no view for those who call it."""

    @pytest.mark.parametrize(
        "function",
        [
            lambda x: cresset.kron(x, x),
            cresset.rot90,
            lambda x: cresset.nn.functional.pixel_shuffle(x.view(1, 4, 2, 2), 2),
            lambda x: cresset.nn.functional.pixel_unshuffle(x[None], 2),
            lambda x: cresset.nn.functional.channel_shuffle(x[None], 2),
            lambda x: cresset.quantile(x, 0.5, dim=0),
            lambda x: cresset.addmv(x[0], x, x[1]),
            lambda x: x.sum_to_size(1, 4),
            lambda x: cresset.linalg.inv(x + 20 * cresset.eye(4)),
            lambda x: cresset.linalg.qr(x).Q,
        ],
    )
    def test_made_without_recording_they_may_be_written_to_later(self, function):
        with cresset.no_grad():
            y = function(cresset.arange(16.0).view(4, 4))
        assert y._base is None
        before, factor = y.clone(), leaf(2.0)
        y.mul_(factor)
        y.sum().backward()
        assert factor.grad.item() == pytest.approx(before.sum().item(), rel=1e-4, abs=1e-4)
        y.detach_()
        x = cresset.arange(16.0).view(4, 4).requires_grad_()
        function(x).sum().backward()
        assert x.grad.shape == (4, 4)


def test_false_as_an_index_writes_nothing_to_a_leaf_either():
    x = cresset.ones(2, 3, requires_grad=True)
    x[False] *= 2
    x[False] = cresset.ones(7)
    assert x.tolist() == [[1.0] * 3] * 2
    assert x._version == 0


def test_a_wrong_index_is_told_before_the_leaf():
    x = cresset.ones(2, 3, requires_grad=True)
    with pytest.raises(IndexError, match="out of"):
        x[2] = 1
    with pytest.raises(RuntimeError, match="leaf Variable"):
        x[1] = 1


@pytest.mark.parametrize("layout", ["same", "shifted", "turned", "expanded"])
def test_the_gradient_of_a_part_written_into_a_fresh_tensor_is_that_part_of_any_gradient(layout):
    numbers = cresset.arange(1.0, 18.0)
    grad = {
        "same": numbers[:16].reshape(4, 4).clone(),
        "shifted": numbers[1:].reshape(4, 4),
        "turned": numbers[:16].reshape(4, 4).t(),
        "expanded": cresset.tensor(3.0).expand(4, 4),
    }[layout]
    x = cresset.arange(2.0, requires_grad=True)
    whole = cresset.zeros(4, 4)
    whole[1:3, 2].copy_(x)
    before = grad.clone()
    (found,) = cresset.autograd.grad(whole, x, grad)
    assert cresset.equal(found, grad[1:3, 2])
    found.zero_()  # which is not the memory of the gradient that came
    assert cresset.equal(grad, before)


OVERWRITTEN = {
    "itself": lambda y: y.mul_(y),
    "a view of itself": lambda y: y.div_(y.view(4)),
    "detached": lambda y: y.pow_(y.detach()),
    "twice": lambda y: y.addcmul_(y, y),
    "two by two": lambda y: y.view(2, 2).addmm_(y.view(2, 2), y.view(2, 2)),
}


@pytest.mark.parametrize("name", OVERWRITTEN)
def test_an_operand_that_a_call_in_place_writes_over_is_refused_by_backward(name):
    x = leaf(1.5, 2.0, 0.5, 3.0)
    y = x * 1
    OVERWRITTEN[name](y)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_an_operand_that_lies_beside_what_a_call_in_place_writes_is_read_by_backward():
    x = leaf(1.5, 2.0, 0.5, 3.0)
    y = x * 1
    y[:2].mul_(y[2:])
    y.sum().backward()
    assert x.grad.tolist() == [0.5, 3, 2.5, 3]


def test_in_vmap_an_operand_that_is_written_over_is_refused_too():
    def squares(x):
        y = x * 1
        return y.mul_(y).sum()

    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        cresset.func.vmap(cresset.func.grad(squares))(cresset.ones(2, 2))


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (lambda y: y.div_(y.data), [1 / 1.5, 0.5, 2, 1 / 3]),
        (lambda y: y.mul_(y.data.view(1, 4).view(4)), [1.5, 2, 0.5, 3]),
        (lambda y: y.addcmul_(y.data, y, value=2), [4, 5, 2, 7]),
    ],
)
def test_an_operand_that_data_gave_and_that_is_written_over_is_read_by_backward_as_it_was(call, expected):
    x = leaf(1.5, 2.0, 0.5, 3.0)
    y = x * 1
    call(y)
    y.sum().backward()
    assert x.grad.tolist() == pytest.approx(expected)


@pytest.mark.parametrize("change", ["relu_", "sigmoid_", "exp_", "tanh_"])
def test_a_change_of_a_view_that_keeps_its_result_is_differentiated_twice(change):
    """What backward reads of the changed part has the history of the base after the change."""
    x = cresset.tensor([0.5, 2.0], dtype=cresset.float64, requires_grad=True)

    def changed(x):
        return getattr((x * 2).view(1, 2).view(2), change)().pow(2).sum()

    def plain(x):
        return getattr(cresset, change[:-1])(x * 2).pow(2).sum()

    (slope,) = cresset.autograd.grad(changed(x), x, create_graph=True)
    (expected,) = cresset.autograd.grad(plain(x), x, create_graph=True)
    assert slope.tolist() == pytest.approx(expected.tolist())
    (second,), (also,) = (cresset.autograd.grad(s.sum(), x) for s in (slope, expected))
    assert second.tolist() == pytest.approx(also.tolist())


@pytest.mark.parametrize(
    "refused",
    [lambda x: x, lambda x: x[0], lambda x: (x * 1).unbind()[0], lambda x: no_grad_view(x * 1)],
    ids=["leaf", "view of a leaf", "one of many views", "view made without recording"],
)
@pytest.mark.parametrize("change", ["zero_", "sqrt_", "neg_"])
def test_of_many_tensors_none_is_written_to_where_one_is_refused(refused, change):
    first, last = cresset.full((2,), 4.0), leaf(1.0, 2.0)
    with pytest.raises(RuntimeError, match="in-place|inplace"):
        getattr(cresset, "_foreach_" + change)([first, refused(last)])
    assert first.tolist() == [4.0, 4.0] and first._version == 0


@pytest.mark.parametrize(
    "change",
    [
        lambda x: x.float_power_(2.5),
        lambda x: x.float_power_(cresset.full((2, 2), 1.5, dtype=x.dtype)),
        lambda x: x.polygamma_(1),
        lambda x: x.mvlgamma_(1),
        lambda x: x.renorm_(2, 0, 0.5),
        lambda x: cresset.nn.functional.elu_(x, 1.0, 2.0, 0.5),
    ],
    ids=["float_power_", "float_power_ of a tensor", "polygamma_", "mvlgamma_", "renorm_", "elu_ scaled"],
)
def test_a_function_of_others_in_place_is_differentiated_at_what_was_there(change):
    x = cresset.tensor([[0.75, 1.5], [2.25, -0.5]], dtype=cresset.float64).abs().requires_grad_()
    assert cresset.autograd.gradcheck(lambda x: change(x.clone()), (x,))


def test_the_derivative_by_an_operand_is_taken_at_what_was_there():
    base, power = cresset.tensor([2.0, 3.0], dtype=cresset.float64), leaf(3.0, 2.0).double()
    (grad,) = cresset.autograd.grad(base.float_power_(power).sum(), power)
    assert cresset.allclose(grad, cresset.tensor([8.0, 9.0]).double() * cresset.tensor([2.0, 3.0]).double().log())
