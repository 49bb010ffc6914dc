"""Steps that compute: arithmetic, reductions, joining and picking elements, products and layers."""

from steps import COMPLEX, FLOATS, INTEGERS, MOST_ELEMENTS, broadcasts, family, is_small_number

UNARY = (
    "abs neg sign floor ceil round trunc frac exp log sqrt rsqrt sin cos tanh sigmoid square reciprocal isnan isinf "
    "isfinite logical_not erf log1p expm1 sinh atan "
    "positive sgn angle deg2rad signbit nan_to_num exp2 log2 log10 asinh digamma lgamma conj_physical bitwise_not "
    "erfc logit"
).split()
ACTIVATIONS = (
    "F.relu({0}) F.gelu({0}) F.silu({0}) F.softplus({0}) F.leaky_relu({0},0.5) F.elu({0}) F.hardtanh({0}) "
    "F.relu6({0}) F.hardswish({0}) F.mish({0}) F.logsigmoid({0}) F.selu({0}) "
    "F.softsign({0}) F.hardsigmoid({0}) F.threshold({0},0.5,-1) F.softshrink({0}) F.tanhshrink({0}) F.celu({0}) "
    "F.hardshrink({0})"
).split()
BINARY = "add sub mul div maximum minimum fmod remainder floor_divide pow atan2 eq ne lt le gt ge logical_and logical_or logical_xor hypot copysign fmax fmin true_divide rsub nextafter xlogy heaviside".split()  # noqa: E501
WANT_TENSORS = "maximum minimum fmax fmin atan2 hypot nextafter heaviside logical_and logical_or logical_xor".split()
OPERATORS = "+ - * / // % ** == != < <= > >= & | ^ @".split()
IN_PLACE_UNARY = "abs_ neg_ sign_ floor_ ceil_ round_ trunc_ exp_ sqrt_ sin_ cos_ tanh_ sigmoid_ square_ relu_ reciprocal_ zero_ logical_not_ frac_ erf_ log1p_ expm1_ nan_to_num_ rsqrt_ conj_physical_".split()  # noqa: E501
IN_PLACE_BINARY = "add_ sub_ mul_ div_ copy_ pow_ remainder_ fmod_ floor_divide_ eq_ ne_ lt_ gt_ logical_and_ logical_or_ atan2_ copysign_ xlogy_ hypot_".split()  # noqa: E501


@family(8)
def create(m):
    return f"{m.new()} = {m.creation()}"


@family(3)
def create_like(m):
    name = m.small()
    if not name:
        return None
    word = m.pick(
        "zeros_like",
        "ones_like",
        "full_like",
        "empty_like",
        "rand_like",
        "randn_like",
        "new_zeros",
        "new_ones",
        "new_full",
        "new_tensor",
        "new_empty",
    )
    x = m.of(name)
    dtype = f", dtype=t.{m.dtype()}" if m.chance(0.25) else ""
    form = (
        f", memory_format=t.{m.pick('contiguous_format', 'preserve_format', 'channels_last')}" if m.chance(0.2) else ""
    )
    grad = ", requires_grad=True" if m.chance(0.1) else ""
    if word == "full_like":
        return f"{m.new()} = t.full_like({name}, {m.number()}{dtype}{form}{grad})"
    if word == "empty_like":
        return f"{m.new()} = t.empty_like({name}{dtype}{form}).fill_({m.number()})"
    if word == "new_tensor":
        return f"{m.new()} = {name}.new_tensor([{m.number()}, {m.number()}]{dtype}{grad})"
    if word == "new_full":
        return f"{m.new()} = {name}.new_full({m.shape()}, {m.number()}{dtype}{grad})"
    if word == "new_empty":
        return f"{m.new()} = {name}.new_empty({tuple(x.shape)}{dtype}).fill_(1)"
    if word.startswith("new_"):
        return f"{m.new()} = {name}.{word}({m.shape()}{dtype}{grad})"
    if word.startswith("rand") and m.dtype_name(x) in INTEGERS and not dtype and m.chance(0.9):
        return None
    return f"{m.new()} = t.{word}({name}{dtype}{form}{grad})"


