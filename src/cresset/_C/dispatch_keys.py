"""Dispatch keys, by which PyTorch finds a kernel. Calls are not dispatched so here (see docs/tour.md); the keys are
names, sets of them are sets, and a guard that leaves out autocast's keys turns autocast off.
"""

import enum

from ..amp.autocast_mode import is_autocast_enabled, set_autocast_enabled

__all__ = ["DispatchKey", "DispatchKeySet"]

# PyTorch's numbers. The keys that exist once for each backend follow each other in the order of BACKENDS.
_KEYS = {
    "Undefined": 0, "Dense": 1, "Quantized": 5, "Sparse": 8, "SparseCsr": 9, "NestedTensor": 10, "BackendSelect": 11,
    "Python": 13, "FuncTorchDynamicLayerBackMode": 14,
    "Functionalize": 15, "Conjugate": 16, "Negative": 17, "ZeroTensor": 18, "ADInplaceOrView": 19, "AutogradOther": 20,
    "AutogradFunctionality": 21,
    "AutogradNestedTensor": 22, "AutocastCPU": 24, "AutocastXPU": 27, "AutocastIPU": 28, "AutocastHPU": 29,
    "AutocastMPS": 31, "AutocastCUDA": 32,
    "AutocastPrivateUse1": 33, "FuncTorchBatched": 34, "FuncTorchVmapMode": 36, "FuncTorchGradWrapper": 39,
    "PythonTLSSnapshot": 41,
    "FuncTorchDynamicLayerFrontMode": 42, "PreDispatch": 45, "PythonDispatcher": 46, "Autograd": 150,
    "CompositeImplicitAutograd": 151,
    "FuncTorchBatchedDecomposition": 152, "CompositeImplicitAutogradNestedTensor": 153,
    "CompositeExplicitAutograd": 154,
    "CompositeExplicitAutogradNonFunctional": 155,
}  # fmt: skip
_BACKENDS = (
    "CPU",
    "CUDA",
    "HIP",
    "XLA",
    "MPS",
    "IPU",
    "XPU",
    "HPU",
    "VE",
    "Lazy",
    "MTIA",
    "MAIA",
    "PrivateUse1",
    "PrivateUse2",
    "PrivateUse3",
    "Meta",
)
_FIRST = {"": 49, "Quantized": 66, "Sparse": 83, "SparseCsr": 100, "NestedTensor": 117, "Autograd": 134}


class _Numbered(enum.Enum):
    def __int__(self):
        return self.value

    __index__ = __int__

    def __str__(self):
        return f"DispatchKey.{self.name}"


DispatchKey = _Numbered(  # type: ignore[call-arg]
    "DispatchKey",
    _KEYS
    | {kind + backend: first + place for kind, first in _FIRST.items() for place, backend in enumerate(_BACKENDS)},
    module=__name__.rpartition(".")[0],
)


class DispatchKeySet:
    """A set of dispatch keys. Nothing changes one: `add`, `remove`, `|`, `&` and `-` give another.

    >>> cresset._C.DispatchKeySet(cresset._C.DispatchKey.AutocastCPU).add(cresset._C.DispatchKey.CPU)
    DispatchKeySet(CPU, AutocastCPU)
    """

    def __init__(self, keys):
        if isinstance(keys, DispatchKeySet):
            self._keys = keys._keys
        elif isinstance(keys, DispatchKey):
            self._keys = frozenset([keys] if keys is not DispatchKey.Undefined else [])
        else:
            raise TypeError(f"DispatchKeySet: expected a DispatchKey or a DispatchKeySet, got {type(keys).__name__}")

    @classmethod
    def _of(cls, keys):
        made = cls.__new__(cls)
        made._keys = frozenset(keys)
        return made

    def has(self, key):
        """Whether a key is in the set."""
        return key in self._keys

    def add(self, key):
        """The set with one more key."""
        return self | DispatchKeySet(key)

    def remove(self, key):
        """The set without a key."""
        return self - DispatchKeySet(key)

    def __or__(self, other):
        return self._of(self._keys | other._keys) if isinstance(other, DispatchKeySet) else NotImplemented

    def __and__(self, other):
        return self._of(self._keys & other._keys) if isinstance(other, DispatchKeySet) else NotImplemented

    def __sub__(self, other):
        return self._of(self._keys - other._keys) if isinstance(other, DispatchKeySet) else NotImplemented

    def __eq__(self, other):
        return isinstance(other, DispatchKeySet) and self._keys == other._keys

    def __hash__(self):
        return hash(self._keys)

    def __repr__(self):
        # The backends come first, as they do in PyTorch.
        names = [key.name for key in sorted(self._keys, key=lambda key: (key.name not in _BACKENDS, key.value))]
        return f"DispatchKeySet({', '.join(names)})"


class _ExcludeDispatchKeyGuard:
    """Inside, the keys' part of a call is left out. That can be done for autocast's keys; for others there are contexts
    of their own.
    """

    def __init__(self, keys):
        self._devices = []
        for key in DispatchKeySet(keys)._keys:
            if not key.name.startswith("Autocast"):
                raise NotImplementedError(
                    f"_ExcludeDispatchKeyGuard: {key} cannot be left out, calls are not dispatched by keys here; the "
                    "Autocast keys can, "
                    "and torch.no_grad() and torch._C.DisableTorchFunction() do it for recording and for subclasses"
                )
            device = key.name.removeprefix("Autocast").lower()
            self._devices.append("privateuseone" if device == "privateuse1" else device)

    def __enter__(self):
        self._before = {device: is_autocast_enabled(device) for device in self._devices}
        for device in self._devices:
            set_autocast_enabled(device, False)

    def __exit__(self, *exception):
        for device, enabled in self._before.items():
            set_autocast_enabled(device, enabled)
