"""torch._foreach_*: every form of every one, beside PyTorch's."""

import pytest

import cresset

torch = pytest.importorskip("torch")

NAMES = sorted(name for name in dir(torch) if name.startswith("_foreach_"))
VALUES = ([0.25, 0.5, 0.75], [[0.1, 0.9], [0.3, 0.6]])
OTHERS = ([2.0, 1.5, 0.5], [[1.0, 2.0], [3.0, 0.25]])


def lists(lib, *values):
    return [[lib.tensor(v) for v in value] for value in values]


def arguments(lib, name):
    """All the ways to call it, as (args, kwargs)."""
    bare = name.removeprefix("_foreach_").rstrip("_")
    first, other, third = lists(lib, VALUES, OTHERS, OTHERS)
    if bare in ("add", "sub", "mul", "div", "pow", "maximum", "minimum", "clamp_min", "clamp_max"):
        yield (first, 0.5), {}
        yield (first, [0.5, 2.0]), {}
        yield (first, other), {}
        if bare in ("add", "sub"):
            yield (first, other), {"alpha": 0.5}
        if bare in ("add", "mul", "div"):
            yield (first, lib.tensor(2.0)), {}
        if name == "_foreach_pow":
            yield (2.0, other), {}
    elif bare in ("addcmul", "addcdiv"):
        yield (first, other, third), {}
        yield (first, other, third, 0.5), {}
        yield (first, other, third, [0.5, 2.0]), {}
        yield (first, other, third, lib.tensor([0.5, 2.0])), {}
    elif bare == "lerp":
        yield (first, other, 0.25), {}
        yield (first, other, [0.25, 0.75]), {}
        yield (first, other, third), {}
    elif bare in ("norm", "powsum"):
        yield (first,), {}
        yield (first, 1), {}
        yield (first, 3.0), {"dtype": lib.float64}
    elif bare == "copy":
        yield (first, other), {}
    elif bare == "mm":
        yield ([first[1], first[1]], [other[1], first[1]]), {}
    else:
        yield (first,), {}


def plain(value):
    if hasattr(value, "tolist"):
        return str(value.dtype), value.tolist()
    return [plain(v) for v in value]


def close(mine, theirs):
    if isinstance(mine, tuple):
        assert mine[0] == theirs[0]
        for a, b in zip(flat(mine[1]), flat(theirs[1]), strict=True):
            assert a == pytest.approx(b, rel=1e-5, nan_ok=True)
    else:
        assert len(mine) == len(theirs)
        for a, b in zip(mine, theirs, strict=True):
            close(a, b)


def flat(value):
    return [x for v in value for x in flat(v)] if isinstance(value, list) else [value]


@pytest.mark.parametrize("name", NAMES)
def test_every_form_is_pytorchs(name):
    calls = list(zip(arguments(cresset, name), arguments(torch, name), strict=True))
    for (args, kwargs), (their_args, their_kwargs) in calls:
        mine, theirs = getattr(cresset, name)(*args, **kwargs), getattr(torch, name)(*their_args, **their_kwargs)
        assert type(mine) is type(theirs)
        close(plain(mine), plain(theirs))
        if name.endswith("_"):
            close(plain(args[0]), plain(their_args[0]))


@pytest.mark.parametrize(
    "call",
    [
        lambda lib, a: lib._foreach_add([], 1),
        lambda lib, a: lib._foreach_exp([]),
        lambda lib, a: lib._foreach_exp(a[0]),
        lambda lib, a: lib._foreach_exp([1]),
        lambda lib, a: lib._foreach_add(a, a[:1]),
        lambda lib, a: lib._foreach_add(a, [1.0]),
        lambda lib, a: lib._foreach_mul(a, lib.ones(2)),
        lambda lib, a: lib._foreach_addcmul(a, a, a[:1]),
        lambda lib, a: lib._foreach_addcdiv(a, a, a, [1.0]),
        lambda lib, a: lib._foreach_addcdiv(a, a, a, lib.ones(3)),
        lambda lib, a: lib._foreach_lerp(a, a, [0.5]),
        lambda lib, a: lib._foreach_copy_(a, a[:1]),
        lambda lib, a: lib._foreach_max([lib.ones(0)]),
        lambda lib, a: lib._foreach_norm([lib.ones(0)], float("inf")),
        lambda lib, a: lib._foreach_norm([lib.ones(0, dtype=lib.int8)], float("inf")),
        lambda lib, a: lib._foreach_addcmul(a, a, a, lib.tensor(1.0)),
        lambda lib, a: lib._foreach_addcdiv(a, a, a, lib.ones(1, 1)),
        lambda lib, a: lib._foreach_addcmul(a, a, a, lib.ones(4)[::2]),
        lambda lib, a: lib._foreach_addcmul_(a, a, a, lib.ones(2, device="meta")),
    ],
)
def test_refusals_are_pytorchs(call):
    messages = []
    for lib in (cresset, torch):
        with pytest.raises((RuntimeError, TypeError)) as raised:
            call(lib, [lib.ones(2), lib.ones(3)])
        messages.append((raised.type, str(raised.value)))
    (mine, text), (theirs, phrase) = messages
    assert mine is theirs
    assert phrase.rstrip(".").split(" (position")[0] in text


def test_gradients_flow_through_lists():
    grads = []
    for lib in (cresset, torch):
        a = [lib.tensor(v, requires_grad=True) for v in VALUES]
        sum(t.sum() for t in lib._foreach_mul(lib._foreach_exp(a), 2.0)).backward()
        grads.append([t.grad for t in a])
    close(plain(grads[0]), plain(grads[1]))


@pytest.mark.parametrize(
    "change",
    [
        lambda lib, a: lib._foreach_add_(a, 1),
        lambda lib, a: lib._foreach_mul_(a, a),
        lambda lib, a: lib._foreach_sub_(a, a, alpha=2),
        lambda lib, a: lib._foreach_sqrt_(a),
        lambda lib, a: lib._foreach_addcmul_(a, a, a),
        lambda lib, a: lib._foreach_lerp_(a, a, 0.5),
        lambda lib, a: lib._foreach_zero_(a),
        lambda lib, a: lib._foreach_copy_(a, a),
    ],
)
@pytest.mark.parametrize("kind", [list, tuple])
def test_what_changes_tensors_gives_their_list_itself(change, kind):
    for lib in (cresset, torch):
        tensors = kind([lib.ones(2), lib.ones(3)])
        assert change(lib, tensors) is tensors
