"""The forms of scaled_dot_product_attention, by PyTorch's names: which are allowed, which is tried first, and what each
can compute.

"math" is made of ordinary operators. The others are one fused operator, which works in blocks: "flash" is what it is on
the CPU, and on tensor cores on CUDA, "mem_efficient" on CUDA's other units, "cudnn" what it leaves to that library.
"overrideable" is PyTorch's place for others.
"""

import contextlib

from .. import _native

FORMS = ("flash", "mem_efficient", "math", "cudnn", "overrideable")
allowed = {**dict.fromkeys(FORMS, True), "fp16_bf16_reduction_math": False}
_order = list(FORMS)
_least_for_cudnn = []  # the native side's own bound, while it is lowered
_FUSED = {_native.float32, _native.float64, _native.float16, _native.bfloat16}


class SDPAParams:
    """The arguments of one attention, to ask what could compute it."""

    def __init__(self, query, key, value, attn_mask, dropout, is_causal, enable_gqa=False):
        self.query, self.key, self.value, self.attn_mask = query, key, value, attn_mask
        self.dropout, self.is_causal, self.enable_gqa = dropout, is_causal, enable_gqa

    @property
    def mask_learns(self):
        return self.attn_mask is not None and self.attn_mask.requires_grad and _native.is_grad_enabled()

    @property
    def heads_differ(self):
        return self.enable_gqa and self.key.size(-3) != self.value.size(-3)


def set_forms(**forms):
    """Allow forms, or not."""
    allowed.update(forms)
    _native.cuda.set_cudnn_attention(allowed["cudnn"])
    # Small problems are faster without cuDNN, unless nothing else is allowed.
    only = allowed["cudnn"] and not allowed["flash"] and not allowed["mem_efficient"]
    if only and not _least_for_cudnn:
        _least_for_cudnn.append(_native.cuda.set_cudnn_attention_from(0))
    elif not only and _least_for_cudnn:
        _native.cuda.set_cudnn_attention_from(_least_for_cudnn.pop())


@contextlib.contextmanager
def only_forms(forms, in_this_order=False):
    """Inside, these forms are allowed and no others; they are tried in this order if that is wanted."""
    before, order = dict(allowed), list(_order)
    set_forms(**{form: form in forms for form in FORMS})
    if in_this_order:
        _order[:] = [*dict.fromkeys([*forms, *order])]
    try:
        yield
    finally:
        set_forms(**before)
        _order[:] = order


def form_for(params):
    """The form that computes an attention. An error if none that is allowed can."""
    reasons = []
    for form in _order:
        if allowed[form]:
            reason = why_not(form, params)
            if reason is None:
                return form
            reasons.append(reason)
    device = params.query.device.type
    there = ("math", "flash", "mem_efficient", "cudnn") if device == "cuda" else ("math", "flash")
    if not any(allowed[form] for form in there):
        raise RuntimeError(
            "scaled_dot_product_attention: No viable backend for scaled_dot_product_attention was found. "
            f"All that there are on {device!r} ({', '.join(there)}) are turned off"
        )
    raise RuntimeError(f"scaled_dot_product_attention: No available kernel.  Aborting execution. {'; '.join(reasons)}")


def why_not(form, params):
    """Why a form cannot compute an attention; None if it can."""
    query = params.query
    if form == "math":
        return None
    if form == "overrideable" or (form != "flash" and not query.is_cuda):
        return f"there is no {form} attention on {query.device.type!r}"
    if params.dropout > 0:
        return f"{form} attention does not drop weights, dropout_p is {params.dropout}"
    if query.dtype not in _FUSED:
        return f"{form} attention does not compute {query.dtype}"
    if params.mask_learns:
        return f"{form} attention has no gradient for its mask"
    if params.heads_differ:
        return (
            f"{form} attention needs as many heads of keys as of values, got {params.key.size(-3)} and "
            f"{params.value.size(-3)}"
        )
    return _why_not_on_tensor_cores(form, params) if query.is_cuda and form != "mem_efficient" else None


def _why_not_on_tensor_cores(form, params):
    query, width = params.query, params.query.size(-1)
    if params.attn_mask is not None:
        return f"{form} attention takes no mask"
    if query.dtype not in (_native.float16, _native.bfloat16):
        return f"{form} attention computes half precision, not {query.dtype}"
    if width % 8 or width > 128 or width != params.value.size(-1):
        return (
            f"{form} attention needs rows of one length, a multiple of 8 up to 128, got {width} and "
            f"{params.value.size(-1)}"
        )
    if form == "cudnn":
        from ..backends import cudnn

        if not cudnn.is_available() or not cudnn.enabled:
            return "cudnn attention needs the library, and cudnn.enabled"
        tensors = (query, params.key, params.value)
        if any(step == 0 and size > 1 for t in tensors for size, step in zip(t.shape[:-2], t.stride(), strict=False)):
            return "cudnn attention takes no expanded tensors"
    return None
