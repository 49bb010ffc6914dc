"""What autocast does to each operation: the one table, for the CPU and for CUDA, in the words of PyTorch's lists.

    lower       run in the low precision (bfloat16 or float16)
    float32     run in float32
    promote     run in the widest precision among the arguments
    accumulate  give its dtype argument, unless it is given, as float32
    plain       run as called, and what it is made of, too
    unsafe      refuse low-precision arguments

A native operator gets its policy as a byte (native/dispatch/autocast.h). A function made of others is wrapped: while autocast is off that costs one
look at a flag. Names that are not here run as they are called, and what they are made of follows its own policy.
"""

import functools

from .. import _native

_LOSSES = """nll_loss cosine_embedding_loss hinge_embedding_loss huber_loss kl_div l1_loss margin_ranking_loss mse_loss multi_margin_loss
    multilabel_margin_loss poisson_nll_loss smooth_l1_loss soft_margin_loss triplet_margin_loss binary_cross_entropy_with_logits"""
_PRODUCTS = "addbmm addmm baddbmm bmm convolution linear matmul mm prelu scaled_dot_product_attention linalg_vecdot linalg_multi_dot chain_matmul"

CPU = {
    "lower": _PRODUCTS + " lstm rnn_relu rnn_tanh",
    "float32": _LOSSES
    + """ cross_entropy linear_cross_entropy binary_cross_entropy ctc_loss adaptive_avg_pool3d adaptive_max_pool3d avg_pool3d cdist fractional_max_pool2d
    fractional_max_pool3d grid_sample grid_sampler max_unpool1d max_unpool2d max_unpool3d nanquantile polar prod quantile reflection_pad
    replication_pad stft trace view_as_complex
    cholesky cholesky_inverse cholesky_solve geqrf inverse lu lu_solve orgqr ormqr pinverse qr svd triangular_solve
    linalg_cholesky linalg_cholesky_ex linalg_cond linalg_eig linalg_eigh linalg_eigvals linalg_eigvalsh linalg_householder_product linalg_inv linalg_inv_ex
    linalg_lstsq linalg_matrix_rank linalg_qr linalg_solve linalg_solve_ex linalg_svd linalg_svdvals linalg_tensorinv linalg_tensorsolve
    fft_fft fft_fft2 fft_fftn fft_hfft fft_ifft fft_ifft2 fft_ifftn fft_ihfft fft_irfft fft_irfft2 fft_irfftn fft_rfft fft_rfft2 fft_rfftn""",
    "promote": "cat concat concatenate stack",
    "plain": "addmv addr",
}

CUDA = {
    "lower": _PRODUCTS
    + " addmv addr conv_tbc einsum gru gru_cell lstm lstm_cell mv rnn_relu rnn_relu_cell rnn_tanh rnn_tanh_cell",
    "float32": _LOSSES
    + """ acos arccos asin arcsin cosh erfinv exp expm1 log log10 log1p log2 pow square reciprocal rsqrt sinh tan softplus layer_norm native_layer_norm
    group_norm native_group_norm cosine_similarity dist pdist cdist renorm logsumexp upsample interpolate norm""",
    "accumulate": "cumprod cumsum log_softmax prod softmax sum linalg_vector_norm linalg_matrix_norm",
    "promote": "addcdiv addcmul atan2 bilinear cat concat concatenate cross dot grid_sample grid_sampler index_put scatter_add stack tensordot vdot",
    "unsafe": "binary_cross_entropy",
}

_NUMBERS = {"lower": 1, "float32": 2, "promote": 3, "accumulate": 4}  # the others are for functions made of others only
_POLICIES = [{name: policy for policy, names in table.items() for name in names.split()} for table in (CPU, CUDA)]
NAMES = set(_POLICIES[0]) | set(_POLICIES[1])

_wrapped = {}  # function -> its form that knows autocast


def apply(namespace, prefix=""):
    """Give the operators and functions of a namespace their policies; functions are replaced by their wrapped form. `prefix` is the namespace's in the table."""
    for entry in NAMES:
        name = entry.removeprefix(prefix)
        if not entry.startswith(prefix) or name not in namespace:
            continue
        value = namespace[name]
        policies = [table.get(entry) for table in _POLICIES]
        if isinstance(value, _native.Operator):
            for device, policy in enumerate(policies):
                if policy:
                    _native.set_autocast_policy(name, device, _NUMBERS[policy])
        elif callable(value) and value not in _wrapped.values():
            if value not in _wrapped:
                _wrapped[value] = _knowing_autocast(value, policies)
            namespace[name] = _wrapped[value]


def _knowing_autocast(function, policies, mask=_native.autocast_mask):
    @functools.wraps(function)
    def with_autocast(*args, **kwargs):
        return _call(function, policies, args, kwargs) if mask() else function(*args, **kwargs)

    return with_autocast


def _tensors(values):
    for value in values:
        if isinstance(value, _native.Tensor):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from _tensors(value)


def _call(function, policies, args, kwargs):
    found = list(_tensors([*args, *kwargs.values()]))
    device = int(any(tensor.is_cuda for tensor in found))
    mask, policy = _native.autocast_mask(), policies[device]
    if not mask >> device & 1 or policy is None:
        return function(*args, **kwargs)
    low = [t for t in found if t.dtype in (_native.float16, _native.bfloat16)]
    if policy == "accumulate":
        if kwargs.get("dtype") is None and (low or any(t.dtype == _native.float32 for t in found)):
            kwargs = {**kwargs, "dtype": _native.float32}
    elif policy == "unsafe":
        if low:
            raise RuntimeError(
                f"torch.nn.functional.{function.__name__} and torch.nn.BCELoss are unsafe to autocast. Many models use a sigmoid layer right before the binary "
                "cross entropy layer. In this case, combine the two layers using torch.nn.functional.binary_cross_entropy_with_logits or torch.nn.BCEWithLogitsLoss."
            )
    elif policy != "plain":
        to = _native.float32
        if policy == "lower" or (policy == "promote" and not any(t.dtype == _native.float32 for t in found)):
            to = _native.autocast_dtype(device)
        args = [_cast(value, to, device) for value in args]
        kwargs = {name: _cast(value, to, device) for name, value in kwargs.items()}
    _native.set_autocast_mask(0)
    try:
        return function(*args, **kwargs)
    finally:
        _native.set_autocast_mask(mask)


def _cast(value, to, device):
    if isinstance(value, _native.Tensor):
        return _native.autocast_argument(value, to, device)
    if isinstance(value, (list, tuple)) and any(isinstance(item, (_native.Tensor, list, tuple)) for item in value):
        return type(value)([_cast(item, to, device) for item in value])
    return value
