"""An operator that a program defines: its kernels, and how a call finds the right one."""

import contextlib
import sys

import cresset

from .. import _native
from .._native import Tensor, level_of
from ..ops import namespaces
from ..ops.tags import Tag
from ..overrides import handle_torch_function, has_torch_function
from ..pytree import tree_flatten, tree_leaves, tree_map_only, tree_unflatten
from . import fallback


class OpOverload(namespaces.OpOverload):
    """An operator that a program defined."""

    _defined_in_python = True

    def __init__(self, schema, tags=()):
        super().__init__(schema, tags)
        self._disabled = set()  # device types whose kernels are passed over
        self._dispatch_rules = {}  # class or mode with __torch_dispatch__ -> function called in its place
        self._definition = None  # what `custom_op` gave, if that made it
        self._fake_source = None  # where the shape rule stands
        self._kernels = {}  # device type, or None for all -> function
        self._autocast_kernels = {}  # device type -> function, called in its place where autocast is on for the device
        self._composite = self._autograd_kernel = self._fake = self._vmap_rule = None
        self._backward = self._setup_context = None
        self._checks_aliases = False
        self._shapes_itself = False  # whether the kernel for all devices is one for the meta device, too

    def __call__(self, *args, **kwargs):
        leaves = tree_leaves((args, kwargs))
        if has_torch_function(leaves):
            return handle_torch_function(self, leaves, *args, **kwargs)
        values = self._schema.bind(args, kwargs)
        for device, kernel in self._autocast_kernels.items():
            if cresset.is_autocast_enabled(device):
                return self._called(kernel, values)
        if self._composite is not None:
            return self._called(self._composite, values)
        if self._autograd_kernel is not None and not _AutoDispatchBelowAutograd.autograd:
            with _AutoDispatchBelowAutograd():
                return self._called(self._autograd_kernel, values)
        tensors = [leaf for leaf in tree_leaves(values) if isinstance(leaf, Tensor)]
        written = self._schema.is_mutable
        wants = _native.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors)
        if wants and Tag.out in self.tags:
            raise RuntimeError(
                f"{self._opname}(): functions with out=... arguments don't support automatic differentiation, but one "
                "of the arguments requires grad."
            )
        if wants and Tag.inplace in self.tags:
            return self._run_in_place(values)
        if any(map(level_of, tensors)) and written:
            return self._write_samples(values)
        if wants and fallback.applies(self) and not any(map(level_of, tensors)):
            return fallback.run(self, values)
        if any(map(level_of, tensors)) or (not written and wants):
            flat, spec = tree_flatten(values)
            shape = []
            return _unflat(_function_of(self, spec, shape).apply(*flat), shape)
        return self._run(values)

    def _called(self, function, values):
        """A kernel called with arguments in the schema's order."""
        arguments = self._schema.arguments
        return function(
            *(v for v, a in zip(values, arguments, strict=True) if not a.keyword_only),
            **{a.name: v for v, a in zip(values, arguments, strict=True) if a.keyword_only},
        )

    def _run(self, values, recorded=False):
        """The kernel for the arguments' device, or who answers in its place.

        Args:
            recorded: whether what the kernel computes is recorded for backward.
        """
        tensors = [leaf for leaf in tree_leaves(values) if isinstance(leaf, Tensor)]
        if _native.is_dispatching() or any(map(_native.is_dispatched, tensors)):
            return self._dispatched(values)
        device = next((tensor.device.type for tensor in tensors if tensor.device.type != "cpu"), None)
        if device is None:
            device = "cpu" if tensors else self._device_named(values)
        if device == "meta" and (self._fake is not None or "meta" not in self._kernels):
            return self._run_fake(values)
        kernel = None if device in self._disabled else self._kernels.get(device)
        kernel = kernel or self._kernels.get(None)
        if kernel is None:
            if not tensors and self._kernels:
                raise RuntimeError(f"{self._opname} does not have a kernel registered for {device}")
            if not tensors:
                raise NotImplementedError(
                    f"Could not run '{self.name()}': it was called with no Tensor inputs, and there is no kernel for "
                    "all devices"
                )
            raise NotImplementedError(
                f"Could not run '{self.name()}' with arguments from the '{device.upper()}' backend: there is no "
                f"{device} impl registered; there are kernels for {sorted(map(str, self._kernels))}"
            )
        versions = [tensor._version for tensor in tensors]
        with contextlib.nullcontext() if recorded else cresset.no_grad():
            result = self._called(kernel, values)
        if Tag.inplace in self.tags or Tag.out in self.tags:
            self._check_returned(result, values)
        elif self._checks_aliases and _aliasing_is_checked():
            self._check_aliases(result, tensors)
        for argument, value in zip(self._schema.arguments, values, strict=True):
            for tensor in tree_leaves(value) if argument.is_written else ():
                if (
                    isinstance(tensor, Tensor)
                    and tensor._version == versions[next(i for i, t in enumerate(tensors) if t is tensor)]
                ):
                    _native.bump_version(tensor)
        return result

    def _device_named(self, values):
        """The device type that a call without tensors asks for."""
        for argument, value in zip(self._schema.arguments, values, strict=True):
            if argument.type.startswith("Device") and value is not None:
                return _native.device(value).type
        return "cpu"

    def _dispatched(self, values):
        from ..dispatch import handling, translation  # upward: modes and classes that see operators

        return handling.give(self, *translation.without_defaults(self._schema, values))

    def _run_in_place(self, values):
        """An operator that gives its first argument back, written to. Its result has a history that says that there is
        no derivative.
        """
        from ..autograd.function import Function

        op = self

        class WithoutFormula(Function):
            @staticmethod
            def forward(ctx, first):
                return first.view_as(first)

            @staticmethod
            def backward(ctx, grad):
                raise RuntimeError(
                    f"Trying to backward through {op} but no autograd formula was registered. An operator that writes "
                    "in place cannot have one: give the formula to a functional operator"
                )

        return WithoutFormula.apply(self._run(values))

    def _check_returned(self, result, values):
        """That what is returned are the arguments that were written to, by the tags inplace and out."""
        written = [v for a, v in zip(self._schema.arguments, values, strict=True) if a.is_written]
        given = list(result) if isinstance(result, (tuple, list)) else [result]
        if len(given) == len(written) and all(a is b for a, b in zip(given, written, strict=True)):
            return
        if Tag.inplace in self.tags:
            raise RuntimeError(f"{self.name()}: an operator with torch.Tag.inplace must return its first argument")
        raise RuntimeError(
            f"{self.name()}: an operator with torch.Tag.out must return its mutable keyword-only arguments, in order"
        )

    def _run_fake(self, values):
        if self._fake is None and (Tag.inplace in self.tags or Tag.out in self.tags):
            written = [v for a, v in zip(self._schema.arguments, values, strict=True) if a.is_written]
            return written[0] if len(written) == 1 else tuple(written)
        if self._fake is None and not self._schema.returns:
            return None
        if self._fake is None and self._shapes_itself:
            with cresset.no_grad():
                return self._called(self._kernels[None], values)
        if self._fake is None and self._definition is not None:
            raise RuntimeError(
                f"There was no fake impl registered for {self._definition}. This is necessary for torch.compile/export/"
                f"fx tracing to work. Please use `{self._definition.__name__}.register_fake` to add an fake impl."
            )
        if self._fake is None:
            raise NotImplementedError(
                f"There was no fake impl registered for {self} (there is no fake impl or Meta kernel). This is "
                "necessary for the meta device and for tracing; use `torch.library.register_fake` to add a fake impl"
            )
        with cresset.no_grad():
            return self._called(self._fake, values)

    def _check_aliases(self, result, tensors):
        storages = [_native.storage_info(tensor)[0] for tensor in tensors if tensor.device.type != "meta"]
        for output in tree_leaves(result):
            if not isinstance(output, Tensor) or output.device.type == "meta":
                continue
            if _native.storage_info(output)[0] in storages:
                raise RuntimeError(
                    f"{self.name()}: The output of this custom operator (1) must not also be an input to this custom "
                    "operator and (2) may not alias any inputs "
                    "to this custom operator or other returns. Give a clone instead"
                )
            storages.append(_native.storage_info(output)[0])

    def _write_samples(self, values):
        """Inside vmap, an operator that writes to arguments runs sample by sample."""
        from ..func import batching

        flat, spec = tree_flatten(values)
        frame = batching.frame_of(max(map(level_of, flat)), self.name())
        pairs = [_native.batch_of(leaf) if level_of(leaf) == frame.number else (leaf, None) for leaf in flat]
        written = [a.is_written for a, v in zip(self._schema.arguments, values, strict=True) for _ in tree_leaves(v)]
        if any(
            is_target and isinstance(v, Tensor) and d is None for is_target, (v, d) in zip(written, pairs, strict=True)
        ):
            batching.refuse_unbatched_target(self._schema.op)
        results = [
            self._called(self, tree_unflatten([v if d is None else v.select(d, i) for v, d in pairs], spec))
            for i in range(frame.batch_size)
        ]
        if results[0] is None:
            return None
        return tree_map_only(Tensor, lambda t: t, _stacked(results, frame.number))


