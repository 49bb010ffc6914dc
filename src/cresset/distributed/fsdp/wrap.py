"""torch.distributed.fsdp.wrap: which parts of a model are wrapped by themselves."""

import contextlib
import copy
import threading

from ... import nn

__all__ = [
    "CustomPolicy", "ModuleWrapPolicy", "always_wrap_policy", "enable_wrap", "lambda_auto_wrap_policy",
    "size_based_auto_wrap_policy", "transformer_auto_wrap_policy", "wrap",
]  # fmt: skip

_open = threading.local()


def always_wrap_policy(*args, **kwargs):
    """Every module.

    >>> cresset.distributed.fsdp.wrap.always_wrap_policy()
    True
    """
    return True


def lambda_auto_wrap_policy(module, recurse, nonwrapped_numel, lambda_fn):
    """Modules for which lambda_fn(module) is true."""
    return True if recurse else lambda_fn(module)


def transformer_auto_wrap_policy(module, recurse, nonwrapped_numel, transformer_layer_cls):
    """Modules of these classes."""
    return True if recurse else isinstance(module, tuple(transformer_layer_cls))


def _or_policy(module, recurse, nonwrapped_numel, policies):
    return any(policy(module=module, recurse=recurse, nonwrapped_numel=nonwrapped_numel) for policy in policies)


def size_based_auto_wrap_policy(
    module, recurse, nonwrapped_numel, min_num_params=int(1e8), force_leaf_modules=None, exclude_wrap_modules=None
):
    """Modules with at least `min_num_params` parameters that are not wrapped inside.

    Args:
        force_leaf_modules: classes whose insides are left alone.
        exclude_wrap_modules: classes that are not wrapped themselves.
    """
    leaves = size_based_auto_wrap_policy.FORCE_LEAF_MODULES if force_leaf_modules is None else force_leaf_modules
    excluded = (
        size_based_auto_wrap_policy.EXCLUDE_WRAP_MODULES if exclude_wrap_modules is None else exclude_wrap_modules
    )
    large = nonwrapped_numel >= min_num_params
    if recurse:
        return large and not isinstance(module, tuple(leaves))
    return large and not isinstance(module, tuple(excluded))


size_based_auto_wrap_policy.EXCLUDE_WRAP_MODULES = {nn.ModuleList, nn.ModuleDict}  # type: ignore[attr-defined]
size_based_auto_wrap_policy.FORCE_LEAF_MODULES = {nn.MultiheadAttention}  # type: ignore[attr-defined]


class _Policy:
    """What chooses modules at once: `chosen(root)` gives {module: settings}."""


class ModuleWrapPolicy(_Policy):
    """Modules of these classes."""

    def __init__(self, module_classes):
        self._module_classes = set(module_classes)
        self._module_classes_str = str(self._module_classes)

    def chosen(self, root, settings):
        """The modules to wrap, each with settings."""
        return {part: dict(settings) for part in root.modules() if isinstance(part, tuple(self._module_classes))}

    def __call__(self, module, recurse, *args, **kwargs):
        return True if recurse else isinstance(module, tuple(self._module_classes))

    def __repr__(self):
        return f"{super().__repr__()}({self._module_classes_str})"


class CustomPolicy(_Policy):
    """Modules for which lambda_fn(module) is true, or gives settings of their own."""

    def __init__(self, lambda_fn):
        self._lambda_fn = lambda_fn

    def chosen(self, root, settings):
        """The modules to wrap, each with settings."""
        found = {}
        for part in root.modules():
            answer = self._lambda_fn(part)
            if not isinstance(answer, (bool, dict)):
                raise ValueError(
                    "The lambda_fn passed to CustomPolicy should return False/True or a kwarg dict, but it returned "
                    f"{answer}"
                )
            if answer is not False:
                found[part] = {**settings, **(answer if isinstance(answer, dict) else {})}
        return found


@contextlib.contextmanager
def enable_wrap(*, wrapper_cls, **wrapper_kwargs):
    """Inside, `wrap(module)` wraps by this class with these settings."""
    before = getattr(_open, "settings", None)
    _open.settings = wrapper_cls, wrapper_kwargs
    try:
        yield
    finally:
        _open.settings = before


def wrap(module, **wrap_overrides):
    """The module, wrapped as `enable_wrap` says; itself outside of it."""
    settings = getattr(_open, "settings", None)
    if settings is None:
        return module
    cls, kwargs = settings
    return cls(module, **{**kwargs, **wrap_overrides})


def wrap_parts(root, policy, wrap_one, settings, ignored):
    """Wrap parts of a model, from the innermost on: wrap_one(module, settings) gives the wrapped one.

    Args:
        policy: a _Policy, or policy(module=, recurse=, nonwrapped_numel=).
        ignored: modules that are left alone, with those inside.
    """
    if isinstance(policy, _Policy):
        chosen = policy.chosen(root, settings)
        chosen.pop(root, None)
        made: dict = {}
        for parent in list(root.modules())[::-1]:
            for name, child in list(parent.named_children()):
                if child in chosen and child not in ignored:
                    if child not in made:
                        made[child] = wrap_one(child, chosen[child])
                    setattr(parent, name, made[child])
        return
    _walk(root, policy, wrap_one, settings, ignored, True)


def _walk(module, policy, wrap_one, settings, ignored, is_root):
    """(the module or its wrapped form, the number of parameters that are wrapped in it)."""
    count = sum(p.numel() for p in module.parameters())
    if not policy(module=module, recurse=True, nonwrapped_numel=count):
        return module, 0
    wrapped = 0
    for name, child in list(module.named_children()):
        if child in ignored:
            continue
        made, inside = _walk(child, policy, wrap_one, settings, ignored, False)
        if made is not child:
            setattr(module, name, made)
        wrapped += inside
    if not is_root and policy(module=module, recurse=False, nonwrapped_numel=count - wrapped):
        return wrap_one(module, copy.copy(settings)), count
    return module, wrapped
