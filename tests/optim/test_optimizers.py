"""Optimizers: their rules on numbers a reader can work out, groups, state, hooks, refusals."""

import copy

import pytest

import cresset
from cresset import nn, optim

EVERY = [
    lambda p: optim.SGD(p, lr=0.1, momentum=0.9),
    lambda p: optim.Adam(p, lr=0.2),
    lambda p: optim.AdamW(p, lr=0.2),
    lambda p: optim.Adam(p, lr=0.2, amsgrad=True),
    lambda p: optim.RMSprop(p, lr=0.05),
    lambda p: optim.Adagrad(p, lr=1.0),
    lambda p: optim.Adadelta(p, lr=20.0),
    lambda p: optim.Adamax(p, lr=0.2),
    lambda p: optim.NAdam(p, lr=0.2),
    lambda p: optim.RAdam(p, lr=0.2),
    lambda p: optim.ASGD(p, lr=0.1),
    lambda p: optim.Rprop(p, lr=0.1),
    lambda p: optim.LBFGS(p, line_search_fn="strong_wolfe"),
    lambda p: optim.Adafactor(p, lr=0.3),
]


def parameter(*values):
    return nn.Parameter(cresset.tensor(values, dtype=cresset.float64))


def run(optimizer, p, grads):
    seen = []
    for grad in grads:
        p.grad = cresset.tensor(grad, dtype=p.dtype)
        optimizer.step()
        seen.append(p.tolist())
    return seen


@pytest.mark.parametrize("make", EVERY)
def test_each_finds_the_bottom_of_a_bowl(make):
    p = parameter(5.0, -4.0)
    bottom = cresset.tensor([1.0, 2.0], dtype=cresset.float64)
    optimizer = make([p])

    def closure():
        optimizer.zero_grad()
        loss = ((p - bottom) ** 2).sum()
        loss.backward()
        return loss

    first = optimizer.step(closure)
    for _ in range(200):
        optimizer.step(closure)
    assert first.item() == 52 and cresset.allclose(p, bottom, atol=0.1)


def test_momentum_adds_up():
    p = parameter(0.0)
    # The running gradient is 1, 1.5, 1.75.
    assert run(optim.SGD([p], lr=1.0, momentum=0.5), p, [[1.0]] * 3) == [[-1.0], [-2.5], [-4.25]]


def test_adam_takes_first_steps_of_the_length_of_the_rate():
    p = parameter(0.0, 0.0)
    (first,) = run(optim.Adam([p], lr=0.5), p, [[1e-3, -100.0]])
    assert first == pytest.approx([-0.5, 0.5], rel=1e-4)


def test_decoupled_decay_shrinks_without_gradient():
    p = parameter(2.0)
    (first,) = run(optim.AdamW([p], lr=0.1, weight_decay=0.5), p, [[0.0]])
    assert first == [2.0 * (1 - 0.1 * 0.5)]


def test_muon_steps_have_singular_values_near_one():
    p = nn.Parameter(cresset.zeros(4, 4))
    p.grad = cresset.randn(4, 4)
    optim.Muon([p], lr=1.0, weight_decay=0.0).step()
    assert 0.4 < (p @ p.T).diagonal().mean().item() < 1.6


def test_groups_have_their_own_rates():
    a, b = parameter(0.0), parameter(0.0)
    optimizer = optim.SGD([{"params": [a], "lr": 1.0}, {"params": b}], lr=0.1)
    a.grad, b.grad = cresset.ones_like(a), cresset.ones_like(b)
    optimizer.step()
    assert a.item() == -1 and b.item() == pytest.approx(-0.1)
    optimizer.add_param_group({"params": [parameter(1.0)], "lr": 5.0})
    assert [group["lr"] for group in optimizer.param_groups] == [1.0, 0.1, 5.0]
    with pytest.raises(ValueError, match="more than one parameter group"):
        optimizer.add_param_group({"params": [a]})


def test_named_parameters_are_remembered():
    optimizer = optim.SGD(nn.Linear(2, 1).named_parameters(), lr=0.1)
    assert optimizer.state_dict()["param_groups"][0]["param_names"] == ["weight", "bias"]


@pytest.mark.parametrize("make", EVERY[:12])
def test_state_goes_on_where_it_was(make):
    grads = [[0.5, -1.0], [2.0, 0.1], [-0.3, 0.7], [1.0, 1.0]]
    p, q = parameter(1.0, -2.0), parameter(1.0, -2.0)
    straight = run(make([p]), p, grads)
    first = make([q])
    run(first, q, grads[:2])
    second = make([q])
    second.load_state_dict(copy.deepcopy(first.state_dict()))
    # A step count or rate kept in single precision takes on the parameter's precision when it is loaded.
    for got, expected in zip(run(second, q, grads[2:]), straight[2:], strict=True):
        assert got == pytest.approx(expected, rel=1e-6)


