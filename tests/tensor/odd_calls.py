"""Calls every Tensor method and every function with odd arguments: `python odd_calls.py <seed> <count> [log]`.

Whatever happens must be a result or a Python exception. Run by test_odd_arguments.py in a process of its own, whose
memory is limited.
"""

import os
import random
import re
import resource
import sys
import warnings

warnings.simplefilter("ignore")

# What would wait for input, end the process, or run for long by design.
SKIPPED = {
    "register_hook", "backward", "__class__", "__init_subclass__", "__subclasshook__", "set_num_threads",
    "set_default_device", "set_default_dtype", "set_default_tensor_type", "set_printoptions",
    "manual_seed", "seed", "fork_rng", "__getattr__", "__dir__",
}  # fmt: skip


def odd_values(torch):
    """Makers, so that a call that changes its argument does not change the next one's."""
    return [
        lambda: None, lambda: 0, lambda: -1, lambda: 1, lambda: 2, lambda: 7, lambda: 2**31, lambda: -(2**63),
        lambda: 2**63 - 1, lambda: 2**70, lambda: True, lambda: False,
        lambda: 0.5, lambda: -1.5, lambda: float("nan"), lambda: float("inf"), lambda: 1j, lambda: "", lambda: "mean",
        lambda: "sum", lambda: "ij,jk->ik", lambda: b"x",
        lambda: (), lambda: [], lambda: (0,), lambda: (1, 2), lambda: [-1, 0], lambda: (2, 3, 4), lambda: [2**62, 4],
        lambda: ((0, 1), (1, 0)), lambda: [None], lambda: {}, lambda: object(),
        lambda: slice(None), lambda: ..., lambda: torch.float32, lambda: torch.int64, lambda: torch.complex64,
        lambda: torch.bool, lambda: torch.float8_e5m2, lambda: torch.channels_last,
        lambda: torch.strided, lambda: torch.device("meta"), lambda: torch.Size([2]), lambda: torch.Generator(),
        lambda: torch.Tensor, lambda: (lambda x: x),
        *tensor_makers(torch), lambda: [torch.ones(2), torch.ones(2)], lambda: (torch.ones(2), None),
        lambda: [torch.ones(1), torch.ones(2, 3)],
    ]  # fmt: skip


def tensor_makers(torch):
    return [
        lambda: torch.ones(3), lambda: torch.ones(2, 3), lambda: torch.arange(3), lambda: torch.zeros(0),
        lambda: torch.zeros(0, 3), lambda: torch.tensor(1.0), lambda: torch.tensor(2),
        lambda: torch.tensor([True, False, True]), lambda: torch.ones(3, dtype=torch.complex64),
        lambda: torch.ones(3, dtype=torch.float16), lambda: torch.ones(2, 3, device="meta"),
        lambda: torch.ones(2, 3).T, lambda: torch.ones(1).expand(2, 3), lambda: torch.ones(2, 3, requires_grad=True),
        lambda: torch.arange(24.0).reshape(2, 3, 4)[:, ::2],
        lambda: torch.tensor([-5, 100]), lambda: torch.tensor([float("nan"), float("inf"), -1.0]),
        lambda: torch.ones(2, 2, dtype=torch.uint8), lambda: torch.ones(3, dtype=torch.float8_e4m3fn),
        lambda: torch.ones(2, 3, 4, 5), lambda: torch.ones(3, 3, dtype=torch.float64),
        lambda: torch.ones(2, dtype=torch.uint64), lambda: torch.ones(2, dtype=torch.complex32),
    ]  # fmt: skip


def callables(torch):
    found = []
    for name in sorted(set(dir(torch.Tensor))):
        if name not in SKIPPED and callable(getattr(torch.Tensor, name, None)):
            found.append(("Tensor." + name, getattr(torch.Tensor, name), True))
    for name in sorted(vars(torch)):
        value = vars(torch)[name]
        if not name.startswith("_") and name not in SKIPPED and callable(value) and not isinstance(value, type):
            found.append((name, value, False))
    return found


