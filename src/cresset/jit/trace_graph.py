"""torch.jit._get_trace_graph: the graph of one run alone, which packages walk to count operations and activations."""

import sys

import cresset

from ..graph.from_recording import Writer
from ..graph.recording import Call
from ..ops import aten_table
from ..pytree import tree_leaves
from .tracing import run


class _ConvolutionsAlike(Writer):
    """Writes every convolution as `aten::_convolution`, as PyTorch's traces have them: who counts knows that name."""

    def write(self, call):
        super().write(_as_one_kind(call) if call.operator.name.startswith("aten::conv") else call)


def _as_one_kind(call):
    name, given = call.operator.op, {a.name: v for a, v in zip(call.operator.arguments, call.args, strict=True)}
    if name not in _CONVOLUTIONS:
        return call
    if isinstance(given["padding"], str):
        schema = aten_table.find("aten::_convolution_mode")
    else:
        schema = aten_table.find("aten::_convolution")
        is_transposed = "transpose" in name
        switches = {"benchmark": False, "deterministic": False, "cudnn_enabled": True, "allow_tf32": True}
        given = {"output_padding": [0] * len(given["stride"]), **given, "transposed": is_transposed, **switches}
    args = tuple(given[a.name] for a in schema.arguments)
    return Call(schema.op, schema, args, call.kwargs, call.results, call.place)


_CONVOLUTIONS = {f"conv{transposed}{dims}d" for transposed in ("", "_transpose") for dims in (1, 2, 3)}


def _get_trace_graph(
    f, args=(), kwargs=None, strict=True, _force_outplace=False, return_inputs=False, _return_inputs_states=False
):
    """Record a function or module: the graph and what it gave. Parameters and buffers are inputs of the graph behind
    the arguments. `torch.jit.trace` gives what runs; this is for those who count a graph's nodes.

    Args:
        return_inputs: give the inputs, too: arguments, parameters and buffers, one tuple.
    """
    if _force_outplace or _return_inputs_states:
        raise NotImplementedError(
            "torch.jit._get_trace_graph: _force_outplace and _return_inputs_states are not there; leave them out"
        )
    args = args if isinstance(args, tuple) else (args,)
    state = ()
    if isinstance(f, cresset.nn.Module):
        state = tuple({id(t): t for t in (*f.parameters(), *f.buffers())}.values())
    kwargs, module = kwargs or {}, f if state else None
    found = run(
        f, args, kwargs, module=module, state=state, strict=strict, frame=sys._getframe(1), writer=_ConvolutionsAlike
    )
    inputs = (*tree_leaves((args, kwargs)), *state)
    return (found.graph, found.result, inputs) if return_inputs else (found.graph, found.result)
