"""Steps about memory: views, storages, resizing, copies, files, arrays of NumPy."""

import math

from steps import COMPLEX, MOST_ELEMENTS, family


def factors(m, count):
    """A shape with `count` elements."""
    shape, left = [], count
    for _ in range(m.rng.randrange(3)):
        fitting = [f for f in (1, 2, 3, 4, 6) if left and left % f == 0]
        if not fitting:
            break
        shape.append(m.rng.choice(fitting))
        left //= shape[-1]
    shape.insert(m.rng.randrange(len(shape) + 1), -1 if m.chance(0.3) and left else left)
    return tuple(shape)


@family(13)
def view(m):
    name = m.tensor()
    x = m.of(name)
    rank, d, e = x.dim(), m.dim(x), m.dim(x)
    n = x.shape[d] if rank and -rank <= d < rank else 1
    order = list(range(rank))
    m.rng.shuffle(order)
    choices = [
        f"{name}.view({factors(m, x.numel())})",
        f"{name}.reshape({factors(m, x.numel())})",
        f"{name}.transpose({d}, {e})",
        f"{name}.permute({tuple(order)})",
        f"{name}.squeeze({m.pick('', d)})",
        f"{name}.unsqueeze({m.pick(0, -1, d)})",
        f"{name}.flatten({m.pick('', '0, 1', d)})",
        f"{name}.narrow({d}, {m.pick(0, min(1, n))}, {max(n - 1, 0)})",
        f"{name}.select({d}, {m.pick(0, -1)})",
        f"{name}.movedim({d}, {e})",
        f"{name}.T" if rank < 3 else f"{name}.mT",
        f"{name}.detach()",
        f"{name}.data",
        f"{name}",
        f"{name}.view_as({name})",
        f"{name}.unfold({d}, {min(n, 2)}, 1)",
        f"{name}.diagonal({m.pick(0, 1, -1)})",
        f"{name}.ravel()",
        f"{name}.expand_as({name})",
        f"{name}.alias()" if hasattr(x, "alias") and m.chance(0.1) else f"t.atleast_3d({name})",
        f"{name}.view(t.{m.pick('int32', 'float32', 'uint8', 'int16', 'float16', 'int64')})",
        f"{name}.unflatten({d}, (1, {n}))",
        f"{name}.swapaxes({d}, {e})",
        f"t.unbind({name}, {d})[0]",
        f"{name}.adjoint().resolve_conj()",
        f"{name}[...]",
        f"{name}[None]",
        f"{name}.real" if m.chance(0.3) else f"{name}[:1]" if rank else f"{name}.view(1)",
    ]
    if x.numel() <= 40:
        choices.append(f"{name}.expand({(2, *x.shape)})")
        choices.append(f"{name}.expand({tuple(3 if s == 1 else -1 for s in x.shape)})")
        choices.append(f"{name}.broadcast_to({(2, *x.shape)})")
    if m.dtype_name(x) in COMPLEX:
        choices += [
            f"{name}.real",
            f"{name}.imag",
            f"{name}.conj().resolve_conj()",
            f"t.view_as_real({name})",
            f"{name}.mH.resolve_conj()",
            f"{name}.conj()" if m.chance(0.03) else f"{name}.conj().resolve_conj() * 1",
            f"{name}.resolve_conj()",
            f"t.view_as_real({name}.resolve_conj())",
        ] * 3
    elif rank and x.shape[-1] == 2:
        choices += [f"t.view_as_complex({name})"] * 3
    if rank and m.chance(0.2):
        word = m.pick("chunk", "split", "tensor_split", "unbind", "unsafe_chunk")
        piece = f"t.{word}({name}, {m.pick(1, 2)}, {d})" if word != "unbind" else f"t.unbind({name}, {d})"
        if n >= 2 and m.chance(0.5):
            return f"{m.new()}, {m.new()} = {piece}[0], {piece}[-1]"
        return m.result(f"{piece}[{m.pick(0, -1)}]")
    if m.chance(0.12):
        return m.result(strided(m, name, x))
    return m.result(m.pick(*choices))


