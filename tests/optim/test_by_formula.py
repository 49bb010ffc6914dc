"""Optimizers as formulas: the native pass and the same formula on tensors agree, in every dtype and layout."""

import copy

import pytest

import cresset
from cresset import _native, nn, optim

SPECS = {
    "sgd": lambda p, **k: optim.SGD(p, lr=0.1, weight_decay=0.1, **k),
    "sgd momentum": lambda p, **k: optim.SGD(p, lr=0.1, momentum=0.9, dampening=0.3, maximize=True, **k),
    "sgd nesterov": lambda p, **k: optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True, **k),
    "adam": lambda p, **k: optim.Adam(p, lr=0.1, weight_decay=0.1, **k),
    "adam amsgrad": lambda p, **k: optim.Adam(p, lr=0.1, amsgrad=True, betas=(0.3, 0.9), **k),
    "adamw": lambda p, **k: optim.AdamW(p, lr=0.1, maximize=True, **k),
    "adamax": lambda p, **k: optim.Adamax(p, lr=0.1, weight_decay=0.1, **k),
    "nadam": lambda p, **k: optim.NAdam(p, lr=0.1, weight_decay=0.1, decoupled_weight_decay=True, **k),
    "radam": lambda p, **k: optim.RAdam(p, lr=0.1, weight_decay=0.1, **k),
    "adagrad": lambda p, **k: optim.Adagrad(p, lr=0.1, lr_decay=0.1, initial_accumulator_value=0.5, **k),
    "adadelta": lambda p, **k: optim.Adadelta(p, lr=0.5, weight_decay=0.1, **k),
    "rmsprop": lambda p, **k: optim.RMSprop(p, lr=0.1, weight_decay=0.1, **k),
    "rmsprop momentum": lambda p, **k: optim.RMSprop(p, lr=0.1, momentum=0.5, **k),
    "rmsprop centered": lambda p, **k: optim.RMSprop(p, lr=0.1, centered=True, **k),
    "rmsprop both": lambda p, **k: optim.RMSprop(p, lr=0.1, centered=True, momentum=0.5, **k),
    "rprop": lambda p, **k: optim.Rprop(p, lr=0.1, **k),
    "asgd": lambda p, **k: optim.ASGD(p, lr=0.1, t0=2, weight_decay=0.1, **k),
}
LAYOUTS = {
    "contiguous": lambda t: t,
    "transposed": lambda t: t.t().contiguous().t(),
    "strided": lambda t: cresset.stack((t, t), -1)[..., 0],
}


def start(dtype, layout=LAYOUTS["contiguous"]):
    cresset.manual_seed(0)
    values = [cresset.randn(3, 4, dtype=dtype), cresset.randn(5, 2, dtype=dtype), cresset.randn(1, 1, dtype=dtype)]
    return [nn.Parameter(layout(value)) for value in values]


def train(optimizer, params, steps=6):
    generator = cresset.Generator(cresset.get_default_device()).manual_seed(1)
    for step in range(steps):
        for index, p in enumerate(params):
            # One parameter joins late: its step count is its own.
            p.grad = None if index == 1 and step < 2 else cresset.randn(p.shape, dtype=p.dtype, generator=generator)
        optimizer.step()
    return params


@pytest.fixture
def by_operations(monkeypatch):
    """Switches the native pass off."""
    return lambda: monkeypatch.setattr(_native, "update", lambda *args: NotImplemented)


@pytest.mark.parametrize("dtype", [cresset.float32, cresset.float64, cresset.complex64], ids=str)
@pytest.mark.parametrize("spec", SPECS)
def test_the_native_pass_is_the_formula(spec, dtype, by_operations):
    mine = start(dtype)
    optimizer = SPECS[spec](mine)
    train(optimizer, mine)
    by_operations()
    other = start(dtype)
    again = SPECS[spec](other)
    train(again, other)
    for p, q in zip(mine, other, strict=True):
        assert cresset.allclose(p, q, rtol=1e-5, atol=1e-6)
        assert set(optimizer.state[p]) == set(again.state[q])
        for name, value in optimizer.state[p].items():
            assert value.dtype == again.state[q][name].dtype
            assert cresset.allclose(value, again.state[q][name], rtol=1e-5, atol=1e-6), name


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("spec", SPECS)
def test_the_layout_changes_nothing(spec, layout):
    mine, other = start(cresset.float32, LAYOUTS[layout]), start(cresset.float32)
    train(SPECS[spec](mine), mine)
    train(SPECS[spec](other), other)
    for p, q in zip(mine, other, strict=True):
        assert p.tolist() == q.tolist()


