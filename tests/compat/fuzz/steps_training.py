"""Steps of programs that train: layers of more kinds and their hooks, losses, autocast, optimizers and schedulers, many
tensors at once, and gradients asked for in other ways.
"""

from steps import FLOATS, MOST_ELEMENTS, family
from steps_autograd import leaf, with_gradient

# How a layer is made, and the shape of what it takes; what is taken of its result.
LAYERS = [
    ("t.nn.LSTM(3, 2)", (4, 2, 3), "[0]"),
    ("t.nn.LSTM(3, 4, num_layers=2, batch_first=True, proj_size=2)", (2, 4, 3), "[1][0]"),
    ("t.nn.GRU(3, 2, batch_first=True, bidirectional=True)", (2, 4, 3), "[0]"),
    ("t.nn.RNN(3, 2, num_layers=2, nonlinearity='relu')", (4, 3), "[1]"),
    ("t.nn.LSTMCell(3, 2)", (2, 3), "[1]"),
    ("t.nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0, batch_first=True)", (2, 3, 4), ""),
    ("t.nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0, norm_first=True)", (3, 2, 4), ""),
    ("t.nn.Conv2d(2, 4, 3, padding=1, groups=2)", (2, 2, 3, 4), ""),
    ("t.nn.Conv2d(2, 3, 2).to(memory_format=t.channels_last)", (1, 2, 3, 4), ""),
    ("t.nn.ConvTranspose2d(2, 3, 2, stride=2)", (1, 2, 2, 3), ""),
    ("t.nn.InstanceNorm1d(3, affine=True, track_running_stats=True)", (2, 3, 4), ""),
    ("t.nn.BatchNorm2d(2, momentum=None)", (2, 2, 3, 2), ""),
    ("t.nn.GroupNorm(1, 3)", (2, 3, 2), ""),
    ("t.nn.RMSNorm(4)", (2, 4), ""),
    ("t.nn.PReLU()", (2, 3), ""),
    ("t.nn.Softmax(dim=-1)", (2, 3), ""),
    ("t.nn.Sequential(t.nn.Flatten(), t.nn.Linear(4, 3), t.nn.GELU(), t.nn.Unflatten(1, (3, 1)))", (2, 2, 2), ""),
    ("t.nn.Sequential(t.nn.Conv2d(2, 2, 2, bias=False), t.nn.ReLU(inplace=True), t.nn.MaxPool2d(2))", (2, 2, 5, 5), ""),
    ("t.nn.utils.parametrizations.weight_norm(t.nn.Linear(3, 2))", (2, 3), ""),
    ("t.nn.Upsample(scale_factor=2, mode='bilinear')", (1, 2, 2, 3), ""),
    ("t.nn.Dropout(0.5)", (2, 3), ""),
]


@family(3)
def more_layers(m):
    made, shape, taken = m.pick(*LAYERS)
    known = [name for name in m.named("m") if hasattr(m.of(name), "shape_of_input")]
    if not known or (len(known) < 2 and m.chance(0.3)):
        name = m.new("m")
        return f"{name} = {made}; {name}.shape_of_input, {name}.taken = {shape}, {taken!r}"
    module = m.rng.choice(known)
    shape, taken = m.of(module).shape_of_input, m.of(module).taken
    given = m.fitting(shape, "float32") if m.chance(0.9) else m.creation(shape)
    called = f"{module}({given}){taken}"
    label = f"'h{m.new('h')[1:]}'"
    return m.pick(
        *[m.result(called)] * 4,
        *[f"{called}.square().mean().backward()"] * 4,
        f"say({label}, [p.grad is None for p in {module}.parameters()])",
        f"{module}.register_forward_hook(module_hook({label}, {m.pick('None', 'None', repr('double'))}))",
        f"{module}.register_forward_pre_hook(module_hook({label}))",
        f"{module}.register_full_backward_hook(module_hook({label}))",
        f"{module}.register_full_backward_pre_hook(module_hook({label}))",
        f"{module}.{m.pick('eval', 'train')}()",
        f"{module}.zero_grad(set_to_none={m.pick(True, False)})",
        f"{module}.load_state_dict({module}.state_dict())",
        f"{module}.load_state_dict(through_file({module}.state_dict()), assign={m.pick(True, False)})",
        f"{module}.to(t.{m.pick('float64', 'float32', 'bfloat16')})" if m.chance(0.3) else f"{module}.requires_grad_()",
        m.result(f"t.utils.checkpoint.checkpoint({module}, {given}, use_reentrant={m.pick(True, False)}){taken}"),
        m.result(f"t.autocast('cpu', dtype=t.bfloat16)({module})({given}){taken}"),
        m.result(f"t.no_grad()({module})({given}){taken}"),
        f"t.nn.utils.clip_grad_norm_({module}.parameters(), 0.5, {m.pick('2.0', '1.0', 'inf')})",
        f"t.nn.utils.vector_to_parameters(t.nn.utils.parameters_to_vector({module}.parameters()) * 2, "
        f"{module}.parameters())",
    )


