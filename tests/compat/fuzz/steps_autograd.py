"""Steps about gradients: leaves, backward, hooks, modes, modules with optimizers, threads."""

from steps import FLOATS, MOST_ELEMENTS, family


def with_gradient(m):
    """A tensor that a gradient can be asked of, or None."""
    return m.tensor(lambda x: x.requires_grad and x.numel() <= MOST_ELEMENTS)


def leaf(m):
    return m.tensor(lambda x: x.requires_grad and x.is_leaf)


@family(6)
def becoming_a_leaf(m):
    name = m.floating() if m.chance(0.95) else m.tensor()
    if not name:
        return None
    return m.pick(
        f"{name}.requires_grad_()",
        f"{name}.requires_grad_()",
        f"{name}.requires_grad = True",
        f"{m.new()} = {name}.detach().clone().requires_grad_()",
        f"{m.new()} = {name}.detach().requires_grad_()",
        f"{m.new()} = {m.creation(None, m.pick(*FLOATS))}.requires_grad_()",
        f"{m.new()} = t.nn.Parameter({m.creation(None, m.pick(*FLOATS))})",
        f"{name}.requires_grad_(False)" if m.chance(0.3) else f"{m.new()} = {name}.clone().detach().requires_grad_()",
    )


@family(12)
def running_backward(m):
    name = with_gradient(m)
    if not name:
        return None
    x = m.of(name)
    options = m.pick("", "", "retain_graph=True", "create_graph=True" if m.chance(0.5) else "")
    kind = m.rng.random()
    root = f"({name} * 2)" if x.is_leaf and m.chance(0.7) else name
    if kind < 0.45:
        total = m.pick(
            f"{root}.sum()",
            f"{root}.sum()",
            f"({root} * {root}).sum()",
            f"{root}.mean()",
            f"{root}.pow(2).sum()",
            f"{root}.abs().sum()",
        )
        if x.is_complex():
            total = f"{root}.abs().sum()"
        line = f"{total}.backward({options})"
    elif kind < 0.65:
        given = m.pick(f"t.ones_like({name})", m.fitting(x.shape, m.dtype_name(x)), name, "None")
        line = f"{root}.backward({given}{', ' + options if options else ''})"
    else:
        target = m.pick(leaf(m), with_gradient(m)) or name
        graph = m.pick(
            "", ", create_graph=True", ", retain_graph=True", ", allow_unused=True", ", materialize_grads=True"
        )
        more = m.pick("", "", ", allow_unused=True, create_graph=True")
        total = m.pick(f"{root}.sum()", f"({root} * {root}).sum()", f"{root}.pow(3).sum()")
        if x.is_complex():
            total = f"{root}.abs().sum()"
        line = f"{m.new()} = t.autograd.grad({total}, {target}{more or graph})[0]"
    if m.chance(0.04):
        line = m.pick(f"in_thread(lambda: {line})" if "=" not in line.partition("(")[0] else line, line)
    return line


@family(6)
def hooking(m):
    name = with_gradient(m)
    if not name:
        return None
    x = m.of(name)
    label = f"'h{m.count}'"
    does = m.pick("say", "say", "double", "clone", "refuse", "spoil") if m.chance(0.6) else "say"
    lines = [f"{name}.register_hook(hook({label}, '{does}'))", f"{name}.retain_grad()"]
    if x.is_leaf:
        lines += [
            f"{name}.register_post_accumulate_grad_hook(after({label}, '{m.pick('say', 'say', 'drop', 'step')}'))"
        ] * 2
    else:
        lines += [
            f"{name}.grad_fn.register_hook(node_hook({label}, '{m.pick('say', 'double', 'refuse')}'))",
            f"{name}.grad_fn.register_prehook(node_hook({label}, '{m.pick('say', 'double')}'))",
        ]
    if m.chance(0.1):
        lines.append(f"{name}.register_hook(hook({label})).remove()")
    other = with_gradient(m)
    if m.chance(0.1) and m.of(other) is not x:
        lines.append(
            f"t.autograd.graph.register_multi_grad_hook(({name}, {other}), lambda grads: say({label}, [g is None for "
            "g in grads]))"
        )
    return m.pick(*lines)


