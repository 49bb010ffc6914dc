"""Normalization layers: over batches, instances, layers, groups, neighboring channels."""

import warnings

import cresset

from ..ops.dimensions import is_integer
from . import functional as F
from . import init
from .lazy import LazyModuleMixin
from .module import Module
from .parameter import Parameter, UninitializedBuffer, UninitializedParameter


class _NormBase(Module):
    """What batch and instance normalization share: learned scale and shift, running mean and variance."""

    _version = 2
    __constants__ = ["track_running_stats", "momentum", "eps", "num_features", "affine"]

    def __init__(
        self,
        num_features,
        eps=1e-5,
        momentum=0.1,
        affine=True,
        track_running_stats=True,
        device=None,
        dtype=None,
        *,
        bias=True,
    ):
        super().__init__()
        self.num_features, self.eps, self.momentum = num_features, eps, momentum
        self.affine, self.track_running_stats = affine, track_running_stats
        made = {"device": device, "dtype": dtype}
        self.weight = Parameter(cresset.empty(num_features, **made)) if affine else None
        self.bias = Parameter(cresset.empty(num_features, **made)) if affine and bias else None
        for name in ("weight", "bias"):
            if self.__dict__.pop(name, "there") is None:
                self.register_parameter(name, None)
        if track_running_stats:
            self.register_buffer("running_mean", cresset.zeros(num_features, **made))
            self.register_buffer("running_var", cresset.ones(num_features, **made))
            self.register_buffer("num_batches_tracked", cresset.tensor(0, dtype=cresset.int64, device=device))
        else:
            for name in ("running_mean", "running_var", "num_batches_tracked"):
                self.register_buffer(name, None)
        self.reset_parameters()

    def reset_running_stats(self):
        """Forget the running mean and variance."""
        if self.track_running_stats:
            self.running_mean.zero_()
            self.running_var.fill_(1)
            self.num_batches_tracked.zero_()

    def reset_parameters(self):
        """Start again: scale one, shift zero, nothing seen."""
        self.reset_running_stats()
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)

    def _check_input_dim(self, input):
        if input.dim() not in self._dims:
            expected = " or ".join(f"{d}D" for d in self._dims)
            raise ValueError(f"expected {expected} input (got {input.dim()}D input)")

    def extra_repr(self):
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
            f"bias={self.bias is not None}, track_running_stats={self.track_running_stats}"
        )

    def _load_from_state_dict(self, state_dict, prefix, local_metadata, *args):
        version = local_metadata.get("version", None)
        key = prefix + "num_batches_tracked"
        if (version is None or version < 2) and self.track_running_stats and key not in state_dict:
            # Version 1 did not count batches.
            counted = self.num_batches_tracked
            known = counted is not None and counted.device != cresset.device("meta")
            state_dict[key] = counted if known else cresset.tensor(0, dtype=cresset.int64)
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *args)


class _BatchNorm(_NormBase):
    def forward(self, input):
        self._check_input_dim(input)
        factor = 0.0 if self.momentum is None else self.momentum
        if self.training and self.track_running_stats and self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
            if self.momentum is None:  # the mean of all batches so far
                factor = 1.0 / float(self.num_batches_tracked)
        # Batch statistics in training, and in evaluation if there are no running ones.
        of_batch = self.training or (self.running_mean is None and self.running_var is None)
        use_running = not self.training or self.track_running_stats
        return F.batch_norm(
            input, self.running_mean if use_running else None, self.running_var if use_running else None, self.weight,
            self.bias,
            of_batch, factor, self.eps,
        )  # fmt: skip


class BatchNorm1d(_BatchNorm):
    """Normalize each channel of (N, C) or (N, C, L) over the batch, then scale and shift it.

    Args:
        num_features: the number of channels C.
        momentum: the weight of the new batch in the running mean and variance; None for the mean of all batches.
        affine: learn scale and shift.
        track_running_stats: keep a running mean and variance, which evaluation uses.

    >>> nn.BatchNorm1d(3)(cresset.ones(4, 3)).shape
    torch.Size([4, 3])
    """

    _dims = (2, 3)


class BatchNorm2d(_BatchNorm):
    """Normalize each channel of (N, C, H, W) over the batch, then scale and shift it. See BatchNorm1d."""

    _dims = (4,)


class BatchNorm3d(_BatchNorm):
    """Normalize each channel of (N, C, D, H, W) over the batch, then scale and shift it. See BatchNorm1d."""

    _dims = (5,)


