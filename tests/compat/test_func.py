"""The same programs with torch.func give the same results, and raise the same, in cresset and in PyTorch."""

import warnings

import pytest

import cresset

torch = pytest.importorskip("torch")


def plain(value):
    if hasattr(value, "tolist"):
        return value.detach().tolist()
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    return value


def close(a, b):
    if isinstance(a, list):
        return isinstance(b, list) and len(a) == len(b) and all(map(close, a, b))
    if isinstance(a, dict):
        return isinstance(b, dict) and a.keys() == b.keys() and all(close(a[k], b[k]) for k in a)
    if isinstance(a, float) and isinstance(b, float):
        return a == b or abs(a - b) <= 1e-4 * max(1, abs(a), abs(b)) or (a != a and b != b)
    return type(a) is type(b) and a == b


def outcome(program, lib):
    """What a program returns, or the class of what it raises."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return plain(program(lib, lib.func))
    except Exception as error:
        return type(error).__name__


def x(lib, *shape):
    """Numbers between -1 and 1 in an order that nothing about them follows."""
    count = 1
    for size in shape:
        count *= size
    return lib.tensor([((37 * i + 11) % 101) / 50.5 - 1 for i in range(count)]).reshape(shape)


def loss(lib):
    def f(weight, sample, target):
        hidden = lib.nn.functional.gelu(lib.nn.functional.linear(sample, weight))
        return lib.nn.functional.cross_entropy(hidden, target)

    return f


def small_network(lib):
    def f(params, image):
        image = lib.nn.functional.conv2d(image, params["conv"], padding=1).relu()
        image = lib.nn.functional.group_norm(image, 1, params["scale"])
        image = lib.nn.functional.max_pool2d(image, 2).flatten()
        return (params["head"] @ image).logsumexp(0)

    return f


def network_state(lib):
    return {"conv": x(lib, 2, 1, 3, 3), "scale": x(lib, 2), "head": x(lib, 3, 8)}


def in_place(lib):
    def f(v):
        v = v.clone()
        v[0] = v[1] * 2
        v.mul_(v.sin())
        v[1:].add_(1)
        return (v**2).sum()

    return f


def attention(lib):
    def f(q, k, v):
        return lib.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True).pow(2).sum()

    return f


PROGRAMS = {
    "per-sample gradients": lambda t, f: f.vmap(f.grad(loss(t)), (None, 0, 0))(
        x(t, 4, 3), x(t, 5, 3), t.tensor([0, 1, 2, 3, 0])
    ),
    "per-sample gradients of a network": lambda t, f: f.vmap(f.grad(small_network(t)), (None, 0))(
        network_state(t), x(t, 3, 1, 4, 4)
    ),
    "gradient of per-sample gradients": lambda t, f: f.grad(
        lambda w: f.vmap(f.grad(loss(t)), (None, 0, 0))(w, x(t, 5, 3), t.tensor([0, 1, 2, 3, 0])).pow(2).sum()
    )(x(t, 4, 3)),
    "an ensemble": lambda t, f: f.vmap(lambda w: t.nn.functional.conv2d(x(t, 2, 3, 5, 5), w))(x(t, 4, 6, 3, 3, 3)),
    "attention": lambda t, f: f.vmap(f.grad(attention(t), (0, 1, 2)))(
        x(t, 2, 1, 3, 4), x(t, 2, 1, 3, 4) * 0.5, x(t, 2, 1, 3, 4) + 1
    ),
    "hessian": lambda t, f: f.hessian(lambda v: (v.sin() * v.roll(1)).sum())(x(t, 4)),
    "hessian of a network": lambda t, f: f.hessian(
        lambda w: small_network(t)({**network_state(t), "conv": w}, x(t, 1, 4, 4))
    )(x(t, 2, 1, 3, 3)),
    "hessian for each sample": lambda t, f: f.vmap(f.hessian(lambda v: v.softmax(0).pow(2).sum()))(x(t, 3, 4)),
    "jacobians by two arguments": lambda t, f: f.jacrev(lambda a, b: {"p": a @ b, "q": a.sum()}, (0, 1))(
        x(t, 2, 3), x(t, 3)
    ),
    "jacfwd with aux": lambda t, f: f.jacfwd(lambda v: (v.cumprod(0), v * 2), has_aux=True)(x(t, 3)),
    "jacrev in chunks": lambda t, f: f.jacrev(lambda v: v.outer(v), chunk_size=2)(x(t, 3)),
    "third derivative": lambda t, f: f.jacfwd(f.jacrev(f.grad(lambda v: (v**4).sum() * v[0])))(x(t, 3)),
    "jvp of vjp": lambda t, f: f.jvp(lambda v: f.vjp(lambda u: u.exp() * v, v)[1](v)[0], (x(t, 3),), (x(t, 3) + 1,)),
    "vjp of jvp": lambda t, f: f.vjp(lambda v: f.jvp(lambda u: u.exp() * v, (v,), (v,))[1], x(t, 3))[1](x(t, 3) + 1),
    "jvp of jvp": lambda t, f: f.jvp(
        lambda v: f.jvp(lambda u: (u * v).sin(), (v,), (v * 2,))[1], (x(t, 3),), (x(t, 3) + 1,)
    ),
    "vmap of jvp": lambda t, f: f.vmap(lambda p, v: f.jvp(lambda u: u.softmax(0), (p,), (v,))[1], (None, 0))(
        x(t, 4), x(t, 3, 4)
    ),
    "forward through layers": lambda t, f: f.jvp(
        lambda v: t.nn.functional.layer_norm(v, (4,)).tanh().mean(0), (x(t, 3, 4),), (x(t, 3, 4) ** 2,)
    ),
    "vmap of vmap of grad": lambda t, f: f.vmap(f.vmap(f.grad(lambda a, b: (a * b).prod()), (None, 0)), (0, None))(
        x(t, 2, 3), x(t, 4, 3)
    ),
    "writes in place": lambda t, f: f.vmap(f.grad(in_place(t)))(x(t, 3, 4)),
    "writes in place, forward": lambda t, f: f.vmap(lambda v: f.jvp(in_place(t), (v,), (v + 1,))[1])(x(t, 3, 4)),
    "indices of each sample": lambda t, f: f.vmap(lambda v, i: v[i, 1:])(x(t, 3, 4, 3), t.tensor([1, 3, 0])),
    "gradient through indices": lambda t, f: f.vmap(f.grad(lambda v, i: (v[i] ** 2).sum()))(
        x(t, 3, 4), t.tensor([[1, 1], [3, 0], [2, 2]])
    ),
    "indices apart": lambda t, f: f.vmap(lambda v, i: v[i, :, i])(x(t, 2, 3, 4, 3), t.tensor([[0, 1], [2, 2]])),
    "embedding": lambda t, f: f.vmap(f.grad(lambda w, i: t.nn.functional.embedding(i, w, padding_idx=0).sin().sum()))(
        x(t, 2, 4, 3), t.tensor([[1, 0], [3, 3]])
    ),
    "einsum": lambda t, f: f.vmap(lambda a, b: t.einsum("ij,jk,i->k", a, b, a[:, 0]))(x(t, 2, 3, 4), x(t, 2, 4, 2)),
    "batch norm": lambda t, f: f.vmap(lambda v: t.nn.functional.batch_norm(v, None, None, training=True))(
        x(t, 2, 4, 3)
    ),
    "cholesky and solve": lambda t, f: f.vmap(
        f.grad(lambda m: t.linalg.solve(m @ m.T + t.eye(3), m[0]).sum() + t.linalg.cholesky(m @ m.T + t.eye(3)).sum())
    )(x(t, 2, 3, 3)),
    "aux and several arguments": lambda t, f: f.grad_and_value(
        lambda a, b: ((a["w"] * b).sum(), {"b": b * 2}), (0, 1), has_aux=True
    )({"w": x(t, 3)}, x(t, 3) + 1),
    "unused argument": lambda t, f: f.grad(lambda a, b: a.sum(), argnums=1)(x(t, 2), x(t, 3)),
    "linearize": lambda t, f: f.linearize(lambda v: v.sin() * v, x(t, 3))[1](x(t, 3) + 1),
    "detach inside": lambda t, f: f.grad(lambda v: (v * v.detach()).sum())(x(t, 3)),
    "no_grad inside": lambda t, f: f.grad(lambda v: _constant(t, v))(x(t, 3)),
    "results have no history": lambda t, f: [
        f.grad(lambda v: (v**2).sum())(x(t, 3)).requires_grad,
        f.jacrev(t.sin)(x(t, 3)).requires_grad,
    ],
    "in_dims and out_dims": lambda t, f: f.vmap(lambda a, b: (a @ b, b), in_dims=(1, None), out_dims=(1, 0))(
        x(t, 3, 4, 2), x(t, 2)
    ),
    "not a tensor": lambda t, f: f.vmap(lambda v: v)(3),
    "structures differ": lambda t, f: f.vmap(lambda v: v, in_dims=(0, 0))(x(t, 3)),
    "control flow": lambda t, f: f.vmap(lambda v: v if v.sum() > 0 else -v)(x(t, 3, 2)),
    "item": lambda t, f: f.vmap(lambda v: v[0].item())(x(t, 3, 2)),
    "dynamic shape": lambda t, f: f.vmap(lambda v: v.nonzero())(x(t, 3, 2)),
    "random": lambda t, f: f.vmap(lambda v: v + t.rand(2))(x(t, 3, 2)),
    "no scalar": lambda t, f: f.grad(lambda v: v)(x(t, 3)),
    "write to what is outside": lambda t, f: f.vmap(lambda v: t.zeros(2).add_(v))(x(t, 3, 2)),
    "in place on an argument of grad": lambda t, f: f.grad(lambda v: v.mul_(2).sum())(x(t, 3)),
}


def _constant(t, v):
    with t.no_grad():
        shift = v**2
    return (v * shift).sum()


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_agree(name):
    expected, found = outcome(PROGRAMS[name], torch), outcome(PROGRAMS[name], cresset)
    assert close(expected, found), (expected, found)


# Derivatives of a function, and what it changes in place: something that it has captured, made or been given.
DERIVATIVES = {
    "grad": lambda f, function, v: f.grad(lambda x: function(x).sum())(v),
    "grad_and_value": lambda f, function, v: f.grad_and_value(lambda x: function(x).sum())(v),
    "vjp": lambda f, function, v: f.vjp(function, v)[0],
    "jvp": lambda f, function, v: f.jvp(function, (v,), (v,)),
    "jacrev": lambda f, function, v: f.jacrev(function)(v),
    "jacfwd": lambda f, function, v: f.jacfwd(function)(v),
    "hessian": lambda f, function, v: f.hessian(lambda x: function(x).sum())(v),
    "vmap of grad": lambda f, function, v: f.vmap(f.grad(lambda x: function(x).sum()))(v[None]),
    "grad of vmap": lambda f, function, v: f.grad(lambda x: f.vmap(function)(x).sum())(v[None]),
    "grad of grad": lambda f, function, v: f.grad(lambda x: f.grad(lambda y: function(y).sum())(x).sum())(v),
}
CHANGES = {
    "arithmetic": lambda t, c: c.mul_(2),
    "a view": lambda t, c: c[:1].add_(1),
    "an element": lambda t, c: c.__setitem__(0, 5.0),
    "a mask": lambda t, c: c.__setitem__(c > 0, 5.0),
    "a copy": lambda t, c: c.copy_(t.ones(3)),
    "random": lambda t, c: c.bernoulli_(),
    "data": lambda t, c: c.data.zero_(),
    "out=": lambda t, c: t.add(t.ones(3), 1, out=c),
    "what it has made": lambda t, c: t.zeros(3).add_(c),
    "a clone": lambda t, c: c.clone().mul_(2),
}


@pytest.mark.parametrize("derivative", DERIVATIVES)
@pytest.mark.parametrize("change", CHANGES)
def test_a_function_changes_what_it_has_captured(derivative, change):
    def program(t, f):
        captured = t.ones(3)

        def function(v):
            CHANGES[change](t, captured)
            return v * v

        return DERIVATIVES[derivative](f, function, x(t, 3)), captured

    expected, found = outcome(program, torch), outcome(program, cresset)
    assert close(expected, found), (expected, found)


GIVEN = {
    "an argument beside": lambda f, c, v: f.grad(lambda x, y: (y.mul_(2) * x).sum())(v, c),
    "a named argument": lambda f, c, v: f.grad(lambda x, y: (y.mul_(2) * x).sum())(v, y=c),
    "a structure": lambda f, c, v: f.grad(lambda x, y: (y["y"][0].mul_(2) * x).sum())(v, {"y": [c]}),
    "a view of it": lambda f, c, v: f.grad(lambda x, y: (y[1:].mul_(2) * x[1:]).sum())(v, c),
    "after another derivative": lambda f, c, v: f.grad(lambda x, y: _after_another(f, x, y))(v, c),
    "captured by an inner one": lambda f, c, v: f.grad(lambda x, y: f.grad(lambda z: (y.mul_(2) * z).sum())(x).sum())(
        v, c
    ),
    "made by the outer one": lambda f, c, v: f.grad(lambda x: _made_outside(f, x))(v),
    "captured as well": lambda f, c, v: f.grad(lambda x: (c.mul_(2) * x).sum())(c),
    "the argument": lambda f, c, v: f.vjp(lambda x: x.mul_(2), c)[0],
    "the argument of a forward derivative": lambda f, c, v: f.jvp(lambda x: x.mul_(2), (c,), (v,)),
    "the argument of two": lambda f, c, v: f.grad(lambda x: f.grad(lambda y: y.mul_(2).sum())(x).sum())(c),
    "once again outside": lambda f, c, v: (f.grad(lambda x, y: (x * y).sum())(v, c), c.mul_(3)),
    "samples": lambda f, c, v: f.vmap(f.grad(lambda x, y: (y.mul_(2) * x).sum()))(v, c),
}


def _after_another(f, x, y):
    f.grad(lambda z: (z * z).sum())(x)
    return (y.mul_(2) * x).sum()


def _made_outside(f, x):
    made = x.clone()
    return f.grad(lambda z: (made.mul_(2) * z).sum())(x).sum()


@pytest.mark.parametrize("name", GIVEN)
def test_a_function_changes_what_it_was_given(name):
    def program(t, f):
        given = t.ones(3)
        return GIVEN[name](f, given, x(t, 3)), given

    expected, found = outcome(program, torch), outcome(program, cresset)
    assert close(expected, found), (expected, found)


# An operator, shapes of its arguments. Each is run for every sample at once, on every choice of arguments that have
# samples, and in a loop.
WALK = {
    "add": ((3,), (3,)), "mul": ((2, 3), (3,)), "div": ((3,), ()), "atan2": ((2, 3), (2, 1)), "where": None,
    "sin": ((3,),), "relu": ((2, 3),), "softmax": ((2, 3), -1), "cumsum": ((2, 3), 0),
    "sum": ((2, 3),), "mean": ((2, 3), 1), "prod": ((3,),), "amax": ((2, 3), (0, 1)), "argmax": ((2, 3),),
    "var": ((2, 3), 0), "std": ((3,),), "norm": ((2, 3),), "logsumexp": ((2, 3), 1),
    "sort": ((2, 3), 0), "topk": ((4,), 2), "median": ((3,),), "kthvalue": ((4,), 2), "unsqueeze": ((2, 3), -1),
    "transpose": ((2, 3), 0, 1), "permute": ((2, 3, 1), (2, 0, 1)),
    "reshape": ((2, 3), (3, 2)), "flatten": ((2, 3),), "flip": ((2, 3), (0,)), "roll": ((2, 3), 1),
    "diagonal": ((3, 3),), "tril": ((3, 3),), "matmul": ((2, 3), (3, 2)), "mv": ((2, 3), (3,)),
    "bmm": ((2, 2, 3), (2, 3, 2)), "dot": ((3,), (3,)), "outer": ((3,), (2,)), "kron": ((2,), (3,)),
    "addmm": ((2, 2), (2, 3), (3, 2)), "cdist": ((2, 3), (4, 3)), "diff": ((4,),),
    "logcumsumexp": ((3,), 0), "cummax": ((4,), 0), "unfold_copy": ((5,), 0, 2, 1), "squeeze": ((1, 3),),
    "chunk": ((4,), 2), "repeat_interleave": ((3,), 2), "tile": ((3,), (2,)),
    "lerp": ((3,), (3,), 0.5), "clamp": ((3,), -0.5, 0.5), "maximum": ((3,), (3,)), "rot90": ((2, 3),),
    "trace": ((3, 3),), "det": ((3, 3),), "inverse": ((3, 3),), "narrow": ((4,), 0, 1, 2),
}  # fmt: skip


def is_shape(part, place, name):
    return isinstance(part, tuple) and not (place and name in ("amax", "permute", "reshape", "flip", "tile"))


@pytest.mark.parametrize("name", [name for name, parts in WALK.items() if parts is not None])
def test_vmap_of_an_operator_is_a_loop(name):
    parts = WALK[name]
    operator = getattr(cresset, name)
    tensors = [i for i, part in enumerate(parts) if is_shape(part, i, name)]
    for chosen in range(1, 2 ** len(tensors)):
        batched = [i for k, i in enumerate(tensors) if chosen >> k & 1]
        args = [
            x(cresset, *([4] if i in batched else []), *part) if i in tensors else part for i, part in enumerate(parts)
        ]
        if name in ("det", "inverse"):
            args[0] = args[0] + 2 * cresset.eye(3)
        together = cresset.vmap(lambda *a: operator(*a), tuple(0 if i in batched else None for i in range(len(args))))(
            *args
        )
        loop = [operator(*(a[k] if i in batched else a for i, a in enumerate(args))) for k in range(4)]
        if not isinstance(loop[0], cresset.Tensor):
            together, loop = list(together), [list(item) for item in loop]
        else:
            together, loop = [together], [[item] for item in loop]
        for j, part in enumerate(together):
            expected = cresset.stack([item[j] for item in loop])
            assert part.dtype == expected.dtype
            assert cresset.allclose(part, expected, rtol=1e-4, atol=1e-5), (name, chosen)