@family(2)
def create_by_rule(m):
    dtype = m.dtype()
    small = m.pick(0, 1, 2, 3, 5, 7)
    return m.result(
        m.pick(
            f"t.arange({small}, dtype=t.{dtype})",
            f"t.arange({m.number()}, {m.number()}, {m.pick('1', '0.5', '-1', '2', '0')})",
            f"t.linspace({m.number('float32')}, {m.number('float32')}, {small}, dtype=t.{dtype})",
            f"t.eye({small}, {m.pick(1, 2, 4)}, dtype=t.{dtype})",
            f"t.tensor({m.pick('[]', '[1, 2.5]', '[[1], [2]]', '3', 'True', '[1j, 2]', '[True, False]', '[1, True, 2.0]', 'nan', '[[], []]')})",  # noqa: E501
            f"t.tensor([[1, 2], [3, 4]], dtype=t.{dtype}, requires_grad={m.pick(True, False, False)})",
            f"t.empty_strided((2, 3), (1, 2), dtype=t.{dtype}).fill_(1)",
            f"t.scalar_tensor({m.number(dtype)}, dtype=t.{dtype})",
            "t.randperm(5)",
            f"t.randint(-3, 4, {m.shape()})",
            f"t.tril_indices({small}, 3)",
            f"t.complex(values((2, 3), 'float32', {small}), values((2, 3), 'float32', 1))",
            f"t.bernoulli(t.full({m.shape()}, 0.5))",
            f"t.normal(0.0, 1.0, {m.shape()})",
        )
    )


@family(14)
def arithmetic(m):
    name = m.small()
    if not name:
        return None
    x = m.of(name)
    kind = m.rng.random()
    if kind < 0.3:
        if m.chance(0.25) and m.dtype_name(x) in FLOATS:
            return m.result(m.pick(*ACTIVATIONS).format(name))
        return m.result(f"t.{m.pick(*UNARY)}({name})")
    other = m.partner(x)
    if not safe_to_combine(m, x, other):
        return None
    if kind < 0.6:
        operator = m.pick(*OPERATORS[:3]) if m.chance(0.5) else m.pick(*OPERATORS[:-1])
        if m.chance(0.15):
            name, other = other, name
        return m.result(f"{name} {operator} {other}")
    if kind < 0.8:
        word = m.pick(*BINARY)
        if word in WANT_TENSORS and other[0] != "v" and not other.startswith("t.") and m.chance(0.97):
            other = name
        return m.result(f"t.{word}({name}, {other})")
    third = m.partner(x)
    if not safe_to_combine(m, x, third):
        return None
    return m.result(
        m.pick(
            f"t.where({name} > 0, {name}, {other})",
            f"t.where({m.fitting(x.shape, 'bool')}, {other}, {name})",
            f"t.addcmul({name}, {m.fitting(x.shape)}, {m.fitting(x.shape)}, value={m.number()})",
            f"t.lerp({name}, {m.fitting(x.shape, m.dtype_name(x))}, {m.pick('0.5', name)})",
            f"t.clamp({name}, {m.pick('-1', 'None', '0.5')}, {m.pick('1', 'None', '2')})",
            f"t.add({name}, {other}, alpha={m.number()})",
            f"t.sub({name}, {other}, alpha={m.number()})",
            f"t.div({name}, {other}, rounding_mode={m.pick('None', repr('floor'), repr('trunc'))})",
            f"{name}.masked_fill({m.pick(f'{name} > 0', f'{name} == {other}')}, {m.number()})",
            f"t.isclose({name}, {other})",
            f"t.clamp({name}, {other}, {third})",
            f"-{name}",
            f"abs({name})",
            f"~({name} > {other})",
            f"{name} << {m.pick(0, 1, 2)}",
            f"{name} >> {m.pick(0, 1, 2)}",
            f"t.addcdiv({name}, {other}, {third})",
        )
    )


def safe_to_combine(m, x, other):
    """Conversions of numbers that the other's dtype cannot hold have no defined result."""
    if other[0] != "v" or not other[1:].isdigit():
        return True
    return (x.numel() <= MOST_ELEMENTS) and m.of(other).numel() <= MOST_ELEMENTS


