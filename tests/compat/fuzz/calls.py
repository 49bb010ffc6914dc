"""Calls the public functions of cresset and PyTorch with the same random arguments and compares what comes back.

    python tests/compat/fuzz/calls.py COUNT SEED [--match REGEX] [--all] [--known]

No call may end the process or take long; where PyTorch answers, so must cresset, with the same result, and where it
refuses, cresset refuses, too. A process that has imported both forks one that makes the calls, with limited memory;
when that dies or stands still, the call is named, with who was running it, and the next is forked. The last line is:
`fuzz: N calls, A answered by both, R refused by both, findings F`.
"""

import argparse
import functools
import inspect
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import warnings

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from call_differences import KNOWN  # noqa: E402
from children import RECORD, fork, note, watch  # noqa: E402

MANY = 10**8  # elements, of which copies to compare would not fit into the memory that a child may have

# What cannot be compared, and why.
SKIPPED = {
    **dict.fromkeys("empty empty_like new_empty empty_strided new_empty_strided empty_permuted resize_ resize_as_ "
                    "resize resize_as new".split(), "uninitialised memory"),
    **dict.fromkeys("data_ptr storage untyped_storage set_ share_memory_ storage_type element_size const_data_ptr "
                    "is_shared".split(), "about memory, not values"),
    **dict.fromkeys("seed initial_seed manual_seed get_rng_state set_rng_state fork_rng".split(),
        "the state of the generator itself"),
    **dict.fromkeys("set_default_dtype set_default_device set_default_tensor_type set_printoptions set_num_threads "
                    "set_num_interop_threads get_num_threads get_num_interop_threads set_flush_denormal "
                    "set_grad_enabled set_anomaly_enabled inference_mode set_warn_always use_deterministic_algorithms "
                    "set_deterministic_debug_mode set_float32_matmul_precision "
                    "autocast_increment_nesting autocast_decrement_nesting set_checkpoint_early_stop set_vital".split(),
                    "settings of the process"),
    **{f"{verb}_autocast_{what}": "settings of the process" for verb in ("is", "get", "set") for what in
       ("enabled", "dtype", "cache_enabled",
           *(f"{device}_{what}" for device in ("cpu", "gpu", "ipu", "xla") for what in ("enabled", "dtype")))},
    **dict.fromkeys("backward register_hook register_post_accumulate_grad_hook retain_grad requires_grad_ apply_ map_ "
                    "map2_ from_file save load compile vmap cond while_loop".split(), "takes functions or files"),
    "lobpcg": "its vectors have any sign",
    **dict.fromkeys("eig symeig".split(), "gone"),
    **dict.fromkeys("as_strided as_strided_ as_strided_copy as_strided_scatter".split(),
        "reads outside of what was written"),
    **dict.fromkeys("numpy __array__ __dlpack__ from_dlpack from_numpy asarray tolist frombuffer".split(),
        "leaves the library"),
    **dict.fromkeys("is_tensor is_storage typename type get_device cuda xpu ipu hpu mtia cpu pin_memory is_pinned "
                    "is_distributed".split(), "devices and types"),
    **dict.fromkeys("get_default_dtype get_default_device compiled_with_cxx11_abi is_grad_enabled "
                    "is_inference_mode_enabled".split(), "takes nothing"),
}  # fmt: skip


def public_functions(torch, cresset):
    """(name, PyTorch's function, ours), for all that both have."""
    spaces = [
        ("", ""),
        ("Tensor", "Tensor."),
        ("nn.functional", "nn.functional."),
        ("linalg", "linalg."),
        ("fft", "fft."),
        ("special", "special."),
    ]
    for path, prefix in spaces:
        theirs, ours = (functools.reduce(getattr, filter(None, path.split(".")), lib) for lib in (torch, cresset))
        for name in sorted(set(dir(theirs)) & set(dir(ours))):
            if name.startswith("_") or name in SKIPPED or (prefix + name) in SKIPPED:
                continue
            pair = getattr(theirs, name), getattr(ours, name)
            if all(callable(f) and not isinstance(f, type) for f in pair):
                yield prefix + name, *pair


