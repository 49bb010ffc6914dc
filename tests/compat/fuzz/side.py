"""One library, the names of the program that runs on it, and all that can be seen of its tensors."""

import ctypes
import functools
import re

import numpy as np
from vocabulary import vocabulary

ASSIGNED = re.compile(r"[vnmow]\d+$")  # w: what rounding.py gives a name, so that it can be moved
BITS = {
    "float64": np.float64, "float32": np.float32, "float16": np.float16, "bfloat16": np.uint16,
    "complex64": np.complex64, "complex128": np.complex128,
    "int64": np.int64, "int32": np.int32, "int16": np.int16, "int8": np.int8, "uint8": np.uint8, "bool": np.uint8,
    "complex32": np.uint32,
}  # fmt: skip


class Side:
    """One library and the names of the program that runs on it."""

    def __init__(self, library):
        self.t = library
        self.dtypes = {}
        self.words = vocabulary(library)
        self.diary = self.words["diary"]
        self.begin()

    def begin(self):
        self.t.set_grad_enabled(True)
        self.t.set_default_dtype(self.t.float32)
        self.t.default_generator.manual_seed(0)  # not of devices, too: that takes longer than a short program
        self.names = dict(self.words)
        self.diary.clear()
        self.error = None
        self.first = {}

    def run(self, text):
        """Execute one step; what it raised stays in `error` as (class, message)."""
        try:
            exec(compiled(text), self.names)  # the program's own text, made by steps.py
            self.error = None
        except Exception as error:
            self.error = (type(error).__name__, str(error))

    def tensors(self):
        """Every tensor that a name leads to, by name; gradients after their owners."""
        found = {}
        for name, value in self.names.items():
            if not ASSIGNED.match(name):
                continue
            if isinstance(value, self.t.Tensor):
                found[name] = value
            elif isinstance(value, self.t.nn.Module):
                for path, member in (*value.named_parameters(), *value.named_buffers()):
                    found[f"{name}.{path}"] = member
        for name, value in list(found.items()):
            if asked(lambda value=value: value.is_leaf or value.retains_grad) is True and value.grad is not None:
                found[f"{name}.grad"] = value.grad
        return found

    def optimized(self):
        """The parameters of optimizers, which may have no name of their own."""
        found = [x for name, x in self.names.items() if name[0] == "o" and ASSIGNED.match(name)]
        return [x for one in found for group in getattr(one, "param_groups", ()) for x in group["params"]]

    def dtype(self, tensor):
        dtype = tensor.dtype
        if dtype not in self.dtypes:
            self.dtypes[dtype] = str(dtype).split(".")[-1]
        return self.dtypes[dtype]

    def looks(self, tensor):
        """All that can be seen of a tensor but its elements."""
        inference = tensor.is_inference()
        return {
            "class": type(tensor).__name__,
            "shape": tuple(tensor.shape),
            "dtype": self.dtype(tensor),
            "strides": strides_that_lead_somewhere(tensor.shape, tensor.stride()),
            "offset": tensor.storage_offset() if tensor.numel() else 0,  # nothing begins nowhere
            "requires_grad": asked(lambda: tensor.requires_grad),
            "is_leaf": asked(lambda: tensor.is_leaf),
            "version": "none" if inference else self.version(tensor),
            "is_conj": tensor.is_conj(),
            "is_neg": tensor.is_neg(),
            "bytes": self.since(tensor, "bytes", tensor.untyped_storage().nbytes()),
        }

    def version(self, tensor):
        now = asked(
            lambda: tensor._version
        )  # PyTorch has none for a tensor that was given the data of an inference tensor
        return "none" if isinstance(now, str) else self.since(tensor, "version", now)

    def since(self, tensor, what, now):
        """By how much a number has grown since the tensor was first seen: how often a result was written to while it
        was made, and how much memory was used for it, is nobody's business.
        """
        first = self.first.setdefault((id(tensor), what), (tensor, now))
        return now - first[1]

    def sharing(self, tensors):
        """For each name the first name whose tensor has the same memory; without memory, that is the same one."""
        first, shared = {}, {}
        for name, tensor in tensors.items():
            storage = tensor.untyped_storage()
            start = asked(storage.data_ptr) if storage.nbytes() and tensor.numel() else ""
            where = ("nowhere", id(tensor)) if isinstance(start, str) else start
            shared[name] = first.setdefault(where, name)
        return shared


@functools.lru_cache(256)
def compiled(text):
    """A line as code: each runs on every side, and often again."""
    return compile(text, "<step>", "exec")


def asked(question):
    """The answer, or the class of the error: the history of a view that was written to is looked into only when it is
    asked for.
    """
    try:
        return question()
    except RuntimeError as error:
        return type(error).__name__


def strides_that_lead_somewhere(shape, strides):
    """The strides, but of dimensions of one element, and of tensors without any: nothing is found by them."""
    if 0 in shape:
        return (0,) * len(strides)
    return strides if 1 not in shape else tuple(0 if n == 1 else s for n, s in zip(shape, strides))


def span(looks):
    """How many elements lie between the first and the last one of a tensor, both included."""
    if 0 in looks["shape"]:
        return 0
    return 1 + sum((n - 1) * s for n, s in zip(looks["shape"], looks["strides"]))


def memory(tensor, looks):
    """The tensor's elements as an array that shares its memory."""
    kind = np.dtype(BITS[looks["dtype"]])
    count = span(looks)
    if not count:
        return np.empty(looks["shape"], kind)
    raw = (ctypes.c_char * (count * kind.itemsize)).from_address(tensor.data_ptr())
    flat = np.frombuffer(raw, kind)
    return np.lib.stride_tricks.as_strided(flat, looks["shape"], [s * kind.itemsize for s in looks["strides"]])


def fits(tensor, looks):
    """Whether the memory of a tensor was not cut off."""
    return (tensor.storage_offset() + span(looks)) * tensor.element_size() <= tensor.untyped_storage().nbytes()


def numbers(array, dtype):
    """The elements as numbers NumPy can compute with."""
    if dtype == "bfloat16":
        return (array.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    if dtype in ("float16", "float32"):
        return array.astype(np.float64)
    if dtype == "complex32":
        whole = np.empty(array.shape, np.complex128)
        whole.real, whole.imag = ((array >> shift & 0xFFFF).astype(np.uint16).view(np.float16) for shift in (0, 16))
        return whole
    return array.astype(np.complex128) if dtype == "complex64" else array
