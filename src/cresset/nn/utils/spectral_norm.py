"""A weight divided by its largest singular value. `parametrizations.spectral_norm` is the newer form."""

import cresset

from ..functional import normalize
from ..parameter import Parameter, check_not_lazy


def as_matrix(weight, dim):
    """`weight` with `dim` first and all others as one."""
    if dim != 0:
        weight = weight.transpose(0, dim) if weight.dim() == 2 else weight.movedim(dim, 0)
    return weight.flatten(1)


def improve(matrix, u, v, steps, eps):
    """Improve the estimates of the vectors of the largest singular value, in place, by power iteration."""
    with cresset.no_grad():
        for _ in range(steps):
            v.copy_(normalize(matrix.mH.mv(u), dim=0, eps=eps))
            u.copy_(normalize(matrix.mv(v), dim=0, eps=eps))


class SpectralNorm:
    """The hook that makes `name` of `name_orig`, with the estimated vectors in the buffers `name_u` and `name_v`."""

    _version = 1

    def __init__(self, name="weight", n_power_iterations=1, dim=0, eps=1e-12):
        if n_power_iterations <= 0:
            raise ValueError(
                f"Expected n_power_iterations to be positive, but got n_power_iterations={n_power_iterations}"
            )
        self.name, self.n_power_iterations, self.dim, self.eps = name, n_power_iterations, dim, eps

    def compute_weight(self, module, do_power_iteration):
        weight = getattr(module, self.name + "_orig")
        u, v = getattr(module, self.name + "_u"), getattr(module, self.name + "_v")
        matrix = as_matrix(weight, self.dim)
        if do_power_iteration:
            improve(matrix, u, v, self.n_power_iterations, self.eps)
            # Copies, so that the next forward pass does not change what backward needs.
            u, v = u.clone(), v.clone()
        return weight / u.dot(matrix.mv(v))

    @staticmethod
    def apply(module, name, n_power_iterations, dim, eps):
        for hook in module._forward_pre_hooks.values():
            if isinstance(hook, SpectralNorm) and hook.name == name:
                raise RuntimeError(f"Cannot register two spectral_norm hooks on the same parameter {name}")
        norm = SpectralNorm(name, n_power_iterations, dim, eps)
        weight = module._parameters[name]
        if weight is None:
            raise ValueError(f"`SpectralNorm` cannot be applied as parameter `{name}` is None")
        check_not_lazy("SpectralNorm", weight)
        with cresset.no_grad():
            matrix = as_matrix(weight, dim)
            u = normalize(weight.new_empty(matrix.size(0)).normal_(0, 1), dim=0, eps=eps)
            v = normalize(weight.new_empty(matrix.size(1)).normal_(0, 1), dim=0, eps=eps)
        del module._parameters[name]
        module.register_parameter(name + "_orig", weight)
        setattr(module, name, weight.data)
        module.register_buffer(name + "_u", u)
        module.register_buffer(name + "_v", v)
        module.register_forward_pre_hook(norm)
        module._register_state_dict_hook(_Versioned(norm))
        module._register_load_state_dict_pre_hook(_FromOlderForm(norm))
        return norm

    def remove(self, module):
        with cresset.no_grad():
            weight = self.compute_weight(module, do_power_iteration=False)
        delattr(module, self.name)
        for kind, suffix in ((module._buffers, "_u"), (module._buffers, "_v"), (module._parameters, "_orig")):
            del kind[self.name + suffix]
        module.register_parameter(self.name, Parameter(weight.detach()))

    def __call__(self, module, inputs):
        setattr(module, self.name, self.compute_weight(module, do_power_iteration=module.training))


class _Versioned:
    """The hook that writes the form's version beside the state."""

    def __init__(self, norm):
        self.norm = norm

    def __call__(self, module, state_dict, prefix, local_metadata):
        versions = local_metadata.setdefault("spectral_norm", {})
        key = self.norm.name + ".version"
        if key in versions:
            raise RuntimeError(f"Unexpected key in metadata['spectral_norm']: {key}")
        versions[key] = self.norm._version


class _FromOlderForm:
    """The hook that makes the buffer `name_v` for a state of version 0, which holds `name` itself instead."""

    def __init__(self, norm):
        self.norm = norm

    def __call__(self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs):
        version = local_metadata.get("spectral_norm", {}).get(self.norm.name + ".version")
        key = prefix + self.norm.name
        if (
            version is None
            and key not in state_dict
            and all(key + suffix in state_dict for suffix in ("_orig", "_u", "_v"))
        ):
            return  # a newer state without its metadata
        if version is not None and version >= 1:
            return
        missing = [key + suffix for suffix in ("_orig", "", "_u") if key + suffix not in state_dict]
        if missing:
            missing_keys.extend(missing if strict else [])
            return
        with cresset.no_grad():
            weight, u = state_dict[key + "_orig"], state_dict[key + "_u"]
            sigma = (weight / state_dict.pop(key)).mean()
            matrix = as_matrix(weight, self.norm.dim)
            v = cresset.linalg.pinv(matrix.T @ matrix) @ (matrix.T @ u)
            state_dict[key + "_v"] = v * (sigma / u.dot(matrix @ v))


def transposed_kinds():
    """The layers whose output dimension is not the first of their weight."""
    from ..conv import _ConvTransposeNd

    return (_ConvTransposeNd,)


def spectral_norm(module, name="weight", n_power_iterations=1, eps=1e-12, dim=None):
    """Divide a weight by its largest singular value, estimated by power iteration in each training pass.

    Args:
        dim: the dimension of the outputs: 0, or 1 for transposed convolutions.
    """
    if dim is None:
        dim = 1 if isinstance(module, transposed_kinds()) else 0
    SpectralNorm.apply(module, name, n_power_iterations, dim, eps)
    return module


def remove_spectral_norm(module, name="weight"):
    """Make the weight an ordinary parameter again."""
    for key, hook in module._forward_pre_hooks.items():
        if isinstance(hook, SpectralNorm) and hook.name == name:
            hook.remove(module)
            del module._forward_pre_hooks[key]
            for hooks in (module._state_dict_hooks, module._load_state_dict_pre_hooks):
                for number in [n for n, kept in hooks.items() if getattr(kept, "norm", None) is hook]:
                    del hooks[number]
            return module
    raise ValueError(f"spectral_norm of '{name}' not found in {module}")
