"""Recording a model: which operators it calls, on which values.

A function mode sees every call. Functions that are made of operators are entered, so that what is recorded are
operators alone. A tensor is known by its identity; what nobody made before is a constant. Note [Writes and views]: a
Value never changes. A write in place gives the tensor a new Value; where the tensor is a view, its base gets one too,
by the inverse of what made the view, and the other views of that base are made anew when they are next used.
"""

import sys

import cresset

from .. import _native
from ..func import control_flow
from ..ops.namespaces import OpOverloadPacket
from ..overrides import OperatorMode
from .places import PACKAGE, Place, asserts

# Operators whose results are no function of their arguments.
RANDOM = {
    "rand", "randn", "rand_like", "randn_like", "randint", "randint_like", "randperm", "normal", "bernoulli",
    "multinomial", "poisson", "binomial",
    "_fused_dropout", "native_dropout", "dropout", "dropout_", "alpha_dropout", "feature_dropout",
    "feature_alpha_dropout", "rrelu", "_sample_dirichlet", "_standard_gamma", "uniform_", "normal_", "exponential_",
    "random_", "cauchy_",
    "geometric_", "log_normal_", "bernoulli_",
}  # fmt: skip

# Views whose elements are those of the base in the same order.
SAME_ORDER = {
    "view",
    "reshape",
    "unsqueeze",
    "squeeze",
    "alias",
    "detach",
    "contiguous",
    "to",
    "float",
    "double",
    "half",
    "bfloat16",
}


class About:
    """What is known of a tensor beside its shape and dtype: device, layout, `strides` (None where it has none), and
    whether it requires a gradient."""

    __slots__ = ("device", "layout", "requires_grad", "strides")

    def __init__(self, tensor):
        self.device, self.layout, self.requires_grad = tensor.device, tensor.layout, tensor.requires_grad
        self.strides = tensor.stride() if tensor.layout == cresset.strided else None


class Value:
    """A tensor of the graph: its shape and dtype, and what else is `about` it; `data` if it does not depend on the
    inputs; `name` once it has one."""

    __slots__ = ("about", "data", "depends", "dtype", "name", "number", "parameter", "shape")

    def __init__(self, number, tensor, depends):
        self.number, self.shape, self.dtype = number, tuple(tensor.shape), tensor.dtype
        self.about, self.depends = About(tensor), depends
        self.data = None if depends else tensor
        self.parameter = None  # what the model calls it
        self.name = None


class Call:
    """A recorded call of an operator. `place` is where the program makes it."""

    __slots__ = ("args", "kwargs", "name", "operator", "place", "results")

    def __init__(self, name, operator, args, kwargs, results, place):
        self.name, self.operator, self.args, self.kwargs, self.results, self.place = (
            name,
            operator,
            args,
            kwargs,
            results,
            place,
        )


class Storage:
    """The tensors that share memory, with a count of the writes."""

    def __init__(self):
        self.version = 0


class Known:
    """What is known of a tensor object: its present Value, and, of a view, what made it from which other tensor."""

    def __init__(self, tensor, value, storage, parent=None, made_by=None):
        self.tensor, self.value, self.storage, self.version = tensor, value, storage, storage.version
        self.parent, self.made_by = parent, made_by


def from_parent(arguments, parent):
    """The arguments of the call that made a view, with the Known it is a view of in the place of that one's Value."""
    return map_tree(arguments, lambda leaf: parent if leaf is parent.value else leaf)


def map_tree(tree, function):
    """The tree of arguments with `function` applied to every leaf."""
    if type(tree) in (tuple, list) or isinstance(tree, (cresset.Size, tuple)):
        mapped = [map_tree(item, function) for item in tree]
        return mapped if isinstance(tree, list) else tuple(mapped)
    if isinstance(tree, dict):
        return {key: map_tree(item, function) for key, item in tree.items()}
    if isinstance(tree, slice):
        return slice(*(map_tree(item, function) for item in (tree.start, tree.stop, tree.step)))
    return function(tree)


def leaves(tree):
    found = []
    map_tree(tree, found.append)
    return found