@family(3)
def losses(m):
    name = m.tensor(lambda x: 1 <= x.dim() <= 3 and 0 < x.numel() <= MOST_ELEMENTS and x.is_floating_point())
    if not name:
        return None
    x = m.of(name)
    shape, dtype = tuple(x.shape), m.dtype_name(x)
    other, third = m.fitting(shape, dtype), m.fitting(shape, dtype)
    reduction = f"reduction={m.pick(repr('mean'), repr('sum'), repr('none'))}"
    choices = [
        f"F.huber_loss({name}, {other}, delta={m.pick('1.0', '0.5')}, {reduction})",
        f"F.kl_div({name}, {other}, {m.pick(reduction, 'reduction=' + repr('batchmean'))})",
        f"F.kl_div({name}, {other}, log_target=True, {reduction})",
        f"F.binary_cross_entropy({name}.sigmoid(), {other}.sigmoid(), {reduction})",
        f"F.binary_cross_entropy_with_logits({name}, {other}, pos_weight={m.creation(shape[-1:], dtype)}, {reduction})",
        f"F.poisson_nll_loss({name}, {other}.abs(), {reduction})",
        f"F.gaussian_nll_loss({name}, {other}, {third}.abs(), {reduction})",
        f"F.margin_ranking_loss({name}, {other}, t.ones_like({name}), margin=0.5, {reduction})",
        f"F.soft_margin_loss({name}, t.ones_like({name}), {reduction})",
        f"F.hinge_embedding_loss({name}, t.ones_like({name}), {reduction})",
        f"F.triplet_margin_loss({name}, {other}, {third}, {reduction})",
        f"F.mse_loss({name}, {other}, {reduction})",
        f"F.smooth_l1_loss({name}, {other}, beta={m.pick('0.5', '0.0')}, {reduction})",
    ]
    if len(shape) == 2:
        classes = f"{m.creation((shape[0],), 'int64')}.remainder({shape[1]})"
        choices += [
            f"F.cross_entropy({name}, {classes}, {m.creation(shape[1:], dtype)}.abs(), {reduction})",
            f"F.cross_entropy({name}, {classes}, label_smoothing=0.25, {reduction})",
            f"F.cross_entropy({name}, {classes}, ignore_index=0, {reduction})",
            f"F.cross_entropy({name}, {other}.softmax(1), {reduction})",
            f"F.nll_loss({name}, {classes}, {m.creation(shape[1:], dtype)}, ignore_index=1, {reduction})",
            f"F.multi_margin_loss({name}.double(), {classes}, {reduction})",
            f"F.cosine_embedding_loss({name}, {other}, t.ones({shape[0]}, dtype={name}.dtype), {reduction})",
            f"F.one_hot({classes}, {shape[1]})",
            f"F.pairwise_distance({name}, {other})",
            f"F.pdist({name}.double())",
        ]
    called = m.pick(*choices)
    return m.result(called) if m.chance(0.7) else f"{called}.sum().backward()"


@family(3)
def mixed_precision(m):
    name = m.tensor(lambda x: 1 <= x.dim() <= 4 and x.numel() <= MOST_ELEMENTS and x.is_floating_point())
    if not name:
        return None
    x = m.of(name)
    shape = tuple(x.shape)
    other = m.fitting((shape[-1], m.pick(1, 2, 3)), m.pick("float32", "float32", "float16", "float64"))
    called = m.pick(
        f"{name} @ {other}",
        f"t.matmul({name}, {other})",
        f"F.linear({name}, {m.fitting((2, shape[-1]), 'float32')}, {m.pick('None', m.creation((2,), 'float32'))})",
        f"F.softmax({name} @ {other}, -1)",
        f"({name} @ {other}).sum()",
        f"t.cat([{name} @ {other}, {name}.float() @ {other}.float()])" if "float16" not in other else f"{name} * 2",
        f"F.layer_norm({name}, {shape[-1:]})",
        f"{name} * 2 + {name}",
        f"t.bmm({name}[None], {other}[None])" if len(shape) == 2 else f"{name}.exp()",
        f"F.mse_loss({name} @ {other}, t.zeros(()))" if len(shape) else f"{name}.log()",
        f"t.einsum('...i,ij->...j', {name}, {other})" if shape[-1] != 1 else f"{name}.softmax(0)",
        f"F.scaled_dot_product_attention({name}, {name}, {name})" if len(shape) > 2 else f"{name} ** 0.5",
        f"t.addmm(t.zeros(1), {name}, {other})" if len(shape) == 2 else f"{name}.mean()",
        f"F.conv1d({name}, {m.creation((2, shape[1], 1), 'float32')})" if len(shape) == 3 else f"{name}.cumsum(0)",
        f"t.stack([{name}, {name}.double()])" if m.dtype_name(x) == "float32" else f"{name}.sin()",
        f"t.where({name} > 0, {name}, {name}.double())",
    )
    mode = f"t.autocast('cpu', dtype=t.{m.pick('bfloat16', 'bfloat16', 'float16')}{m.pick('', '', ', enabled=False')})"
    if m.chance(0.2):
        return f"with {mode}: ({called}).float().sum().backward()"
    return f"with {mode}: {m.result(called)}"