@family(9)
def in_place(m):
    name = m.tensor(lambda x: x.numel() <= MOST_ELEMENTS and x.dim() < 5)
    if not name:
        return None
    x = m.of(name)
    target = m.pick(name, name, name, name, f"{name}.data", f"{name}.detach()") if m.chance(0.3) else name
    if m.chance(0.15) and x.dim() and x.shape[0]:
        target = m.pick(
            f"{name}[0]",
            f"{name}[-1:]",
            f"{name}[::2]",
            f"{name}.t()" if x.dim() == 2 else f"{name}.view(-1)",
            f"{name}.select(-1, 0)",
            f"{name}[None]",
        )
    kind = m.rng.random()
    if kind < 0.2:
        line = f"{target}.{m.pick(*IN_PLACE_UNARY)}()"
    else:
        other = m.partner(x)
        if m.dtype_name(x) not in FLOATS + COMPLEX and not integers_hold(m, other):
            return None
        if kind < 0.5:
            line = f"{target}.{m.pick(*IN_PLACE_BINARY[:5]) if m.chance(0.6) else m.pick(*IN_PLACE_BINARY)}({other})"
        elif kind < 0.65 and target == name:
            line = f"{name} {m.pick('+=', '-=', '*=', '/=', '//=', '%=', '**=', '&=', '|=', '^=')} {other}"
        else:
            same = m.fitting(x.shape, m.dtype_name(x))
            mask = m.pick(f"{name} > 0", f"{name} == 0", m.fitting(x.shape, "bool"))
            d = m.dim(x)
            index = m.pick(
                "t.tensor([0])",
                "t.tensor([0, 0])",
                "t.tensor([], dtype=t.int64)",
                "t.tensor(0)",
                "t.tensor([-1])",
                "t.tensor([1, 0])",
            )
            line = m.pick(
                f"{target}.fill_({m.pick(m.number(m.dtype_name(x)), 't.tensor(2)')})",
                f"{target}.clamp_({m.pick('-1', '0', 'None')}, 1)",
                f"{target}.masked_fill_({mask}, {m.number(m.dtype_name(x))})",
                f"{target}.addcmul_({same}, {same}, value={m.number(m.dtype_name(x))})",
                f"{target}.lerp_({same}, 0.5)",
                f"{target}.index_fill_({d}, {index}, {m.number(m.dtype_name(x))})",
                f"{target}.index_add_({d}, {index}, {name})",
                f"{target}.index_copy_({d}, {index}, {name})",
                f"{target}.scatter_({d}, t.zeros_like({name}, dtype=t.int64), {m.number(m.dtype_name(x))})",
                f"{target}.scatter_add_({d}, t.zeros_like({name}, dtype=t.int64), {m.pick(name, same)})",
                f"{target}.masked_scatter_({mask}, {same})",
                f"{target}.tril_()",
                f"{target}.triu_(1)",
                f"{target}.cumsum_({d})",
                f"{target}.fill_diagonal_({m.number(m.dtype_name(x))})",
                f"{target}.copy_({same}.clone())",
                f"{target}.mul_({name})",
                f"{target}.add_({name}, alpha={m.number(m.dtype_name(x))})",
                f"{target}.sub_({same}, alpha=2)",
                f"{target}.put_(t.tensor([0]), {m.creation((1,), m.dtype_name(x))})",
                f"{target}.swapaxes_(0, -1)",
                f"{target}.addmm_({name}, {name})",
                f"t.nn.init.constant_({target}, 0.5)",
                f"{target}.uniform_()",
                f"{target}.normal_()",
                f"{target}.random_(0, 5)",
                f"{target}.bernoulli_(0.5)",
                f"F.relu({target}, inplace=True)",
                f"F.leaky_relu_({target})",
                f"t.relu_({target})",
                f"t.ldexp({target}, t.tensor(1))",
            )
    if m.chance(0.3):
        line = f"with t.no_grad(): {line}"
    return line


