"""Operators of PyTorch's `aten` whose arguments differ from those of the functions that programs call: reductions and
modes as numbers, padding by kind, resizing by kind. Each is made of ours. Files of recorded programs name these.
"""

import importlib

import cresset

REDUCTIONS = ("none", "mean", "sum")


def _functional():
    return importlib.import_module(
        "cresset.nn.functional"
    )  # the layers' functions, which stand above and are there when one is called


# ---- convolution


def _convolution(
    input, weight, bias, stride, padding, dilation, transposed, output_padding, groups,
    benchmark=False, deterministic=False, cudnn_enabled=True, allow_tf32=True,
):  # fmt: skip
    """`convolution`, with switches for other backends."""
    return cresset.convolution(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups)


def _convolution_mode(input, weight, bias, stride, padding, dilation, groups):
    """A convolution whose padding is "same" or "valid"."""
    function = (cresset.conv1d, cresset.conv2d, cresset.conv3d)[weight.dim() - 3]
    return function(input, weight, bias, stride, padding, dilation, groups)


def _windowed(name, *order):
    """A convolution by the name of PyTorch's plain kernel: `kernel_size` says again what the weight's shape does."""

    def run(input, weight, kernel_size, bias=None, *settings, **named):
        if tuple(kernel_size) != tuple(weight.shape[2:]):
            raise RuntimeError(
                f"{name}: kernel_size is {tuple(kernel_size)}, that of the weight {tuple(weight.shape[2:])}"
            )
        named.update(zip(order, settings))
        return getattr(cresset, name)(input, weight, bias, **named)

    return run


def _convolution_double_backward(
    ggI, ggW, ggb, gO, weight, input, stride, padding, dilation, transposed, output_padding, groups, output_mask
):
    """The gradients of <ggI, dL/dinput> + <ggW, dL/dweight> + <ggb, dL/dbias> by grad_output, input and weight; None
    for those that `output_mask` leaves out.
    """
    with cresset.enable_grad():
        sources = [t.detach().requires_grad_() for t in (gO, input, weight)]
        bias = cresset.zeros(gO.size(1), dtype=gO.dtype, device=gO.device).requires_grad_()
        settings = (stride, padding, dilation, transposed, output_padding, groups)
        result = cresset.convolution(*sources[1:], bias, *settings)
        first = cresset.autograd.grad(result, [*sources[1:], bias], sources[0], create_graph=True)
        pairs = [(given, found) for given, found in zip((ggI, ggW, ggb), first) if given is not None]
        wanted = [t for t, asked in zip(sources, output_mask) if asked]
        found = iter(
            cresset.autograd.grad([g for _, g in pairs], wanted, [g for g, _ in pairs], allow_unused=True)
            if pairs and wanted
            else [None] * len(wanted)
        )
    return tuple(next(found) if asked else None for asked in output_mask)


def _empty_affine_quantized(size, **settings):
    """A quantized tensor whose integers are not defined."""
    from ..tensors.quantized import empty_quantized

    return empty_quantized(size, **settings)


def _empty_per_channel_affine_quantized(size, **settings):
    """A quantized tensor with a scale for each channel, whose integers are not defined."""
    from ..tensors.quantized import empty_quantized_per_channel

    return empty_quantized_per_channel(size, **settings)


def _unique(input, sorted=True, return_inverse=False):
    """The values that occur and, if asked for, which of them each element is."""
    values, places = cresset.unique(input, sorted, return_inverse=True)
    return values, places if return_inverse else places.new_empty(0)


def _convolution_backward(
    grad_output, input, weight, bias_sizes, stride, padding, dilation, transposed, output_padding, groups, output_mask
):
    """The gradients of a convolution by its input, its weight and its bias; None for those that `output_mask` leaves
    out.
    """
    if groups <= 0:
        raise RuntimeError(f"convolution_backward: expected groups to be greater than 0, but got groups={groups}")
    if len(output_mask) != 3:
        raise RuntimeError(f"convolution_backward: output_mask has three items, got {len(output_mask)}")
    with cresset.enable_grad():
        places = [t.detach().requires_grad_() if wanted else t for t, wanted in zip((input, weight), output_mask)]
        result = cresset.convolution(*places, None, stride, padding, dilation, transposed, output_padding, groups)
        sources = [t for t, wanted in zip(places, output_mask) if wanted]
        found = iter(cresset.autograd.grad(result, sources, grad_output) if sources else ())
    grads = [next(found) if wanted else None for wanted in output_mask[:2]]
    others = [dim for dim in range(grad_output.dim()) if dim != 1]
    return (*grads, grad_output.sum(others) if output_mask[2] else None)