def parameters(function):
    """[(name, type or None, has a default, keyword only)] of one overload of each kind."""
    if hasattr(function, "signatures"):
        return [list(native_parameters(s)) for s in function.signatures]
    try:
        listed = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return [[("input", None, False, False)]]
    kinds = inspect.Parameter
    return [
        [
            (
                p.name,
                "*" if p.kind == kinds.VAR_POSITIONAL else None,
                p.default is not kinds.empty,
                p.kind == kinds.KEYWORD_ONLY,
            )
            for p in listed
            if p.kind != kinds.VAR_KEYWORD
        ]
    ]


def native_parameters(signature):
    inside = signature[signature.index("(") + 1 : signature.rindex(") ->")]
    keyword_only = False
    for part in re.split(r",\s*(?![^\[(]*[\])])", inside):
        part = part.strip()
        if part in ("", "*"):
            keyword_only |= part == "*"
            continue
        kind, name = part.split(" ", 1)
        name, default, _ = name.partition("=")
        kind = re.sub(r"\[.*\]", "[]", kind)
        yield name, kind if kind in ("Tensor?", "Tensor?[]") else kind.rstrip("?"), bool(default), keyword_only


def draw_call(arguments, rng, name, overloads):
    """Arguments for one call: fitting ones, of which some are left out and few are spoilt."""
    scene = arguments.Scene(rng)
    short = name.rpartition(".")[2]
    recipe = next(
        (arguments.RECIPES[key] for key in (name, short, short.rstrip("_")) if key in arguments.RECIPES), None
    )
    if recipe is not None and rng.random() < 0.95:
        recipe(scene)
    args, kwargs, by_keyword = [], {}, False
    for position, (parameter, kind, has_default, keyword_only) in enumerate(rng.choice(overloads)):
        if kind == "*":
            args.extend(scene.tensor() for _ in range(rng.choice([0, 1, 2])))
            continue
        by_keyword |= keyword_only
        if has_default and not (parameter in scene.fixed and rng.random() < 0.8) and rng.random() < 0.6:
            by_keyword = True
            continue
        if parameter in scene.fixed:
            value = scene.fixed[parameter]
        elif parameter in arguments.BY_NAME and (
            kind is None or kind.rstrip("?") == "Tensor" or parameter not in ("input", "x")
        ):
            value = arguments.BY_NAME[parameter](scene)
        elif kind in arguments.BY_TYPE:
            value = arguments.BY_TYPE[kind](scene)
        elif has_default:
            by_keyword = True
            continue
        else:
            value = scene.tensor() if position == 0 else scene.number()
        if rng.random() < 0.02:
            value = arguments.spoil(scene)
        if by_keyword:
            kwargs[parameter] = value
        else:
            args.append(value)
    if rng.random() < 0.01:
        args.append(arguments.spoil(scene))
    return args, kwargs


class Bridge:
    """Moves values between the two libraries byte by byte, strides included."""

    def __init__(self, torch, cresset):
        self.torch, self.cresset = torch, cresset

    def to_ours(self, value):
        torch, cresset = self.torch, self.cresset
        if isinstance(value, torch.Tensor):
            if value.device.type == "meta":
                return cresset.empty_strided(
                    value.shape, value.stride(), dtype=getattr(cresset, str(value.dtype)[6:]), device="meta"
                )
            value = value.detach().resolve_conj().resolve_neg()
            raw = torch.empty(0, dtype=torch.uint8).set_(value.untyped_storage())
            flat = cresset.from_numpy(raw.numpy()).clone(memory_format=cresset.contiguous_format)
            flat = flat.view(getattr(cresset, str(value.dtype)[6:]))
            return flat.as_strided(tuple(value.shape), value.stride(), value.storage_offset())
        if isinstance(value, (torch.dtype, torch.layout, torch.memory_format)):
            return getattr(cresset, str(value)[6:])
        if isinstance(value, (list, tuple)):
            return type(value)(self.to_ours(v) for v in value) if not isinstance(value, torch.Size) else tuple(value)
        return value

    def to_torch(self, value):
        """A contiguous copy."""
        torch, cresset = self.torch, self.cresset
        dtype = getattr(torch, str(value.dtype)[6:])
        flat = value.detach().resolve_conj().resolve_neg().reshape(-1).clone(memory_format=cresset.contiguous_format)
        if not flat.numel():
            return torch.empty(tuple(value.shape), dtype=dtype)
        return torch.from_numpy(flat.view(cresset.uint8).numpy()).view(dtype).reshape(tuple(value.shape))


