"""Backends of one's own: the program's graphs, as fx GraphModules, for a function that makes callables of them.

A graph that is recorded once and replayed is wrong as soon as Python's state changes, and nothing tells. So the
program runs, as it is, at every call, and its calls of operators are recorded: side effects, attributes and branches
are real. Then what it wrote to is put back, random generators too, and what the backend made of the graphs computes the
results that the caller gets. A graph that was seen before is not given to the backend again. That costs the time of
eager beside the backend's; the default backend needs no graph and pays nothing for it (regions.py).

Where the program looks at the elements of tensors the graph ends and another begins: Python has gone on with the
values that eager computed. What no graph can hold (`backward`, writes to tensors with a history) makes the call an
eager one, which a warning says.

Why this is not the recorder of graph/recording.py: that one enters functions until only operators are left and turns
writes into new values, which export and ONNX need. A backend is promised the calls as the program made them
(`torch.nn.functional.gelu`, `x.add_(1)`), may run them as they stand, and gets several graphs for one call.
"""

import operator
import sys
import warnings
import weakref

import cresset

from .. import _native
from ..fx import Graph, GraphModule
from ..graph.places import PACKAGE
from ..graph.recording import RANDOM, leaves, map_tree
from ..overrides import OperatorMode
from ..pytree import tree_flatten
from . import counting, stances, telling
from .fullgraph import refuse

# What a graph cannot hold.
UNRECORDED = {"register_hook", "retain_grad", "requires_grad_", "set_", "detach_", "share_memory_"}
# Methods as functions of the module `operator`, as tracers write them.
OPERATORS = {"__getitem__": operator.getitem, "__setitem__": operator.setitem}


class Segment:
    """One graph on its way: its nodes, and the tensors that come from outside."""

    def __init__(self):
        self.graph = Graph()
        self.inputs = []  # tensors
        self.last_placeholder = None  # None: the next one is the graph's first node
        self.made = {}  # id of a tensor that is alive -> (weak reference to it, its node)
        self.calls = 0

    def know(self, tensor, node):
        """`node` makes the tensor, as long as it lives: what nobody refers to is computed late without being
        written."""
        key = id(tensor)
        self.made[key] = (weakref.ref(tensor, lambda _: self.made.pop(key, None)), node)