class SyncBatchNorm(_BatchNorm):
    """BatchNorm over the batches of all processes of a group. In a single process it is an ordinary BatchNorm."""

    def __init__(
        self, num_features, eps=1e-5, momentum=0.1, affine=True, track_running_stats=True, process_group=None,
        device=None,
        dtype=None, *, bias=True,
    ):  # fmt: skip
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)
        self.process_group = process_group

    def _check_input_dim(self, input):
        if input.dim() < 2:
            raise ValueError(f"expected at least 2D input (got {input.dim()}D input)")
        if input.size(1) == 0:
            raise ValueError("SyncBatchNorm number of input channels should be non-zero")

    def forward(self, input):
        if not self._several_processes():
            return super().forward(input)
        self._check_input_dim(input)
        from ..distributed.nn.functional import all_reduce  # upward: the statistics are those of all processes

        dims = [d for d in range(input.dim()) if d != 1]
        shape = [1, -1] + [1] * (input.dim() - 2)
        exact = input.float() if input.dtype in (cresset.float16, cresset.bfloat16) else input
        here = input.numel() // input.size(1)
        count = all_reduce(
            cresset.tensor([float(here)], dtype=exact.dtype, device=input.device), group=self.process_group
        )
        mean = all_reduce(exact.sum(dims), group=self.process_group) / count
        centered = exact - mean.view(shape)
        variance = all_reduce((centered * centered).sum(dims), group=self.process_group) / count
        self._track(mean, variance, count)
        result = centered * (variance + self.eps).rsqrt().view(shape)
        if self.weight is not None:
            result = result * self.weight.view(shape)
        if self.bias is not None:
            result = result + self.bias.view(shape)
        return result.to(input.dtype)

    def _several_processes(self):
        """Whether there are others whose batches count: in training, or where no statistics are kept."""
        if not self.training and self.running_mean is not None:
            return False
        from .. import distributed  # upward: is there a group, and of how many?

        return distributed.is_initialized() and distributed.get_world_size(self.process_group) > 1

    def _track(self, mean, variance, count):
        if not self.training or not self.track_running_stats:
            return
        with cresset.no_grad():
            self.num_batches_tracked.add_(1)
            factor = 1.0 / float(self.num_batches_tracked) if self.momentum is None else self.momentum
            unbiased = variance * (count / (count - 1).clamp(min=1))
            self.running_mean.lerp_(mean.to(self.running_mean.dtype), factor)
            self.running_var.lerp_(unbiased.to(self.running_var.dtype), factor)

    @classmethod
    def convert_sync_batchnorm(cls, module, process_group=None):
        """`module` with every BatchNorm in it replaced by a SyncBatchNorm with the same parameters."""
        result = module
        if isinstance(module, _BatchNorm) and not isinstance(module, SyncBatchNorm):
            result = cls(
                module.num_features,
                module.eps,
                module.momentum,
                module.affine,
                module.track_running_stats,
                process_group,
            )
            if module.affine:
                with cresset.no_grad():
                    result.weight, result.bias = module.weight, module.bias
            result.running_mean, result.running_var = module.running_mean, module.running_var
            result.num_batches_tracked = module.num_batches_tracked
            result.process_group, result.training = process_group, module.training
            if hasattr(module, "qconfig"):
                result.qconfig = module.qconfig
        for name, child in module.named_children():
            result.add_module(name, cls.convert_sync_batchnorm(child, process_group))
        return result


class _InstanceNorm(_NormBase):
    def __init__(
        self,
        num_features,
        eps=1e-5,
        momentum=0.1,
        affine=False,
        track_running_stats=False,
        device=None,
        dtype=None,
        *,
        bias=True,
    ):
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)

    def forward(self, input):
        self._check_input_dim(input)
        channel = input.dim() - self._dims[0] if input.dim() in self._dims else 0
        if input.size(channel) != self.num_features and self.affine:
            raise ValueError(
                f"expected input's size at dim={channel} to match num_features ({self.num_features}), "
                f"but got: {input.size(channel)}."
            )
        if input.size(channel) != self.num_features:
            warnings.warn(
                f"input's size at dim={channel} does not match num_features. You can silence this warning by not "
                "passing in num_features, which is not used because affine=False",
                stacklevel=2,
            )
        if channel == 0:
            return self._normalize(input.unsqueeze(0)).squeeze(0)
        return self._normalize(input)

    def _get_no_batch_dim(self):
        """How many dimensions one sample has."""
        return self._dims[0]

    def _normalize(self, input):
        return F.instance_norm(
            input, self.running_mean, self.running_var, self.weight, self.bias,
            self.training or not self.track_running_stats,
            0.0 if self.momentum is None else self.momentum, self.eps,
        )  # fmt: skip

    def _load_from_state_dict(
        self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
    ):
        # Version 1 kept running statistics even when they were not used.
        if local_metadata.get("version", None) is None and not self.track_running_stats:
            found = [prefix + name for name in ("running_mean", "running_var") if prefix + name in state_dict]
            if found:
                names = " and ".join(f'"{key}"' for key in found)
                error_msgs.append(
                    f"Unexpected running stats buffer(s) {names} for {type(self).__name__} with "
                    "track_running_stats=False. "
                    "If state_dict is a checkpoint saved before 0.4.0, this may be expected because "
                    f"{type(self).__name__} does not track running stats by default since 0.4.0. Please remove these "
                    "keys."
                )
                for key in found:
                    state_dict.pop(key)
        super()._load_from_state_dict(
            state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
        )


