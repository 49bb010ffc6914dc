"""FlopCounterMode: how many floating-point operations products, convolutions and attention take, by module and
operator; register_flop_formula: how many an operator of one's own takes.
"""

from collections import defaultdict

import cresset

from .. import _native
from ..ops.namespaces import OpOverloadPacket
from ..profiler import flops as formulas
from ..profiler.events import ancestors
from ..profiler.recording import Recording
from ..pytree import tree_map
from ._python_dispatch import TorchDispatchMode
from .module_tracker import ModuleTracker

__all__ = ["FlopCounterMode", "register_flop_formula", "sdpa_flop_count"]

flop_registry = {}  # what register_flop_formula was told: operator -> formula of raw arguments
MARK = "modules: "


def _shape(value):
    return value.shape if isinstance(value, cresset.Tensor) else value


def _of_shapes(formula):
    """A formula that is given tensors, from one that is given their shapes. Those with `_get_raw` want tensors."""
    if getattr(formula, "_get_raw", False):
        return formula

    def of_tensors(*args, out_val=None, **kwargs):
        args, kwargs, out_shape = tree_map(_shape, (args, kwargs, out_val))
        return formula(*args, out_shape=out_shape, **kwargs)

    return of_tensors


def register_flop_formula(targets, get_raw=False):
    """Let FlopCounterMode count operators by a formula.

    Args:
        targets: an operator such as `torch.ops.mylib.foo`, or several.
        get_raw: give the formula the arguments and, as `out_val`, the result; otherwise the shapes of their tensors,
            that of the result as `out_shape`.

    >>> from cresset.utils.flop_counter import register_flop_formula
    >>> @register_flop_formula(cresset.ops.aten.exp)
    ... def count(x_shape, out_shape=None):
    ...     return 10 * out_shape.numel()
    """

    def register(formula):
        for target in targets if isinstance(targets, (list, tuple)) else [targets]:
            if not isinstance(target, OpOverloadPacket):
                raise ValueError(
                    f"register_flop_formula(targets): expected each target to be OpOverloadPacket (i.e. "
                    f"torch.ops.mylib.foo), got {target} which is of type {type(target)}"
                )
            if target in flop_registry:
                raise RuntimeError(f"duplicate registrations for {target}")
            flop_registry[target] = formula if get_raw else _of_shapes(formula)
        return formula

    return register


def sdpa_flop_count(query_shape, key_shape, value_shape):
    """How many operations scaled dot product attention takes, by the shapes of query, key and value: `(batch, heads,
    length, width)`. Several heads of the query may share one of key and value.

    >>> from cresset.utils.flop_counter import sdpa_flop_count
    >>> sdpa_flop_count((1, 4, 8, 16), (1, 2, 8, 16), (1, 2, 8, 16))
    16384
    """
    batch, heads, _, width = query_shape
    groups = key_shape[1]
    fits = (
        (*key_shape[:3],) == (*value_shape[:3],) and key_shape[0] == batch and key_shape[3] == width
        and groups > 0 and heads % groups == 0
    )  # fmt: skip
    if not fits:
        raise AssertionError(
            f"sdpa_flop_count: query {tuple(query_shape)}, key {tuple(key_shape)} and value {tuple(value_shape)} are "
            "no shapes of one attention"
        )
    return formulas.PRODUCTS["_attention"]((query_shape, key_shape, value_shape), None)


class _MarkedModules(ModuleTracker):
    """Leaves a mark in the recording whenever other modules begin to run."""

    def __init__(self):
        super().__init__()
        self.marked = []

    def mark(self):
        _native.profile_enter(f"{MARK}{len(self.marked)}")
        _native.profile_leave()
        self.marked.append(frozenset(self.parents))

    def _enter(self, name):
        super()._enter(name)
        self.mark()

    def _leave(self, name):
        super()._leave(name)
        self.mark()

    def _forget(self):
        super()._forget()
        self.mark()


class _ByFormula(TorchDispatchMode):
    """Counts the operators that somebody has given a formula for."""

    def __init__(self, counter, mapping):
        super().__init__()
        self.counter, self.mapping = counter, mapping

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        formula = self.mapping.get(func.overloadpacket)
        if formula is not None:
            count = formula(*args, **(kwargs or {}), out_val=out)
            self.counter._add(self.counter._modules.parents, func.overloadpacket, count)
        return out