class Capture(OperatorMode):
    """Records what runs inside of it, in segments."""

    def __init__(self):
        self.segments, self.breaks, self.written = [Segment()], [], {}
        self.spoiled = None  # why no graph can stand for the call

    def __enter__(self):
        self.watcher, self.backwards = _native.watch_values(self.on_value), _native.backwards_started()
        return super().__enter__()

    def __exit__(self, *exception):
        _native.watch_values(self.watcher)
        if _native.backwards_started() != self.backwards:
            self.spoiled = self.spoiled or "backward()"
        return super().__exit__(*exception)

    # ---- what ends a graph

    def on_value(self, what, tensor):
        """The program learns something of the elements of a tensor: the graph ends here."""
        frame = sys._getframe(1)
        if self.watcher is refuse:
            refuse(what, tensor, frame)
        elif self.watcher is not None:
            self.watcher(what, tensor)
        while frame is not None and frame.f_code.co_filename.startswith(PACKAGE):
            frame = frame.f_back
        place = f"{frame.f_code.co_filename}:{frame.f_lineno}, in {frame.f_code.co_name}" if frame else "unknown place"
        self.end_graph(f"the program asks for {what}; {place}")

    def end_graph(self, reason):
        if self.segments[-1].calls:
            self.breaks.append(reason)
            self.segments.append(Segment())

    # ---- calls

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs, name = kwargs or {}, getattr(func, "__name__", str(func))
        if name in UNRECORDED:
            self.spoiled = self.spoiled or f"{name}()"
            return func(*args, **kwargs)
        in_place = name == "__setitem__" or (name.endswith("_") and not name.endswith("__")) or name.startswith("__i")
        targets = [args[0]] if in_place and args else []
        targets += [t for t in leaves(kwargs.get("out")) if isinstance(t, cresset.Tensor)]
        for target in targets:
            self.before_write(target)
        result = func(*args, **kwargs)
        tensors = [t for t in leaves(result) if isinstance(t, cresset.Tensor)] if result is not None else []
        if tensors or targets:
            self.record(func, name, args, kwargs, result)
        return result

    def before_write(self, target):
        """Keep what a write is about to change of tensors from outside, so that it can be put back."""
        if not isinstance(target, cresset.Tensor) or self.made_here(target):
            base = getattr(target, "_base", None)
            if base is None or self.made_here(base):
                return
        base = target._base if target._base is not None else target
        if base.requires_grad and not base.is_leaf or target.requires_grad and cresset.is_grad_enabled():
            self.spoiled = self.spoiled or "a write to a tensor with a history"
        elif id(base) not in self.written:
            with cresset._C.DisableTorchFunction():
                self.written[id(base)] = (base, base.detach().clone())

    def made_here(self, tensor):
        """Whether a recorded call made a tensor; one from outside that a graph has read is known as well."""
        return any(id(tensor) in s.made and all(given is not tensor for given in s.inputs) for s in self.segments)

    def record(self, func, name, args, kwargs, result):
        segment = self.segments[-1]
        new_args = map_tree(tuple(args), self.reference)
        new_kwargs = map_tree(dict(kwargs), self.reference)
        if name in OPERATORS:
            node = segment.graph.call_function(OPERATORS[name], new_args, new_kwargs)
        elif getattr(cresset.Tensor, name, None) is func:
            node = segment.graph.call_method(name, new_args, new_kwargs)
        else:
            node = segment.graph.call_function(func, new_args, new_kwargs)
        segment.calls += 1
        self.note(result, node)

    def note(self, result, node):
        """Know the tensors of a result by the node that makes them."""
        segment = self.segments[-1]
        if isinstance(result, cresset.Tensor):
            segment.know(result, node)
            node.meta["example_value"] = (
                result.detach()  # made of others, which have its strides
                if hasattr(type(result), "_recorded")
                else cresset.empty_strided(result.shape, result.stride(), dtype=result.dtype, device="meta")
            )
        elif isinstance(result, (tuple, list)):
            for k, item in enumerate(result):
                if isinstance(item, (tuple, list, cresset.Tensor)):
                    self.note(item, segment.graph.call_function(operator.getitem, (node, k)))

    def reference(self, leaf):
        """The node of a tensor; what no node of this graph made is an input of it."""
        if not isinstance(leaf, cresset.Tensor):
            return leaf
        segment = self.segments[-1]
        if id(leaf) not in segment.made:
            graph, last = segment.graph, segment.last_placeholder
            with graph.inserting_before() if last is None else graph.inserting_after(last):
                node = segment.last_placeholder = graph.placeholder(f"arg{len(segment.inputs)}_1")
            node.meta["example_value"] = leaf
            segment.inputs.append(leaf)
            segment.know(leaf, node)
        return segment.made[id(leaf)][1]

    # ---- graphs

    def finish(self, result):
        """[(GraphModule, inputs, outputs)]: outputs are the tensors that later segments or the caller need."""
        wanted = {id(t) for t in tree_flatten(result)[0] if isinstance(t, cresset.Tensor)}
        finished = []
        for segment in reversed([s for s in self.segments if s.calls]):
            given = {id(t) for t in segment.inputs}
            outputs = [(t(), node) for key, (t, node) in segment.made.items() if key in wanted and key not in given]
            wanted |= given
            segment.graph.output(tuple(node for _, node in outputs))
            finished.append((GraphModule({}, segment.graph), segment.inputs, [t for t, _ in outputs]))
        return finished[::-1]

    def put_back(self):
        """What was written to, as it was before."""
        with cresset.no_grad():
            for base, before in self.written.values():
                base.copy_(before)

    def draws(self):
        """Whether random numbers were drawn."""
        return any(getattr(n.target, "__name__", n.target) in RANDOM for s in self.segments for n in s.graph.nodes)


