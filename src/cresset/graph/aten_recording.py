"""Recording in aten's operators, for jit.trace, export and make_fx.

Calls are recorded as they are made: a write in place is a call that writes, and a view is a call that gives one, so
    what runs the recording shares memory as the program does.
A Value follows its tensor: after `x.add_(1)`, x is the result of that call.
"""

import cresset

from ..dispatch import handling
from ..dispatch.modes import TorchDispatchMode
from ..ops import aten_table
from ..ops.pointwise import definitions
from ..overrides import DisableTorchFunction
from ..utils._python_dispatch import is_traceable_wrapper_subclass
from . import aten_calls
from .backward import record_grad
from .places import Place
from .recording import RANDOM, Call, Recorder, Value, _address, _name_of, called, leaves, map_tree


def positional(schema, arguments):
    """args and kwargs of a call, from the arguments in the schema's order."""
    pairs = list(zip(schema.arguments, arguments, strict=True))
    return [v for a, v in pairs if not a.keyword_only], {a.name: v for a, v in pairs if a.keyword_only}


class _Entering(TorchDispatchMode):
    """Lets the recorder see what the classes of the arguments make of a call, below its autograd."""

    def __init__(self, recorder):
        super().__init__()
        self.recorder = recorder

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        with self.recorder:
            return handling.give(func, args, kwargs or {})