class FlopCounterMode:
    """Count the operations of what runs inside: `get_total_flops()`, `get_flop_counts()` by module and operator, and a
    table at the end.

    Args:
        mods: not needed; modules are found when they are called.
        depth: how deep the table goes.
        display: print the table at the end.
        custom_mapping: from an operator, such as `torch.ops.aten.add`, to a formula, as for `register_flop_formula`.

    A module's count has the operations of its forward and of its backward.

    >>> with cresset.utils.flop_counter.FlopCounterMode(display=False) as counter:
    ...     _ = cresset.ones(2, 3) @ cresset.ones(3, 4)
    >>> counter.get_total_flops(), counter.get_flop_counts()["Global"][cresset.ops.aten.mm]
    (48, 48)
    """

    def __init__(self, mods=None, depth=2, display=True, custom_mapping=None):
        if mods is not None:
            import warnings

            warnings.warn("mods argument is not needed anymore, you can stop passing it", stacklevel=2)
        self.depth, self.display = depth, display
        self._custom = {operator: _of_shapes(formula) for operator, formula in (custom_mapping or {}).items()}
        self.flop_counts = defaultdict(lambda: defaultdict(int))
        self._recording, self._modules, self._mode = None, None, None

    def __enter__(self):
        self.flop_counts.clear()
        mapping = {**flop_registry, **self._custom}
        self._formulas = {name: rule for name, rule in formulas.PRODUCTS.items() if _packet(name) not in mapping}
        self._modules = _MarkedModules().__enter__()
        self._mode = _ByFormula(self, mapping).__enter__() if mapping else None
        self._record()
        return self

    def __exit__(self, *exception):
        self._read()
        self._modules.__exit__(*exception)
        if self._mode is not None:
            self._mode.__exit__(*exception)
        if self.display:
            print(self.get_table(self.depth))

    def _record(self):
        self._recording = Recording(record_shapes=True, profile_memory=False, with_stack=False, with_flops=False)
        self._recording.start()
        self._modules.mark()

    def _add(self, modules, operator, count):
        for name in modules:
            self.flop_counts[name][operator] += count

    def _read(self, go_on=False):
        """Count what was recorded up to now."""
        if self._recording is None:
            return
        recording, self._recording = self._recording, None
        recording.stop()
        if go_on:
            self._record()
        counted, running = set(), {"Global"}
        for event in sorted(recording.events, key=lambda event: event.time_range.start):
            if event.name.startswith(MARK):
                running = self._modules.marked[int(event.name.removeprefix(MARK))]
            around = list(ancestors(event))
            count = formulas.count(event.name, event.input_shapes, event.result_shapes, self._formulas)
            if count is None or any(id(one) in counted for one in around):
                continue  # what an operator is made of is counted once, at the operator
            counted.add(id(event))
            self._add(running, _operator(event, around), count)

    def get_total_flops(self):
        """All operations counted up to now."""
        self._read(go_on=True)
        return sum(self.flop_counts["Global"].values())

    def get_flop_counts(self):
        """The operations by module ("Global" is everything) and operator."""
        self._read(go_on=True)
        return {scope: dict(counts) for scope, counts in self.flop_counts.items()}

    def get_table(self, depth=None):
        """The counts as text, with each one's share."""
        depth, total = self.depth if depth is None else depth, self.get_total_flops()
        rows = []
        for scope, counts in sorted(self.flop_counts.items(), key=lambda item: (item[0] != "Global", item[0])):
            level = 0 if scope == "Global" else scope.count(".") + 1
            if level > depth:
                continue
            rows.append(("  " * level + scope, sum(counts.values())))
            rows += [("  " * level + f" - {name}", count) for name, count in counts.items()]
        cells = [
            ("Module", "FLOP", "% Total"),
            *((name, f"{count:,}", f"{100 * count / total if total else 0:.2f}%") for name, count in rows),
        ]
        widths = [max(len(row[i]) for row in cells) for i in range(3)]
        lines = [f"{a:<{widths[0]}}  {b:>{widths[1]}}  {c:>{widths[2]}}" for a, b, c in cells]
        return "\n".join([lines[0], "  ".join("-" * width for width in widths), *lines[1:]])


def _packet(name):
    """The operator of torch.ops that PyTorch counts a product of ours as."""
    if name in ("_convolution_input_gradient", "_convolution_weight_gradient"):
        return cresset.ops.aten.convolution_backward
    if name == "_attention":
        return cresset.ops.aten._scaled_dot_product_flash_attention
    if name == "_attention_backward":
        return cresset.ops.aten._scaled_dot_product_flash_attention_backward
    return getattr(cresset.ops.aten, name)


def _operator(event, around):
    """The operator of torch.ops that an event is counted as: what PyTorch makes matrix products of linear layers."""
    name, shapes = event.name.removeprefix("aten::"), event.input_shapes
    if name == "linear":
        return cresset.ops.aten.addmm if len(shapes) > 2 and shapes[2] else cresset.ops.aten.mm
    if name == "matmul":
        return cresset.ops.aten.mm if len(shapes[1]) == 2 else cresset.ops.aten.bmm
    if name == "convolution" and any("onvolution" in one.name and one.kind == "node" for one in around):
        return cresset.ops.aten.convolution_backward  # of a transposed one
    return _packet(name)