def own_copy(torch, value, noise=None, transform=False, least=0.0):
    """PyTorch's arguments are changed by in-place calls: a copy with the same strides. With `noise`, a generator, each
    number moves by one unit in its last place.
    """
    if isinstance(value, torch.Tensor):
        if value.device.type == "meta":
            return value
        raw = torch.empty(0, dtype=value.dtype).set_(value.untyped_storage().clone())
        if noise is not None and not (value.is_floating_point() or value.is_complex()) and transform:
            raw = raw.float()  # as a transform takes it
        if noise is not None and (raw.is_floating_point() or raw.is_complex()):
            signs = torch.randint(0, 2, raw.shape, generator=noise) * 2 - 1
            raw = (raw + raw * signs * max(torch.finfo(raw.dtype).eps, least)).to(raw.dtype)
        return raw.as_strided(value.shape, value.stride(), value.storage_offset())
    if isinstance(value, (list, tuple)) and not isinstance(value, torch.Size):
        return type(value)(own_copy(torch, v, noise, transform, least) for v in value)
    return value


# Where rounding or overflow on the way decides what infinities, nan and numbers near the end of the range become.
ORDER_DECIDES = re.compile(
    r"conv|fft|stft|norm|var|std|cov|corrcoef|linalg|matrix|det|inv|attention|trapz|trapezoid|polynomial|polygamma|lstsq|solve|bilinear|grid|interpolate|cosine|dist|softmax|loss|cross_entropy|kl_div|upsample|logcumsum"
)

# Where PyTorch's approximation is coarser than the dtype; cresset's is not.
COARSE = [(r"polygamma", 2e-3), (r"airy_ai", 1e-3), (r"bessel_", 1e-6)]

# What an element may be off, relative to itself: the steps inside one operation. Where more is due, the operation is
# badly conditioned there, and that shows when its arguments move by one unit in the last place (`noisy` below).
TOLERANCE = {
    "float64": 1e-12,
    "complex128": 1e-12,
    "float32": 2e-6,
    "complex64": 2e-6,
    "float16": 2e-3,
    "bfloat16": 1.6e-2,
}
SMALLEST = {"float64": 1e-300, "complex128": 1e-300, "float16": 1.2e-7}
RERUNS, UNITS = 6, 16
# Small results of formulas whose terms are near one: those leave some units of one, however small the result.
NEAR_ONE = [
    (
        r"log_softmax|softmin|cross_entropy|digamma|psi|lgamma|gammaln|ndtr|polynomial|logit|log1p|expm1|erf|sinc|entr|nll|loss|shrink",
        16,
    ),
    (r"polygamma|zeta|bessel|airy", 64),
]


def along(args, kwargs, position, default=-1):
    """The dimension that a call names, by position or by keyword."""
    found = kwargs.get("dim", args[position] if len(args) > position else default)
    return found if type(found) is int else default


def through_places(lib, args, kwargs, result, position, places=1):
    """Values, and those that the places lead to: which of equal elements is named is free."""
    if not isinstance(result, tuple):
        return result
    led_to = (
        lib.take_along_dim(args[0], *with_dim(result[places], args[0], along(args, kwargs, position)))
        if args[0].dim()
        else args[0]
    )
    return (*result[:places], led_to)


def with_dim(places, input, dim):
    """Places with the dimension that was reduced put back, and the dimension."""
    return (places if places.dim() == input.dim() else places.unsqueeze(dim)), dim


def of_singular_values(lib, result):
    """The singular values and the product: the vectors are free up to a factor, and more where values are equal."""
    if not isinstance(result, tuple):
        return result
    u, s, vh = result[:3]
    k = s.shape[-1]
    return s, (u[..., :k] * s.unsqueeze(-2).to(u.dtype)) @ vh[..., :k, :]


def of_old_singular_values(lib, result):
    u, s, v = result[:3]
    return of_singular_values(lib, (u, s, v.mT.conj() if v.is_complex() else v.mT))


def of_eigenvectors(lib, result):
    """Of a Hermitian matrix: the values, and the matrix again."""
    values, vectors = result[:2]
    return values, (vectors * values.unsqueeze(-2).to(vectors.dtype)) @ vectors.mT.conj()