@family(5)
def touching_gradients(m):
    name = leaf(m) or m.floating()
    if not name:
        return None
    other = m.floating()
    x = m.of(name)
    has = x.is_leaf and x.grad is not None
    lines = [
        f"{name}.grad = None",
        f"{name}.grad = {m.fitting(x.shape, m.dtype_name(x))}",
        f"{name}.grad = t.ones_like({name})",
        f"{name}.grad = {other}",
    ]
    if has:
        lines += [
            f"{name}.grad.zero_()",
            f"{m.new()} = {name}.grad",
            f"{name}.grad.mul_(2)",
            f"{name}.grad = {name}.grad.clone()",
            f"{name}.data.sub_({name}.grad)",
            f"with t.no_grad(): {name} -= {name}.grad",
        ] * 2
        lines += [
            f"{name}.grad, {other}.grad = {other}.grad, {name}.grad",
            f"{name}.grad.requires_grad_()",
            f"{name}.grad.detach_()",
            f"t.nn.utils.clip_grad_norm_([{name}], 1.0)",
            f"t.nn.utils.clip_grad_value_([{name}], 0.5)",
            f"{m.new()} = {name} * {name}.grad",
        ]
    return m.pick(*lines)


@family(5)
def modes(m):
    name, other = m.small(), m.small()
    if not name or not other:
        return None
    inner = m.pick(
        f"{name} * 2",
        f"{name}.view(-1)",
        f"{name}.detach()",
        f"{name} + 1",
        f"{name}.t()" if m.of(name).dim() <= 2 else f"{name}[0]",
    )
    fresh = m.new()
    return m.pick(
        f"with t.no_grad(): {fresh} = {inner}",
        f"with t.no_grad(): {fresh} = {name}.view(-1)",
        f"with t.no_grad(): {fresh} = {name}[:1]"
        if m.of(name).dim()
        else f"with t.no_grad(): {fresh} = {name}.view(1)",
        f"with t.enable_grad(): {fresh} = {inner}",
        f"with t.inference_mode(): {fresh} = {inner}",
        f"with t.no_grad(): {fresh} = {name}.requires_grad_()"
        if m.of(name).is_leaf
        else f"with t.set_grad_enabled(False): {fresh} = {inner}",
        "t.set_grad_enabled(False)" if m.chance(0.2) else "t.set_grad_enabled(True)",
        f"with t.no_grad(): {name}.copy_({m.fitting(m.of(name).shape, m.dtype_name(m.of(name)))})",
        f"{name}.detach_()",
        f"{fresh} = {name}.detach()",
        f"{fresh} = {name}.data",
        (
            "with t.autograd.graph.saved_tensors_hooks(lambda x: (say('pack', x.shape), x)[1], lambda x: "
            "(say('unpack', "
            f"x.shape), x)[1]): {fresh} = {name} * {name}"
        ),
        f"with t.autograd.set_detect_anomaly(True): {fresh} = {name} * 2"
        if m.chance(0.2)
        else f"{fresh} = t.no_grad()(lambda: {name} * 2)()",
        f"{fresh} = t.utils.checkpoint.checkpoint(lambda x: x * x + 1, {name}, use_reentrant=False)",
    )


@family(3)
def own_functions(m):
    name = m.floating()
    if not name:
        return None
    other = m.fitting(m.of(name).shape, m.dtype_name(m.of(name)))
    return m.pick(
        m.result(f"Scaled.apply({name}, {m.pick('2', '0.5', '0')})"),
        m.result(f"DoubledInPlace.apply({name})"),
        f"{m.new()}, {m.new()} = Two.apply({name}, {other})",
        m.result(f"Two.apply({name}, {other})[1]"),
        m.result(f"DoubledInPlace.apply({name} * 1)"),
    )


