"""Indices and slices, read and written: of tensors, lists, tuples, dicts, text and modules."""

import ast

from ...graph import types
from . import sugar
from .sugar import Several

_NUMBERS = (types.IntType, types.FloatType, types.BoolType, types.ComplexType, types.NumberType)


class Indexing:
    """The part of Emitter that writes `x[...]`."""

    def item(self, tree):
        base = self.emit(tree.value)
        if isinstance(base, sugar.Iteration):
            base = (
                Several([base.item(self, n, self.place(tree)) for n in range(base.count)])
                if base.count is not None
                else self.value(base, tree)
            )
        if isinstance(base, Several):
            return self._tuple_item(base.items, tree)
        value = self.value(base, tree.value)
        type = value.type()
        if isinstance(type, types.TensorType):
            return self._tensor_item(value, tree)
        if isinstance(type, types.ClassType) and type.is_module:
            return self._module_item(value, tree)
        index = self.index_of(tree.slice)
        if isinstance(index, (ast.Slice, sugar.Bounds)):
            if isinstance(type, types.TupleType):
                return self._tuple_slice(value, index, tree)
            return self.operator("aten::slice", [value, *self._slice_parts(index)], tree)
        if isinstance(type, types.TupleType):
            return self._tuple_index(value, index, tree)
        if isinstance(type, types.ClassType):
            return self.call_method(value, "__getitem__", [index], {}, tree)
        self.place(tree)
        if isinstance(type, (types.ListType, types.DictType, types.StringType)):
            return self.operator("aten::__getitem__", [value, index], tree)
        raise self.error(tree, f"'{type.annotation_str}' object is not subscriptable")

    def index_of(self, tree):
        """The value between the brackets; a slice as it is written, or as the program made it."""
        if isinstance(tree, ast.Slice):
            return tree
        meaning = self.emit(tree)
        return meaning if isinstance(meaning, sugar.Bounds) else self.value(meaning, tree)

    def _constant_index(self, value):
        if value.node().kind() != "prim::Constant" or not isinstance(value.type(), types.IntType):
            return None
        return value.node().attributes["value"]

    def _tuple_item(self, items, tree):
        index = self.index_of(tree.slice)
        if isinstance(index, (ast.Slice, sugar.Bounds)):
            return Several(items[self._static_slice(index, tree)])
        number = self._constant_index(index)
        if number is None:
            raise self.error(tree, "tuple index must be a compile time constant")
        if not -len(items) <= number < len(items):
            raise self.error(tree, f"Tuple index out of range: {number} of {len(items)}")
        return items[number]

    def _static_slice(self, index, tree):
        """A slice whose numbers are known when the program is compiled."""
        if isinstance(index, ast.Slice):
            written = (index.lower, index.upper, index.step)
            values = [None if part is None else self.emit_value(part) for part in written]
        else:
            values = index.parts
        numbers = [None if value is None else self._constant_index(value) for value in values]
        for number, value in zip(numbers, values, strict=True):
            if number is None and value is not None and not isinstance(value.type(), types.NoneType):
                raise self.error(tree, "tuple slice must be made of compile time constants")
        return slice(*numbers)

    def _tuple_index(self, value, index, tree):
        elements = value.type().elements()
        number = self._constant_index(index)
        self.place(tree)
        if number is None:
            covering = elements[0] if elements else None
            if covering is None or any(one != covering for one in elements):
                raise self.error(
                    tree,
                    "Cannot index into a tuple with a non-integer literal because we cannot resolve the output type",
                )
            return self.graph.insert("prim::TupleIndex", [value, index], [covering]).output()
        if not -len(elements) <= number < len(elements):
            raise self.error(tree, f"Tuple index out of range: {number} of {len(elements)}")
        return self.tuple_part(value, number)

    def tuple_part(self, value, number):
        """The part of a tuple at a place that is known."""
        elements = value.type().elements()
        number %= len(elements)
        if value.node().kind() == "prim::TupleConstruct":
            return value.node().inputsAt(number)
        return self.graph.insert("prim::TupleIndex", [value, self.constant(number)], [elements[number]]).output()

    def _tuple_slice(self, value, index, tree):
        parts = [self.tuple_part(value, number) for number in range(len(value.type().elements()))]
        return self.value(Several(parts[self._static_slice(index, tree)]), tree)

    def _slice_parts(self, index):
        if isinstance(index, sugar.Bounds):
            return list(index.parts)
        parts = [
            self.emit_value(part) if part is not None else self.constant(None) for part in (index.lower, index.upper)
        ]
        return [*parts, self.emit_value(index.step) if index.step is not None else self.constant(1)]

    def _module_item(self, value, tree):
        """An item of a ModuleList, ModuleDict or Sequential."""
        index = self.index_of(tree.slice)
        if isinstance(index, (ast.Slice, sugar.Bounds)):
            items = self.module_items(value, tree, values=True)
            return Several(items.items[self._static_slice(index, tree)])
        if index.node().kind() != "prim::Constant":
            raise self.error(
                tree,
                (
                    "Unable to extract string literal index. ModuleList and ModuleDict indexing is only supported "
                    "with a "
                    "literal index; use enumerate, zip or items() to loop over them"
                ),
            )
        key = index.node().attributes["value"]
        names = self.module_names(value)
        if isinstance(key, int):
            if not -len(names) <= key < len(names):
                raise self.error(tree, f"index {key} is out of range for {len(names)} modules")
            key = names[key]
        if key not in names:
            raise self.error(tree, f"Key Error, {key}")
        return self.submodule(value, key, tree)

    # ---- tensors

    def _indices(self, tree):
        return list(tree.slice.elts) if isinstance(tree.slice, ast.Tuple) else [tree.slice]

    def _tensor_item(self, value, tree):
        view, indices = self._view(value, tree)
        if not indices:
            return view
        return self.operator("aten::index", [view, self._index_list(indices)], tree)

    def _index_list(self, indices):
        indices = [self.constant(None) if index is None else index for index in indices]
        return self.graph.insert(
            "prim::ListConstruct", indices, [types.ListType(types.OptionalType(types.TensorType()))]
        ).output()

    def _view(self, value, tree):
        """What numbers, slices and None make of a tensor, and the tensors among the indices by dimension (None in
        between).
        """
        parts = []
        for part in self._indices(tree):
            if isinstance(part, ast.Slice) or (
                isinstance(part, ast.Constant) and part.value in (None, Ellipsis) and not isinstance(part.value, bool)
            ):
                parts.append(part)
            elif isinstance(part, ast.Starred):
                parts += self.unpack(self.emit(part.value), part)
            else:
                meaning = self.emit(part)
                if isinstance(meaning, sugar.Bounds):
                    parts.append(meaning)
                    continue
                single = len(self._indices(tree)) == 1
                parts += (
                    self.unpack(meaning, tree)
                    if single and (isinstance(meaning, Several) or isinstance(meaning.type(), types.TupleType))
                    else [self.value(meaning, part)]
                )
        place = self.place(tree)
        behind = _dimensions_behind_ellipsis(parts)
        dim, from_end, indices, view = 0, False, [], value  # behind '...', dimensions are counted from the end
        for part in parts:
            if isinstance(part, ast.Constant) and part.value is Ellipsis:
                dim, from_end = -behind, True
                continue
            where = self.constant(dim)
            if isinstance(part, (ast.Slice, sugar.Bounds)):
                view = self.operator("aten::slice", [view, where, *self._slice_parts(part)], place)
                dim += 1
            elif isinstance(part, ast.Constant) or isinstance(part.type(), types.NoneType):
                view = self.operator("aten::unsqueeze", [view, self.constant(dim - 1) if from_end else where], place)
                dim += not from_end
            elif isinstance(part.type(), types.IntType):
                view = self.operator("aten::select", [view, where, part], place)
                dim += from_end
            elif _is_index(part):
                if from_end:
                    raise self.error(
                        tree,
                        "Ellipses followed by tensor indexing is currently not supported; say ':' for each "
                        "dimension before",
                    )
                indices += [None] * (dim - len(indices)) + [self._as_index(part, place)]
                dim += 1
            else:
                raise self.error(
                    tree,
                    (
                        "Unsupported operation: indexing tensor with unsupported index type "
                        f"'{part.type().annotation_str}'. Only ints, slices, lists and tensors are supported"
                    ),
                )
        return view, indices

    def _as_index(self, value, place):
        """A list of numbers as the tensor of them."""
        type = value.type()
        if isinstance(type, types.TensorType) or (
            isinstance(type, types.OptionalType) and isinstance(type.element, types.TensorType)
        ):
            return value
        dtype = self.constant(11 if _innermost(type) is types.BoolType else 4)
        return self.operator("aten::tensor", [value], place, dtype=dtype)

    # ---- writing

    def set_item(self, target, value, tree):
        base = self.emit_value(target.value)
        type = base.type()
        if isinstance(type, types.TensorType):
            view, indices = self._view(base, target)
            self._write_tensor(view, indices, value, tree)
            return
        if isinstance(type, types.ClassType):
            self.call_method(base, "__setitem__", [self.emit_value(target.slice), value], {}, tree)
            return
        if isinstance(target.slice, ast.Slice):
            raise self.error(tree, "Sliced expression not yet supported for the left side of an assignment to a list")
        if not isinstance(type, (types.ListType, types.DictType)):
            raise self.error(tree, f"{type.annotation_str} does not support subscripted assignment")
        self.operator("aten::_set_item", [base, self.emit_value(target.slice), value], tree)

    def _write_tensor(self, view, indices, value, tree):
        place = self.place(tree)
        if isinstance(value.type(), _NUMBERS):
            dtype, device = self.operator("prim::dtype", [view], place), self.operator("prim::device", [view], place)
            value = self.operator("aten::tensor", [value], place, dtype=dtype, device=device)
        if indices:
            self.operator("aten::index_put_", [view, self._index_list(indices), value, self.constant(False)], place)
        else:
            self.operator("aten::copy_", [view, value, self.constant(False)], place)

    def augment_item(self, tree, kinds):
        """`x[i] += y`. Gives whether it was written here."""
        base = self.emit_value(tree.target.value)
        if isinstance(base.type(), types.TensorType):
            view, indices = self._view(base, tree.target)
            old = self.operator("aten::index", [view, self._index_list(indices)], tree) if indices else view
            new = self.operator(kinds[1], [old, self.emit_value(tree.value)], tree)
            if indices:
                self.operator("aten::index_put_", [view, self._index_list(indices), new, self.constant(False)], tree)
            return True
        if isinstance(base.type(), (types.ListType, types.DictType)) and not isinstance(tree.target.slice, ast.Slice):
            index = self.emit_value(tree.target.slice)
            old = self.operator("aten::__getitem__", [base, index], tree)
            other = self.emit_value(tree.value)
            if isinstance(old.type(), types.TensorType):
                self.operator(kinds[1], [old, other], tree)
            else:
                self.operator("aten::_set_item", [base, index, self.binary(tree.op, old, other, tree)], tree)
            return True
        return False


def _innermost(type):
    while isinstance(type, types.ListType):
        type = type.element
    return type.__class__


def _is_index(value):
    """Whether a value is an index that picks elements: a tensor, or a list of numbers."""
    type = value.type()
    if isinstance(type, types.OptionalType):
        type = type.element
    return isinstance(type, types.TensorType) or (
        isinstance(type, types.ListType) and _innermost(type) in (types.IntType, types.BoolType)
    )


def _dimensions_behind_ellipsis(parts):
    """How many dimensions of the tensor the indices behind '...' are about."""
    place = next((n for n, part in enumerate(parts) if isinstance(part, ast.Constant) and part.value is Ellipsis), None)
    if place is None:
        return 0
    return sum(
        not (isinstance(part, ast.Constant) or isinstance(getattr(part, "type", lambda: None)(), types.NoneType))
        for part in parts[place + 1 :]
    )