def strided(m, name, x):
    """as_strided of `name`, mostly inside its memory; elements may overlap."""
    have = x.untyped_storage().nbytes() // x.element_size()
    offset = m.pick(0, 0, 1, 2)
    shape, strides, last = [], [], offset
    for _ in range(m.rng.randrange(3)):
        stride = m.pick(0, 1, 1, 2, 3)
        size = m.pick(1, 2, 2, 3, 0)
        if size and last + (size - 1) * stride >= have and not m.chance(0.05):
            size = 1
        shape.append(size)
        strides.append(stride)
        last += max(size - 1, 0) * stride
    if last >= have and not m.chance(0.1):
        offset = 0
        shape, strides = ([min(have, 2)], [1])
    word = m.pick("as_strided", "as_strided", "as_strided", "as_strided_copy")
    text = f"{tuple(shape)}, {tuple(strides)}" + (f", {offset}" if m.chance(0.8) else "")
    return f"t.{word}({name}, {text})" if word == "as_strided_copy" else f"{name}.as_strided({text})"


@family(2)
def view_in_place(m):
    name = m.tensor()
    x = m.of(name)
    d, e = m.dim(x), m.dim(x)
    return m.pick(
        f"{name}.transpose_({d}, {e})",
        f"{name}.squeeze_({m.pick('', d)})",
        f"{name}.unsqueeze_({m.pick(0, -1)})",
        f"{name}.t_()",
        f"{name}.swapdims_({d}, {e})",
        f"{name}.as_strided_((1,), (1,))",
        f"{name}.detach_()",
    )


@family(5)
def resizing(m):
    name = m.small()
    if not name:
        return None
    x = m.of(name)
    shape = m.shape() if m.chance(0.5) else (max(x.numel() + m.pick(-1, 1, 0, 5), 0),)
    other = m.tensor(lambda y: y.numel() <= MOST_ELEMENTS)
    bytes_wanted = m.pick(0, x.numel() * x.element_size(), x.untyped_storage().nbytes() + m.pick(0, 8, -8, 3))
    same_dtype = m.tensor(lambda y: y.dtype == x.dtype)
    lines = [
        f"grown({name}, lambda: {name}.resize_({shape}))",
        f"grown({name}, lambda: {name}.resize_({shape}))",
        f"grown({name}, lambda: {name}.resize_as_({other}))",
        (
            f"grown({name}, lambda: {name}.resize_({shape}, "
            f"memory_format=t.{m.pick('contiguous_format', 'channels_last')}))"
        ),
        f"grown({name}, lambda: {name}.untyped_storage().resize_({max(bytes_wanted, 0)}))",
        f"{name}.set_()",
        f"{name}.set_({same_dtype})",
        f"{name}.set_({other}.untyped_storage())",
        f"grown({same_dtype}, lambda: {name}.set_({same_dtype}.untyped_storage(), {m.pick(0, 1)}, (1,), (1,)))",
        (
            f"grown({same_dtype}, lambda: {name}.set_({same_dtype}.untyped_storage(), 0, "
            f"{tuple(m.of(same_dtype).shape)}))"
        ),
        f"{name}.data = {m.pick(same_dtype, other)}",
        f"{name}.data = {m.pick(same_dtype, other)}.detach().clone()",
        f"{m.new()} = t.empty(0, dtype={name}.dtype).set_({name}.untyped_storage())",
        f"say({name}.untyped_storage().tolist()[: {x.element_size()}])",
        f"{name}.untyped_storage().fill_({m.pick(0, 1)})"
        if x.dtype != m.t.bool or m.chance(0.5)
        else f"say(len({name}.untyped_storage()))",
        f"{m.new()} = t.tensor([], dtype={name}.dtype).set_({name}.untyped_storage().clone())",
        f"{name}.untyped_storage().copy_({other}.untyped_storage())",
        f"{name}.requires_grad_(False)",
    ]
    return m.pick(*lines)


@family(5)
def copying(m):
    name = m.small()
    if not name:
        return None
    other = m.tensor()
    x = m.of(name)
    form = m.pick("contiguous_format", "preserve_format", "channels_last")
    return m.pick(
        m.result(f"{name}.clone()"),
        m.result(f"{name}.clone(memory_format=t.{form})"),
        m.result(f"{name}.contiguous()"),
        m.result(f"{name}.contiguous(memory_format=t.{m.pick('contiguous_format', 'channels_last')})"),
        m.result(f"{name}.to(memory_format=t.{form})"),
        m.result(f"copy.deepcopy({name})"),
        m.result(f"copy.copy({name})"),
        f"{m.new()}, {m.new()} = copy.deepcopy(({name}, {other}))",
        m.result(f"through_pickle({name})"),
        f"{m.new()}, {m.new()} = through_pickle([{name}, {other}])",
        f"{m.new()}, {m.new()} = through_file([{name}, {other}])",
        m.result(f"through_file({{'a': {name}}}, weights_only={m.pick(True, False)})['a']"),
        m.result(f"t.tensor({name})"),
        m.result(f"t.as_tensor({name})"),
        m.result(f"t.asarray({name})"),
        m.result(f"t.tensor({name}.tolist(), dtype={name}.dtype)"),
        m.result(f"t.nn.Parameter({name})"),
        m.result(f"{name}.type_as({name})"),
        m.result(f"t.from_dlpack({name})"),
        m.result(f"t.Tensor({m.pick(name, '2, 0', '[1, 2]', '(0, 3)')})") if math.prod(x.shape) < 50 else None,
    )