@family(5)
def modules(m):
    known = m.named("m")
    optimizers = m.named("o")
    if not known or (len(known) < 2 and m.chance(0.1)):
        return "{} = {}".format(
            m.new("m"),
            m.pick(
                "t.nn.Linear(3, 2)",
                "t.nn.Linear(2, 4)",
                "t.nn.Sequential(t.nn.Linear(3, 4), t.nn.ReLU(), t.nn.Linear(4, 1))",
                "t.nn.Conv1d(2, 3, 2)",
                "t.nn.BatchNorm1d(3)",
                "t.nn.LayerNorm(4)",
                "t.nn.Sequential(t.nn.Conv2d(2, 3, 2), t.nn.BatchNorm2d(3))",
                "t.nn.Embedding(5, 3)",
                "t.nn.GRUCell(3, 2)",
                "t.nn.Linear(4, 3, dtype=t.float64)",
            ),
        )
    module = m.rng.choice(known)
    parameter = f"list({module}.parameters())[{m.pick(0, -1)}]"
    if optimizers and m.chance(0.5):
        optimizer = m.rng.choice(optimizers)
        return m.pick(
            f"{optimizer}.step()",
            f"{optimizer}.step()",
            f"{optimizer}.zero_grad()",
            f"{optimizer}.zero_grad(set_to_none=False)",
            f"{optimizer}.load_state_dict(copy.deepcopy({optimizer}.state_dict()))",
            f"{optimizer}.param_groups[0]['lr'] = 0.25",
        )
    if not optimizers and m.chance(0.4):
        return "{} = t.optim.{}".format(
            m.new("o"),
            m.pick(
                f"SGD({module}.parameters(), lr=0.5)",
                f"SGD({module}.parameters(), lr=0.5, momentum=0.5, weight_decay=0.25)",
                f"Adam({module}.parameters(), lr=0.5)",
                f"AdamW({module}.parameters(), lr=0.25)",
                f"RMSprop({module}.parameters(), lr=0.5)",
                f"Adagrad({module}.parameters(), lr=0.5)",
            ),
        )
    width = {"Linear": 3, "BatchNorm1d": 3, "LayerNorm": 4, "Sequential": 3, "GRUCell": 3}.get(
        type(m.of(module)).__name__, 2
    )
    name = m.tensor(lambda x: x.dim() >= 1 and x.shape[-1] == width and x.numel() <= MOST_ELEMENTS) or m.tensor()
    given = name if m.chance(0.5) else m.creation((2, width), "float32")
    return m.pick(
        m.result(f"{module}({given})"),
        m.result(f"{module}({given})"),
        f"{module}({given}).sum().backward()",
        f"{module}({given}).pow(2).sum().backward()",
        m.result(parameter),
        f"{module}.zero_grad()",
        f"{module}.{m.pick('eval', 'train')}()",
        f"{m.new('m')} = copy.deepcopy({module})" if len(known) < 2 else f"{module}.requires_grad_(True)",
        f"{module}.load_state_dict(through_file({module}.state_dict()))",
        f"{module}.{m.pick('double', 'float', 'half')}()" if m.chance(0.2) else f"say(sorted({module}.state_dict()))",
        f"{module}.requires_grad_({m.pick(True, False)})",
        f"with t.no_grad(): {parameter}.add_(1)",
        f"with t.no_grad(): {parameter}.mul_(0.5)",
        m.result(f"t.nn.utils.parameters_to_vector({module}.parameters())"),
        m.result(
            f"t.func.functional_call({module}, {{k: v.detach() * 2 for k, v in {module}.named_parameters()}}, "
            f"({given},))"
        ),
    )


@family(2)
def threads(m):
    name, other = m.small(), m.small()
    if not name or not other:
        return None
    x = m.of(name)
    if x.requires_grad and m.chance(0.5):
        return m.pick(
            f"in_thread(lambda: {name}.sum().backward())",
            f"together(lambda: (t.ones_like({name}) * {name}).sum().backward(), lambda: ({name} * 2).sum().backward())",
            f"{m.new()} = in_thread(lambda: {name} * 2)",
            "in_thread(lambda: t.set_grad_enabled(False))",
        )
    return m.pick(
        f"{m.new()} = in_thread(lambda: {name} + 1)",
        f"in_thread(lambda: {name}.mul_(2))",
        f"{m.new()}, {m.new()} = together(lambda: {name} * 2, lambda: {other}.clone())",
        "in_thread(lambda: say(t.is_grad_enabled()))",
        f"{m.new()} = in_thread(lambda: {name}.view(-1))",
    )


@family(1)
def transforms(m):
    name = m.floating()
    if not name:
        return None
    other = m.floating()
    return m.pick(
        m.result(f"t.func.grad(lambda x: (x * x).sum())({name})"),
        m.result(f"t.func.grad(lambda x: ({other}.mul_(2), (x * x).sum())[1])({name})"),
        m.result(f"t.func.grad(lambda x, y: (y.mul_(2), (x * x).sum())[1])({name}, {other})"),
        m.result(f"t.func.vmap(lambda x: x.sum())({name})"),
        m.result(f"t.func.vmap(lambda x: x * 2 + 1)({name})"),
        m.result(f"t.func.jvp(lambda x: x * x, ({name},), ({name},))[1]"),
        m.result(f"t.func.vjp(lambda x: x.exp(), {name})[1](t.ones_like({name}))[0]"),
        m.result(f"t.func.jacrev(lambda x: x * x)({name})") if m.of(name).numel() < 8 else None,
        m.result(f"t.autograd.functional.jacobian(lambda x: x * x, {name})") if m.of(name).numel() < 8 else None,
    )
