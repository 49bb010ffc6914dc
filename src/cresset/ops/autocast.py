"""What autocast does to an operation: a fact that stands on the operator, in the words of PyTorch's lists.

    lower       run in the low precision (bfloat16 or float16)
    float32     run in float32
    promote     run in the widest precision among the arguments
    accumulate  give its dtype argument, unless it is given, as float32
    plain       run as called, and what it is made of, too
    unsafe      refuse low-precision arguments

`operator(..., autocast="lower")` says it for both kinds of device, `autocast={"cuda": "float32"}` for one; formulas and
functions made of others take the same. A native operator gets its policy as a byte (native/dispatch/autocast.h). A
function made of others is wrapped: while autocast is off that costs one look at a flag. What says nothing runs as it is
called, and what it is made of follows its own policy.
"""

import functools

from .. import _native

DEVICES = ("cpu", "cuda")
_NUMBERS = {"lower": 1, "float32": 2, "promote": 3, "accumulate": 4}  # the others are for functions made of others only
policies = {}  # name -> {device: policy}, of operators and of functions in the namespaces that offer them
_wrapped = {}  # function -> its form that knows autocast
_forms = set()  # those forms


def by_device(policy):
    """A policy for all devices, or some, as {device: policy}."""
    return policy if isinstance(policy, dict) else dict.fromkeys(DEVICES, policy)


def set_policy(name, policy):
    """Tell the core what autocast does to a native operator."""
    policies[name] = by_device(policy)
    for device, word in policies[name].items():
        _native.set_autocast_policy(name, DEVICES.index(device), _NUMBERS[word])


@functools.cache
def read_formulas():
    """Tell the core what autocast does to formulas, which are loaded for it. That is something on CUDA alone, so that
    it is asked for when autocast is first enabled there."""
    from .pointwise import definitions

    for definition in definitions.values():
        if definition.autocast is not None:
            set_policy(definition.name, {"cuda": definition.autocast})


def autocast(policy=None, /, **of_devices):
    """Decorator: the policy of a function made of others. `apply` gives the namespace that offers it the form that
    obeys.
    """

    def mark(function):
        function.autocast = by_device(policy or of_devices)
        return function

    return mark


def apply(namespace):
    """Replace the functions of a namespace that have a policy by their form that obeys it."""
    for name, value in namespace.items():
        policy = (
            getattr(value, "autocast", None) if callable(value) and not isinstance(value, _native.Operator) else None
        )
        if isinstance(policy, dict) and value not in _forms:
            if value not in _wrapped:
                _wrapped[value] = _knowing_autocast(value, [policy.get(device) for device in DEVICES])
                _forms.add(_wrapped[value])
            policies[name] = policy
            namespace[name] = _wrapped[value]


def _knowing_autocast(function, policies, mask=_native.autocast_mask):
    @functools.wraps(function)
    def with_autocast(*args, **kwargs):
        return _call(function, policies, args, kwargs) if mask() else function(*args, **kwargs)

    return with_autocast


def _tensors(values):
    for value in values:
        if isinstance(value, _native.Tensor):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from _tensors(value)


def _call(function, policies, args, kwargs):
    found = list(_tensors([*args, *kwargs.values()]))
    device = int(any(tensor.is_cuda for tensor in found))
    mask, policy = _native.autocast_mask(), policies[device]
    if not mask >> device & 1 or policy is None:
        return function(*args, **kwargs)
    low = [t for t in found if t.dtype in (_native.float16, _native.bfloat16)]
    if policy == "accumulate":
        if kwargs.get("dtype") is None and (low or any(t.dtype == _native.float32 for t in found)):
            kwargs = {**kwargs, "dtype": _native.float32}
    elif policy == "unsafe":
        if low:
            raise RuntimeError(
                f"torch.nn.functional.{function.__name__} and torch.nn.BCELoss are unsafe to autocast. Many models "
                "use a sigmoid layer right before the binary "
                "cross entropy layer. In this case, combine the two layers using "
                "torch.nn.functional.binary_cross_entropy_with_logits or torch.nn.BCEWithLogitsLoss."
            )
    elif policy != "plain":
        to = _native.float32
        if policy == "lower" or (policy == "promote" and not any(t.dtype == _native.float32 for t in found)):
            to = _native.autocast_dtype(device)
        args = [_cast(value, to, device) for value in args]
        kwargs = {name: _cast(value, to, device) for name, value in kwargs.items()}
    _native.set_autocast_mask(0)
    try:
        return function(*args, **kwargs)
    finally:
        _native.set_autocast_mask(mask)


def _cast(value, to, device):
    if isinstance(value, _native.Tensor):
        return _native.autocast_argument(value, to, device)
    if isinstance(value, (list, tuple)) and any(isinstance(item, (_native.Tensor, list, tuple)) for item in value):
        return type(value)([_cast(item, to, device) for item in value])
    return value