# ---- normalization


def _softmax(input, dim, half_to_float=False):
    """softmax; `half_to_float`: in float32."""
    return cresset.softmax(input, dim, cresset.float32 if half_to_float else None)


def _log_softmax(input, dim, half_to_float=False):
    """log_softmax; `half_to_float`: in float32."""
    return cresset.log_softmax(input, dim, cresset.float32 if half_to_float else None)


def _safe_softmax(input, dim, dtype=None):
    """softmax, where a row of -inf gives zeros."""
    found = cresset.softmax(input, dim, dtype)
    return cresset.where((input == float("-inf")).all(dim, keepdim=True), cresset.zeros_like(found), found)


def _masked_softmax(input, mask, dim=None, mask_type=None):
    """softmax of what the bool `mask` leaves: nan along lines that it takes away altogether.

    Args:
        mask_type: 0: the mask is (queries, keys); 1: (batch, keys); 2: as the input.
    """
    if mask.dtype != cresset.bool:
        raise RuntimeError(f"_masked_softmax: Mask should be a boolean tensor, got {mask.dtype}")
    if mask_type == 1 and mask.dim() == 2 and input.dim() == 4:
        mask = mask[:, None, None, :]
    elif mask.dim() > 2 and mask.shape != input.shape:
        raise RuntimeError(f"_masked_softmax: Mask shape should match input, got {mask.shape} and {input.shape}")
    return cresset.softmax(input.masked_fill(mask, float("-inf")), input.dim() - 1 if dim is None else dim)


def _add_relu(input, other, *, alpha=1):
    """The sum, and zero where it is negative."""
    return cresset.add(input, other, alpha=alpha).relu_()


def _add_relu_(input, other, *, alpha=1):
    """In-place form of `_add_relu`."""
    return input.add_(other, alpha=alpha).relu_()


def _native_batch_norm_legit(input, weight, bias, running_mean, running_var, training, momentum, eps) -> tuple:
    """native_batch_norm: the result, mean and inverse deviation."""
    return cresset.native_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps)


def _native_batch_norm_legit_no_training(input, weight, bias, running_mean, running_var, momentum, eps) -> tuple:
    """native_batch_norm with the statistics of the module."""
    found = cresset.native_batch_norm(input, weight, bias, running_mean, running_var, False, momentum, eps)
    return found[0], input.new_empty(0), input.new_empty(0)


def _weight_norm(v, g, dim=0):
    """v scaled to the norms g along `dim`."""
    return v * (g / cresset.norm_except_dim(v, 2, dim))


# ---- losses


def cross_entropy_loss(input, target, weight=None, reduction=1, ignore_index=-100, label_smoothing=0.0):
    """nn.functional.cross_entropy."""
    return _functional().cross_entropy(
        input,
        target,
        weight,
        ignore_index=ignore_index,
        reduction=REDUCTIONS[reduction],
        label_smoothing=label_smoothing,
    )


def nll_loss(input, target, weight=None, reduction=1, ignore_index=-100):
    """nn.functional.nll_loss."""
    return _functional().nll_loss(input, target, weight, ignore_index=ignore_index, reduction=REDUCTIONS[reduction])


def binary_cross_entropy(input, target, weight=None, reduction=1):
    """nn.functional.binary_cross_entropy."""
    return _functional().binary_cross_entropy(input, target, weight, reduction=REDUCTIONS[reduction])


def binary_cross_entropy_with_logits(input, target, weight=None, pos_weight=None, reduction=1):
    """nn.functional.binary_cross_entropy_with_logits."""
    return cresset.binary_cross_entropy_with_logits(input, target, weight, pos_weight, reduction)


def kl_div(input, target, reduction=1, *, log_target=False):
    """nn.functional.kl_div."""
    return cresset.kl_div(input, target, reduction, log_target=log_target)


def mse_loss(input, target, reduction=1):
    """nn.functional.mse_loss."""
    return _functional().mse_loss(input, target, reduction=REDUCTIONS[reduction])