def of_any_eigenvectors(lib, args, result):
    """The sums of the values and of their squares, and that the vectors fulfil the equation."""
    values, vectors = result[:2]
    a = args[0].to(vectors.dtype)
    off = (a @ vectors - vectors * values.unsqueeze(-2)).abs()
    return values.sum(-1), (values * values).sum(-1), off <= 1e-3 * (a.abs().sum() + 1)


def of_factors(lib, result):
    """The product of both factors, and the second one up to the signs of its rows."""
    if not isinstance(result, tuple):
        return result
    q, r = result[:2]
    return (q @ r if q.numel() else q), r.abs()


# What two right answers have in common, where the answer is not unique.
COMMON = {
    **dict.fromkeys(("sort", "Tensor.sort", "median", "Tensor.median", "nanmedian", "Tensor.nanmedian", "mode",
        "Tensor.mode"), lambda lib, args, kwargs, r: through_places(lib, args, kwargs, r, 1)),
    **dict.fromkeys(("topk", "Tensor.topk", "kthvalue", "Tensor.kthvalue"), lambda lib, args, kwargs,
        r: through_places(lib, args, kwargs, r, 2)),
    **dict.fromkeys(("argsort", "Tensor.argsort"), lambda lib, args, kwargs,
        r: through_places(lib, args, kwargs, (r,), 1, 0)),
    **dict.fromkeys(("linalg.svd",), lambda lib, args, kwargs, r: of_singular_values(lib, r)),
    **dict.fromkeys(("svd", "Tensor.svd", "svd_lowrank", "pca_lowrank"), lambda lib, args, kwargs,
        r: of_old_singular_values(lib, r)),
    "linalg.eigh": lambda lib, args, kwargs, r: of_eigenvectors(lib, r),
    "linalg.eig": lambda lib, args, kwargs, r: of_any_eigenvectors(lib, args, r),
    **dict.fromkeys(("qr", "Tensor.qr", "linalg.qr"), lambda lib, args, kwargs, r: of_factors(lib, r)),
    **dict.fromkeys(("geqrf", "Tensor.geqrf"), lambda lib, args, kwargs, r: r[0].triu().abs()),
}  # fmt: skip


def difference(bridge, theirs, ours, noisy=None, only_finite=False, least_tolerance=0.0, near_one=0, path=()):
    """Why the results are not the same, or None. `noisy()` gives what PyTorch's answer becomes when the arguments move
    in their last place; `only_finite` leaves out elements that are not ordinary numbers in one of them."""
    torch, cresset = bridge.torch, bridge.cresset
    if isinstance(theirs, torch.Tensor):
        if not isinstance(ours, cresset.Tensor):
            return f"a {type(ours).__name__} instead of a tensor"
        if tuple(theirs.shape) != tuple(ours.shape):
            return f"shape {tuple(ours.shape)} instead of {tuple(theirs.shape)}"
        if str(theirs.dtype)[6:] != str(ours.dtype)[6:]:
            return f"dtype {ours.dtype} instead of {theirs.dtype}"
        if theirs.layout != torch.strided or theirs.device.type == "meta" or ours.device.type == "meta":
            return None if theirs.device.type == ours.device.type else f"on {ours.device} instead of {theirs.device}"
        if theirs.numel() > MANY or theirs.numel() == 0:
            return None
        expected, got = theirs.detach().resolve_conj().resolve_neg(), bridge.to_torch(ours)
        if not (expected.dtype.is_floating_point or expected.dtype.is_complex):
            same = got == expected
        else:
            name = str(expected.dtype)[6:]
            tolerance = max(TOLERANCE.get(name, 0.1), least_tolerance)
            wider = torch.complex128 if expected.dtype.is_complex else torch.float64
            expected, got = expected.to(wider), got.to(wider)
            units = near_one * torch.finfo(theirs.dtype).eps if near_one else 0.0
            same = torch.isclose(
                got,
                expected,
                rtol=tolerance,
                atol=max(SMALLEST.get(name, 1e-37), units, least_tolerance),
                equal_nan=True,
            )
            if only_finite:
                same |= ~(expected.abs() < 1e20) | ~(got.abs() < 1e20)
            if not same.all() and noisy is not None:
                same |= within_condition(torch, expected, got, [at(moved, path) for moved in noisy()])
        if same.all():
            return None
        where = (~same).nonzero()[0].tolist() if same.dim() else []
        return (
            f"{got[tuple(where)].item()} instead of {expected[tuple(where)].item()} at {where} of "
            f"{tuple(theirs.shape)} {theirs.dtype}"
        )
    if isinstance(theirs, (list, tuple)):
        if not isinstance(ours, (list, tuple)) or len(ours) != len(theirs):
            return (
                f"{type(ours).__name__} of {len(ours) if hasattr(ours, '__len__') else '?'} instead of "
                f"{type(theirs).__name__} of {len(theirs)}"
            )
        return next(
            (
                f"result {i}: {why}"
                for i, pair in enumerate(zip(theirs, ours, strict=True))
                if (why := difference(bridge, *pair, noisy, only_finite, least_tolerance, near_one, (*path, i)))
            ),
            None,
        )
    if isinstance(theirs, float) and isinstance(ours, float):
        if theirs == ours or (theirs != theirs and ours != ours) or abs(theirs - ours) <= 1e-6 * abs(theirs):
            return None
        spread = [at(moved, path) for moved in noisy()] if noisy is not None else []
        near = max((abs(m - theirs) for m in spread if isinstance(m, float)), default=0.0)
        return None if abs(theirs - ours) <= UNITS * near else f"{ours} instead of {theirs}"
    if isinstance(theirs, (bool, int, complex, str, type(None))):
        return None if theirs == ours else f"{ours!r} instead of {theirs!r}"
    return None


