"""flex_attention on CUDA: one kernel forward and two backward, which have the program's functions in them and leave out
the blocks that nobody sees.
"""

import warnings

import cresset

from ... import _native
from ...autograd import Function
from ...autograd.function import once_differentiable
from ..functional import pad

_PLACES = ("b", "h", "q", "kv")
_WIDEST = {cresset.float16: 256, cresset.bfloat16: 256, cresset.float32: 128}


def attend(query, key, value, score_mod, block_mask, scale, options):
    """Result, logarithms of the sums of exponentials, greatest scores; None where ordinary operators have to compute,
    with a warning that says why."""
    if not all(map(_is_plain, (query, key, value))):
        return None
    from ...graph.traced_functions import NotTraced  # upward: what its functions compute is recorded

    try:
        return _attend(query, key, value, score_mod, block_mask, scale, options or {})
    except NotTraced as reason:
        warnings.warn(f"flex_attention: computed by ordinary operators, not in one kernel: {reason}", stacklevel=3)
        return None


def _not_traced(reason):
    from ...graph.traced_functions import NotTraced  # upward: what its functions compute is recorded

    return NotTraced(reason)


def _is_plain(tensor):
    """Whether the tensor has memory of its own that a kernel can be given, and nobody listens to what is called."""
    return (
        tensor.numel() > 0
        and type(tensor) in (cresset.Tensor, cresset.nn.Parameter)
        and not _native.function_mode_depth()
        and not _native.is_dispatching()
        and not _native.is_dispatched(tensor)
        and not _native.level_of(tensor)
        and not _native.get_tangents(tensor)
    )


def _attend(query, key, value, score_mod, block_mask, scale, options):
    dtype, width, value_width = query.dtype, query.size(-1), value.size(-1)
    if dtype not in _WIDEST or key.dtype != dtype or value.dtype != dtype:
        raise _not_traced(f"query, key and value are of dtype {dtype}, {key.dtype} and {value.dtype}")
    piece = 16 // dtype.itemsize
    whole = -(-max(width, value_width) // piece) * piece
    if whole > _WIDEST[dtype]:
        raise _not_traced(f"rows of {max(width, value_width)} elements are too long")
    differentiated = cresset.is_grad_enabled() and (query.requires_grad or key.requires_grad or value.requires_grad)
    scored = score_mod is not None or scale <= 0  # without, the kernel multiplies the greatest score by the scale
    mask_mod = None if block_mask is None else block_mask.mask_mod
    extents = dict(zip(_PLACES, (*query.shape[:3], key.size(2)), strict=True))
    text, tensors = _text((score_mod or _same) if scored else None, mask_mod, differentiated, extents)
    if any(t.device != query.device for t in tensors):
        raise _not_traced("a tensor that its functions read is on another device")
    states = None if block_mask is None else _states(block_mask, query)
    sizes = block_mask.BLOCK_SIZE if block_mask is not None else (1, 1)
    query, key, value = (pad(t, (0, whole - t.size(-1))) if t.size(-1) < whole else t for t in (query, key, value))
    program = (text, scored, *sizes, float(scale), _sizes(options))
    result, lse, rows = _Flex.apply(query, key, value, program, states, *tensors)
    peak = rows[..., 0]
    return result[..., :value_width], lse, peak.masked_fill(peak == cresset.inf, -cresset.inf)


def _sizes(options):
    """Those sizes of tiles that the kernels have; others are left to them."""
    names = (("BLOCK_M", 64, 128), ("BLOCK_N", 32, 64), ("BLOCK_M1", 32, 64), ("BLOCK_N2", 32, 64))
    sizes = (size if (size := options.get(name)) in known else 0 for name, *known in names)
    return (*sizes, options.get("WARPGROUP", True))


def _same(score, b, h, q, kv):
    return score


_texts = {}  # by what the functions depend on: (text, tensors, objects whose ids are in the key)
_MOST_TEXTS = 100


def _text(score_mod, mask_mod, differentiated, extents):
    """The kernel's text, and the tensors that it reads."""
    from ...graph.traced_functions import Traced, Writer, signature  # upward: what its functions compute is recorded

    signed = signature((score_mod, mask_mod))
    key = None if signed is None else (signed[0], differentiated, cresset.is_grad_enabled())
    keys = (key, (key, *extents.values()))  # the sizes matter where tensors are read
    for known in keys:
        if known in _texts:
            return _texts[known][:2]
    writer, functions, constant = Writer(extents), [], True
    if score_mod is not None:
        traced = Traced(score_mod, ("score", *_PLACES))
        functions.append(writer.function(traced, "flex_score", "float"))
        if differentiated:
            functions.append(writer.gradient(traced, "flex_slope"))
        constant = traced.is_constant
    if mask_mod is not None:
        traced = Traced(mask_mod, _PLACES)
        functions.append(writer.function(traced, "flex_mask", "bool"))
        constant = constant and traced.is_constant
    text = "".join([writer.beginning(), *functions, '#include "attention_flex.cuh"\n'])
    if key is not None and constant:
        if len(_texts) >= _MOST_TEXTS:
            _texts.clear()
        _texts[keys[bool(writer.tensors)]] = (text, writer.tensors, signed[1])
    return text, writer.tensors


def _states(block_mask, query):
    """For each block of queries and of keys: 0 not seen, 1 seen in part, 2 seen wholly. It is kept with the mask."""
    lists = (
        block_mask.kv_num_blocks,
        block_mask.kv_indices,
        block_mask.full_kv_num_blocks,
        block_mask.full_kv_indices,
    )
    made_of = [(id(t), None if t is None else t._version) for t in lists]
    kept = getattr(block_mask, "_states", None)
    if kept is None or kept[0] != made_of:
        states = block_mask.listed(False).to(cresset.uint8)
        if lists[2] is not None:
            states = states.maximum(block_mask.listed(True).to(cresset.uint8) * 2)
        kept = block_mask._states = (made_of, states.contiguous())
    states = kept[1]
    if states.dim() != 4 or states.size(0) not in (1, query.size(0)) or states.size(1) not in (1, query.size(1)):
        raise _not_traced(f"the block mask is for {tuple(states.shape[:-2])} matrices")
    return states.to(query.device)


class _Flex(Function):
    @staticmethod
    def forward(ctx, query, key, value, program, states, *tensors):
        shape = query.shape[:-1]
        result = query.new_empty((*shape, value.size(-1)))
        lse, rows = (query.new_empty((*shape, *more), dtype=cresset.float32) for more in ((), (2,)))
        ctx.program = program
        _native.cuda.flex_attention((*program, states, list(tensors)), query, key, value, result, rows, lse)
        ctx.save_for_backward(query, key, value, result, rows, states, *tensors)
        ctx.mark_non_differentiable(rows)
        ctx.set_materialize_grads(False)
        return result, lse, rows

    @staticmethod
    @once_differentiable
    def backward(ctx, grad, lse_grad, _):
        query, key, value, result, rows, states, *tensors = ctx.saved_tensors
        nothing = [None] * (2 + len(tensors))
        if grad is None and lse_grad is None:
            return (None, None, None, *nothing)
        if grad is None:
            grad = cresset.zeros_like(result)
        gradients = [cresset.empty(t.shape, dtype=t.dtype, device=t.device) for t in (query, key, value)]
        _native.cuda.flex_attention_backward(
            (*ctx.program, states, tensors), grad, query, key, value, result, rows,
            None if lse_grad is None else lse_grad.contiguous(), *gradients,
        )  # fmt: skip
        return (*gradients, *nothing)