def l1_loss(input, target, reduction=1):
    """nn.functional.l1_loss."""
    return _functional().l1_loss(input, target, reduction=REDUCTIONS[reduction])


def smooth_l1_loss(input, target, reduction=1, beta=1.0):
    """nn.functional.smooth_l1_loss."""
    return _functional().smooth_l1_loss(input, target, reduction=REDUCTIONS[reduction], beta=beta)


def huber_loss(input, target, reduction=1, delta=1.0):
    """nn.functional.huber_loss."""
    return _functional().huber_loss(input, target, reduction=REDUCTIONS[reduction], delta=delta)


def soft_margin_loss(input, target, reduction=1):
    """nn.functional.soft_margin_loss."""
    return _functional().soft_margin_loss(input, target, reduction=REDUCTIONS[reduction])


def multi_margin_loss(input, target, p=1, margin=1, weight=None, reduction=1):
    """nn.functional.multi_margin_loss."""
    return _functional().multi_margin_loss(input, target, p, margin, weight, reduction=REDUCTIONS[reduction])


def multilabel_margin_loss(input, target, reduction=1):
    """nn.functional.multilabel_margin_loss."""
    return _functional().multilabel_margin_loss(input, target, reduction=REDUCTIONS[reduction])


def _mean_by_default(name, *names):
    """A loss of the root namespace, where the reduction is 0 if none is given; aten's is 1."""
    defaults = {
        "margin": 1.0 if name in ("hinge_embedding_loss", "triplet_margin_loss") else 0.0,
        "p": 2.0,
        "eps": 1e-6,
        "swap": False,
        "blank": 0,
        "reduction": 1,
        "zero_infinity": False,
    }

    def loss(*args, **kwargs):
        given = {key: value for key, value in defaults.items() if key in names}
        given.update(zip(names, args, strict=False))
        given.update(kwargs)
        return getattr(cresset, name)(**{{"self": "input"}.get(key, key): value for key, value in given.items()})

    return loss


_LOSSES = {
    "hinge_embedding_loss": ("self", "target", "margin", "reduction"),
    "margin_ranking_loss": ("input1", "input2", "target", "margin", "reduction"),
    "cosine_embedding_loss": ("input1", "input2", "target", "margin", "reduction"),
    "triplet_margin_loss": ("anchor", "positive", "negative", "margin", "p", "eps", "swap", "reduction"),
    "ctc_loss": ("log_probs", "targets", "input_lengths", "target_lengths", "blank", "reduction", "zero_infinity"),
}


# ---- padding


def pad(input, pad, mode="constant", value=None):
    """nn.functional.pad."""
    return _functional().pad(input, list(pad), mode, value)


def _padded(mode, rank):
    def padded(input, padding):
        if len(padding) != 2 * rank:
            raise RuntimeError(f"padding size is expected to be {2 * rank}, but got: {len(padding)}")
        if input.dim() not in (rank + 1, rank + 2):
            raise RuntimeError(
                f"Expected {rank + 1}D or {rank + 2}D (batch mode) tensor for input, but got: {list(input.shape)}"
            )
        return _functional().pad(input, list(padding), mode)

    return padded


# ---- resizing


def _resized(mode, corners):
    """Resizing by sizes, or by factors: the two orders in which PyTorch's operators take them."""

    def resized(input, output_size, *rest, scale_factors=None, out=None):
        options = {"align_corners": bool(rest[0])} if corners else {}
        found = _resize(input, output_size, scale_factors or (rest[1:] if corners else rest), mode=mode, **options)
        if out is None:
            return found
        if out.dtype != found.dtype:
            raise RuntimeError(f"{mode}: Expected out tensor to have dtype {found.dtype}, but got {out.dtype} instead")
        return (out if out.shape == found.shape else out.resize_(found.shape)).copy_(found)

    return resized


def _resized_smoothly(mode):
    def resized(input, output_size, align_corners, *scales):
        return _resize(input, output_size, scales, mode=mode, align_corners=align_corners, antialias=True)

    return resized


def _resize(input, size, scales, **options):
    """Factors, where they are given, say more exactly than the sizes which element is taken."""
    factors = scales[0] if len(scales) == 1 and isinstance(scales[0], (list, tuple)) else scales
    if factors and None not in factors:
        return _functional().interpolate(input, scale_factor=list(factors), recompute_scale_factor=False, **options)
    return _functional().interpolate(input, size=list(size), **options)