def at(value, path):
    for i in path:
        value = value[i] if isinstance(value, (list, tuple)) and i < len(value) else None
    return value


def within_condition(torch, expected, got, moved):
    """Where the difference is no larger than some times what a unit in the last place of the arguments makes of the
    element.
    """
    spread, unsure = torch.zeros(expected.shape, dtype=torch.float64), torch.zeros(expected.shape, dtype=torch.bool)
    for other in moved:
        if not isinstance(other, torch.Tensor) or other.shape != expected.shape:
            continue
        other = other.detach().to(expected.dtype)
        unsure |= other.isfinite() != expected.isfinite()
        distance = (other - expected).abs()
        spread = torch.maximum(spread, torch.where(distance.isfinite(), distance, 0.0))
    return unsure | ((got - expected).abs() <= UNITS * spread)


def tensors_in(value, torch):
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    return [t for v in value for t in tensors_in(v, torch)] if isinstance(value, (list, tuple)) else []


def not_held(args, torch):
    """Says so when a whole number among `args` is not one of the dtype of another of them."""
    dtypes = [
        a.dtype
        for a in args
        if isinstance(a, torch.Tensor)
        and not (a.dtype.is_floating_point or a.dtype.is_complex or a.dtype == torch.bool)
    ]
    numbers = [
        int(a)
        for a in args
        if type(a) is int
        or isinstance(a, torch.Tensor)
        and a.numel() == 1
        and a.dtype in dtypes
        and a.device.type != "meta"
    ]
    outside = [d for d in dtypes if any(not torch.iinfo(d).min <= n <= torch.iinfo(d).max for n in numbers)]
    return f"; a number outside of {outside[0]}" if outside else ""


def is_tame(tensor):
    """All elements are ordinary numbers."""
    return tensor.device.type == "meta" or not tensor.is_floating_point() or bool((tensor.abs() < 1e20).all())


def rare_numbers(tensor):
    """Which of nan, infinities and huge numbers a large tensor holds, in words that KNOWN looks for."""
    if not tensor.is_floating_point():
        return ""
    found = {"nan": tensor.isnan(), "inf": tensor.isinf(), "1e+30": tensor.isfinite() & (tensor.abs() > 1e20)}
    return "".join(f" with {word}" for word, where in found.items() if where.any())


def describe(value, torch):
    if isinstance(value, torch.Tensor):
        data = (
            "" if value.device.type == "meta" else f" {value.tolist()}" if value.numel() <= 12 else rare_numbers(value)
        )
        return f"<{tuple(value.shape)} {str(value.dtype)[6:]} {value.stride()}{data}>"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(describe(v, torch) for v in value)}]"
    return repr(value)


def prepare(match):
    """Both libraries, ready to be called: (torch, cresset, arguments, bridge, functions whose name matches)."""
    import arguments
    import torch

    import cresset

    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    cresset.set_num_threads(1)
    functions = [
        (name, theirs, ours, parameters(ours))
        for name, theirs, ours in public_functions(torch, cresset)
        if re.search(match, name)
    ]
    return torch, cresset, arguments, Bridge(torch, cresset), functions


