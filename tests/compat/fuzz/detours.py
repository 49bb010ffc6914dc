"""Other ways to ask PyTorch for what it refuses: a rule of differences.py that excuses a refusal holds only where
cresset gives what PyTorch gives on such a way.

A way is a pattern of the refusal and a function from the lines of the program to those that cresset and PyTorch run
instead.
"""
# ruff: noqa: E501 -- a table of patterns: a row a line

import contextlib
import copy
import ctypes
import re

import numpy as np
from lockstep import Lockstep
from rounding import GRADIENT
from side import Side, asked

ANOTHER_WAY = "; as PyTorch another way"
AGAIN = "Trying to backward through the graph a second time"
INTERIOR = "leaf variable has been moved into the graph interior"
NUMBER = r"-?\d+(?:[.]\d+)?(?:e-?\d+)?|True|False|-?\d*j|\([-+.\dj]+\)"
WRITTEN = re.compile(
    r"(?:with t\.no_grad\(\): |grown\(v\d+, lambda: )?(v\d+)(?:[.]\w+_\(|\[.*\] \S*= | [-+*/%&|^@]+= )"
)
OUT = r"(t\.(?!no_grad)\w+\(.*), out=(\S+)\)$"


def helpers(t):
    """Words for the lines that PyTorch runs instead."""

    def fill(out, result):
        result = result.to(out.dtype)
        return t.where(t.tensor(True), result, result, out=out)

    def whole(x):
        return x.to(t.int64) if x.dtype == t.bool else x

    def wide(x):
        return x if x.is_floating_point() or x.is_complex() else x.to(t.int64)

    def binary_cross_entropy(x, y, reduction="mean"):
        """In single precision at least, with a slope by the target that has bounded logarithms, as the loss."""
        p, q = (v if v.dtype == t.float64 else v.float() for v in (x, y))
        slope = ((1 - p).log().clamp(min=-100) - p.log().clamp(min=-100)).detach()
        loss = t.nn.functional.binary_cross_entropy(p, q.detach(), reduction="none") + slope * (q - q.detach())
        return {"mean": loss.mean, "sum": loss.sum, "none": lambda: loss}[reduction]().to(x.dtype)

    def batch_norm(x, *statistics, training):
        """With statistics that have no gaps."""
        statistics = (y if y is None else y.contiguous() for y in statistics)
        return t.nn.functional.batch_norm(x, *statistics, training=training)

    def cross_entropy_of_logarithms(x, y, reduction="mean"):
        """A binary cross entropy whose second derivatives have no small number added."""
        loss = -(y * x.log().clamp(min=-100) + (1 - y) * (-x).log1p().clamp(min=-100))
        return {"mean": loss.mean, "sum": loss.sum, "none": lambda: loss}[reduction]()

    def cdist(x, y, p=2.0):
        """Made of differences, where there are any."""
        apart = x.unsqueeze(-2) - y.unsqueeze(-3)
        is_same = (apart == 0).all(-1)
        if p == float("inf"):  # a gradient goes to all that are the farthest
            farthest = apart.abs() == apart.abs().amax(-1, keepdim=True)
            total = (apart.abs() * farthest).sum(-1)
            return total - (total - apart.abs().amax(-1)).detach()
        return t.linalg.vector_norm(apart.masked_fill(is_same[..., None], 1), p, -1).masked_fill(is_same, 0)

    def bessel(name, x):
        """In single precision."""
        return getattr(t.special, name)(x.float()).to(x.dtype)

    def addcmul(x, one, other, value):
        return t.addcmul(x, wide(one), wide(other), value=value)

    def clamp(x, *bounds):
        x, *spread = t.broadcast_tensors(x, *(t.as_tensor(x if b is None else b) for b in bounds))
        return t.clamp(x, *(None if b is None else s for b, s in zip(bounds, spread, strict=True)))

    def carried(way, value):
        """What a copy, pickle or file makes of a value when complex halves travel as pairs of halves."""
        from torch.utils._pytree import tree_flatten, tree_unflatten

        given, form = tree_flatten(value)
        paired = [x.dtype == t.complex32 for x in given]
        made = way(tree_unflatten([t.view_as_real(x.detach()) if p else x for x, p in zip(given, paired)], form))
        made = [t.view_as_complex(y) if p else y for y, p in zip(tree_flatten(made)[0], paired)]
        return tree_unflatten([y.requires_grad_(x.requires_grad) for x, y in zip(given, made)], form)

    def without_class(way, value):
        """What a copy makes of a value when its tensors travel as plain ones."""
        from torch.utils._pytree import tree_flatten, tree_unflatten

        given, form = tree_flatten(value)
        made = tree_flatten(way(tree_unflatten([x.detach().as_subclass(t.Tensor) for x in given], form)))[0]
        made = [y.as_subclass(type(x)).requires_grad_(x.requires_grad) for x, y in zip(given, made)]
        return tree_unflatten(made, form)

    def vmap(function, in_dims=0, out_dims=0):
        """Of a batch of nothing: what a batch of one would have, without it."""
        from torch.utils._pytree import tree_map

        def mapped(*given):
            dims = in_dims if isinstance(in_dims, tuple) else (in_dims,) * len(given)
            one = [x if d is None else x.sum(d, keepdim=True, dtype=x.dtype) for x, d in zip(given, dims, strict=True)]
            return tree_map(lambda x: x.narrow(out_dims, 0, 0), t.func.vmap(function, in_dims, out_dims)(*one))

        return mapped

    def alone(function, tensors, *others, **named):
        """A function of many tensors, of one after another."""
        each = (
            ([x] for x in tensors),
            *([[x] for x in y] if isinstance(y, list) else [y] * len(tensors) for y in others),
        )
        return tuple(made for given in zip(*each, strict=True) for made in function(*given, **named) or ())

    def pdist(x):
        """Made of differences."""
        one, other = t.triu_indices(len(x), len(x), 1)
        return t.linalg.vector_norm(x[one] - x[other], 2, -1)

    def owned(value):
        """Copies of tensors; of a list's, together, so that they share memory again."""
        return value.clone() if isinstance(value, t.Tensor) else copy.deepcopy(value)

    def shuffled(x, factor):
        """Without elements."""
        return x.reshape(*x.shape[:-3], 0, x.shape[-2] * factor, x.shape[-1] * factor)

    def accumulated(tensor, inputs):
        """What backward(inputs=) is where it stops at the inputs, and runs no node that made one."""
        with t._C.DisableTorchFunctionSubclass():
            found = t.autograd.grad(tensor, inputs, allow_unused=True)
        for x, grad in zip(inputs, found):
            if grad is not None and not x.retains_grad:  # else it was added already
                x.grad = grad.clone() if x.grad is None else x.grad + grad
            x.retain_grad()

    def moved(names, tensor):
        """share_memory_, after which arrays of NumPy that look at the tensor's memory look at a copy of it, and so do
        tensors that look at theirs.
        """
        storage = tensor.untyped_storage()
        start, size = storage.data_ptr(), storage.nbytes()
        copied = np.frombuffer(ctypes.string_at(start, size), np.uint8).copy()
        for name, array in [x for x in names.items() if isinstance(x[1], np.ndarray)] if size else ():
            first, last = np.lib.array_utils.byte_bounds(array)
            if start <= first and last <= start + size and not tensor.is_shared():
                offset = array.__array_interface__["data"][0] - start
                names[name] = np.ndarray(array.shape, array.dtype, copied, offset, array.strides)
        for x in [x for x in names.values() if isinstance(x, t.Tensor)] if size else ():
            lent, first = x.untyped_storage(), x.untyped_storage().data_ptr()
            if lent._cdata != storage._cdata and start <= first < start + size and not tensor.is_shared():
                part = t.from_numpy(copied[first - start : first - start + lent.nbytes()]).view(x.dtype)
                x.data = part.as_strided(x.shape, x.stride(), x.storage_offset())
        return tensor.share_memory_()

    def along_none(function, x, **named):
        """A function of the last dimension, of none or of some of its rows."""
        whole = x.new_zeros([*(max(n, 1) for n in x.shape[:-1]), x.shape[-1]], requires_grad=x.requires_grad)
        return function(whole, **named)[tuple(map(slice, x.shape[:-1]))].clone()

    return {
        "shuffled": shuffled,
        "along_none": along_none,
        "moved": moved,
        "accumulated": accumulated,
        "owned": owned,
        "pdist": pdist,
        "cdist": cdist,
        "batch_norm": batch_norm,
        "bessel": bessel,
        "cross_entropy_of_logarithms": cross_entropy_of_logarithms,
        "alone": alone,
        "vmap": vmap,
        "without_class": without_class,
        "fill": fill,
        "whole": whole,
        "addcmul": addcmul,
        "binary_cross_entropy": binary_cross_entropy,
        "clamp": clamp,
        "carried": carried,
        "widened": lambda: widened(t),
        "comparing_widely": lambda: comparing_widely(t),
        "powers_without_zero": lambda: powers_without_zero(t),
    }


