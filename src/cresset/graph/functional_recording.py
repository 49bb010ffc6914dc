"""Recording without writes: a write in place gives its tensor, and what it is a view of, a new Value. See Note [Writes
and views] in recording.py.
"""

import cresset

from . import aten_calls
from .aten_recording import AtenRecorder
from .places import Place
from .recording import Call, Recorder, _address, _index_of, from_parent, leaves, map_tree

SAME_ORDER = {
    "view",
    "reshape",
    "unsqueeze",
    "squeeze",
    "alias",
    "detach",
    "flatten",
    "unflatten",
    "contiguous",
    "view_as",
    "_unsafe_view",
}


class FunctionalRecorder(AtenRecorder):
    """Records aten operators that write nothing. `input_tensors` are the inputs, whose Values at the end tell whether
    they were written to.
    """

    def __init__(self, front, parameters, *, decompositions=None):
        super().__init__(front, parameters, decompositions=decompositions)
        self.input_tensors = []

    def add_input(self, tensor):
        self.input_tensors.append(tensor)
        return super().add_input(tensor)

    refresh = Recorder.refresh

    def value_of(self, tensor):
        known = self.known.get(id(tensor))
        return self.refresh(known) if known is not None else super().value_of(tensor)

    def record(self, name, schema, arguments, run):
        written = [a for declared, a in zip(schema.arguments, arguments, strict=True) if declared.is_written]
        if written:
            return self.record_write(name, schema, arguments, run, written[0])
        before = len(self.calls)
        result = super().record(name, schema, arguments, run)
        call = self.calls[-1]
        if len(self.calls) > before and any(v.shape is not None for v in call.results):
            self.note_views(call, [a for a in leaves(tuple(arguments)) if isinstance(a, cresset.Tensor)], result)
        return result

    def note_views(self, call, given, result):
        """A result that shares memory with an argument is a view of it."""
        tensors = [t for t in leaves(result) if isinstance(t, cresset.Tensor)]
        for position, tensor in enumerate(tensors):
            address = _address(tensor)
            parent = next((p for p in given if address and _address(p) == address), None)
            if parent is not None:
                known = self.known[id(tensor)]
                known.parent = self.known[id(parent)]
                arguments = from_parent(call.args, known.parent)
                known.made_by = (call.name, call.operator, arguments, call.kwargs, position, len(tensors))

    def record_write(self, name, schema, arguments, run, target):
        """The call that gives what the write leaves in its target."""
        self.value_of(target)
        value = self.value_after(name, schema, arguments, target)
        self.before_write(target)
        result = run()
        self.write(self.known[id(target)], value)
        self.kept.append(result)
        return result

    def value_after(self, name, schema, arguments, target):
        given = dict(zip((a.name for a in schema.arguments), arguments, strict=True))
        if name == "copy_":
            source = given["src"]
            with self:
                source = source.to(target.dtype) if source.dtype != target.dtype else source
                source = source.expand(target.shape) if source.shape != target.shape else source
            return self.value_of(source)
        if name == "fill_" and isinstance(given["value"], cresset.Tensor):
            with self:
                return self.value_of(given["value"].to(target.dtype).expand(target.shape))
        if name == "fill_diagonal_":
            with self:
                return self.value_of(cresset.where(_on_diagonal(target, given["wrap"]), given["fill_value"], target))
        plain = {"fill_": ("full_like", (target, given.get("value")), {}), "zero_": ("zeros_like", (target,), {})}.get(
            name
        ) or (
            name[:-1],
            tuple(given[a.name] for a in schema.arguments if not a.keyword_only),
            {a.name: given[a.name] for a in schema.arguments if a.keyword_only},
        )
        found = aten_calls.find(*plain, self.scalars)
        if found is None:
            self.refuse(name)
        pure, arguments = found
        refs = map_tree(tuple(arguments), self.reference)
        value = self.new_value(target, True)
        self.calls.append(Call(pure.op, pure, refs, {}, (value,), Place()))
        return value

    def write_back(self, view, old, part, whole):
        """Record what puts `part` into the place of a view: `whole` is `old` with it."""
        name, schema, args, _, _, _ = view.made_by
        if name in ("select", "unbind", "slice", "narrow", "chunk", "split", "split_with_sizes"):
            *before, index = _index_of(view)
            dim = len(before)
            if isinstance(index, slice):
                self.give("slice_scatter", (old, part, dim, index.start, index.stop, index.step or 1), whole)
            else:
                self.give("select_scatter", (old, part, dim, index), whole)
        elif name in SAME_ORDER:
            self.give("view", (part, list(whole.shape)), whole)
        elif name in ("transpose", "t"):
            self.calls.append(Call(name, schema, (part, *args[1:]), {}, (whole,), Place()))
        elif name == "diagonal":
            self.give("diagonal_scatter", (old, part, *args[1:]), whole)
        elif name == "permute":
            order = [d % len(args[1]) for d in args[1]]
            self.give("permute", (part, [order.index(d) for d in range(len(order))]), whole)
        else:
            raise self.front.error(
                f"{self.front.name}: a tensor that {name} made as a view is written to in place; clone it before. "
                f"{Place()}"
            )

    def give(self, name, arguments, value):
        """Record a call on Values whose overload is the first of its name."""
        from ..ops import aten_table

        schema = aten_table.overloads(f"aten::{name}")[0]
        given = list(arguments) + [aten_calls.default_of(a) for a in schema.arguments[len(arguments) :]]
        self.calls.append(Call(name, schema, tuple(given), {}, (value,), Place()))


def _on_diagonal(tensor, wrap):
    """Where fill_diagonal_ writes."""
    places = [
        cresset.arange(size, device=tensor.device).view([-1 if axis == other else 1 for other in range(tensor.ndim)])
        for axis, size in enumerate(tensor.shape)
    ]
    if wrap and tensor.ndim == 2:
        places[0] = places[0] % (tensor.shape[1] + 1)
    mask = places[0] == places[1]
    for place in places[2:]:
        mask = mask & (places[0] == place)
    return mask