class Front:
    """Who asks for a recording, for its messages: `onnx.export`, `jit.trace`, `export`."""

    name, error = "record", RuntimeError
    free = "dynamic_shapes"  # the argument that says which sizes are free
    differentiates = False  # whether inputs that require a gradient do so in the recording

    def unsupported(self, operator, place):
        """The exception for an operator that the front cannot take."""
        return self.error(f"{self.name}: the operator {operator} cannot be recorded; {place}")


class Recorder(OperatorMode):
    """Records what runs inside of it.

    Args:
        front: who asks.
        parameters: the name in the model of each parameter and buffer, by id.
        rules: the names of the operators that the front can take.
        functions: functions made of operators that it takes as one, by name: whether the arguments allow it.
    """

    def __init__(self, front, parameters, rules=(), functions=None):
        self.front, self.parameters, self.rules, self.functions = front, parameters, rules, functions or {}
        self.calls, self.values, self.inputs = [], [], []
        self.known = {}  # id of a tensor -> Known
        self.storages = {}  # address -> Storage
        self.changed = {}  # id of a parameter -> (parameter, its elements before the model wrote to it)
        self.kept = []

    def start(self):
        """Tell the program that its questions for elements are heard."""
        self.watcher = _native.watch_values(self.refuse_values)
        control_flow.recording.append(self.depends_on_inputs)

    def close(self):
        """Stop watching, and give the model's parameters and buffers back the elements that they had."""
        _native.watch_values(self.watcher)
        control_flow.recording.remove(self.depends_on_inputs)
        with cresset.no_grad():
            for parameter, before in self.changed.values():
                parameter.copy_(before)

    # ---- values

    def add_input(self, tensor):
        value = self.new_value(tensor, True)
        self.inputs.append(value)
        self.remember(tensor, value)
        return value

    def new_value(self, tensor, depends):
        value = Value(len(self.values), tensor, depends)
        self.values.append(value)
        return value

    def remember(self, tensor, value, parent=None, made_by=None):
        address = _address(tensor)
        storage = self.storages.get(address) if address else None
        if storage is None:
            storage = Storage()
            if address:
                self.storages[address] = storage
        self.known[id(tensor)] = Known(tensor, value, storage, parent, made_by)

    def value_of(self, tensor):
        """The present Value of a tensor."""
        known = self.known.get(id(tensor))
        if known is not None:
            return self.refresh(known)
        if isinstance(tensor, cresset.nn.Parameter) or id(tensor) in self.parameters:
            value = self.new_value(tensor, False)
            value.parameter = self.parameters.get(id(tensor))
        else:
            address = _address(tensor)
            if address and address in self.storages:  # `.data`, or another object for the same elements
                for other in list(self.known.values()):
                    if other.value.depends and _address(other.tensor) == address:
                        if _layout(other.tensor) != _layout(tensor):
                            raise self.front.error(
                                f"{self.front.name}: a tensor of shape {tuple(tensor.shape)} is part of one that "
                                "depends on the inputs, but no recorded "
                                f"operator made it; {Place()}"
                            )
                        value = self.refresh(other)
                        self.remember(tensor, value, other.parent, other.made_by)
                        return value
            value = self.new_value(tensor, False)
        self.remember(tensor, value)
        return value

    def refresh(self, known):
        """The Value of a tensor; made anew if its memory was written to by way of another view."""
        if known.version != known.storage.version:
            if known.parent is None:
                raise self.front.error(
                    f"{self.front.name}: a tensor of shape {known.value.shape} shares memory that is written to in "
                    f"place; clone it. {Place()}"
                )
            name, operator, args, kwargs, position, count = known.made_by
            parent = self.refresh(known.parent)
            args = map_tree(args, lambda leaf: parent if leaf is known.parent else leaf)
            results = [self.new_value(known.tensor, parent.depends) for _ in range(count)]
            self.calls.append(Call(name, operator, args, kwargs, tuple(results), Place()))
            known.value, known.version = results[position], known.storage.version
        return known.value

    # ---- calls

    def __torch_function__(self, func, types, args=(), kwargs=None):
        func = called(func, args, kwargs or {})
        kwargs, name = kwargs or {}, _name_of(func)
        if hasattr(func, "__wrapped__"):
            if name not in self.functions or not self.functions[name](*args, **kwargs):
                return self.enter_function(func, name, args, kwargs)
            func = func.__wrapped__
        out = kwargs.get("out")
        kwargs_in = {key: item for key, item in kwargs.items() if key not in ("out", "generator")}
        in_place = name == "__setitem__" or (name.endswith("_") and not name.endswith("__"))
        target = args[0] if in_place else out
        refs = map_tree(
            (args, kwargs_in), lambda leaf: self.value_of(leaf) if isinstance(leaf, cresset.Tensor) else leaf
        )
        depends = name in RANDOM or any(leaf.depends for leaf in leaves(refs) if isinstance(leaf, Value))
        recorded = name
        if in_place and name != "__setitem__" and name[:-1] in self.rules and name not in self.rules:
            recorded = name[:-1]
        if depends and recorded not in self.rules:
            self.refuse(name)
        targets = [t for t in leaves(target) if isinstance(t, cresset.Tensor)] if target is not None else []
        for tensor in targets:
            self.before_write(tensor)
        result = func(*args, **kwargs)
        if targets:
            values = [self.new_value(t, depends or self.known[id(t)].value.depends) for t in targets]
            self.append(recorded, func, refs, values)
            for tensor, value in zip(targets, values, strict=True):
                self.write(self.known[id(tensor)], value)
            return result
        tensors = [t for t in leaves(result) if isinstance(t, cresset.Tensor)]
        if all(id(t) in self.known for t in tensors):  # an argument itself, as of contiguous()
            return result
        values = [self.new_value(t, depends) for t in tensors]
        self.append(recorded, func, refs, values)
        parents = [t for t in leaves((args, kwargs)) if isinstance(t, cresset.Tensor)]
        for position, (tensor, value) in enumerate(zip(tensors, values, strict=True)):
            address = _address(tensor)
            parent = next((p for p in parents if address and _address(p) == address), None)
            parent = self.known[id(parent)] if parent is not None else None
            made_by = (recorded, func, from_parent(refs[0], parent), refs[1], position, len(values)) if parent else None
            self.remember(tensor, value, parent, made_by)
        self.kept.append(result)
        return result

    def append(self, name, func, refs, values):
        self.calls.append(Call(name, func, refs[0], refs[1], tuple(values), Place()))

    def enter_function(self, func, name, args, kwargs):
        """A function made of operators: what it calls is recorded. What it makes of the inputs otherwise would be lost,
        and is an error.
        """
        with self:
            result = func.__wrapped__(*args, **kwargs)
        given = [t for t in leaves((args, kwargs)) if isinstance(t, cresset.Tensor) and id(t) in self.known]
        if any(self.known[id(t)].value.depends for t in given):
            for tensor in leaves(result):
                if isinstance(tensor, cresset.Tensor) and id(tensor) not in self.known and tensor.numel():
                    self.refuse(name)
        return result

    # ---- writes

    def before_write(self, tensor):
        """Keep the elements that a write is about to change where they are still needed: of constants and of the
        model's state.
        """
        self.value_of(tensor)
        storage = self.known[id(tensor)].storage
        for known in self.known.values():
            if known.storage is storage:
                if known.value.data is not None:
                    known.value.data = known.value.data.detach().clone()
                if id(known.tensor) in self.parameters and id(known.tensor) not in self.changed:
                    self.changed[id(known.tensor)] = (known.tensor, known.tensor.detach().clone())

    def write(self, known, value):
        """`known` is `value` from now on, and so is that part of what it is a view of."""
        path = []
        while known.parent is not None:
            parent = known.parent
            old = self.refresh(parent)
            whole = self.new_value(parent.tensor, value.depends or old.depends)
            self.write_back(known, old, value, whole)
            path.append((known, value))
            known, value = parent, whole
        path.append((known, value))
        known.storage.version += 1
        for changed, new in path:
            changed.value, changed.version = new, changed.storage.version

    def write_back(self, view, old, part, whole):
        """Record what puts `part` into the place of a view: `whole` is `old` with it."""
        name, operator, args, kwargs, position, _ = view.made_by
        if name == "__getitem__":
            index = args[1]
            self.append("__setitem__", None, ((old, index, part), {}), [whole])
        elif name in ("select", "unbind", "slice", "narrow", "chunk", "split", "split_with_sizes"):
            self.append("__setitem__", None, ((old, _index_of(view), part), {}), [whole])
        elif name in SAME_ORDER and part.dtype == whole.dtype:
            self.append("reshape", None, ((part, tuple(whole.shape)), {}), [whole])
        elif name in ("transpose", "t"):
            self.append(name, operator, ((part, *args[1:]), kwargs), [whole])
        elif name == "permute":
            dims = args[1] if len(args) == 2 and isinstance(args[1], (tuple, list)) else args[1:] or kwargs["dims"]
            order = [d % len(dims) for d in dims]
            self.append("permute", None, ((part, tuple(order.index(d) for d in range(len(order)))), {}), [whole])
        elif view.tensor.dtype == view.parent.tensor.dtype:
            places = _places(view.parent.tensor, view.tensor)
            self.append("__place__", None, ((old, self.value_of(places), part), {}), [whole])
        else:
            raise self.front.error(
                f"{self.front.name}: a tensor that {name} made as a view is written to in place; clone it before. "
                f"{Place()}"
            )

    # ---- what cannot be recorded

    def refuse(self, name, place=None):
        raise self.front.unsupported(name, place or Place())

    def depends_on_inputs(self, tensor):
        """Whether the elements of a tensor are the recording's, and depend on its inputs."""
        known = self.known.get(id(tensor))
        return known is not None and known.value.depends

    def refuse_values(self, what, tensor):
        """What a program learns of the elements of a tensor is not in the recording."""
        frame = sys._getframe(1)
        while frame is not None and frame.f_code is cresset.Tensor.tolist.__code__:
            frame = frame.f_back
        if not self.depends_on_inputs(tensor) or frame is None:
            return
        if what == "the address of a tensor":  # what is computed there is not recorded: by LAPACK, say
            self.refuse(Place().function or "data_ptr")
        file = frame.f_code.co_filename
        if (file.startswith(PACKAGE) and file != control_flow.__file__) or asserts(frame):
            return
        raise self.front.error(
            f"{self.front.name}: the model asks for {what} that depends on its inputs, which a recording cannot hold; "
            f"{Place()}. Use torch.where, or compute it outside"
        )