class InstanceNorm1d(_InstanceNorm):
    """Normalize each channel of each sample of (N, C, L) or (C, L)."""

    _dims = (2, 3)


class InstanceNorm2d(_InstanceNorm):
    """Normalize each channel of each sample of (N, C, H, W) or (C, H, W)."""

    _dims = (3, 4)


class InstanceNorm3d(_InstanceNorm):
    """Normalize each channel of each sample of (N, C, D, H, W) or (C, D, H, W)."""

    _dims = (4, 5)


class _LazyNormBase(LazyModuleMixin):
    """A normalization that learns `num_features` from its first input."""

    def __init__(
        self, eps=1e-5, momentum=0.1, affine=True, track_running_stats=True, device=None, dtype=None, *, bias=True
    ):
        super().__init__(0, eps, momentum, False, False, device, dtype, bias=bias)
        self.affine, self.track_running_stats = affine, track_running_stats
        made = {"device": device, "dtype": dtype}
        if affine:
            self.weight = UninitializedParameter(**made)
            if bias:
                self.bias = UninitializedParameter(**made)
        if track_running_stats:
            self.running_mean, self.running_var = UninitializedBuffer(**made), UninitializedBuffer(**made)
            self.num_batches_tracked = cresset.tensor(0, dtype=cresset.int64, device=device)

    def reset_parameters(self):
        if not self.has_uninitialized_params() and self.num_features != 0:
            super().reset_parameters()

    def initialize_parameters(self, input):
        if self.has_uninitialized_params():
            self.num_features = input.shape[self._channel(input)]
            for tensor in (self.weight, self.bias, self.running_mean, self.running_var):
                if tensor is not None:
                    tensor.materialize((self.num_features,))
            self.reset_parameters()

    def _channel(self, input):
        return 1


class LazyBatchNorm1d(_LazyNormBase, BatchNorm1d):
    """A BatchNorm1d that learns `num_features` from its first input."""

    cls_to_become = BatchNorm1d


class LazyBatchNorm2d(_LazyNormBase, BatchNorm2d):
    """A BatchNorm2d that learns `num_features` from its first input."""

    cls_to_become = BatchNorm2d


class LazyBatchNorm3d(_LazyNormBase, BatchNorm3d):
    """A BatchNorm3d that learns `num_features` from its first input."""

    cls_to_become = BatchNorm3d


class LazyInstanceNorm1d(_LazyNormBase, InstanceNorm1d):
    """An InstanceNorm1d that learns `num_features` from its first input."""

    cls_to_become = InstanceNorm1d


class LazyInstanceNorm2d(_LazyNormBase, InstanceNorm2d):
    """An InstanceNorm2d that learns `num_features` from its first input."""

    cls_to_become = InstanceNorm2d


class LazyInstanceNorm3d(_LazyNormBase, InstanceNorm3d):
    """An InstanceNorm3d that learns `num_features` from its first input."""

    cls_to_become = InstanceNorm3d


class LayerNorm(Module):
    """Normalize over the trailing dimensions, then scale and shift.

    Args:
        normalized_shape: those dimensions' sizes, or one size for the last dimension.
        elementwise_affine: learn a scale, and with `bias` a shift.

    >>> nn.LayerNorm(4)
    LayerNorm((4,), eps=1e-05, elementwise_affine=True, bias=True)
    """

    __constants__ = ["normalized_shape", "eps", "elementwise_affine"]

    def __init__(self, normalized_shape, eps=1e-5, elementwise_affine=True, bias=True, device=None, dtype=None):
        super().__init__()
        self.normalized_shape = (int(normalized_shape),) if is_integer(normalized_shape) else tuple(normalized_shape)
        self.eps, self.elementwise_affine = eps, elementwise_affine
        for name, learned in (("weight", elementwise_affine), ("bias", elementwise_affine and bias)):
            values = Parameter(cresset.empty(self.normalized_shape, device=device, dtype=dtype)) if learned else None
            self.register_parameter(name, values)
        self.reset_parameters()

    def reset_parameters(self):
        """Start again: scale one, shift zero."""
        if self.elementwise_affine:
            init.ones_(self.weight)
            if self.bias is not None:
                init.zeros_(self.bias)

    def forward(self, input):
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self):
        return (
            f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}, "
            f"bias={self.bias is not None}"
        )