@family(3)
def more_optimizers(m):
    leaves = [n for n in m.tensors() if m.of(n).is_leaf and m.of(n).requires_grad and m.of(n).is_floating_point()]
    known = [n for n in m.named("o") if hasattr(m.of(n), "own")]
    if not known:
        if not leaves:
            return None
        name, given = m.new("o"), f"[{', '.join(m.rng.sample(leaves, min(len(leaves), 2)))}]"
        made = m.pick(
            f"SGD({given}, lr=0.5, momentum=0.5, nesterov=True)",
            f"SGD({given}, lr=0.5, momentum=0.5, dampening=0.25, maximize=True)",
            f"Adam({given}, lr=0.25, amsgrad=True, weight_decay=0.5)",
            f"Adam({given}, lr=0.25, maximize=True)",
            f"NAdam({given}, lr=0.25)",
            f"RAdam({given}, lr=0.25, weight_decay=0.25)",
            f"Adamax({given}, lr=0.25)",
            f"Adadelta({given}, lr=0.5)",
            f"Rprop({given}, lr=0.5)",
            f"ASGD({given}, lr=0.5)",
            f"RMSprop({given}, lr=0.25, momentum=0.5, centered=True)",
            f"Adagrad({given}, lr=0.5, lr_decay=0.25, initial_accumulator_value=0.5)",
            f"Adafactor({given}, lr=0.25)",
            f"LBFGS({given}, lr=0.5, max_iter=2)",
        )
        return f"{name} = t.optim.{made}; {name}.own = True"
    o = m.rng.choice(known)
    schedule = m.pick(
        "StepLR({}, 1, gamma=0.5)", "ExponentialLR({}, 0.5)", "CosineAnnealingLR({}, 4)", "LinearLR({}, total_iters=3)",
        "LambdaLR({}, lambda n: 1 / (n + 1))", "OneCycleLR({}, 0.5, total_steps=8)", "MultiStepLR({}, [1, 2])",
        "ReduceLROnPlateau({}, patience=0)",
    ).format(o)  # fmt: skip
    first = f"{o}.param_groups[0]['params'][0]"
    return m.pick(
        *[f"{o}.step(lambda: ({first} * {first}).sum())"] * 2,
        *[f"descend({o})"] * 4,
        f"{o}.zero_grad()",
        f"{o}.load_state_dict(through_file({o}.state_dict(), weights_only=True))",
        f"{o}.state.clear()",
        f"{o} = copy.deepcopy({o})",
        f"{o}.add_param_group({{'params': [{m.pick(*leaves)}], 'lr': 0.125}})" if leaves else f"{o}.zero_grad()",
        f"{m.new('o')} = t.optim.lr_scheduler.{schedule}",
        f"say([g['lr'] for g in {o}.param_groups])",
    )


@family(2)
def many_at_once(m):
    name = m.floating()
    if not name:
        return None
    x = m.of(name)
    same = m.fitting(x.shape, m.dtype_name(x))
    other = m.floating()
    pair, alike = f"[{name}, {other}]", f"[{name}, {same}]"
    line = m.pick(
        f"t._foreach_add_({pair}, {m.pick('1', '0.5')})",
        f"t._foreach_mul_({pair}, 2)",
        f"t._foreach_add_({alike}, {alike}, alpha=2)",
        f"t._foreach_zero_({pair})",
        f"t._foreach_sqrt_({pair})",
        f"t._foreach_addcmul_([{name}], [{same}], [{same}], value=0.5)",
        f"t._foreach_addcdiv_([{name}], [{same}], [{same}])",
        f"t._foreach_lerp_([{name}], [{same}], 0.5)",
        f"t._foreach_clamp_min_({pair}, 0)",
        f"t._foreach_copy_([{name}], [{same}])",
        f"{m.new()}, {m.new()} = t._foreach_mul({pair}, 0.5)",
        f"{m.new()}, {m.new()} = t._foreach_norm({pair})",
        f"{m.new()}, {m.new()} = t._foreach_sub({alike}, {alike})",
        f"{m.new()}, {m.new()} = t._foreach_neg({pair})",
    )
    return f"with t.no_grad(): {line}" if m.chance(0.5) else line