def integers_hold(m, text):
    """What `text` names, written to an integer tensor, gives the same on every processor."""
    return not (text[0] == "v" and text[1:].isdigit()) or is_small_number(m.of(text))


@family(6)
def with_out(m):
    """Results that are written to a tensor that is there, which may be one of the operands, or a part of it."""
    name = m.small()
    if not name:
        return None
    x = m.of(name)
    other = m.partner(x)
    if m.chance(0.7):
        out = m.tensor(lambda y: broadcasts(tuple(y.shape), tuple(x.shape)) and y.numel() <= MOST_ELEMENTS) or name
    else:
        out = m.pick(name, m.tensor())
    y = m.of(out)
    if m.dtype_name(y) not in FLOATS + COMPLEX and not (is_small_number(x, 10) and integers_hold(m, other)):
        return None
    if m.chance(0.15) and y.dim() and y.shape[0] > 1:
        out = m.pick(f"{out}[1:]", f"{out}[:-1]", f"{out}[0]")
    d = m.dim(x)
    line = m.pick(
        f"t.add({name}, {other}, out={out})",
        f"t.mul({name}, {other}, out={out})",
        f"t.sub({name}, {other}, out={out})",
        f"t.exp({name}, out={out})",
        f"t.neg({name}, out={out})",
        f"t.abs({name}, out={out})",
        f"t.sum({name}, {d}, out={out})",
        f"t.cumsum({name}, {d}, out={out})",
        f"t.cat([{name}, {name}], {d}, out={out})",
        f"t.stack([{name}, {name}], {d}, out={out})",
        f"t.matmul({name}, {name}, out={out})",
        f"t.where({name} > 0, {name}, {name}, out={out})",
        f"t.index_select({name}, {d}, t.tensor([0]), out={out})",
        f"t.clamp({name}, -1, 1, out={out})",
        f"t.eq({name}, {other}, out={out})",
        f"t.amax({name}, {d}, out={out})",
        f"t.sigmoid({name}, out={out})",
        f"t.maximum({name}, {other if other[0] == 'v' else name}, out={out})",
        f"t.tril({name}, out={out})",
        f"t.gather({name}, {d}, t.zeros_like({name}, dtype=t.int64), out={out})",
        f"t.mean({name}, {d}, out={out})",
        f"t.addmm({name}, {name}, {name}, out={out})",
        f"t.arange(4, out={out})",
        f"t.ones({tuple(x.shape)}, out={out})",
    )
    if m.chance(0.5):
        line = f"with t.no_grad(): {line}"
    return line


@family(9)
def reduction(m):
    name = m.small()
    if not name:
        return None
    x = m.of(name)
    d, keep = m.dim(x), m.pick("", "", ", keepdim=True")
    dtype = f", dtype=t.{m.dtype()}" if m.chance(0.1) and is_small_number(x, 10) else ""
    dims = m.pick(f"{d}", f"({d},)", "()", f"{tuple(range(x.dim()))}", "None") if m.chance(0.3) else f"{d}"
    return m.result(
        m.pick(
            f"{name}.sum({dtype[2:]})",
            f"{name}.sum({dims}{keep}{dtype})",
            f"{name}.mean({dims}{keep}{dtype})",
            f"{name}.prod({d}{keep}{dtype})",
            f"{name}.amax({d}{keep})",
            f"{name}.amin({dims}{keep})",
            f"{name}.max({d}{keep})[0]",
            f"{name}.min({d}{keep}).values",
            f"{name}.max()",
            f"t.take_along_dim({name}, {name}.argmax({d}, keepdim=True), {d})",
            f"{name}.any({d}{keep})",
            f"{name}.all()",
            f"{name}.var({dims}{keep})",
            f"{name}.std({d}{keep})",
            f"{name}.var({d}, correction=0)",
            f"{name}.norm()",
            f"t.linalg.vector_norm({name}, {m.pick(1, 2, 'inf', 0)}, {d}{keep})",
            f"{name}.logsumexp({d}{keep})",
            f"{name}.cumsum({d}{dtype})",
            f"{name}.cumprod({d})",
            f"t.cummax({name}, {d})[0]",
            f"sorting({name}, dim={d}, descending={m.pick(True, False)})",
            f"sorting({name}, dim={d}, stable=True)",
            f"t.topk({name}, 1, {d})[0]",
            f"t.unique({name})",
            f"t.nonzero({name})",
            f"t.count_nonzero({name}, {d})",
            f"{name}.median({d}{keep})[0]",
            f"{name}.median()",
            f"t.aminmax({name}).max",
            f"t.kthvalue({name}, 1, {d})[0]",
            f"t.diff({name}, dim={d})",
            f"t.bincount({name}.flatten().clamp(0, 5))",
            f"t.nansum({name}, {d}{keep})",
            f"t.logcumsumexp({name}, {d})",
            f"t.std_mean({name}, {d})[1]",
            f"t.searchsorted(values((5,), 'float32').sort()[0], {name})",
            f"t.trace({name})",
            f"t.histc({name}, 4, -2, 2)",
        )
    )