# ---- what a tensor says of itself


def size(input, dim=None):
    """The sizes, or one of them."""
    return list(input.size()) if dim is None else input.size(dim)


def stride(input, dim=None):
    """The strides, or one of them."""
    return list(input.stride()) if dim is None else input.stride(dim)


def _to_copy(input, *, dtype=None, layout=None, device=None, pin_memory=None, non_blocking=False, memory_format=None):
    if layout not in (None, input.layout):
        raise RuntimeError(
            "_to_copy: to(options) doesn't support converting to a different layout, but got self.layout being "
            f"{input.layout} and options.layout set as {layout}"
        )
    copied = input.to(device=device, dtype=dtype, non_blocking=non_blocking, copy=True, memory_format=memory_format)
    return copied.pin_memory() if pin_memory else copied


def to(
    input,
    *args,
    dtype=None,
    layout=None,
    device=None,
    pin_memory=None,
    non_blocking=False,
    copy=False,
    memory_format=None,
):
    """Tensor.to, with the arguments of all its overloads."""
    if layout not in (None, input.layout):
        raise RuntimeError(
            f"to: doesn't support converting to a different layout, but got self.layout being {input.layout} and "
            f"options.layout set as {layout}"
        )
    names = ("non_blocking", "copy", "memory_format")
    options = {
        "dtype": dtype,
        "device": device,
        "non_blocking": non_blocking,
        "copy": copy,
        "memory_format": memory_format,
    }
    if args:
        *first, rest = (1, args[1:]) if not _is_device(args[0]) or len(args) < 2 else (2, args[2:])
        head = args[: first[0]]
        if isinstance(head[0], cresset.Tensor):
            options.update(dtype=head[0].dtype, device=head[0].device)
        elif isinstance(head[0], cresset.dtype):
            options["dtype"] = head[0]
        elif head[0] is not None:
            options["device"] = head[0]
        if len(head) == 2:
            options["dtype"] = head[1]
        options.update(zip(names, rest, strict=False))
    moved = input.to(**{name: value for name, value in options.items() if value is not None})
    return moved.pin_memory() if pin_memory else moved


def _is_device(value):
    return value is None or isinstance(value, (cresset.device, str))


def scaled_dot_product_attention(
    query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, *, scale=None, enable_gqa=False
):
    """nn.functional.scaled_dot_product_attention."""
    return _functional().scaled_dot_product_attention(
        query, key, value, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa
    )


def gelu(input, *, approximate="none"):
    """nn.functional.gelu."""
    return _functional().gelu(input, approximate=approximate)


def embedding_bag(
    weight,
    indices,
    offsets,
    scale_grad_by_freq=False,
    mode=0,
    sparse=False,
    per_sample_weights=None,
    include_last_offset=False,
    padding_idx=None,
) -> tuple:
    """nn.functional.embedding_bag, with the mode as a number. Only the first result is computed."""
    found = _functional().embedding_bag(
        indices, weight, offsets, scale_grad_by_freq=scale_grad_by_freq, mode=("sum", "mean", "max")[mode],
        sparse=sparse,
        per_sample_weights=per_sample_weights, include_last_offset=include_last_offset, padding_idx=padding_idx,
    )  # fmt: skip
    return (found, *(indices.new_empty(0) for _ in range(3)))


def max_pool2d_with_indices(input, kernel_size, stride=(), padding=0, dilation=1, ceil_mode=False) -> tuple:
    """max_pool2d with the places of the largest elements."""
    return _functional().max_pool2d(
        input, kernel_size, list(stride) or None, padding, dilation, ceil_mode, return_indices=True
    )


def max_unpool2d(input, indices, output_size):
    """Every value at its index in planes of `output_size`, zeros elsewhere."""
    return cresset._max_unpool(input, indices, (*input.shape[:-2], *output_size), 2)


def max_unpool3d(input, indices, output_size, stride, padding):
    """Every value at its index in volumes of `output_size`, zeros elsewhere; the steps have made the size already."""
    return cresset._max_unpool(input, indices, (*input.shape[:-3], *output_size), 3)


def _pool_at_random(rank):
    def pooled(input, kernel_size, output_size, random_samples):
        pool = getattr(cresset, f"_fractional_max_pool{rank}d")
        return tuple(pool(input, list(kernel_size), list(output_size), random_samples))

    return pooled