def _aliasing_is_checked():
    """What `torch._functorch.config` says, if a program has asked for it."""
    config = sys.modules.get(f"{cresset.__name__}._functorch.config")
    return config is None or config.check_custom_op_aliasing


class _AutoDispatchBelowAutograd:
    """Inside, the autograd kernels of operators that programs define are passed over: what such a kernel calls is the
    operator below it. PyTorch's name, which such kernels use.
    """

    autograd = False

    def __enter__(self):
        self.before, _AutoDispatchBelowAutograd.autograd = _AutoDispatchBelowAutograd.autograd, True

    def __exit__(self, *_):
        _AutoDispatchBelowAutograd.autograd = self.before


def _stacked(results, level=None):
    leaves = [tree_flatten(result) for result in results]
    stacked = [
        cresset.stack(list(items)) if isinstance(items[0], Tensor) else items[0]
        for items in zip(*(flat for flat, _ in leaves), strict=True)
    ]
    if level is not None:
        stacked = [_native.sample_of(item, 0, level) if isinstance(item, Tensor) else item for item in stacked]
    return tree_unflatten(stacked, leaves[0][1])


def _unflat(outputs, shape):
    return tree_unflatten(list(outputs) if isinstance(outputs, tuple) else [outputs], shape[0])


def _function_of(op, spec, shape):
    """The autograd.Function of a call: of the leaves of its arguments, which have the structure `spec`. `shape` gets
    that of the results.
    """
    from ..autograd.function import Function

    def forward(*flat):
        leaves, result_spec = tree_flatten(op._run(tree_unflatten(flat, spec)))
        shape[:] = [result_spec]
        return tuple(leaves)

    def setup_context(ctx, inputs, output):
        if op._setup_context is None:
            return
        values, arguments = tree_unflatten(inputs, spec), op._schema.arguments
        given = {
            "ctx": ctx,
            "inputs": tuple(v for v, a in zip(values, arguments, strict=True) if not a.keyword_only),
            "output": _unflat(output, shape),
        }
        if any(argument.keyword_only for argument in arguments):
            given["keyword_only_inputs"] = {a.name: v for v, a in zip(values, arguments, strict=True) if a.keyword_only}
        op._setup_context(**given)

    def backward(ctx, *grads):
        if op._backward is None:
            raise RuntimeError(
                f"Trying to backward through {op} but no autograd formula was registered. Please use "
                "register_autograd to add one."
            )
        slopes = op._backward(
            ctx, *(grads if shape[0].is_leaf() or shape[0].type is tuple else [_unflat(grads, shape)])
        )
        slopes = slopes if isinstance(slopes, tuple) else (slopes,)
        arguments = spec.children_specs
        if len(slopes) < sum(not argument.keyword_only for argument in op._schema.arguments):
            raise RuntimeError(
                f"{op}: the backward must give a gradient or None for each of the {len(arguments)} arguments, it gave "
                f"{len(slopes)}"
            )
        flat = []
        for k, part in enumerate(arguments):
            slope = slopes[k] if k < len(slopes) else None
            flat += (
                [slope] if part.is_leaf() else [None] * part.num_leaves if slope is None else part.flatten_up_to(slope)
            )
        return tuple(flat)

    def vmap(info, in_dims, *flat):
        if op._vmap_rule is not None:
            values, dims = tree_unflatten(flat, spec), tree_unflatten(in_dims, spec)
            from ..dispatch import translation  # upward: which needs this module

            by_place = [dim for dim, a in zip(dims, op._schema.arguments, strict=True) if not a.keyword_only]
            args, kwargs = translation.without_defaults(op._schema, values)
            result, out_dims = op._vmap_rule(info, tuple(by_place[: len(args)]), *args, **kwargs)
            leaves, result_spec = tree_flatten(result)
            shape[:] = [result_spec]
            dims = tuple(tree_leaves(out_dims))
            return tuple(leaves), dims if len(dims) == len(leaves) else dims * len(leaves)
        samples = [
            op._called(
                op,
                tree_unflatten([v if d is None else v.select(d, i) for v, d in zip(flat, in_dims, strict=True)], spec),
            )
            for i in range(info.batch_size)
        ]
        leaves, result_spec = tree_flatten(_stacked(samples))
        shape[:] = [result_spec]
        return tuple(leaves), (0,) * len(leaves)

    methods = {"forward": forward, "setup_context": setup_context, "backward": backward, "vmap": vmap}
    name = f"GeneratedBackwardFor_{op._schema.namespace}_{op.__name__.replace('.', '_')}"
    return type(name, (Function,), {key: staticmethod(method) for key, method in methods.items()})