def index(m, x, depth=0):
    """The text of an index into `x`, without the brackets."""
    parts, d = [], 0
    rank = x.dim()
    ellipsis = m.chance(0.15)
    wanted = m.rng.randrange(rank + 1) if rank else 0
    for _ in range(max(wanted, 1)):
        kind = m.rng.random()
        if kind < 0.1:
            parts.append("None")
            continue
        if ellipsis and m.chance(0.5):
            parts.append("...")
            ellipsis, d = False, d + m.rng.randrange(2)
            continue
        if d >= rank:
            if m.chance(0.05):
                parts.append("0")
            elif rank == 0:
                parts.append(m.pick("...", "None", "()", "True", "t.tensor(True)", f"t.tensor({m.pick(True, False)})"))
            break
        n = x.shape[d]
        inside = (lambda: m.rng.randrange(-n, n) if n else 0) if not m.chance(0.02) else (lambda: n + 1)
        if kind < 0.3:
            parts.append(str(inside()))
        elif kind < 0.6:
            low, high = m.pick("", "0", "1", "-1", "2"), m.pick("", "-1", "2", "3", "0")
            parts.append(f"{low}:{high}" + m.pick("", "", ":2", ":3"))
        elif kind < 0.72:
            count = m.pick(0, 1, 2, 2, 3)
            made = [inside() for _ in range(count)]
            text = (
                f"t.tensor({made}, "
                f"dtype=t.{m.pick('int64', 'int64', 'int64', 'int32', 'uint8' if min(made, default=0) >= 0 and not n < 2 else 'int64')})"  # noqa: E501
            )
            parts.append(
                m.pick(
                    text,
                    text,
                    str(made),
                    f"t.tensor({[made, made]}, dtype=t.int64)",
                    f"np.array({made}, dtype='int64')",
                )
            )
        elif kind < 0.8:
            parts.append(
                m.pick(
                    f"t.tensor({[m.chance(0.5) for _ in range(n)]}, dtype=t.bool)",
                    f"{[m.chance(0.5) for _ in range(n)]}" if n else ":",
                )
            )
        elif kind < 0.84 and d + 1 < rank:
            parts.append(f"values({(n, x.shape[d + 1])}, 'bool', 1)")
            d += 1
        elif kind < 0.86:
            parts.append(f"t.tensor({inside()})")
        elif kind < 0.88:
            parts.append(m.pick("True", "False"))
            continue
        else:
            parts.append(":")
        d += 1
    return ", ".join(parts)


@family(8)
def indexing(m):
    name = m.small()
    if not name:
        return None
    x = m.of(name)
    if m.chance(0.15):
        return m.result(f"{name}[{m.pick(f'{name} > 0', f'{name} == {name}', m.fitting(x.shape, 'bool'))}]")
    return m.result(f"{name}[{index(m, x)}]")