class GroupNorm(Module):
    """Normalize each group of channels of each sample, then scale and shift each channel.

    Args:
        num_groups: how many groups the `num_channels` channels (dimension 1) are divided into.
        affine: learn a scale, and with `bias` a shift, for each channel.
    """

    __constants__ = ["num_groups", "num_channels", "eps", "affine"]

    def __init__(self, num_groups, num_channels, eps=1e-5, affine=True, device=None, dtype=None, *, bias=True):
        super().__init__()
        if num_channels % num_groups != 0:
            raise ValueError(f"num_channels must be divisible by num_groups, they are {num_channels} and {num_groups}")
        self.num_groups, self.num_channels, self.eps, self.affine = num_groups, num_channels, eps, affine
        for name, learned in (("weight", affine), ("bias", affine and bias)):
            values = Parameter(cresset.empty(num_channels, device=device, dtype=dtype)) if learned else None
            self.register_parameter(name, values)
        self.reset_parameters()

    def reset_parameters(self):
        """Start again: scale one, shift zero."""
        if self.affine:
            init.ones_(self.weight)
            if self.bias is not None:
                init.zeros_(self.bias)

    def forward(self, input):
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self):
        return (
            f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}, "
            f"bias={self.bias is not None}"
        )


class RMSNorm(Module):
    """Scale each vector to unit root-mean-square, then by a learned weight.

    Args:
        normalized_shape: the trailing dimensions that form one vector.
        eps: added to the mean square; the dtype's machine epsilon if None.
        elementwise_affine: learn a weight, which starts at one.

    Shape: any shape that ends in ``normalized_shape``; the output has the same.

    >>> norm = nn.RMSNorm(4, elementwise_affine=False)
    >>> norm(cresset.tensor([3.0, 4.0, 0.0, 0.0]))
    tensor([1.2000, 1.6000, 0.0000, 0.0000])
    """

    __constants__ = ["normalized_shape", "eps", "elementwise_affine"]

    def __init__(self, normalized_shape, eps=None, elementwise_affine=True, device=None, dtype=None):
        super().__init__()
        self.normalized_shape = (int(normalized_shape),) if is_integer(normalized_shape) else tuple(normalized_shape)
        self.eps, self.elementwise_affine = eps, elementwise_affine
        values = (
            Parameter(cresset.empty(self.normalized_shape, device=device, dtype=dtype)) if elementwise_affine else None
        )
        self.register_parameter("weight", values)
        self.reset_parameters()

    def reset_parameters(self):
        """Set the weight to one."""
        if self.elementwise_affine:
            init.ones_(self.weight)

    def forward(self, x):
        return F.rms_norm(x, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self):
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"


class LocalResponseNorm(Module):
    """x / (k + alpha * m)^beta, where m is the mean of x^2 over `size` neighboring channels."""

    __constants__ = ["size", "alpha", "beta", "k"]

    def __init__(self, size, alpha=1e-4, beta=0.75, k=1.0):
        super().__init__()
        self.size, self.alpha, self.beta, self.k = size, alpha, beta, k

    def forward(self, input):
        return F.local_response_norm(input, self.size, self.alpha, self.beta, self.k)

    def extra_repr(self):
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"


class CrossMapLRN2d(LocalResponseNorm):
    """The older LocalResponseNorm of images, with as many neighbors on each side: (size - 1) // 2."""

    def __init__(self, size, alpha=1e-4, beta=0.75, k=1):
        super().__init__(size, alpha, beta, k)

    def forward(self, input):
        if input.dim() != 4:
            raise ValueError(f"CrossMapLRN2d: Expected input to be 4D, got {input.dim()}D instead.")
        half, square = (self.size - 1) // 2, input * input
        total = F.pad(square, (0, 0, 0, 0, half, half)).unfold(1, 2 * half + 1, 1).sum(-1)
        # PyTorch's sum slides along and never lets go of the first channel.
        total = total + F.pad(square[:, :1].expand_as(square)[:, half + 1 :], (0, 0, 0, 0, half + 1, 0))
        return input / (total * (self.alpha / self.size) + self.k) ** self.beta