def answers_to_noise(torch, theirs, args, kwargs, common):
    """What PyTorch gives when each number of the arguments moves by one unit in its last place, some times."""
    answers = []
    dtypes = [
        v for v in [*args, *kwargs.values()] if isinstance(v, torch.dtype) and v.is_floating_point
    ]  # in which it is computed
    coarsest = max((torch.finfo(d).eps for d in dtypes), default=0.0)
    for seed in range(RERUNS):
        noise = torch.Generator().manual_seed(seed)
        named = {k: own_copy(torch, v, noise) for k, v in kwargs.items()}
        moved = own_copy(torch, args, noise, "fft" in f"{theirs}", coarsest)
        torch.manual_seed(1)
        try:
            answer = theirs(*own_copy(torch, moved), **{k: own_copy(torch, v) for k, v in named.items()})
            answers.append(common(torch, moved, named, answer) if common else answer)
        except Exception:
            continue  # a matrix that is singular now
    return answers


def make_calls(prepared, count, seed, journal, skip):
    """Run the calls from `skip` to `count`; the journal's first line is the call under way. Prints the findings."""
    torch, cresset, arguments, bridge, functions = prepared
    totals = dict.fromkeys(("both", "neither", "only_ours", "known", "findings"), 0)
    for i in range(skip, count):
        rng = random.Random(f"{seed}/{i}")
        name, theirs, ours, overloads = functions[i % len(functions)]
        args, kwargs = draw_call(arguments, rng, name, overloads)
        kwargs = {k: v for k, v in kwargs.items() if not (v is None and k == "out")}
        if name.endswith("_") and args and isinstance(args[0], torch.Tensor) and 0 in args[0].stride():
            args[0] = args[0].contiguous()  # writing where several elements share memory has no meaning
        text = f"{name}({', '.join([describe(a, torch) for a in args] + [f'{k}={describe(v, torch)}' for k, v in kwargs.items()])})"  # noqa: E501
        note(journal, f"{i} cresset {text}\n")
        # Ours first, so that the journal tells whose call it was when the process ends.
        our_args, our_kwargs = bridge.to_ours(args), {k: bridge.to_ours(v) for k, v in kwargs.items()}
        cresset.manual_seed(1)
        our_error = their_error = our_result = their_result = None
        try:
            our_result = ours(*our_args, **our_kwargs)
        except Exception as error:
            our_error = error
        note(journal, f"{i} torch {text}\n")
        torch.manual_seed(1)
        try:
            their_result = theirs(*own_copy(torch, args), **{k: own_copy(torch, v) for k, v in kwargs.items()})
        except Exception as error:
            their_error = error
        given = tensors_in([args, kwargs], torch)
        finding = None
        if our_error is not None and (
            "cresset has a bug" in str(our_error) or isinstance(our_error, (SystemError, RecursionError))
        ):
            finding = f"{type(our_error).__name__}: {our_error}"
        elif their_error is not None and our_error is not None:
            totals["neither"] += 1
        elif their_error is not None:
            totals["only_ours"] += 1
            finding = (
                f"answered where PyTorch says {type(their_error).__name__}: {str(their_error).replace(chr(10), ' ')}"
            )
        elif our_error is not None:
            finding = f"refused: {type(our_error).__name__}: {str(our_error).replace(chr(10), ' ')}"
        else:
            totals["both"] += 1
            wild = ORDER_DECIDES.search(name) and not all(is_tame(t) for t in given)
            least_tolerance = max([0.0, *(tolerance for pattern, tolerance in COARSE if re.search(pattern, name))])
            if name.endswith("prod") and isinstance(their_result, torch.Tensor) and their_result.dtype.itemsize == 2:
                least_tolerance = max(t.numel() for t in given) * 2.0**-9  # PyTorch rounds after each factor
            if common := COMMON.get(name):
                their_result, our_result = (
                    common(torch, args, kwargs, their_result),
                    common(cresset, our_args, our_kwargs, our_result),
                )
            noisy = functools.cache(functools.partial(answers_to_noise, torch, theirs, args, kwargs, common))
            near_one = max((units for pattern, units in NEAR_ONE if re.search(pattern, name)), default=0)
            finding = difference(bridge, their_result, our_result, noisy, wild, least_tolerance, near_one)
            if finding:
                finding += not_held([*args, *kwargs.values()], torch) + ("; among numbers beyond 1e20" if wild else "")
        reason = finding and next(
            (
                why
                for function, said, why, *call in KNOWN
                if re.search(function, name)
                and re.search(said, finding)
                and all(re.search(c, text[len(name) :]) for c in call)
            ),
            None,
        )
        if reason:
            totals["known"] += 1
            print(f"known {name}: {finding[:300]} ({reason})\n    call {i}: {text[:1500]}", flush=True)
        elif finding:
            totals["findings"] += 1
            print(f"finding {name}: {finding[:300]}\n    call {i}: {text[:1500]}", flush=True)
        os.pwrite(journal, " ".join(f"{k}={v}" for k, v in totals.items()).encode().ljust(400), RECORD)