@family(5)
def numpy_sharing(m):
    arrays = m.named("n")
    name = m.small()
    if not name:
        return None
    if arrays and m.chance(0.6):
        array = m.rng.choice(arrays)
        return m.pick(
            m.result(f"t.from_numpy({array})"),
            m.result(f"t.as_tensor({array})"),
            m.result(f"t.tensor({array})"),
            f"{array}[...] = {m.pick(0, 1, 2)}",
            f"{array} += 1",
            f"{array}[0] = 1",
            f"{m.new('n')} = {array}.T",
            f"{m.new('n')} = {array}[::2]",
            f"{m.new('n')} = {array}.reshape(-1)",
            m.result(f"{name} + {array}"),
            m.result(f"t.from_numpy({array}[::-1])"),
            f"{name}[...] = t.from_numpy({array})",
            m.result(f"t.frombuffer({array}, dtype=t.uint8)") if m.chance(0.5) else m.result(f"t.asarray({array})"),
        )
    return m.pick(
        f"{m.new('n')} = {name}.numpy()",
        f"{m.new('n')} = {name}.detach().numpy()",
        f"{m.new('n')} = np.asarray({name})",
        f"{m.new('n')} = {name}.numpy(force=True)",
        f"{m.new('n')} = np.array({name})",
        (
            f"{m.new('n')} = np.arange({m.pick(0, 3, 6)}, "
            f"dtype='{m.pick('float32', 'float64', 'int64', 'bool', 'complex64', 'uint8')}')"
        ),
        f"{m.new('n')} = np.add({name}, 1)",
    )


@family(7)
def question(m):
    name, other = m.tensor(), m.tensor()
    x = m.of(name)
    return "say({})".format(
        m.pick(
            f"{name}.item()",
            f"{name}.tolist()",
            f"{name}.is_contiguous(), {name}.is_contiguous(memory_format=t.channels_last)",
            f"bool({name})",
            f"len({name})",
            f"{name}.equal({other})",
            f"{name}.is_set_to({other})",
            f"{name}._base is {other}, {name} is {other}",
            f"{name}.output_nr, {name}.grad_fn is None",
            f"{name}.size(), {name}.numel(), {name}.nbytes, {name}.itemsize",
            f"{name} in [{other}]" if x.numel() == 1 else f"{name}.dim()",
            f"[r.shape for r in {name}]",
            f"int({name})"
            if x.numel() == 1 and bool(abs(x.detach().to(m.t.complex128)).lt(100).all())
            else f"{name}.ndim",
            f"float({name})",
            f"{name}.size({m.dim(x)}), {name}.storage_offset()",
            f"{name}.retains_grad, {name}.requires_grad, {name}.is_leaf",
            f"type({name}).__name__",
            f"t.allclose({name}, {other})",
            f"{name}.dim_order()",
            f"{name}.is_complex(), {name}.is_floating_point(), {name}.is_signed(), {name}.is_nonzero()",
            f"t.promote_types({name}.dtype, {other}.dtype)",
            f"t.result_type({name}, {other}), t.can_cast({name}.dtype, {other}.dtype)",
            f"{name}.is_shared(), {name}.is_pinned()",
            f"hash({name}) == hash({name}), {name} is {name}",
            f"{name}.__format__('')"
            if x.numel() == 1 and x.dim() == 0 and not x.is_complex()
            else f"{name}.nelement()",
            f"str({name})" if x.numel() < 20 and not x.requires_grad else f"{name}.layout == t.strided",
            f"list(reversed({name}))" if x.dim() and x.numel() < 20 else f"{name}.element_size()",
        )
    )


@family(2)
def forgetting(m):
    names = m.all_names()
    return m.pick(
        f"del {m.rng.choice(names)}",
        "gc.collect()" if m.chance(0.03) else f"del {m.rng.choice(names)}",
        f"t.manual_seed({m.rng.randrange(5)})",
    )