@pytest.mark.parametrize("dtype", [cresset.float16, cresset.bfloat16], ids=str)
@pytest.mark.parametrize("spec", ["sgd momentum", "adamw", "rmsprop", "asgd"])
def test_half_parameters_follow_single_ones(spec, dtype):
    half = start(dtype)
    single = [nn.Parameter(p.detach().float()) for p in half]
    cresset.manual_seed(2)
    optimizers = SPECS[spec](half), SPECS[spec](single)
    for _ in range(5):
        for p, q in zip(half, single, strict=True):
            p.grad = cresset.randn(p.shape).to(dtype)
            q.grad = p.grad.float()
        for optimizer in optimizers:
            optimizer.step()
    for p, q in zip(half, single, strict=True):
        assert p.dtype == dtype and cresset.allclose(p.float(), q, rtol=0.1, atol=0.05)


@pytest.mark.parametrize("spec", SPECS)
def test_threads_change_nothing(spec):
    results, before = [], cresset.get_num_threads()
    try:
        for threads in (1, 2):
            cresset.set_num_threads(threads)
            cresset.manual_seed(0)
            params = [nn.Parameter(cresset.randn(n)) for n in (70001, 3, 40000)]
            for p in params:
                p.grad = cresset.randn_like(p)
            optimizer = SPECS[spec](params)
            optimizer.step()
            optimizer.step()
            results.append([p.detach().clone() for p in params])
    finally:
        cresset.set_num_threads(before)
    assert all(cresset.equal(a, b) for a, b in zip(*results, strict=True))


@pytest.mark.parametrize("spec", [s for s in SPECS if s != "rprop"])
def test_steps_can_be_differentiated(spec):
    x = cresset.tensor([1.0, -2.0], dtype=cresset.float64, requires_grad=True)

    def moved(x):
        p = x * 1.0
        optimizer = SPECS[spec]([p], differentiable=True)
        for factor in (1.0, 0.5):
            p.grad = x * x * factor
            optimizer.step()
        return p

    assert cresset.autograd.gradcheck(moved, (x,))


def test_a_rate_can_be_learned():
    lr = cresset.tensor(0.1, requires_grad=True)
    p = cresset.tensor([1.0, 2.0], requires_grad=True) * 1.0
    p.grad = cresset.tensor([3.0, 4.0])
    optim.SGD([p], lr=lr, differentiable=True).step()
    p.sum().backward()
    assert lr.grad.item() == -7.0  # the gradients, added up


def test_a_differentiable_step_has_a_gradient_for_what_it_keeps_in_one_number():
    def step(product):
        p = cresset.tensor([1.0, 2.0], dtype=cresset.float64).clone()
        p.grad = cresset.tensor([0.5, -1.0], dtype=cresset.float64)
        optimizer = optim.NAdam([p], lr=0.9, differentiable=True)
        kept = {name: cresset.full((2,), 0.3, dtype=cresset.float64) for name in ("exp_avg", "exp_avg_sq")}
        optimizer.state[p].update(kept, step=cresset.tensor(10.0), mu_product=product.clone())
        optimizer.step()
        return p

    assert cresset.autograd.gradcheck(step, cresset.tensor(0.7, dtype=cresset.float64, requires_grad=True))


def test_an_error_changes_no_parameter():
    good, bad = nn.Parameter(cresset.ones(2)), nn.Parameter(cresset.ones(3))
    optimizer = optim.Adam([{"params": [good]}, {"params": [bad]}], lr=0.5)
    for p in (good, bad):
        p.grad = cresset.ones_like(p)
    optimizer.step()
    before, steps = good.tolist(), optimizer.state[good]["step"].item()
    optimizer.state[bad]["exp_avg"] = cresset.zeros(4)
    with pytest.raises(RuntimeError, match=r"Adam: exp_avg has shape \[4\], but its parameter has shape \[3\]"):
        optimizer.step()
    assert good.tolist() == before and optimizer.state[good]["step"].item() == steps


def test_a_setting_that_is_no_number_is_refused():
    p = nn.Parameter(cresset.ones(2))
    p.grad = cresset.ones(2)
    optimizer = optim.SGD([p], lr=0.1)
    optimizer.param_groups[0]["lr"] = "fast"
    with pytest.raises(TypeError, match="SGD: 'lr' must be a real number, not str"):
        optimizer.step()
    assert p.tolist() == [1.0, 1.0]