def serve(count, seed, match):
    """Fork the process that calls, and the next one where it ended. Prints JSON, a line each: findings, known
    differences, totals.
    """
    prepared, skip = prepare(match), 0
    while skip < count:
        with tempfile.TemporaryFile() as journal, tempfile.TemporaryFile("w+") as output:
            status = watch(
                fork(output, functools.partial(make_calls, prepared, count, seed, journal.fileno(), skip)), journal
            )
            output.seek(0)
            printed = output.read()
            for kind, text in re.findall(r"^(finding|known) (.*\n.*)", printed, re.M):
                print(json.dumps([kind, text]), flush=True)
            print(
                json.dumps(
                    [
                        "totals",
                        dict(part.split("=") for part in os.pread(journal.fileno(), 400, RECORD).decode().split()),
                    ]
                ),
                flush=True,
            )
            if status == 0:
                return
            line = os.pread(journal.fileno(), RECORD, 0).decode(errors="replace").strip()
            if not line:
                raise RuntimeError(f"no call was made: {printed[-2000:]}")
            number, who, call = line.split(" ", 2)
            if who == "cresset" or os.WIFEXITED(status):  # an exception that leaves the loop is the fuzzer's own
                print(
                    json.dumps(
                        [
                            "finding",
                            (
                                f"{call.partition('(')[0]}: the process ended with status {status}\n    call {number}: "
                                f"{call}\n{printed[-600:]}"
                            ),
                        ]
                    ),
                    flush=True,
                )
            skip = int(number) + 1


def run(count, seed, match="."):
    """All calls; the findings as (name, text), the known differences as texts, and the totals."""
    findings, known, totals = [], [], {}
    command = [sys.executable, os.path.abspath(__file__), str(count), str(seed), "--match", match, "--serve"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"}
    ) as server:
        for line in server.stdout:
            kind, value = json.loads(line)
            if kind == "finding":
                findings.append((value.partition(":")[0], value))
            elif kind == "known":
                known.append(value)
            else:
                for key, number in value.items():
                    totals[key] = totals.get(key, 0) + int(number)
    if server.returncode:
        raise RuntimeError(f"the process that forks ended with {server.returncode}")
    return findings, known, totals


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("count", type=int)
    parser.add_argument("seed")
    parser.add_argument("--match", default=".", help="only functions whose name matches")
    parser.add_argument("--all", action="store_true", help="print every finding, not one for each function")
    parser.add_argument("--known", action="store_true", help="print the differences that are on purpose, too")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve:
        return serve(given.count, given.seed, given.match)
    findings, known, totals = run(given.count, given.seed, given.match)
    for text in known if given.known else ():
        print(f"[known] {text}")
    seen = {}
    for name, text in findings:
        seen.setdefault(name, []).append(text)
    for name in sorted(seen, key=lambda n: -len(seen[n])):
        for text in seen[name] if given.all else seen[name][:1]:
            print(f"[{len(seen[name])}x] {text}")
    print(
        f"fuzz: {given.count} calls, {totals.get('both', 0)} answered by both, {totals.get('neither', 0)} refused by "
        f"both, {totals.get('only_ours', 0)} by cresset alone, "
        f"{totals.get('known', 0)} known differences, findings {len(findings)}"
    )
    return bool(findings)


if __name__ == "__main__":
    sys.exit(main())