def fitting_values(torch):
    """For each type in a signature, makers of values that bind, but that no sensible program gives."""
    ints = [0, 1, 2, 3, -1, -2, -4, 7, 100, 2**31, 2**40, 2**62, 2**63 - 1, -(2**63)]
    reals = [0.0, 0.5, -1.0, 2.0, 1e300, float("inf"), float("nan")]
    lists = [
        (),
        (0,),
        (1,),
        (2,),
        (-1,),
        (2, 3),
        (0, 1),
        (1, 0),
        (3, 3),
        (-1, -2),
        (2, 2, 2),
        (0, 0),
        (2**40,),
        (2**62, 2**62),
        (1, 2, 3, 4, 5),
    ]
    tensors = tensor_makers(torch)
    indices = [
        lambda: torch.tensor([0, 1]),
        lambda: torch.tensor([[0, 1, 0], [1, 0, 1]]),
        lambda: torch.tensor([2**62]),
        lambda: torch.tensor([-1, 5]),
        lambda: torch.tensor([True, False]),
    ]
    constant = lambda values: [lambda v=v: v for v in values]  # noqa: E731
    return {
        "Tensor": tensors * 2 + indices, "Tensor?": tensors + [lambda: None],
        "Operand": tensors + constant(ints[:8] + reals), "Scalar": constant(ints[:9] + reals + [1j, True]),
        "int": constant(ints), "float": constant(reals), "bool": constant([True, False]),
        "ScalarType": constant([torch.float32, torch.int64, torch.bool, torch.complex64, torch.float16, torch.uint64,
            torch.float8_e5m2]),
        "Tensor[]": [lambda: [torch.ones(2), torch.ones(2)], lambda: [], lambda: [torch.zeros(0), torch.ones(2, 3)],
            lambda: [torch.ones(2, 3), torch.ones(2, 3).T], lambda: [torch.ones(3, device="meta"), torch.ones(3)]],
        "Tensor?[]": [lambda: [torch.tensor([0])], lambda: [None, torch.tensor([1, 0])],
            lambda: [torch.tensor([True, False]), None], lambda: [], lambda: [torch.tensor([2**62])]],
        "int[]": constant(lists), "float[]": constant([(), (1.0,), (0.0, -1.0)]), "Device": constant(["cpu", "meta"]),
        "Layout": constant([torch.strided]),
        "MemoryFormat": constant([torch.contiguous_format, torch.preserve_format, torch.channels_last,
            torch.channels_last_3d]), "str": constant(["mean", "sum", "none", "floor", "amax", "prod", "zz"]),
        "Generator": [torch.Generator],
    }  # fmt: skip


def fitting_arguments(signature, rng, fitting):
    """Arguments that bind to a native signature such as `narrow(Tensor input, int dim, int start, int length) ->
    Tensor`.
    """
    inside = signature[signature.index("(") + 1 : signature.rindex(") ->")]
    args, kwargs, keyword_only = [], {}, False
    for part in re.split(r",\s*(?![^\[(]*[\])])", inside):
        if part.strip() in ("", "*"):
            keyword_only |= part.strip() == "*"
            continue
        kind, name = part.split(" ", 1)
        name, has_default, _ = name.partition("=")
        if has_default and (keyword_only or rng.random() < 0.4):
            if rng.random() < 0.7:
                continue
            keyword_only = True
        kind = re.sub(r"int\[.*\]", "int[]", kind)
        if kind.endswith("?") and kind != "Tensor?":
            kind = kind[:-1]
        value = rng.choice(fitting[kind])() if kind in fitting else None
        if keyword_only:
            kwargs[name] = value
        else:
            args.append(value)
    return args, kwargs


KEYWORDS = [
    "dim",
    "keepdim",
    "dtype",
    "out",
    "size",
    "generator",
    "device",
    "other",
    "index",
    "value",
    "nothing_like_this",
]


def main(seed, count, log=None):
    import cresset as torch

    torch.set_num_threads(1)
    rng = random.Random(seed)
    values, tensors, functions, fitting = (
        odd_values(torch),
        tensor_makers(torch),
        callables(torch),
        fitting_values(torch),
    )
    raised = 0
    for i in range(count):
        name, function, takes_self = functions[i % len(functions)] if i < len(functions) else rng.choice(functions)
        if hasattr(function, "signatures") and rng.random() < 0.8:
            args, kwargs = fitting_arguments(rng.choice(function.signatures), rng, fitting)
            raised += call(name, function, args, kwargs, log)
            continue
        args = [rng.choice(tensors)()] if takes_self or rng.random() < 0.8 else []
        args += [rng.choice(values)() for _ in range(rng.choice([0, 0, 1, 1, 1, 2, 2, 3, 4]))]
        kwargs = {rng.choice(KEYWORDS): rng.choice(values)() for _ in range(rng.choice([0, 0, 0, 1, 2]))}
        raised += call(name, function, args, kwargs, log)
    print(f"{count} calls, {raised} raised")


def call(name, function, args, kwargs, log):
    """Whether the call raised. Every kind of exception is an answer, but not one that says that cresset itself is
    wrong.
    """
    if log:
        described = ", ".join([describe(a) for a in args] + [f"{k}={describe(v)}" for k, v in kwargs.items()])
        print(f"{name}({described})", file=log, flush=True)
    try:
        result = function(*args, **kwargs)
        if type(result).__name__ == "Tensor" and result.requires_grad and not result.is_meta:
            result.real.sum().backward()
    except Exception as error:
        if "cresset has a bug" in str(error) or isinstance(error, SystemError):
            raise AssertionError(f"{name}: {error}") from error
        return True
    return False


def describe(value):
    kind = type(value).__name__
    if kind == "Tensor":
        return (
            f"<{tuple(value.shape)} {value.dtype} {value.device} "
            f"{value.stride()}{' grad' if value.requires_grad else ''}>"
        )
    if isinstance(value, (list, tuple)):
        return f"{kind}({', '.join(map(describe, value))})"
    return repr(value)[:60]


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))
    with open(sys.argv[3] if len(sys.argv) > 3 else os.devnull, "w") as written:
        main(int(sys.argv[1]), int(sys.argv[2]), written)
