"""Module: what has parameters, buffers and submodules, and is called like a function."""

import warnings
from collections import OrderedDict

import cresset
from cresset import _native
from cresset.overrides import is_tensor_like

from .conversion import can_keep, parse_to, swap_parameter, swaps
from .hooks import (
    BACKWARD_HOOKS,
    BACKWARD_PRE_HOOKS,
    BUFFER_REGISTRATION_HOOKS,
    FORWARD_HOOKS,
    FORWARD_HOOKS_ALWAYS_CALLED,
    FORWARD_HOOKS_WITH_KWARGS,
    FORWARD_PRE_HOOKS,
    MODULE_REGISTRATION_HOOKS,
    PARAMETER_REGISTRATION_HOOKS,
    BackwardHook,
    add_hook,
    global_backward_hooks,
    warn_of_older_hooks,
)
from .parameter import Buffer, Parameter, forget_gradients
from .state import HasState

_native.set_module_hooks((FORWARD_HOOKS, FORWARD_PRE_HOOKS, BACKWARD_HOOKS, BACKWARD_PRE_HOOKS))


def _indented(text, spaces=2):
    """`text` with all lines but the first moved to the right."""
    return text.replace("\n", "\n" + " " * spaces)


def _kind(value):
    """The name of the type of `value`, as messages give it."""
    if isinstance(value, cresset.Tensor):
        return value.type()
    kind = type(value)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