def test_versions_count_the_steps():
    p = nn.Parameter(cresset.ones(2))
    p.grad = cresset.ones(2)
    kept = (p * p).sum()
    optim.SGD([p], lr=0.1).step()
    with pytest.raises(RuntimeError, match="in place|inplace"):
        kept.backward()


def test_settings_may_change_between_steps():
    p = nn.Parameter(cresset.zeros(1))
    optimizer = optim.SGD([p], lr=1.0)
    for lr in (1.0, 0.5, cresset.tensor(0.25)):
        optimizer.param_groups[0]["lr"] = lr
        p.grad = cresset.ones(1)
        optimizer.step()
    assert p.item() == -1.75


def test_a_copy_goes_its_own_way():
    p = nn.Parameter(cresset.ones(1))
    optimizer = optim.Adam([p], lr=0.1)
    p.grad = cresset.ones(1)
    optimizer.step()
    other = copy.deepcopy(optimizer)
    optimizer.step()
    (q,) = other.param_groups[0]["params"]
    assert other.state[q]["step"].item() == 1 and optimizer.state[p]["step"].item() == 2


@pytest.mark.filterwarnings("ignore:optimizer contains a parameter group with duplicate")
@pytest.mark.parametrize("count", [2, 20])
def test_a_parameter_that_is_listed_twice_steps_twice(count):
    p, others = nn.Parameter(cresset.zeros(1)), [nn.Parameter(cresset.zeros(1)) for _ in range(count - 2)]
    optimizer = optim.Adam([p, *others, p], lr=0.5)
    for q in (p, *others):
        q.grad = cresset.ones(1)
    optimizer.step()
    assert p.item() == pytest.approx(-1.0) and optimizer.state[p]["step"].item() == 2
    assert all(q.item() == pytest.approx(-0.5) for q in others)


def test_parameters_of_a_class_of_their_own_are_stepped():
    class Named(nn.Parameter):
        pass

    p = Named(cresset.ones(2))
    p.grad = cresset.ones(2)
    optim.SGD([p], lr=0.5, momentum=0.9).step()
    assert p.tolist() == [0.5, 0.5] and type(p) is Named


@pytest.mark.parametrize(
    "wish, message",
    [
        ({"fused": True, "foreach": True}, "`fused` and `foreach` cannot be `True` together"),
        ({"fused": True, "differentiable": True}, "`fused` does not support `differentiable`"),
    ],
)
@pytest.mark.parametrize("make", [optim.SGD, optim.Adam, optim.AdamW, optim.Adagrad])
def test_wishes_that_exclude_each_other_are_refused(make, wish, message):
    with pytest.raises(RuntimeError, match=message):
        make([nn.Parameter(cresset.ones(1))], **wish)


@pytest.mark.parametrize(
    "make",
    [
        lambda p: optim.SGD(p, lr=0.5),
        lambda p: optim.SGD(p, lr=0.5, momentum=0.9),
        lambda p: optim.Adagrad(p, lr=0.5),
    ],
)
def test_a_sparse_gradient_counts_as_a_dense_one(make):
    tables = [nn.Embedding(4, 2, sparse=sparse) for sparse in (True, False)]
    tables[1].load_state_dict(tables[0].state_dict())
    for table in tables:
        optimizer = make(table.parameters())
        for index in ([1, 1, 3], [0, 1, 1]):
            optimizer.zero_grad()
            (table(cresset.tensor(index)) ** 2).sum().backward()
            optimizer.step()
    assert cresset.allclose(tables[0].weight, tables[1].weight)


@pytest.mark.parametrize(
    "make, message",
    [
        (lambda p: optim.Adam(p), "Adam does not support sparse gradients, please consider SparseAdam instead"),
        (lambda p: optim.ASGD(p), "ASGD does not support sparse gradients"),
        (lambda p: optim.Adagrad(p, weight_decay=0.1), "weight_decay option is not compatible with sparse gradients"),
    ],
)
def test_sparse_gradients_are_refused_before_anything_changes(make, message):
    table, dense = nn.Embedding(4, 2, sparse=True), nn.Parameter(cresset.ones(2))
    dense.grad = cresset.ones(2)
    table(cresset.tensor([1])).sum().backward()
    with pytest.raises(RuntimeError, match=message):
        make([dense, *table.parameters()]).step()
    assert dense.tolist() == [1.0, 1.0]