def test_a_state_of_other_parameters_is_refused():
    saved = optim.Adam([parameter(1.0), parameter(2.0)]).state_dict()
    with pytest.raises(ValueError, match="doesn't match the size"):
        optim.Adam([parameter(1.0)]).load_state_dict(saved)


def test_hooks_run_around_each_step():
    p, seen = parameter(1.0), []
    optimizer = optim.SGD([p], lr=0.1)
    handle = optimizer.register_step_pre_hook(lambda o, args, kwargs: seen.append("before"))
    optimizer.register_step_post_hook(lambda o, args, kwargs: seen.append("after"))
    run(optimizer, p, [[1.0]])
    handle.remove()
    run(optimizer, p, [[1.0]])
    assert seen == ["before", "after", "after"]


def test_parameters_without_gradient_are_left_alone():
    a, b = parameter(1.0), parameter(1.0)
    a.grad = cresset.ones_like(a)
    optimizer = optim.AdamW([a, b], lr=0.1, weight_decay=0.5)
    optimizer.step()
    assert b.item() == 1.0 and a.is_leaf and b not in optimizer.state


@pytest.mark.parametrize(
    "make, error",
    [
        (lambda: optim.SGD([], lr=0.1), "empty parameter list"),
        (lambda: optim.SGD([parameter(1.0)], lr=-1.0), "Invalid learning rate: -1.0"),
        (lambda: optim.Adam([parameter(1.0)], betas=(1.5, 0.9)), "Invalid beta parameter at index 0: 1.5"),
        (lambda: optim.Adam([parameter(1.0)], eps=-1.0), "Invalid epsilon value: -1.0"),
        (lambda: optim.SGD([parameter(1.0)], lr=0.1, nesterov=True), "Nesterov momentum requires a momentum"),
        (lambda: optim.SGD([parameter(1.0) * 2], lr=0.1), "can't optimize a non-leaf Tensor"),
    ],
)
def test_bad_arguments_are_refused(make, error):
    with pytest.raises(ValueError, match=error):
        make()


def test_a_bare_tensor_is_refused():
    with pytest.raises(
        TypeError, match=r"should be an iterable of Tensors or dicts, but got torch\.(cuda\.)?FloatTensor"
    ):
        optim.SGD(cresset.ones(1), lr=0.1)


def test_averaged_model_is_the_mean_of_what_it_saw():
    model = nn.Linear(1, 1, bias=False)
    average = optim.swa_utils.AveragedModel(model)
    for value in (1.0, 2.0, 6.0):
        with cresset.no_grad():
            model.weight.fill_(value)
        average.update_parameters(model)
    assert average.module.weight.item() == pytest.approx(3.0) and average.n_averaged.item() == 3


def test_a_subclass_that_never_calls_the_base_constructor_steps():
    class Bare(optim.Optimizer):
        def __init__(self, param):
            self.param_groups = [{"params": [param]}]

        def step(self, closure=None):
            with cresset.no_grad():
                self.param_groups[0]["params"][0].sub_(1)

    param = cresset.nn.Parameter(cresset.ones(2))
    seen = []
    handle = optim.optimizer.register_optimizer_step_post_hook(lambda *_: seen.append(1))
    try:
        Bare(param).step()
    finally:
        handle.remove()
    Bare(param).step()
    assert param.tolist() == [-1, -1] and seen == [1]


def test_an_optimizer_around_another_steps_it():
    class Around(optim.Optimizer):
        def __init__(self, inner):
            self.inner = inner

        def __getattr__(self, name):
            return getattr(self.__dict__["inner"], name)

        def step(self, closure=None):
            return self.inner.step(closure)

    param = cresset.nn.Parameter(cresset.ones(2))
    around = Around(optim.SGD([param], lr=0.5))
    param.sum().backward()
    around.step()
    assert param.tolist() == [0.5, 0.5] and around.param_groups[0]["lr"] == 0.5


def test_loading_copies_state_and_does_not_clone_what_knows_no_clone():
    class Packed(cresset.Tensor):
        """Numbers that know how to be converted and nothing else."""

        @staticmethod
        def __new__(cls, data):
            return cresset.Tensor._make_wrapper_subclass(cls, data.shape, dtype=data.dtype)

        def __init__(self, data):
            self.data_inside = data

        @classmethod
        def __torch_dispatch__(cls, func, types, args, kwargs=None):
            if func == cresset.ops.aten._to_copy.default:
                return cls(args[0].data_inside.clone())
            raise NotImplementedError(str(func))

    p = nn.Parameter(cresset.ones(2))
    optimizer = optim.Adam([p])
    p.grad = cresset.ones(2)
    optimizer.step()
    state = optimizer.state_dict()
    plain, state["state"][0]["exp_avg"] = state["state"][0]["exp_avg_sq"], Packed(cresset.ones(2))
    other = optim.Adam([p])
    other.load_state_dict(state)
    assert type(other.state[p]["exp_avg"]) is Packed
    assert other.state[p]["exp_avg_sq"] is not plain