@family(7)
def index_assignment(m):
    name = m.small()
    if not name:
        return None
    x = m.of(name)
    where = index(m, x) if m.chance(0.8) else m.pick(f"{name} > 0", f"{name} != {name}", "...", ":")
    kind = m.rng.random()
    if kind < 0.4:
        value = m.number(m.dtype_name(x))
    elif kind < 0.6:
        value = f"{name}[{where}].clone()" if m.chance(0.5) else f"{name}[{where}] * 2"
    elif kind < 0.7:
        value = m.creation((), m.dtype())
    elif kind < 0.8 and x.dim():
        value = m.creation(tuple(x.shape[1:]), m.dtype_name(x))
    else:
        value = m.tensor()
    if value is None or (m.dtype_name(x) not in FLOATS + COMPLEX and not integers_hold(m, value)):
        return None
    if repeats_places(where) and not (value[0] != "v" and not value.startswith("t.")):
        return None  # which of several values for one place stays is free
    line = f"{name}[{where}] = {value}" if m.chance(0.85) else f"{name}[{where}] {m.pick('+=', '*=', '-=')} {value}"
    return f"with t.no_grad(): {line}" if m.chance(0.3) else line


def repeats_places(where):
    return "tensor([" in where or "[" in where and "bool" not in where


@family(7)
def joining(m):
    name = m.small()
    if not name:
        return None
    x = m.of(name)
    d = m.dim(x)
    alike = m.fitting(x.shape, m.dtype_name(x) if m.chance(0.8) else None)
    zeros = f"t.zeros_like({name}, dtype=t.int64)"
    return m.result(
        m.pick(
            f"t.cat([{name}, {alike}], {d})",
            f"t.cat([{name}, t.tensor([]), {alike}], {d})",
            f"t.stack([{name}, {alike}, {name}], {d})",
            f"t.gather({name}, {d}, {zeros})",
            f"t.scatter({name}, {d}, {zeros}, {m.number(m.dtype_name(x))})",
            f"t.scatter_add({name}, {d}, {zeros}, {name})",
            (
                f"t.scatter_reduce({name}, {d}, {zeros}, {name}, "
                f"{m.pick(repr('sum'), repr('amax'), repr('mean'), repr('prod'))})"
            ),
            f"t.index_select({name}, {d}, t.tensor({m.pick('[0]', '[0, 0]', '[]', '[-1]', '[1, 0]')}, dtype=t.int64))",
            f"t.take({name}, t.tensor([[0, -1]]))",
            f"t.masked_select({name}, {m.pick(f'{name} > 0', m.fitting(x.shape, 'bool'))})",
            f"t.roll({name}, {m.pick(1, -1, 2)}, {d})",
            f"t.flip({name}, [{d}])",
            f"{name}.repeat({', '.join(['2'] * max(x.dim(), 1))})" if x.numel() < 40 else f"{name}.clone()",
            f"t.tile({name}, (1, 2))" if x.numel() < 40 else f"t.fliplr({name})",
            f"t.repeat_interleave({name}, 2, {d})" if x.numel() < 100 else f"{name} + 0",
            f"t.tril({name})",
            f"t.triu({name}, 1)",
            f"F.pad({name}, ({m.pick(0, 1)}, {m.pick(1, 2, -1)}))",
            f"t.index_add({name}, {d}, t.tensor([0]), {name})",
            f"t.index_copy({name}, {d}, t.tensor([0]), {name}[:1])",
            f"t.diag({name})",
            f"t.diag_embed({name})" if x.numel() < 30 else f"t.rot90({name})",
            f"t.broadcast_tensors({name}, {alike})[0]",
            f"t.hstack([{name}, {alike}])",
            f"t.vstack([{name}, {alike}])",
            f"t.meshgrid({name}, {name}, indexing='ij')[1]" if x.numel() < 10 else f"t.atleast_2d({name})",
            f"t.kron({name}, {name})" if x.numel() < 10 else f"t.atleast_1d({name})",
            f"t.block_diag({name}, {name})",
            f"t.select_scatter({name}, {alike}[0] if {x.dim() > 0} else {alike}, 0, 0)",
            f"t.slice_scatter({name}, {alike}[:1], 0, 0, 1)" if x.dim() else f"{name}.clone()",
            f"t.diagonal_scatter({name}, t.zeros({min(x.shape[-2:])}, dtype={name}.dtype))"
            if x.dim() == 2
            else f"{name} * 1",
            f"t.index_put({name}, (t.tensor([0]),), {m.creation((), m.dtype_name(x))})",
            f"{name}.index_fill({d}, t.tensor([0]), {m.number(m.dtype_name(x))})",
        )
    )