def _pack_padded_sequence(input, lengths, batch_first) -> tuple:
    """The elements of sequences of falling lengths, and how many sequences run at each step."""
    packed = importlib.import_module("cresset.nn.utils.rnn").pack_padded_sequence(input, lengths, batch_first)
    return packed.data, packed.batch_sizes


def _pad_packed_sequence(data, batch_sizes, batch_first, padding_value, total_length) -> tuple:
    """The sequences padded to one length, and their lengths; a total_length of 0 or less is none."""
    rnn = importlib.import_module("cresset.nn.utils.rnn")
    packed = rnn.PackedSequence(data, batch_sizes)
    return rnn.pad_packed_sequence(packed, batch_first, padding_value, total_length if total_length > 0 else None)


def _pooled(name):
    def pooled(input, kernel_size, stride=(), *rest, **named):
        step = stride if isinstance(stride, int) else list(stride) or None
        return getattr(cresset if name[-2] == "1" or name.startswith("max") else _functional(), name)(
            input, kernel_size, step, *rest, **named
        )

    return pooled


def _local_scalar_dense(input):
    """The only element, as a number."""
    if input.numel() == 0:
        raise RuntimeError("_local_scalar_dense: Empty tensor not supported")
    return input.item()


def _debug_has_internal_overlap(input):
    """Whether elements share their memory: 0 no, 1 yes, 2 hard to say."""
    spread = [(size, stride) for size, stride in zip(input.shape, input.stride(), strict=True) if size != 1]
    if input.numel() == 0 or all(stride for _, stride in spread) and _dense(spread):
        return 0
    return 2 if all(stride for _, stride in spread) else 1


def _dense(spread):
    """Whether dimensions of these sizes and strides, in some order, leave no gap between elements."""
    expected = 1
    for size, stride in sorted(spread, key=lambda both: both[1]):
        if stride != expected:
            return False
        expected *= size
    return True


def _nested_tensor_from_mask(t, mask, mask_check=True):
    """The rows (batch, length, width) that a bool mask (batch, length) keeps, as a nested tensor; what it keeps must
    come before what it does not, which `mask_check` makes sure of.
    """
    if mask.dtype != cresset.bool:
        raise RuntimeError(f"_nested_tensor_from_mask: Expected mask to be of ScalarType Bool, but got {mask.dtype}")
    if mask.dim() != 2 or t.dim() != 3 or t.shape[:2] != mask.shape:
        raise RuntimeError(
            "_nested_tensor_from_mask: Expected an input (batch, length, width) and a mask (batch, length), "
            f"got {list(t.shape)} and {list(mask.shape)}"
        )
    lengths = mask.sum(1)
    if mask_check and not (cresset.arange(mask.size(1), device=mask.device) < lengths[:, None]).equal(mask):
        raise RuntimeError("_nested_tensor_from_mask: Mask must be left aligned, without gaps")
    rows = [row[:length] for row, length in zip(t.unbind(0), lengths.tolist(), strict=True)]
    return cresset.nested.as_nested_tensor(rows)


def _fft_c2c(input, dim, normalization, forward):
    """The Fourier transform of complex numbers along dimensions; `normalization`: 0 none, 1 by the root of the number
    of elements, 2 by the number.
    """
    scale = (("backward", "ortho", "forward") if forward else ("forward", "ortho", "backward"))[normalization]
    return (cresset.fft.fftn if forward else cresset.fft.ifftn)(input, dim=list(dim), norm=scale)


def im2col(input, kernel_size, dilation, padding, stride):
    """nn.functional.unfold."""
    return _functional().unfold(input, list(kernel_size), list(dilation), list(padding), list(stride))


def col2im(input, output_size, kernel_size, dilation, padding, stride):
    """nn.functional.fold."""
    return _functional().fold(input, list(output_size), list(kernel_size), list(dilation), list(padding), list(stride))