class Module(HasState):
    """The base of all layers and models.

    A subclass makes its parameters and submodules in `__init__`, after `super().__init__()`, by assigning them to
    attributes, and computes in `forward`.

    >>> class Double(nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.scale = nn.Parameter(cresset.tensor(2.0))
    ...     def forward(self, x):
    ...         return self.scale * x
    >>> Double()(cresset.tensor(3.0)).item()
    6.0
    """

    dump_patches = False
    _version = 1
    training: bool
    call_super_init = False
    _compiled_call_impl = None

    def __init__(self, *args, **kwargs):
        if not self.call_super_init and (args or kwargs):
            if kwargs:
                raise TypeError(
                    f"{type(self).__name__}.__init__() got an unexpected keyword argument '{next(iter(kwargs))}'"
                )
            raise TypeError(
                f"{type(self).__name__}.__init__() takes 1 positional argument but {len(args) + 1} were given"
            )
        # Straight into __dict__: __setattr__ would look each of these up in the others.
        self.__dict__.update(
            training=True,
            _parameters={},
            _buffers={},
            _non_persistent_buffers_set=set(),
            _backward_pre_hooks=OrderedDict(),
            _backward_hooks=OrderedDict(),
            _is_full_backward_hook=None,
            _forward_hooks=OrderedDict(),
            _forward_hooks_with_kwargs=OrderedDict(),
            _forward_hooks_always_called=OrderedDict(),
            _forward_pre_hooks=OrderedDict(),
            _forward_pre_hooks_with_kwargs=OrderedDict(),
            _state_dict_hooks=OrderedDict(),
            _state_dict_pre_hooks=OrderedDict(),
            _load_state_dict_pre_hooks=OrderedDict(),
            _load_state_dict_post_hooks=OrderedDict(),
            _modules={},
        )
        if self.call_super_init:
            super().__init__(*args, **kwargs)

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        _native.quicken_module(cls)

    def forward(self, *args, **kwargs):
        """What the module computes; each subclass writes its own."""
        raise NotImplementedError(f'Module [{type(self).__name__}] is missing the required "forward" function')

    # ------------------------------------------------------------------ calling

    __call__ = _wrapped_call_impl = _native.module_call  # forward, or _call_impl where there are hooks

    def _call_impl(self, *args, **kwargs):
        """The compiled call, where there is one, or the call with all its hooks."""
        if self._compiled_call_impl is not None:
            return self._compiled_call_impl(*args, **kwargs)
        return self._call_with_hooks(*args, **kwargs)

    def _call_with_hooks(self, *args, **kwargs):
        called = set()
        result = None
        try:
            args, kwargs = self._run_forward_pre_hooks(args, kwargs)
            full, other = self._backward_hooks_to_run()
            pre = [*BACKWARD_PRE_HOOKS.values(), *self._backward_pre_hooks.values()]
            watch = BackwardHook(self, full, pre) if full or pre else None
            if watch:
                args = watch.watch_inputs(args)
            result = self.forward(*args, **kwargs)
            for key, hook in (*FORWARD_HOOKS.items(), *self._forward_hooks.items()):
                called.add(key)
                result = self._run_forward_hook(key, hook, args, kwargs, result)
            if watch:
                result = watch.watch_outputs(result)
            if other:
                self._register_on_last_operation(other, args, result)
            return result
        except Exception:
            # Hooks registered with always_call run even now, as far as they have not run yet.
            for always, hooks in (
                (FORWARD_HOOKS_ALWAYS_CALLED, FORWARD_HOOKS),
                (self._forward_hooks_always_called, self._forward_hooks),
            ):
                for key, hook in list(hooks.items()):
                    if key in always and key not in called:
                        try:
                            result = self._run_forward_hook(key, hook, args, kwargs, result)
                        except Exception as error:
                            warnings.warn(
                                "forward hook with ``always_call=True`` raised an exception that was silenced as "
                                "another "
                                f"error was raised in forward: {error}",
                                stacklevel=3,
                            )
            raise

    def _run_forward_pre_hooks(self, args, kwargs):
        for key, hook in (*FORWARD_PRE_HOOKS.items(), *self._forward_pre_hooks.items()):
            if key in self._forward_pre_hooks_with_kwargs:
                replaced = hook(self, args, kwargs)
                if replaced is not None:
                    if not (isinstance(replaced, tuple) and len(replaced) == 2):
                        raise RuntimeError(
                            "forward pre-hook must return None or a tuple of (new_args, new_kwargs), but got "
                            f"{replaced}."
                        )
                    args, kwargs = replaced
            else:
                replaced = hook(self, args)
                if replaced is not None:
                    args = replaced if isinstance(replaced, tuple) else (replaced,)
        return args, kwargs

    def _run_forward_hook(self, key, hook, args, kwargs, result):
        if key in self._forward_hooks_with_kwargs or key in FORWARD_HOOKS_WITH_KWARGS:
            replaced = hook(self, args, kwargs, result)
        else:
            replaced = hook(self, args, result)
        return result if replaced is None else replaced

    def _backward_hooks_to_run(self):
        """The full backward hooks, and those of the older kind."""
        full, other = global_backward_hooks()
        if self._backward_hooks:
            (full if self._is_full_backward_hook else other).extend(self._backward_hooks.values())
        return full, other

    def _register_on_last_operation(self, hooks, args, result):
        """Hooks of the older kind see the gradients of the operation that made the result."""
        value = result
        while not isinstance(value, cresset.Tensor):
            value = (
                next(v for v in value.values() if isinstance(v, cresset.Tensor))
                if isinstance(value, dict)
                else value[0]
            )
        node = value.grad_fn
        warn_of_older_hooks(args, result, node)
        if node is not None:
            for hook in hooks:
                node.register_hook(lambda grad_input, grad_output, hook=hook: hook(self, grad_input, grad_output))

    def compile(self, *args, **kwargs):
        """Compile this module's forward; later calls run the compiled one."""
        self._compiled_call_impl = cresset.compile(self._call_with_hooks, *args, **kwargs)

    # ------------------------------------------------------------------ attributes

    __getattr__ = _native.module_getattr  # parameters, buffers and submodules

    def __setattr__(self, name, value):
        members = self.__dict__
        parameters = members.get("_parameters")
        if isinstance(value, Parameter):
            if parameters is None:
                raise AttributeError("cannot assign parameters before Module.__init__() call")
            self._forget(name, "_buffers", "_modules", "_non_persistent_buffers_set")
            self.register_parameter(name, value)
            return
        if parameters is not None and name in parameters:
            if value is not None:
                raise TypeError(
                    f"cannot assign '{_kind(value)}' as parameter '{name}' (torch.nn.Parameter or None expected)"
                )
            self.register_parameter(name, value)
            return
        modules = members.get("_modules")
        if isinstance(value, Module):
            if modules is None:
                raise AttributeError("cannot assign module before Module.__init__() call")
            self._forget(name, "_parameters", "_buffers", "_non_persistent_buffers_set")
            for hook in MODULE_REGISTRATION_HOOKS.values():
                replaced = hook(self, name, value)
                value = value if replaced is None else replaced
            modules[name] = value
            return
        if modules is not None and name in modules:
            if value is not None:
                raise TypeError(
                    f"cannot assign '{_kind(value)}' as child module '{name}' (torch.nn.Module or None expected)"
                )
            modules[name] = None
            return
        buffers = members.get("_buffers")
        if buffers is None:
            object.__setattr__(self, name, value)
            return
        marked = isinstance(value, Buffer)
        if not marked and name not in buffers:
            object.__setattr__(self, name, value)
            return
        if value is not None and not is_tensor_like(value):
            raise TypeError(
                f"cannot assign '{_kind(value)}' as buffer '{name}' (torch.nn.Buffer, torch.Tensor or None expected)"
            )
        persistent = value.persistent if marked else name not in self._non_persistent_buffers_set
        if marked:
            self._check_name("buffer", name, buffers)
        self._put_buffer(name, value, persistent)

    def _forget(self, name, *kinds):
        """Take `name` out of the attributes and out of what is registered."""
        self.__dict__.pop(name, None)
        for kind in kinds:
            registered = self.__dict__.get(kind)
            if registered:
                registered.discard(name) if isinstance(registered, set) else registered.pop(name, None)

    def __delattr__(self, name):
        for kind in (self._parameters, self._buffers, self._modules):
            if name in kind:
                del kind[name]
                self._non_persistent_buffers_set.discard(name)
                return
        super().__delattr__(name)

    def __dir__(self):
        names = [*dir(type(self)), *self.__dict__, *self._parameters, *self._modules, *self._buffers]
        return sorted({name for name in names if not name[:1].isdigit()})

    def __getstate__(self):
        state = self.__dict__.copy()
        state.pop("_compiled_call_impl", None)
        return state

    def __setstate__(self, state):
        self.__dict__.update(state)
        # What was pickled by an older version may lack some kinds of hooks.
        for name in (
            "_forward_pre_hooks", "_forward_pre_hooks_with_kwargs", "_forward_hooks_with_kwargs",
            "_forward_hooks_always_called",
            "_state_dict_hooks", "_state_dict_pre_hooks", "_load_state_dict_pre_hooks", "_load_state_dict_post_hooks",
            "_backward_pre_hooks",
        ):  # fmt: skip
            self.__dict__.setdefault(name, OrderedDict())
        self.__dict__.setdefault("_non_persistent_buffers_set", set())
        self.__dict__.setdefault("_is_full_backward_hook", None)

    # ------------------------------------------------------------------ registering

    def _check_name(self, kind, name, registered):
        if not isinstance(name, str):
            raise TypeError(f"{kind} name should be a string. Got {_kind(name)}")
        if "." in name:
            raise KeyError(f'{kind} name can\'t contain "."' + (f", got: {name}" if kind == "module" else ""))
        if name == "":
            raise KeyError(f'{kind} name can\'t be empty string ""')
        if hasattr(self, name) and name not in registered:
            raise KeyError(f"attribute '{name}' already exists")

    def register_parameter(self, name, param):
        """Add a parameter, or None where there could be one."""
        if "_parameters" not in self.__dict__:
            raise AttributeError("cannot assign parameter before Module.__init__() call")
        self._check_name("parameter", name, self._parameters)
        if param is not None:
            if not isinstance(param, Parameter):
                raise TypeError(
                    f"cannot assign '{_kind(param)}' object to parameter '{name}' (torch.nn.Parameter or None required)"
                )
            if param.grad_fn:
                raise ValueError(
                    f"Cannot assign non-leaf Tensor to parameter '{name}'. Model parameters must be created "
                    "explicitly. "
                    f"To express '{name}' as a function of another Tensor, compute the value in the forward() method."
                )
            for hook in PARAMETER_REGISTRATION_HOOKS.values():
                replaced = hook(self, name, param)
                param = param if replaced is None else replaced
        self._parameters[name] = param

    def register_buffer(self, name, tensor, persistent=True):
        """Add a tensor that belongs to the module's state but is not trained.

        Args:
            persistent: whether it is part of the state_dict.
        """
        if "_buffers" not in self.__dict__:
            raise AttributeError("cannot assign buffer before Module.__init__() call")
        self._check_name("buffer", name, self._buffers)
        if tensor is not None and not is_tensor_like(tensor):
            raise TypeError(
                f"cannot assign '{_kind(tensor)}' object to buffer '{name}' (torch Tensor or None required)"
            )
        self._put_buffer(name, tensor, persistent)

    def _put_buffer(self, name, tensor, persistent):
        for hook in BUFFER_REGISTRATION_HOOKS.values():
            replaced = hook(self, name, tensor)
            tensor = tensor if replaced is None else replaced
        self._buffers[name] = tensor
        if persistent:
            self._non_persistent_buffers_set.discard(name)
        else:
            self._non_persistent_buffers_set.add(name)

    def add_module(self, name, module):
        """Add a submodule, or None where there could be one."""
        if module is not None and not isinstance(module, Module):
            raise TypeError(f"{_kind(module)} is not a Module subclass")
        self._check_name("module", name, self._modules)
        for hook in MODULE_REGISTRATION_HOOKS.values():
            replaced = hook(self, name, module)
            module = module if replaced is None else replaced
        self._modules[name] = module

    def register_module(self, name, module):
        """The same as `add_module`."""
        self.add_module(name, module)

    # ------------------------------------------------------------------ finding

    def get_submodule(self, target):
        """The submodule at a dotted path, such as "encoder.0.linear"."""
        module = self
        for name in target.split(".") if target else []:
            if not hasattr(module, name):
                raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
            module = getattr(module, name)
            if not isinstance(module, Module):
                raise AttributeError(f"`{name}` is not an nn.Module")
        return module

    def set_submodule(self, target, module, strict=False):
        """Put `module` at a dotted path.

        Args:
            strict: refuse a path at which there is no module yet.
        """
        if target == "":
            raise ValueError("Cannot set the submodule without a target name!")
        *path, name = target.split(".")
        if not isinstance(module, Module):
            raise ValueError(f"`module` is not an nn.Module, found {type(module)}")
        parent = self.get_submodule(".".join(path))
        if strict and not hasattr(parent, name):
            raise AttributeError(f"{parent._get_name()} has no attribute `{name}`")
        if hasattr(parent, name) and not isinstance(getattr(parent, name), Module):
            raise AttributeError(f"`{name}` is not an nn.Module")
        setattr(parent, name, module)

    def get_parameter(self, target):
        """The parameter at a dotted path."""
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        if not hasattr(module, name):
            raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
        parameter = getattr(module, name)
        if not isinstance(parameter, Parameter):
            raise AttributeError(f"`{name}` is not an nn.Parameter")
        return parameter

    def get_buffer(self, target):
        """The buffer at a dotted path."""
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        if not hasattr(module, name):
            raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
        if name not in module._buffers:
            raise AttributeError(f"`{name}` is not a buffer")
        return getattr(module, name)

    def named_modules(self, memo=None, prefix="", remove_duplicate=True):
        """This module and all below it, with their dotted paths; each once, unless `remove_duplicate` is false."""
        if memo is None:
            memo = set()
        if self in memo:
            return
        if remove_duplicate:
            memo.add(self)
        yield prefix, self
        for name, module in self._modules.items():
            if module is not None:
                path = f"{prefix}.{name}" if prefix else name
                yield from module.named_modules(memo, path, remove_duplicate)

    def modules(self, remove_duplicate=True):
        """This module and all below it, each once, or as often as it stands there."""
        for _, module in self.named_modules(remove_duplicate=remove_duplicate):
            yield module

    def named_children(self):
        """The direct submodules with their names, each once."""
        seen = set()
        for name, module in self._modules.items():
            if module is not None and module not in seen:
                seen.add(module)
                yield name, module

    def children(self):
        """The direct submodules, each once."""
        for _, module in self.named_children():
            yield module

    def _named_members(self, get_members_fn, prefix="", recurse=True, remove_duplicate=True):
        seen = set()
        modules = self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate) if recurse else [(prefix, self)]
        for path, module in modules:
            for name, value in get_members_fn(module):
                if value is None or value in seen:
                    continue
                if remove_duplicate:
                    seen.add(value)
                yield (f"{path}.{name}" if path else name), value

    def named_parameters(self, prefix="", recurse=True, remove_duplicate=True):
        """The parameters with their dotted paths, of this module and (with `recurse`) of all below it."""
        yield from self._named_members(lambda module: module._parameters.items(), prefix, recurse, remove_duplicate)

    def parameters(self, recurse=True):
        """The parameters of this module and (with `recurse`) of all below it: what an optimizer wants."""
        for _, parameter in self.named_parameters(recurse=recurse):
            yield parameter

    def named_buffers(self, prefix="", recurse=True, remove_duplicate=True):
        """The buffers with their dotted paths, of this module and (with `recurse`) of all below it."""
        yield from self._named_members(lambda module: module._buffers.items(), prefix, recurse, remove_duplicate)

    def buffers(self, recurse=True):
        """The buffers of this module and (with `recurse`) of all below it."""
        for _, buffer in self.named_buffers(recurse=recurse):
            yield buffer

    # ------------------------------------------------------------------ changing all

    def apply(self, fn):
        """Call `fn` with every submodule and then with this one."""
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    def _apply(self, fn, recurse=True):
        """Replace every parameter, gradient and buffer t by fn(t), keeping the parameters' identity where possible."""
        if recurse:
            for module in self.children():
                module._apply(fn)
        for name, parameter in self._parameters.items():
            if parameter is None:
                continue
            with cresset.no_grad():
                new = fn(parameter)
            if swaps(new):
                swap_parameter(f"{self._get_name()}.{name}", parameter, new, fn)
                continue
            grad = parameter.grad
            if can_keep(parameter, new):
                parameter.data = new
                kept = parameter
            else:
                kept = self._parameters[name] = Parameter(new, parameter.requires_grad)
            if grad is not None:
                with cresset.no_grad():
                    new_grad = fn(grad)
                if can_keep(grad, new_grad) and kept is parameter:
                    grad.data = new_grad
                else:
                    kept.grad = new_grad.requires_grad_(grad.requires_grad)
        for name, buffer in self._buffers.items():
            if buffer is not None:
                self._buffers[name] = fn(buffer)
        return self

    def to(self, *args, **kwargs):
        """Move all parameters and buffers, in place; a dtype changes the floating and complex ones only.

        Called as to(device), to(dtype), to(device, dtype), to(tensor) or to(memory_format=...).
        """
        device, dtype, non_blocking, memory_format = parse_to(*args, **kwargs)
        if dtype is not None and not (dtype.is_floating_point or dtype.is_complex):
            raise TypeError(
                f"nn.Module.to only accepts floating point or complex dtypes, but got desired dtype={dtype}"
            )

        def move(t):
            new_dtype = dtype if t.is_floating_point() or t.is_complex() else None
            if memory_format is not None and t.dim() in (4, 5):
                return t.to(device, new_dtype, non_blocking, memory_format=memory_format)
            return t.to(device, new_dtype, non_blocking)

        return self._apply(move)

    def to_empty(self, *, device, recurse=True):
        """Move to `device` without the values."""
        return self._apply(lambda t: cresset.empty_like(t, device=device), recurse=recurse)

    def type(self, dst_type):
        """Make all parameters and buffers `dst_type`."""
        return self._apply(lambda t: t.type(dst_type))

    def float(self):
        """Make all floating parameters and buffers float32."""
        return self._apply(lambda t: t.float() if t.is_floating_point() else t)

    def double(self):
        """Make all floating parameters and buffers float64."""
        return self._apply(lambda t: t.double() if t.is_floating_point() else t)

    def half(self):
        """Make all floating parameters and buffers float16."""
        return self._apply(lambda t: t.half() if t.is_floating_point() else t)

    def bfloat16(self):
        """Make all floating parameters and buffers bfloat16."""
        return self._apply(lambda t: t.bfloat16() if t.is_floating_point() else t)

    def cpu(self):
        """Move all parameters and buffers to the CPU."""
        return self._apply(lambda t: t.cpu())

    def cuda(self, device=None):
        """Move all parameters and buffers to a GPU."""
        return self._apply(lambda t: t.cuda(device))

    def xpu(self, device=None):
        """Move all parameters and buffers to one of Intel's GPUs; there is no support for them, so that is an error."""
        return self._apply(lambda t: t.xpu(device))

    def mtia(self, device=None):
        """Move all parameters and buffers to one of Meta's accelerators; there is no support for them, so that is an
        error.
        """
        return self._apply(lambda t: t.mtia(device))

    def ipu(self, device=None):
        """Move all parameters and buffers to one of Graphcore's processors; there is no support for them, so that is an
        error.
        """
        return self._apply(lambda t: t.ipu(device))

    def share_memory(self):
        """Move all parameters and buffers to memory that processes share."""
        return self._apply(lambda t: t.share_memory_())

    def train(self, mode=True):
        """Set training mode (or evaluation mode) here and below."""
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self):
        """Set evaluation mode here and below: dropout is off, normalization uses what it learned."""
        return self.train(False)

    def requires_grad_(self, requires_grad=True):
        """Train, or freeze, all parameters."""
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none=True):
        """Forget the gradients of all parameters, or set them to zero."""
        forget_gradients(list(self.parameters()), set_to_none)

    # ------------------------------------------------------------------ hooks

    def register_forward_pre_hook(self, hook, *, prepend=False, with_kwargs=False):
        """Call hook(module, args) before forward; what it returns takes the arguments' place.

        Args:
            prepend: before the hooks registered earlier.
            with_kwargs: call hook(module, args, kwargs), which may return (args, kwargs).
        """
        marks = [self._forward_pre_hooks_with_kwargs] * with_kwargs
        return add_hook(
            self._forward_pre_hooks, hook, self._forward_pre_hooks_with_kwargs, prepend=prepend, marks=marks
        )

    def register_forward_hook(self, hook, *, prepend=False, with_kwargs=False, always_call=False):
        """Call hook(module, args, output) after forward; what it returns takes the output's place.

        Args:
            prepend: before the hooks registered earlier.
            with_kwargs: call hook(module, args, kwargs, output).
            always_call: even if forward raises an exception.
        """
        extra = self._forward_hooks_with_kwargs, self._forward_hooks_always_called
        marks = [extra[0]] * with_kwargs + [extra[1]] * always_call
        return add_hook(self._forward_hooks, hook, *extra, prepend=prepend, marks=marks)

    def register_full_backward_pre_hook(self, hook, prepend=False):
        """Call hook(module, grad_output) before the backward of this module; what it returns takes grad_output's
        place."""
        return add_hook(self._backward_pre_hooks, hook, prepend=prepend)

    def register_full_backward_hook(self, hook, prepend=False):
        """Call hook(module, grad_input, grad_output) when the inputs' gradients are known; it may return new ones."""
        self._choose_backward_kind(True)
        return add_hook(self._backward_hooks, hook, prepend=prepend)

    def register_backward_hook(self, hook):
        """The older `register_full_backward_hook`, which sees the gradients of the last operation only."""
        self._choose_backward_kind(False)
        return add_hook(self._backward_hooks, hook)

    def _choose_backward_kind(self, is_full):
        if self._is_full_backward_hook is (not is_full):
            raise RuntimeError(
                "Cannot use both regular backward hooks and full backward hooks on a single Module. Please use only "
                "one of them."
            )
        self._is_full_backward_hook = is_full

    # ------------------------------------------------------------------ printing

    def _get_name(self):
        return type(self).__name__

    def extra_repr(self):
        """What stands between the parentheses when the module is printed."""
        return ""

    def __repr__(self):
        extra = self.extra_repr()
        lines = extra.split("\n") if extra else []
        children = [f"({name}): {_indented(repr(module))}" for name, module in self._modules.items()]
        if not children and len(lines) <= 1:
            return f"{self._get_name()}({extra})"
        return f"{self._get_name()}(\n  " + "\n  ".join(lines + children) + "\n)"

    def _replicate_for_data_parallel(self):
        replica = self.__new__(type(self))
        replica.__dict__ = self.__dict__.copy()
        replica._parameters, replica._buffers, replica._modules = {}, self._buffers.copy(), self._modules.copy()
        replica._is_replica = True
        return replica