@family(3)
def conversion(m):
    name = m.small()
    if not name:
        return None
    dtype = m.dtype()
    if dtype not in FLOATS + COMPLEX and not is_small_number(m.of(name)):
        return None
    if dtype == "uint8" and not is_small_number(m.of(name)):
        return None
    word = {
        "float32": "float",
        "float64": "double",
        "float16": "half",
        "int64": "long",
        "int32": "int",
        "bool": "bool",
        "bfloat16": "bfloat16",
    }.get(dtype)
    return m.result(
        m.pick(
            f"{name}.to(t.{dtype})",
            f"{name}.to(dtype=t.{dtype}, copy=True)",
            f"{name}.type(t.{dtype})",
            f"{name}.{word}()" if word else f"{name}.to(t.{dtype})",
            f"{name}.type_as({m.tensor()})"
            if integers_hold(m, name) and is_small_number(m.of(name))
            else f"{name}.clone()",
        )
    )


@family(7)
def product(m):
    name = m.tensor(lambda x: 1 <= x.dim() <= 4 and x.numel() <= MOST_ELEMENTS)
    if not name:
        return None
    x = m.of(name)
    shape, dtype = tuple(x.shape), m.dtype_name(x)
    n, k = shape[-1], m.pick(1, 2, 3)
    other = m.fitting((n, k), dtype)
    if x.dim() == 2:
        return m.result(
            m.pick(
                f"{name} @ {other}",
                f"t.mm({name}, {other})",
                f"{name} @ {name}.mT",
                f"{name}.mT @ {name}",
                (
                    f"t.addmm({m.creation((k,), dtype)}, {name}, {other}, beta={m.pick('1', '2', '0')}, "
                    f"alpha={m.pick('1', '0.5')})"
                ),
                f"F.linear({name}, {m.fitting((k, n), dtype)}, {m.pick('None', m.creation((k,), dtype))})",
                f"t.mv({name}, {m.fitting((n,), dtype)})",
                f"t.einsum('ij,kj->ik', {name}, {name})",
                f"t.einsum('ij->ji', {name})",
                f"t.baddbmm({name}, {name}[None], {other}[None])",
                f"t.outer({name}[0], {name}[-1])",
                f"t.cdist({name}, {name})",
                f"t.linalg.multi_dot([{name}, {name}.mT, {name}])",
                f"F.bilinear({name}, {name}, {m.creation((2, n, n), dtype)})",
                f"t.matrix_power({name} @ {name}.mT, 2)",
            )
        )
    if x.dim() == 1:
        return m.result(
            m.pick(
                f"{name} @ {name}",
                f"t.dot({name}, {m.fitting(shape, dtype)})",
                f"t.outer({name}, {name})",
                f"{name} @ {other}",
                f"t.vdot({name}, {name})",
                f"t.inner({name}, {name})",
                f"t.linalg.cross({name}, {name})",
            )
        )
    return m.result(
        m.pick(
            f"{name} @ {other}",
            f"{name} @ {name}.mT",
            f"F.linear({name}, {m.fitting((k, n), dtype)})",
            f"t.bmm({name}, {name}.mT)",
            f"t.tensordot({name}, {name}, {x.dim()})",
            f"t.einsum('...ij,...kj->...ik', {name}, {name})",
            f"t.matmul({name}, {m.creation((n,), dtype)})",
            f"F.scaled_dot_product_attention({name}, {name}, {name})",
        )
    )