def called(func, args, kwargs):
    """The function of a call; of an operator of torch.library, the overload that the arguments mean."""
    return func.overload_of(args, kwargs) if isinstance(func, OpOverloadPacket) else func


def _name_of(func):
    """An operator of torch.library is called by its namespace, too."""
    schema = getattr(func, "_schema", None)
    if schema is not None and "::" in getattr(schema, "name", ""):
        return schema.name
    return _native.function_behind(func).__name__


def _address(tensor):
    try:
        return tensor.untyped_storage().data_ptr()
    except (RuntimeError, NotImplementedError):
        return 0


def _layout(tensor):
    return tuple(tensor.shape), tensor.stride(), tensor.storage_offset(), tensor.dtype


def _places(base, view):
    """For each element of a view, its number among the elements of the base."""
    size = base.untyped_storage().nbytes() // base.element_size()
    numbers = cresset.zeros(size, dtype=cresset.int64)
    numbers.as_strided(base.shape, base.stride(), base.storage_offset()).copy_(
        cresset.arange(base.numel()).view(base.shape)
    )
    return numbers.as_strided(view.shape, view.stride(), view.storage_offset()).clone()


def _index_of(view):
    """The index that names the place of a view which is a part of one dimension."""
    name, _, args, kwargs, position, _ = view.made_by
    base, part = view.parent.tensor, view.tensor
    named = dict(zip(("dim", "start") if name == "narrow" else ("dim",), args[1:], strict=False)) | kwargs
    if name in ("chunk", "split", "split_with_sizes"):
        named = {"dim": args[2] if len(args) > 2 else kwargs.get("dim", 0)}
    dim = named.get("dim", 0) % base.ndim
    offset = (part.storage_offset() - base.storage_offset()) // max(base.stride(dim), 1)
    if name in ("select", "unbind"):
        return (*[slice(None)] * dim, offset)
    step = args[4] if name == "slice" and len(args) > 4 else kwargs.get("step", 1)
    return (*[slice(None)] * dim, slice(offset, offset + part.shape[dim] * step, step))