forms = {
    **{name: _mean_by_default(name, *names) for name, names in _LOSSES.items()},
    "_convolution": _convolution, "convolution_backward": _convolution_backward,
    "_convolution_mode": _convolution_mode, "_softmax": _softmax,
    "_convolution_double_backward": _convolution_double_backward,
    "slow_conv3d": _windowed("conv3d", "stride", "padding"),
    "slow_conv_dilated2d": _windowed("conv2d", "stride", "padding", "dilation"),
    "slow_conv_dilated3d": _windowed("conv3d", "stride", "padding", "dilation"),
    "_addmm_activation": lambda input, *args, **kwargs: input._addmm_activation(*args, **kwargs), "_unique": _unique,
    "_empty_affine_quantized": _empty_affine_quantized,
    "_empty_per_channel_affine_quantized": _empty_per_channel_affine_quantized,
    "_log_softmax": _log_softmax, "_safe_softmax": _safe_softmax, "_masked_softmax": _masked_softmax,
    "_add_relu": _add_relu, "_add_relu_": _add_relu_, "_nested_tensor_from_mask": _nested_tensor_from_mask,
    "_debug_has_internal_overlap": _debug_has_internal_overlap, "_fft_c2c": _fft_c2c,
    "_grid_sampler_2d_cpu_fallback": lambda *args: cresset.grid_sampler_2d(*args),
    "_weight_norm": _weight_norm, "_native_batch_norm_legit": _native_batch_norm_legit,
    "_native_batch_norm_legit_no_training": _native_batch_norm_legit_no_training,
    "cross_entropy_loss": cross_entropy_loss, "nll_loss": nll_loss, "nll_loss_nd": nll_loss, "nll_loss2d": nll_loss,
    "binary_cross_entropy": binary_cross_entropy,
    "binary_cross_entropy_with_logits": binary_cross_entropy_with_logits, "kl_div": kl_div, "mse_loss": mse_loss,
    "l1_loss": l1_loss, "smooth_l1_loss": smooth_l1_loss,
    "huber_loss": huber_loss, "soft_margin_loss": soft_margin_loss, "multi_margin_loss": multi_margin_loss,
    "multilabel_margin_loss": multilabel_margin_loss,
    "pad": pad, **{f"reflection_pad{n}d": _padded("reflect", n) for n in (1, 2, 3)},
    **{f"replication_pad{n}d": _padded("replicate", n) for n in (1, 2, 3)},
    "upsample_nearest1d": _resized("nearest", False), "upsample_nearest2d": _resized("nearest", False),
    "upsample_nearest3d": _resized("nearest", False),
    **{f"_upsample_nearest_exact{n}d": _resized("nearest-exact", False) for n in (1, 2, 3)},
    "upsample_linear1d": _resized("linear", True), "upsample_bilinear2d": _resized("bilinear", True),
    "upsample_bicubic2d": _resized("bicubic", True),
    "upsample_trilinear3d": _resized("trilinear", True), "_upsample_bilinear2d_aa": _resized_smoothly("bilinear"),
    "_upsample_bicubic2d_aa": _resized_smoothly("bicubic"),
    "size": size, "stride": stride, "sym_size": size, "sym_stride": stride, "sym_numel": lambda input: input.numel(),
    "numel": lambda input: input.numel(),
    "dim": lambda input: input.dim(), "item": lambda input: input.item(),
    "_local_scalar_dense": _local_scalar_dense,
    "is_contiguous": lambda input: input.is_contiguous(), "element_size": lambda input: input.element_size(),
    "storage_offset": lambda input: input.storage_offset(),
    "is_pinned": lambda input: input.is_pinned(), "requires_grad_": lambda input,
    requires_grad=True: input.requires_grad_(requires_grad),
    "_version": lambda input: input._version, "is_leaf": lambda input: input.is_leaf, "result_type": lambda a,
    b: cresset.result_type(a, b),
    "mT": lambda input: input.mT, "mH": lambda input: input.mH, "matrix_H": lambda input: input.H,
    "numpy_T": lambda input: input.T,
    "_to_copy": _to_copy, "to": to, "_unsafe_view": lambda input, size: input.reshape(size).clone(),
    "lift_fresh": lambda input: input, "lift": lambda input: input,
    "lift_fresh_copy": lambda input: input.clone(), "data": lambda input: input.data,
    **dict.fromkeys(["pin_memory", "_pin_memory"], lambda input, device=None: input.pin_memory()),
    "tensordot": lambda input, other, dims_self, dims_other: cresset.tensordot(input, other, (dims_self, dims_other)),
    "_conj": lambda input: input.conj(),
    "_sparse_addmm": lambda input, mat1, mat2, *, beta=1, alpha=1: cresset.sparse.addmm(
        input, mat1, mat2, beta=beta, alpha=alpha
    ),
    "_grouped_mm": lambda input, mat2, offs=None, bias=None, out_dtype=None: _functional().grouped_mm(
        input, mat2, offs=offs, bias=bias, out_dtype=out_dtype
    ),
    "_reshape_alias": lambda input, size, stride: input.as_strided(size, stride), "_unsafe_index": lambda input,
    indices: cresset.ops.aten.index(input, indices),
    "scaled_dot_product_attention": scaled_dot_product_attention, "gelu": gelu, "embedding_bag": embedding_bag,
    "max_pool2d_with_indices": max_pool2d_with_indices, "max_unpool2d": max_unpool2d, "max_unpool3d": max_unpool3d,
    "fractional_max_pool2d": _pool_at_random(2), "fractional_max_pool3d": _pool_at_random(3),
    "_pack_padded_sequence": _pack_padded_sequence, "_pad_packed_sequence": _pad_packed_sequence,
    **{name: _pooled(name) for name in ("avg_pool1d", "avg_pool2d", "avg_pool3d", "max_pool1d", "max_pool2d",
        "max_pool3d")}, "im2col": im2col, "col2im": col2im,
    "__and__": lambda a, b: a & b, "__or__": lambda a, b: a | b, "__xor__": lambda a, b: a ^ b, "__lshift__": lambda a,
    b: a << b, "__rshift__": lambda a, b: a >> b,
    "__iand__": lambda a, b: a.__iand__(b), "__ior__": lambda a, b: a.__ior__(b), "__ixor__": lambda a,
    b: a.__ixor__(b),
    "one_hot": lambda input, num_classes=-1: _functional().one_hot(input, num_classes),
    "log_sigmoid": lambda input: _functional().logsigmoid(input),
    "glu": lambda input, dim=-1: _functional().glu(input, dim), "cuda": lambda input: input.cuda(),
    "cpu": lambda input: input.cpu(),
    "add": lambda input, other, alpha=1: cresset.add(input, other, alpha=alpha),
    "add_": lambda input, other, alpha=1: input.add_(other, alpha=alpha),
    "sub": lambda input, other, alpha=1: cresset.sub(input, other, alpha=alpha),
    "sub_": lambda input, other, alpha=1: input.sub_(other, alpha=alpha),
    "linalg_norm": lambda *args, **kwargs: cresset.linalg.norm(*args, **kwargs),
    "broadcast_tensors": lambda tensors: cresset.broadcast_tensors(*tensors),
    "block_diag": lambda tensors: cresset.block_diag(*tensors),
    "cartesian_prod": lambda tensors: cresset.cartesian_prod(*tensors),
    "meshgrid": lambda tensors, indexing="ij": cresset.meshgrid(*tensors, indexing=indexing), "einsum": lambda equation,
    tensors, path=None: cresset.einsum(equation, *tensors),
}  # fmt: skip


