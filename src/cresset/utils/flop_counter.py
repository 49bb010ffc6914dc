"""FlopCounterMode: how many floating-point operations products, convolutions and attention take, by module and
operator.
"""

from collections import defaultdict

from .. import _native
from ..nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook
from ..profiler import flops as formulas
from ..profiler.events import ancestors
from ..profiler.recording import Recording

SCOPE = "module: "


class FlopCounterMode:
    """Count the operations of what runs inside: `get_total_flops()`, `get_flop_counts()` by module and operator, and a
    table at the end.

    Args:
        mods: not needed; modules are found when they are called.
        depth: how deep the table goes.
        display: print the table at the end.
        custom_mapping: from an operator's name (or the operator) to a function of the shapes of its tensors and of its
            results.

    A backward pass counts as a whole, under "Global": its operators belong to no module's call.

    >>> with cresset.utils.flop_counter.FlopCounterMode(display=False) as counter:
    ...     _ = cresset.ones(2, 3) @ cresset.ones(3, 4)
    >>> counter.get_total_flops()
    48
    """

    def __init__(self, mods=None, depth=2, display=True, custom_mapping=None):
        if mods is not None:
            import warnings

            warnings.warn("mods argument is not needed anymore, you can stop passing it", stacklevel=2)
        self.depth, self.display = depth, display
        own = {
            (key if isinstance(key, str) else key.__name__).removeprefix("aten::"): rule
            for key, rule in (custom_mapping or {}).items()
        }
        self._formulas = {**formulas.PRODUCTS, **own}
        self.flop_counts = defaultdict(lambda: defaultdict(int))
        self._recording, self._names, self._handles = None, {}, []

    def __enter__(self):
        self.flop_counts.clear()
        self._handles = [
            register_module_forward_pre_hook(self._enter),
            register_module_forward_hook(self._leave, always_call=True),
        ]
        self._record()
        return self

    def __exit__(self, *exception):
        self._read()
        for handle in self._handles:
            handle.remove()
        if self.display:
            print(self.get_table(self.depth))

    def _record(self):
        self._recording = Recording(record_shapes=True, profile_memory=False, with_stack=False, with_flops=False)
        self._recording.start()

    def _enter(self, module, args):
        if id(module) not in self._names:
            root = type(module).__name__
            for name, part in module.named_modules():
                self._names[id(part)] = f"{root}.{name}" if name else root
        _native.profile_enter(SCOPE + self._names[id(module)])

    def _leave(self, module, args, output):
        _native.profile_leave()

    def _read(self, go_on=False):
        """Count what was recorded up to now."""
        if self._recording is None:
            return
        recording, self._recording = self._recording, None
        recording.stop()
        if go_on:
            self._record()
        counted = set()
        for event in recording.events:
            around = list(ancestors(event))
            count = formulas.count(event.name, event.input_shapes, event.result_shapes, self._formulas)
            if count is None or any(id(one) in counted for one in around):
                continue  # what an operator is made of is counted once, at the operator
            counted.add(id(event))
            scopes = {one.name.removeprefix(SCOPE) for one in around if one.name.startswith(SCOPE)}
            for scope in ("Global", *scopes):
                self.flop_counts[scope][event.name.replace("::", ".")] += count

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