@family(7)
def layer(m):
    name = m.tensor(lambda x: 1 <= x.dim() <= 4 and x.numel() <= MOST_ELEMENTS and x.is_floating_point())
    if not name:
        return None
    x = m.of(name)
    shape, dtype, d = tuple(x.shape), m.dtype_name(x), m.dim(x)
    choices = [
        f"F.softmax({name}, {d})",
        f"F.log_softmax({name}, {d})",
        f"F.layer_norm({name}, {shape[-1:]})",
        f"F.layer_norm({name}, {shape[-1:]}, {m.fitting(shape[-1:], dtype)}, {m.creation(shape[-1:], dtype)})",
        f"F.rms_norm({name}, {shape[-1:]})",
        f"F.mse_loss({name}, {m.fitting(shape, dtype)})",
        f"F.l1_loss({name}, {m.fitting(shape, dtype)}, reduction={m.pick(repr('sum'), repr('none'))})",
        f"F.normalize({name}, dim={d})",
        f"F.dropout({name}, 0.5)",
        f"F.glu({name}, {d})",
        f"F.smooth_l1_loss({name}, {m.fitting(shape, dtype)})",
        f"F.cosine_similarity({name}, {m.fitting(shape, dtype)}, dim={d})",
        f"F.binary_cross_entropy_with_logits({name}, t.ones_like({name}))",
        f"F.prelu({name}, {m.creation((1,), dtype)})",
        f"F.gumbel_softmax({name}, dim={d})",
    ]
    if len(shape) == 2:
        choices += [
            f"F.cross_entropy({name}, {m.creation((shape[0],), 'int64')}.remainder({max(shape[1], 1)}))",
            f"F.nll_loss({name}, {m.creation((shape[0],), 'int64')}.remainder({max(shape[1], 1)}))",
            f"F.batch_norm({name}, None, None, training=True)",
            (
                f"F.batch_norm({name}, {m.creation(shape[1:], dtype)}, {m.creation(shape[1:], dtype)}, "
                f"training={m.pick(True, False)})"
            ),
            f"F.embedding(t.tensor([0, 0]), {name})",
            f"F.group_norm({name}, 1)",
            f"F.max_pool1d({name}, 2)",
            f"F.conv1d({name}, {m.creation((2, shape[0], 1), dtype)})",
        ]
    if len(shape) == 3:
        choices += [
            f"F.conv1d({name}, {m.creation((m.pick(1, 2), shape[1], m.pick(1, 2)), dtype)}, padding={m.pick(0, 1)})",
            f"F.batch_norm({name}, None, None, training=True)",
            f"F.group_norm({name}, 1)",
            f"F.instance_norm({name})",
            f"F.max_pool1d({name}, 2)",
            f"F.avg_pool1d({name}, 2, 1)",
            f"F.interpolate({name}, scale_factor=2)",
            f"F.adaptive_avg_pool1d({name}, 2)",
            f"F.conv_transpose1d({name}, {m.creation((shape[1], 2, 2), dtype)})",
            f"F.conv2d({name}, {m.creation((2, shape[0], 2, 2), dtype)})",
        ]
    if len(shape) == 4:
        choices += [
            (
                f"F.conv2d({name}, {m.creation((m.pick(1, 2), shape[1], m.pick(1, 2), 2), dtype)}, "
                f"{m.pick('None', m.creation((2,), dtype))}, padding={m.pick(0, 1)}, stride={m.pick(1, 2)})"
            ),
            f"F.relu(F.conv2d({name}, {m.creation((2, shape[1], 2, 2), dtype)}, padding=1))",
            f"F.conv2d({name}, {m.creation((shape[1], 1, 2, 2), dtype)}, groups={shape[1]}, padding=1)",
            f"F.batch_norm({name}, None, None, training=True)",
            f"F.max_pool2d({name}, 2, padding={m.pick(0, 1)})",
            f"F.avg_pool2d({name}, 2, 1)",
            f"F.adaptive_avg_pool2d({name}, {m.pick(1, 2)})",
            f"F.interpolate({name}, scale_factor=2, mode={m.pick(repr('nearest'), repr('bilinear'))})",
            f"F.pixel_shuffle({name}, 2)",
            f"F.conv_transpose2d({name}, {m.creation((shape[1], 2, 2, 2), dtype)}, stride={m.pick(1, 2)})",
            f"F.unfold({name}, 2)",
            f"F.group_norm({name}, {m.pick(1, shape[1] or 1)})",
        ]
    return m.result(m.pick(*choices))