@family(4)
def other_ways_to_gradients(m):
    name, other = with_gradient(m), with_gradient(m)
    if not name:
        return None
    target, x = leaf(m) or name, m.of(name)
    total = f"{name}.abs().sum()" if x.is_complex() else f"({name} * {name}).sum()"
    fresh = m.new()
    return m.pick(
        f"{total}.backward(inputs=[{target}])",
        f"{total}.backward(inputs=[{target}, {other}])",
        f"t.autograd.backward([{name}.sum(), {other}.sum()], retain_graph={m.pick(True, False)})",
        f"t.autograd.backward([{name}, {other}], [t.ones_like({name}), t.ones_like({other})])",
        f"{fresh}, {m.new()} = t.autograd.grad({total}, [{target}, {other}], materialize_grads=True)",
        f"{fresh} = t.autograd.grad([{name}.sum(), {other}.sum()], {target}, allow_unused=True)[0]",
        f"{fresh} = t.autograd.grad({name}, {target}, t.stack([t.ones_like({name})] * 2), is_grads_batched=True, "
        "retain_graph=True)[0]",
        f"{fresh} = t.autograd.grad(t.autograd.grad({total}, {target}, create_graph=True)[0].sum(), {target})[0]",
        f"{fresh} = t.utils.checkpoint.checkpoint(lambda x: x.sin() * x, {name}, use_reentrant=True)",
        f"{fresh} = t.func.hessian(lambda x: (x ** 3).sum())({name})" if x.numel() < 8 else None,
        f"{fresh} = t.func.jacfwd(lambda x: x * x)({name})" if x.numel() < 8 else None,
        f"{fresh} = t.func.vmap(t.func.grad(lambda x: (x * x).sum()))({name})",
        f"{fresh} = t.func.vmap(lambda x, y: x * y, in_dims=(0, None))({name}, {other})",
        f"{fresh} = t.func.linearize(lambda x: x * x, {name})[1](t.ones_like({name}))",
        f"{fresh} = t.autograd.functional.vjp(lambda x: x * x, {name}, t.ones_like({name}))[1]",
        f"{fresh} = t.autograd.functional.hvp(lambda x: (x ** 3).sum(), {name}, t.ones_like({name}))[1]",
        f"{fresh} = forward_mode(lambda x: x * x + x.sum(), {name}, t.ones_like({name}))",
        f"{fresh} = forward_mode(lambda x: x.clone().mul_(x), {name}, {name})",
    )


@family(3)
def more_own_functions(m):
    name = m.floating()
    if not name:
        return None
    return m.pick(
        m.result(f"Viewed.apply({name})"),
        m.result(f"Itself.apply({name})"),
        m.result(f"Once.apply({name})"),
        m.result(f"Once.apply({name}) * 2"),
        f"{m.new()}, {m.new()} = Sparing.apply({name})",
        m.result(f"Sparing.apply({name})[0]"),
        m.result(f"t.func.vmap(Sparing.apply)({name})[0]") if m.chance(0.2) else m.result(f"Itself.apply({name} * 2)"),
        f"Sparing.apply({name})[1].sum().backward()",
    )


@family(2)
def tensors_as_objects(m):
    name = m.small()
    if not name:
        return None
    x = m.of(name)
    rows = x.shape[0] if x.dim() else 0
    return m.pick(
        f"{', '.join(m.new() for _ in range(rows))} = {name}" if 1 < rows < 4 else f"say(len(list({name})))",
        m.result(f"t.stack(list({name}))"),
        m.result(f"sum({name})"),
        m.result(f"max({name}.flatten())"),
        m.result(f"np.{m.pick('sin', 'negative', 'square')}({name})") if m.chance(0.5) else None,
        f"{m.new('n')} = np.{m.pick('sum', 'mean', 'concatenate', 'array')}([{name}, {name}])",
        f"{m.new('n')} = np.ones(3) * {name}" if not x.requires_grad else None,
        m.result(f"t.tensor([{name}, {name}])") if x.numel() == 1 else None,
        m.result(f"{name}.as_subclass(Tagged)"),
        m.result(f"{name}.as_subclass(Tagged) * 2"),
        m.result(f"t.cat([{name}.as_subclass(Tagged), {name}])"),
        m.result(f"{name}.as_subclass(Tagged)[:1]"),
        f"{name}.note = {m.rng.randrange(5)}",
        f"say(getattr({name}, 'note', None), type({name}).__name__)",
        f"{m.new()} = t.rand(3, generator=t.Generator().manual_seed(3))",
        "with t.random.fork_rng(devices=[]): say(t.rand(2))",
        f"t.set_rng_state(t.Generator().manual_seed({m.rng.randrange(4)}).get_state())",
        m.result(f"{name}.share_memory_()") if m.chance(0.3) else None,
        m.result(f"{name}.to_sparse().to_dense()"),
        m.result(f"t.sparse.mm({name}.to_sparse(), {m.fitting((x.shape[1], 2), m.dtype_name(x))})")
        if x.dim() == 2
        else None,
    )