def widened(t):
    """A block in which PyTorch computes with numbers of half precision as single ones, and rounds each result."""
    from torch.utils._python_dispatch import TorchDispatchMode
    from torch.utils._pytree import tree_leaves, tree_map_only

    wider = {t.float16: t.float32, t.bfloat16: t.float32, t.complex32: t.complex64}

    def narrowed(result, operands):
        kind = operands[0]
        for x in operands[1:]:
            kind = t.empty((0,) * max(kind.dim(), x.dim()), dtype=t.result_type(kind, x))
        dtype = kind.dtype if result.is_complex() else {t.complex32: t.float16}.get(kind.dtype, kind.dtype)
        return result.to(dtype) if result.dtype == wider.get(dtype) else result

    def is_changed(argument):
        return argument.alias_info is not None and argument.alias_info.is_write

    class Widened(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            schema, named = function._schema, kwargs or {}
            operands = [x for x in tree_leaves((args, named)) if isinstance(x, t.Tensor)]
            written = any(map(is_changed, schema.arguments))
            is_view = any(x.alias_info is not None for x in schema.returns) and not written
            if is_view or not any(x.dtype in wider for x in operands):
                return function(*args, **named)
            copies = {id(x): x.to(wider[x.dtype]) for x in operands if x.dtype in wider}
            given = tree_map_only(t.Tensor, lambda x: copies.get(id(x), x), (args, named))
            result = function(*given[0], **given[1])
            if not written:
                return (
                    result if named.get("dtype") else tree_map_only(t.Tensor, lambda x: narrowed(x, operands), result)
                )
            for argument, x in [*zip(schema.arguments, args), *((a, named.get(a.name)) for a in schema.arguments)]:
                if is_changed(argument) and id(x) in copies:
                    x.resize_(copies[id(x)].shape).copy_(copies[id(x)])
            originals = {id(copy): x for x in operands if (copy := copies.get(id(x))) is not None}
            return tree_map_only(t.Tensor, lambda x: originals.get(id(x), x), result)

    return Widened()


def comparing_widely(t):
    """A block in which PyTorch compares integers as int64, also with bounds, so that no number wraps round in a
    narrower dtype.
    """
    from torch.utils._python_dispatch import TorchDispatchMode
    from torch.utils._pytree import tree_map_only

    class ComparingWidely(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            name, in_place = re.fullmatch(r"(\w+?)(_?)", function.overloadpacket.__name__).groups()
            if name not in ("eq", "ne", "lt", "le", "gt", "ge", "clamp"):
                return function(*args, **(kwargs or {}))
            is_whole = lambda x: not (x.is_floating_point() or x.is_complex())  # noqa: E731
            given, named = tree_map_only(t.Tensor, lambda x: x.to(t.int64) if is_whole(x) else x, (args, kwargs or {}))
            if in_place:
                return args[0].copy_(getattr(t, name)(*given, **named))
            kind = function(*args, **(kwargs or {})).dtype
            return function(*given, **named).to(kind)

    return ComparingWidely()


def powers_without_zero(t):
    """A block in which powers of zero that a small change of the exponent leaves alone have no history in PyTorch."""
    from torch.overrides import TorchFunctionMode

    powers = (t.pow, t.Tensor.pow, t.Tensor.__pow__, t.Tensor.__rpow__)

    class PowersWithoutZero(TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            if function not in powers or kwargs:
                return function(*args, **(kwargs or {}))
            base, power = args if function is not t.Tensor.__rpow__ else args[::-1]
            is_zero = t.as_tensor(base == 0) & (power >= 0)
            others = t.where(is_zero, 1, base)
            return t.where(is_zero, t.pow(base, power).detach(), t.pow(others, power))

    return PowersWithoutZero()


# ---- lines that PyTorch runs instead


def last(pattern, replacement):
    """The way that differs in the last line, where a pattern is found."""
    return lambda steps: (steps, [*steps[:-1], re.sub(pattern, replacement, steps[-1])])


def anywhere(pattern, replacement):
    """The way that differs in every line where a pattern is found."""
    return lambda steps: (steps, [re.sub(pattern, replacement, step) for step in steps])


def of_an_array(steps):
    """The way with an array for a scalar of NumPy's, where what is made can be compared."""
    pattern = r"t\.(tensor|as_tensor)\((n\d+)\)$"
    ways = r"t.\1(\2).to(t.int64)", r"t.\1(np.asarray(\2)).to(t.int64)"
    return tuple([*steps[:-1], re.sub(pattern, way, steps[-1])] for way in ways)


def with_tensors(dtype):
    """The way with a tensor for each number that the call of the last line is given."""

    def way(steps):
        call, given = last_call(steps[-1])
        owner = re.search(r"(v\d+\S*)[.]\w+$", call)  # a method's; else the first operand
        made = dtype.format(owner[1] if owner else given[0])
        given = [f"t.tensor({x}{made})" if re.fullmatch(NUMBER, x) else x for x in given]
        return steps, [*steps[:-1], f"{call}({', '.join(given)})"]

    return way


def with_a_bound_of_zero(steps):
    """The way with zero, as a tensor, for a bound below it: of unsigned numbers, of which PyTorch wraps it round."""
    bounded = re.sub(r"(?<=, )-\d+(?=[,)])", "0", steps[-1])
    return steps, with_tensors(", dtype={}.dtype")([*steps[:-1], bounded])[1]


def last_call(line):
    """The call that a line ends in, and its arguments."""
    depth, at, end, given = 0, len(line) - 1, len(line) - 1, []
    while depth >= 0:
        at -= 1
        depth += {")": 1, "(": -1, "]": 1, "[": -1}.get(line[at], 0)
        if depth < 0 or (depth == 0 and line[at] == ","):
            given.insert(0, line[at + 1 : end].strip())
            end = at
    return line[:at], given


def in_fresh_memory(steps):
    """A new result that is copied to `out=`, which has memory of its own: not that of a file, or more than it shows."""
    kept = [
        re.sub(
            r"^((?:with [^:]*: )?(?:v\d+, )*v\d+ = )"
            r"((?:F\.\w+_loss|F\.binary_cross_entropy\w*|through_\w+|t\.unique\w*)\(.*)",
            r"\1owned(\2)",
            step,
        )
        for step in steps[:-1]
    ]
    return steps, [*kept, re.sub(OUT, r"fill(\2, \1))", steps[-1])]


def in_single_precision(steps):
    """Operands of half precision are widened first in the last line, and its results are rounded."""
    return [*steps[:-1], f"with widened():\n    {steps[-1]}"]


def with_wide_comparisons(steps):
    """Integers of the last line are compared as int64."""
    return [*steps[:-1], f"with comparing_widely():\n    {steps[-1]}"]


def with_powers_without_zero(steps):
    """Powers of zero have no history."""
    return [
        f"with powers_without_zero():\n    {step}" if re.search(r"pow\(| [*][*] ", step) else step for step in steps
    ]


# ---- lines that both run instead


def with_each_alone(steps):
    """Functions of many tensors are called with one after another."""
    return [re.sub(r"(t\._foreach_\w+)\((\[.*)\)$", r"alone(\1, \2)", step) for step in steps]


def without_recording(steps):
    """Nothing in the last line is recorded."""
    text = steps[-1] if steps[-1].startswith("with t.no_grad") else f"with t.no_grad(): {steps[-1]}"
    return ([*steps[:-1], text],) * 2


def detached(steps):
    """What the call of the last line is given has no history."""
    call, given = last_call(steps[-1])
    given = [f"{x}.detach()" if re.fullmatch(r"v\d+", x) else x for x in given]
    return ([*steps[:-1], f"{call}({', '.join(given)})"],) * 2


def with_leaves_in_order(steps):
    """New leaves are contiguous."""
    return (
        [step.replace(".clone().requires_grad_()", ".contiguous().clone().requires_grad_()") for step in steps],
    ) * 2


def of_a_copy(steps):
    """The last line is given a copy, and so what it makes may lie in another order."""
    return [*steps[:-1], f"{steps[-1]}.contiguous()"], [*steps[:-1], f"{steps[-1][:-1]}.clone()).contiguous()"]


def without(pattern):
    """Lines in which a pattern is found are left out."""
    return lambda steps: ([step for step in steps if not re.search(pattern, step)],) * 2


# (the refusal, the way)
WAYS = [
    *((r"must be Tensor, not (int|float|bool|complex)|clamp\(\) received an invalid combination", with_tensors(dtype)) for dtype in ("", ", dtype={}.dtype", ", dtype=t.float32", ", dtype=t.float64")),
    (r"Index put requires the source and destination dtypes match|unsupported operation: some elements of the input", last(r"(v\d+)(\[.*\]) = (.*)", r"\1\2 = t.as_tensor(\3).clone().to(\1.dtype)")),
    (r"doesn't match the broadcast shape", last(OUT, r"fill(\2, \1))")),
    (r"clamp\(\) received an invalid combination", detached),
    (r"clamp\(\) received an invalid combination", with_a_bound_of_zero),
    (r"derivative for '_pdist_backward'", anywhere(r"F\.pdist\(", "pdist(")),
    (r"derivative for '_cdist_backward'", anywhere(r"t\.cdist\(", "cdist(")),
    (r"Scalar\.cpp.*unknown ivalue tag", anywhere(r"(?<== )True(?= \*\* v)", "1")),
    (r"derivative for _foreach_copy_", anywhere(r"t\._foreach_copy_\(\[(v\d+)\], \[(.*)\]\)$", r"\1.copy_(\2)")),
    (r"an integer is required", of_an_array),
    (r"more than one element of the written-to tensor", of_a_copy),
    (r"doesn't match the broadcast shape", in_fresh_memory),
    (r"i1e?_backward. not implemented", anywhere(r"t\.special\.(i[01]e?)\(", r"bessel('\1', ")),
    (r"not implemented for '(Half|BFloat16|ComplexHalf)'", lambda steps: (steps, steps)),
    (r"UntypedStorage' (object )?has no attribute", last(r"(copy[.](?:deep)?copy|through_\w+)\((.*?)(, weights_only=\w+)?\)(\['a'\])?$", r"carried(lambda x: \1(x\3), \2)\4")),
    (r"derivative for aten::remainder", anywhere(rf"(?<== )({NUMBER})(?= % v)", r"t.tensor(\1)")),
    (r"output with shape \[\] doesn't match the broadcast shape", anywhere(r"\bt\.clamp\((?!.*out=)", "clamp(")),
    (r"Negation, the `-` operator, on a bool", anywhere(r"\bt\.atan2\((v\d+), (v\d+)\)", r"t.atan2(whole(\1), whole(\2))")),
    (r"Subtraction, the `-` operator, with a bool", anywhere(r"( \*\* |pow\(v\d+, |[.]pow\()(v\d+)", r"\1whole(\2)")),
    (r"can't be cast to the desired output type", anywhere(r"\bt\.addcdiv\((v\d+), (v\d+), (v\d+)\)", r"t.addcdiv(\1, \2, \3.to(\2.dtype))")),
    (r"tolist\(\) shouldn't be called on a tensor with unallocated storage", without(r"[.]register_\w*hook\(")),
    (r"unsupported operation: some elements", in_fresh_memory),
    (r"unsupported operation: some elements", last(r"(backward\()(v\d+)", r"\1\2.clone()")),
    (r"stack expects a non-empty TensorList", last(r"t\.autograd\.functional\.jacobian\(lambda x: x \* x, (v\d+)\)", r"t.zeros((*\1.shape, *\1.shape), dtype=\1.dtype).as_subclass(type(\1.detach()))")),
    (r"Dimension specified as", last(r"t\.take_along_dim\((v\d+), .*", r"t.gather(\1.view(1), 0, t.tensor([0])).view(())")),
    (r"cannot reshape tensor of 0 elements", last(r"F\.bilinear\((v\d+), \1, (.*)\)$", r"t.einsum('...i,oij,...j->...o', \1, \2, \1)")),
    (r"Only zero batch or zero channel inputs", last(r"(F\.conv(\d)d\()(v\d+)(.*)padding=1", lambda m: f"{m[1]}F.pad({m[3]}, {(1, 1) * int(m[2])}){m[4]}padding=0")),
    (r"Only zero batch or zero channel inputs", last(r"(F\.conv_transpose(\d)d\()(v\d+)(.*?)(stride=(\d))?\)$", lambda m: f"{m[1]}F.pad({m[3]}, {(0, 1) * int(m[2])}){m[4]}{m[5] or ''})[...{f', :-{m[6] or 1}' * int(m[2])}].clone(memory_format=t.contiguous_format)")),
    (r"not implemented for 'Bool'", last(r"(v\d+) = (.*)", lambda m: f"{m[1]} = " + re.sub(r"\b(v\d+)\b", r"\1.to(t.int64)", m[2]) + " != 0")),
    (r"masked_fill_ only supports boolean masks", last(r"(t\.tensor\([^)]*), dtype=t\.uint8\)", r"\1, dtype=t.bool)")),
    (r"does not support automatic differentiation for outputs with complex dtype|Autograd not support dtype", without_recording),
    (r"out != nullptr INTERNAL ASSERT FAILED", without(r"[.]retain_grad\(")),
    (r"A leaf node was passed to _will_engine_execute_node", without(r"register_multi_grad_hook\(")),
    (r"(Output 0 of \w+ is a view|A view was created in no_grad mode) and is being modified", anywhere(r"(t\.func\.(?:jacrev|jacfwd|hessian)\(.*\)\(v\d+\))", r"\1.clone()")),
    (r"self.stride\(-1\) must be 1 to view", last(r"\b(v\d+)\.view\(", r"\1.clone(memory_format=t.contiguous_format).view(")),
    (r"MKL FFT error", last(r"t\.fft\.(\w+)\(", r"along_none(t.fft.\1, ")),
    (r"view size is not compatible", with_leaves_in_order),
    (r"view size is not compatible", last(r"t\.nn\.utils\.parameters_to_vector\((m\d+\.parameters\(\))\)", r"t.cat([p.reshape(-1) for p in \1])")),
    (r"select\(\): index 0 out of range", last(r"t\.func\.vmap\(", "vmap(")),
    (r"__deepcopy__\(\) for wrapper subclasses", last(r"copy[.]deepcopy\((.*)\)$", r"without_class(copy.deepcopy, \1)")),
    (r"bernoulli_scalar_cpu_\" not implemented for 'Complex", last(r"(?<== )(m\d+)\((v\d+)\)$", r"\2 * \1(t.ones_like(\2.real))")),
    (r"bernoulli_scalar_cpu_\" not implemented for 'Complex", last(r"t\.func\.functional_call\((m\d+), .*, \((v\d+),\)\)$", r"\2 * \1(t.ones_like(\2.real))")),
    (r"Function PixelShuffleBackward0 returned an invalid", anywhere(r"F\.pixel_shuffle\(", "shuffled(")),
    (r"Unexpected floating ScalarType in at::autocast::prioritize", last(r"(with t\.autocast\([^:]*\): )(.*)\.backward\(\)$", r"\1loss = \2\nloss.backward()")),
    (r"Expected more than 1 value per channel", last(r"F\.batch_norm\((v\d+), .*", r"\1.clone()")),
]  # fmt: skip


def another_way(libraries, steps, why):
    """The words for a refusal of PyTorch where it gives what cresset gives when it is asked another way, or none."""
    if AGAIN in why:
        return ANOTHER_WAY if agrees_when_kept(libraries, steps) else ""
    if INTERIOR in why:
        return ANOTHER_WAY if has_gradients_of_kept_leaves(libraries, steps) else ""
    for refusal, way in WAYS:
        if re.search(refusal, why):
            with contextlib.suppress(AttributeError):  # a line that the way does not know
                ours, theirs = way(steps)
                if agrees(libraries, ours, theirs) or agrees(libraries, ours, in_single_precision(theirs)):
                    return ANOTHER_WAY
                with saving_copies(libraries[0]):
                    if GRADIENT.search(steps[-1]) and agrees(libraries, ours, theirs):
                        return ANOTHER_WAY
    return ""


def agrees(libraries, ours, theirs, answered=True, side=None):
    """Whether PyTorch, with lines or a side of its own, ends where cresset ends, and (unless `answered` is False) does
    not refuse.
    """
    lockstep = Lockstep(libraries)
    if side:
        lockstep.sides[0] = side
        lockstep.replaced = True  # versions are counted differently
    lockstep.lead.names.update(helpers(libraries[0]))
    found = [lockstep.step(text, instead=instead) for text, instead in zip(ours, theirs, strict=True)]
    is_same = not found[-1] or is_untold(found[-1], lockstep.lead) or is_told_to_a_node(found[-1], theirs)
    return not any(found[:-1]) and is_same and not (answered and lockstep.lead.error)


def is_untold(why, side):
    """Whether all that differs is whether something is a leaf: a view of what was written to without recording, of which
    PyTorch does not tell, or one made before its base required a gradient, of which it tells the history to come.
    """
    found = re.fullmatch(r"(\S+): is_leaf (?:(?:True|False) instead of RuntimeError|(True) instead of False)", why)
    x = found and side.tensors()[found[1]]
    return bool(found) and (not found[2] or asked(lambda: x._is_view() and x._base.requires_grad) is True)


def is_told_to_a_node(why, steps):
    """Whether all that differs is what the hook of a node is told, whose operands and results are no other's business."""
    found = re.match(r"said \('(h\d+)'", why)
    return bool(found) and any(f"hook(node_hook('{found[1]}'" in step for step in steps)


def agrees_when_kept(libraries, steps, answered=True):
    """Whether PyTorch, when it keeps the graphs that it has walked, ends where cresset ends."""
    fewer = without_refused(libraries[0], steps)
    with keeping_graphs(libraries[0]):
        if agrees(libraries, fewer, fewer, answered):
            return True
        with saving_copies(libraries[0]):
            return agrees(libraries, fewer, fewer, answered)


def has_gradients_of_kept_leaves(libraries, steps):
    """Whether PyTorch has the gradients that cresset has where one of the writes is not recorded, so that a leaf that is
    a view of what was written to stays one.
    """
    written = [at for at, step in enumerate(steps) if WRITTEN.match(step) and not step.startswith("with")]
    for at in written:
        theirs = [f"with t.no_grad(): {step}" if at == k else step for k, step in enumerate(steps)]
        lockstep = Lockstep(libraries)
        with saving_copies(libraries[0]):
            for text, instead in zip(steps, theirs, strict=True):
                lockstep.step(text, compare=False, instead=instead)
        if not any(side.error for side in lockstep.sides) and not lockstep.gradients():
            return True
    return False


def without_refused(library, steps):
    """The lines without those, but for the last, that ask for a graph that was walked before."""
    side, kept = Side(library), []
    for step in steps[:-1]:
        side.run(step)
        if not (side.error and AGAIN in side.error[1]):
            kept.append(step)
    return [*kept, steps[-1]]


@contextlib.contextmanager
def keeping_graphs(library):
    """Backward passes of a library keep what they walk, also where they were not asked to."""
    autograd = library.autograd
    backward, grad = autograd.backward, autograd.grad
    autograd.backward = lambda tensors, given=None, retain_graph=None, *more, **named: backward(
        tensors, given, True, *more, **named
    )
    autograd.grad = lambda *given, **named: grad(*given, **{**named, "retain_graph": True})
    try:
        yield
    finally:
        autograd.backward, autograd.grad = backward, grad


class Uncounted(Side):
    """A side on which writes that are not recorded do not count (`of`: those to tensors of which this holds), so that no
    history is made anew after them.
    """

    NOT_RECORDED = re.compile(r"^with t\.no_grad\(\): |[.]step\(|nn[.]init[.]\w+_\(|[.]detach\(\)[.]\w+_\(")
    WRITING_HOOK = re.compile(r"\bafter\('h\d+', 'step'\)")

    def __init__(self, library, of=lambda x: True):
        self.of = of
        self.hooked = False  # a hook writes to its leaf in backward passes
        super().__init__(library)

    def run(self, text):
        before = [
            (x, x._version) for x in self.tensors().values() if not isinstance(asked(lambda x=x: x._version), str)
        ]
        target = (written := WRITTEN.match(text)) and self.tensors().get(written[1])
        super().run(text)
        plain = any(
            x._version != n and not (x._is_view() and x is not target) and not x.requires_grad for x, n in before
        )
        self.hooked |= bool(self.WRITING_HOOK.search(text))
        by_hook = self.hooked and GRADIENT.search(text)
        if plain or self.error or by_hook or self.NOT_RECORDED.search(text):  # what is refused is not recorded either
            for x, version in (pair for pair in before if self.of(pair[0])):
                self.t._C._autograd._unsafe_set_version_counter((x,), (version,))


def saving_copies(library):
    """A library saves copies for backward, and notices no change of what it saved."""
    return library.autograd.graph.saved_tensors_hooks(lambda x: x.detach().clone(), lambda x: x)