class Backed:
    """A function whose graphs go to a backend.

    Args:
        function: what is compiled.
        backend: called as backend(graph module, example inputs); gives a callable of the inputs.
        dynamic: True: what the backend made serves for all sizes.
        limit: so many graphs of this function are given to the backend.
    """

    def __init__(self, function, backend, dynamic=None, limit=None):
        self.function, self.backend, self.dynamic, self.limit = function, backend, dynamic, limit
        self.made = {}
        self.warned = False
        counting.remember(self)

    def __call__(self, *args, **kwargs):
        state = cresset.get_rng_state()
        with Capture() as capture:
            result = self.function(*args, **kwargs)
        if capture.spoiled is not None:
            return self.eager(result, f"{capture.spoiled} is no part of a graph")
        found, after = {}, cresset.get_rng_state()  # where eager left the generators
        capture.put_back()
        cresset.set_rng_state(state)
        for module, inputs, outputs in capture.finish(result):
            run = self.find(module, inputs)
            given = [found.get(id(t), t) for t in inputs]
            values = run(*given)
            values = values if isinstance(values, (tuple, list)) else (values,)
            if len(values) != len(outputs):
                raise RuntimeError(
                    f"compile: the backend's function gave {len(values)} results, and its graph has {len(outputs)}"
                )
            found.update((id(t), value) for t, value in zip(outputs, values, strict=True))
        cresset.set_rng_state(after)
        counting.count("graph_break", capture.breaks)
        for reason in capture.breaks:
            telling.tell("graph_breaks", lambda reason=reason: f"Graph break: {reason}")
        flat, spec = tree_flatten(result)
        return spec.unflatten([found.get(id(leaf), leaf) for leaf in flat])

    def find(self, module, inputs):
        """What the backend made of this graph for such inputs."""
        key = (module.code, tuple(_facts(t, self.dynamic) for t in inputs))
        if key not in self.made:
            stance = stances.current()
            if self.made and stance is not None and stance.stance == "fail_on_recompile":
                raise RuntimeError("compile: the stance is fail_on_recompile, and the backend has not seen this graph")
            if self.made and stance is not None and stance.stance == "eager_on_recompile":
                return module.forward
            if len(self.made) >= (counting.config().recompile_limit if self.limit is None else self.limit):
                self.warn(f"the backend has made {len(self.made)} graphs of it, the limit")
                return module.forward
            counting.count_graph(module)
            self.tell(module, inputs, key)
            try:
                made = self.backend(module, list(inputs))
            except Exception as error:
                self.warn(f"the backend failed: {type(error).__name__}: {error}")
                made = module.forward
            if not callable(made):
                raise RuntimeError(f"compile: expected the backend to give a function, got {type(made).__name__}")
            self.made[key] = made
        return self.made[key]

    def tell(self, module, inputs, key):
        """A graph goes to the backend: say so to whoever asked."""
        name = getattr(self.function, "__qualname__", type(self.function).__name__)
        if self.made:
            last = next(reversed(self.made))
            telling.tell("recompiles", lambda: f"Recompiling function {name}: {_differences(last, key)}")
            telling.tell(
                "recompiles_verbose",
                lambda: "\n".join(
                    [f"Recompiling function {name}"] + [f"- {_differences(made, key)}" for made in self.made]
                ),
            )
        telling.tell("graph", lambda: f"{name}\n{module.graph}")
        telling.tell("graph_code", lambda: f"{name}\n{module.code.strip()}")
        telling.tell(
            "graph_sizes", lambda: "\n".join([name] + [f"{n}: {tuple(t.shape)}" for n, t in enumerate(inputs)])
        )

    def eager(self, result, reason):
        self.warn(reason)
        return result

    def warn(self, reason):
        if not self.warned:
            self.warned = True
            name = getattr(self.function, "__qualname__", type(self.function).__name__)
            warnings.warn(f"compile: {name} runs without its backend: {reason}", stacklevel=4)


def _facts(tensor, dynamic):
    sizes = (tensor.dim(),) if dynamic else (_numbers(tensor.shape), _numbers(tensor.stride()))
    return (*sizes, tensor.dtype, tensor.device, tensor.layout, tensor.requires_grad)


def _numbers(sizes):
    """Sizes, those of ragged dimensions as a word: one graph serves for all."""
    return tuple(size if type(size) is int else "ragged" for size in sizes)


def _differences(made, key):
    """Why what the backend made of one graph does not serve for another; both are keys of `Backed.made`."""
    if made[0] != key[0]:
        return "the program calls other operators, or the same with other numbers"
    return "; ".join(
        f"input {number} is {now}, and was {before}"
        for number, (before, now) in enumerate(zip(made[1], key[1], strict=True))
        if before != now
    )