def underscored(name):
    """An operator that PyTorch shows as torch._<name>, too; None: it is none of ours."""
    return forms.get(name) or (function(name) if name in _OF_TRANSFORMERS else None)


_OF_TRANSFORMERS = ("_native_multi_head_attention", "_transformer_encoder_layer_fwd")
_PREFIXES = {"linalg_": "linalg", "fft_": "fft", "special_": "special"}


def function(name):
    """What runs `aten::<name>` here, where the package's namespaces have it under another one; None if nothing does."""
    if name in forms:
        return forms[name]
    for prefix, module in _PREFIXES.items():
        if name.startswith(prefix):
            return getattr(importlib.import_module(f"cresset.{module}"), name[len(prefix) :], None)
    if name.startswith("__"):
        return None
    if name in _OF_TRANSFORMERS:
        from . import aten_transformer

        return getattr(aten_transformer, name)
    return importlib.import_module("cresset.nn.functional.root").functions.get(name) or _of_layers(name)


def _of_layers(name):
    """The functions of layers whose arguments aten has in the same order."""
    same = {"adaptive_avg_pool2d", "adaptive_avg_pool3d", "pad_sequence", "celu_", "gelu_"}
    if name in ("adaptive_max_pool2d", "adaptive_max_pool3d"):
        return lambda input, output_size: getattr(_functional(), name)(input, output_size, return_indices=True)
    return getattr(_functional(), name, None) if name in same else None