@family(3)
def rarer_values(m):
    name = m.tensor(lambda x: x.numel() <= MOST_ELEMENTS and m.dtype_name(x) in FLOATS)
    if not name:
        return None
    x = m.of(name)
    d, alike = m.dim(x), m.fitting(x.shape, m.dtype_name(x))
    choices = [
        f"t.logaddexp({name}, {alike})",
        f"t.nanmean({name}, {d})",
        f"t.quantile({name}, 0.25, {d})",
        f"t.nanmedian({name}, {d})[0]",
        f"t.cumulative_trapezoid({name}, dim={d})",
        f"t.trapezoid({name}, dim={d})",
        f"t.gradient({name}, dim={d})[0]",
        f"t.softmax({name}, {d}, dtype=t.float64)",
        f"t.fft.rfft({name}.contiguous())",
        f"t.fft.irfft(t.fft.rfft({name}.contiguous()))",
        f"t.fft.fft({name}.contiguous(), norm='ortho')",
        f"t.fft.fftshift({name})",
        f"t.renorm({name}, 2, {d}, 0.5)",
        f"t.bucketize({name}, t.tensor([-1.0, 0.0, 1.0]))",
        f"t.dist({name}, {alike})",
        f"t.argsort({name}, dim={d}, stable=True)",
        f"t.unique({name}, return_inverse=True)[1]",
        f"t.unique_consecutive({name}, return_counts=True)[1]",
        f"t.special.{m.pick('entr', 'i0', 'ndtr', 'log_ndtr')}({name})",
        f"t.special.erfcx({name}.double())",
        f"t.special.xlog1py({name}, {alike})",
        f"t.erfinv({name})",
        f"t.logcumsumexp({name}, {d})",
        f"F.pad({name}, (1, 1), mode={m.pick(repr('reflect'), repr('replicate'), repr('circular'))})",
        f"F.local_response_norm({name}.float(), 2)",
        f"t.tensor_split({name}, [1], {d})[-1]",
        f"t.index_reduce({name}, {d}, t.tensor([0]), {name}, {m.pick(repr('amax'), repr('mean'), repr('prod'))})",
        f"t.masked_scatter({name}, {name} > 0, {alike})",
        f"t.combinations({name}.flatten()[:4], 2)",
        f"t.cartesian_prod({name}.flatten()[:3], {name}.flatten()[:2])",
        f"t.nn.functional.fold(F.unfold({name}, 2), {tuple(x.shape[-2:])}, 2)"
        if x.dim() == 4
        else f"t.column_stack([{name}, {alike}])",
        f"{name}.rot90()" if x.dim() > 1 else f"t.vander({name})",
        f"t.corrcoef({name})",
        f"t.cov({name})",
    ]
    if x.dim() >= 2:
        square = f"({name}.mT @ {name} + 2 * t.eye({x.shape[-1]}, dtype={name}.dtype))"
        choices += [
            f"t.linalg.inv({square})",
            f"t.linalg.det({square})",
            f"t.linalg.slogdet({square})[1]",
            f"t.linalg.cholesky({square})",
            f"t.linalg.solve({square}, {name}.mT)",
            f"t.linalg.eigvalsh({square})",
            f"t.linalg.svdvals({name})",
            f"t.linalg.matrix_norm({name}, {m.pick(repr('fro'), repr('nuc'), '1', 'inf', '2')})",
            f"t.linalg.pinv({square})",
            f"t.linalg.solve_triangular({square}.tril(), {name}.mT, upper=False)",
            f"t.linalg.qr({square})[1].abs()",
            f"t.cdist({name}, {name}, p={m.pick('1.0', '2.0', '3.0', 'inf')})",
        ]
    return m.result(m.pick(*choices))