class AtenRecorder(Recorder):
    """Records aten operators.

    Args:
        scalars: take overloads for numbers (`add.Scalar`), as TorchScript's text does; PyTorch's exported programs have
            `add.Tensor` with a number.
        decompositions: {"aten::name.overload": function} of operators that are entered: what the function calls is
            recorded in their place.
    """

    def __init__(self, front, parameters, *, scalars=False, decompositions=None):
        super().__init__(front, parameters)
        self.scalars, self.decompositions = scalars, decompositions or {}

    # ---- values

    def refresh(self, known):
        return known.value

    def value_of(self, tensor):
        """The present Value of a tensor. One that no recorded call made is a constant, or a parameter."""
        known = self.known.get(id(tensor))
        if known is not None:
            return known.value
        parameter = self.parameters.get(id(tensor))
        is_parameter = parameter is not None or isinstance(tensor, cresset.nn.Parameter)
        twin = None if is_parameter else self.twin_of(tensor)
        value = self.new_value(tensor, twin is not None and twin.value.depends)
        value.parameter = parameter
        if twin is not None:  # `.data`, or another object for the same elements
            schema, arguments = aten_calls.find("detach", (tensor,), {}, self.scalars)
            self.calls.append(Call("detach", schema, (twin.value,), {}, (value,), self.place()))
        self.remember(tensor, value)
        return value

    def twin_of(self, tensor):
        address = _address(tensor)
        if not address or address not in self.storages:
            return None
        layout = (tuple(tensor.shape), tensor.stride(), tensor.storage_offset(), tensor.dtype)
        for known in reversed(self.known.values()):
            t = known.tensor
            if _address(t) == address and (tuple(t.shape), t.stride(), t.storage_offset(), t.dtype) == layout:
                return known
        if any(known.value.depends and _address(known.tensor) == address for known in self.known.values()):
            raise self.front.error(
                f"{self.front.name}: a tensor of shape {tuple(tensor.shape)} is part of one that depends on the "
                f"inputs, but no recorded operator made it; {self.place()}"
            )
        return None

    def reference(self, leaf):
        """What an argument is in the recording."""
        return self.value_of(leaf) if isinstance(leaf, cresset.Tensor) else leaf

    # ---- calls

    # Gives (args, kwargs) with numbers in the place of 0-d tensors, in recordings that have numbers.
    with_numbers = None

    def __torch_function__(self, func, types, args=(), kwargs=None):
        if func is cresset.autograd.grad:
            return record_grad(self, func, args, kwargs or {})
        func = called(func, args, kwargs or {})
        kwargs, name = dict(kwargs or {}), _name_of(func)
        rewritten = aten_calls.rewritten(name, args)
        if rewritten is not None:
            with self:
                return rewritten(*args, **kwargs)
        out = kwargs.pop("out", None)
        if out is not None:
            return self.call_with_out(func, args, kwargs, out)
        if "::" in name:
            schema, arguments = func._schema, func._schema.bind(args, kwargs)
        else:
            found = aten_calls.call_of(func, name, args, kwargs, self.scalars)
            if found is None:
                if hasattr(func, "__wrapped__"):
                    return self.enter_function(func, name, args, kwargs)
                if name in definitions:
                    with self:
                        formula = next(iter(definitions[name]._formulas.values()))
                        return formula(*args, **kwargs)  # in operators that aten has
                if kwargs.get("requires_grad") is False:
                    return self.__torch_function__(
                        func, types, args, {k: v for k, v in kwargs.items() if k != "requires_grad"}
                    )
                numbers = self.with_numbers(args, kwargs) if self.with_numbers is not None else None
                if numbers is not None:
                    return self.__torch_function__(func, types, *numbers)
                self.refuse(name)
            schema, arguments = found
        if any(self.is_entered(leaf) for leaf in leaves(tuple(arguments))):
            with _Entering(self):
                return func(*args, **kwargs)
        entered = self.decomposition(schema)
        if entered is not None:
            given, named = positional(schema, arguments)
            with self:
                result = entered(*given, **named)
            if result is not NotImplemented:
                return result
        return self.record(name, schema, arguments, lambda: func(*args, **kwargs))

    def is_entered(self, leaf):
        """Whether what a tensor's class calls in its place is recorded: that of a wrapper which the program made of
        tensors of the recording. A wrapper that is an input, or the model's, is a value itself.
        """
        return is_traceable_wrapper_subclass(leaf) and id(leaf) not in self.known and id(leaf) not in self.parameters

    def record(self, name, schema, arguments, run):
        """Record one call and run it."""
        refs = map_tree(tuple(arguments), self.reference)
        depends = self.is_random(schema) or any(self.depends(leaf) for leaf in leaves(refs))
        written = [a for declared, a in zip(schema.arguments, arguments, strict=True) if declared.is_written]
        for tensor in (t for t in leaves(written) if isinstance(t, cresset.Tensor)):
            self.before_write(tensor)
        result = run()
        if not written and isinstance(result, cresset.Tensor) and any(result is a for a in leaves(tuple(arguments))):
            result = result.view_as(
                result
            )  # contiguous() may give its argument: the result is another value, and needs an object of its own
        whole = result
        if (
            isinstance(result, cresset.Tensor) and len(schema.returns) > 1
        ):  # a function that gives the first of the operator's results
            given, named = positional(schema, arguments)
            whole = aten_table.function(schema.op)(*given, **named)
            result = whole[0]
        tensors = [t for t in leaves(whole) if isinstance(t, cresset.Tensor)]
        if not tensors and schema.returns:  # numbers and shapes: what is computed with them is in the recording
            return result
        values = [
            self.new_value(t, depends or (id(t) in self.known and self.known[id(t)].value.depends)) for t in tensors
        ]
        for value in values:
            value.data = None  # what made it is recorded, constants among it
        self.calls.append(Call(name, schema, refs, {}, tuple(values), self.place()))
        for tensor, value in zip(tensors, values, strict=True):
            self.remember(tensor, value)
        for tensor in (t for t in leaves(written) if isinstance(t, cresset.Tensor)):
            self.mark_written(tensor)
        self.kept.append(whole)
        return result

    def decomposition(self, schema):
        return self.decompositions.get(f"{schema.name}.{schema.overload_name or 'default'}")

    def exactly(self, overload, args, kwargs):
        """Record the call of one overload, whatever it is made of here. It is called inside of a decomposition."""
        entered, schema = self.decomposition(overload._schema), overload._schema
        if entered is not None:
            result = entered(*args, **kwargs)
            if result is not NotImplemented:
                return result
        with DisableTorchFunction():
            return self.record(_name_of(overload), schema, schema.bind(args, kwargs), lambda: overload(*args, **kwargs))

    def without_history(self, tensor):
        """The same tensor for those who ask for no further derivative: another object, and the same Value."""
        with DisableTorchFunction():
            plain = tensor.detach()
        self.remember(plain, self.value_of(tensor))
        self.kept.append(plain)
        return plain

    def depends(self, leaf):
        return isinstance(leaf, Value) and leaf.depends

    def is_random(self, schema):
        return schema.op in RANDOM or any(argument.type == "Generator?" for argument in schema.arguments)

    def mark_written(self, tensor):
        """What shares memory with a tensor that was written to depends on that write: it is a constant no longer."""
        storage = self.known[id(tensor)].storage
        for known in self.known.values():
            if known.storage is storage:
                known.value.depends = True

    def call_with_out(self, func, args, kwargs, out):
        """A call with out= is the call, and a copy of its results."""
        with self:
            result = func(*args, **kwargs)
            for target, found in zip(leaves(out), leaves(result), strict=False):
                if target.shape != found.shape:
                    target.resize_(found.shape)
                target.copy_(found)
        return out

    def place(self):
        return Place()
