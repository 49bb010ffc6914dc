"""Styles: how a layer's weights are cut, and how what goes in and comes out is placed."""

from abc import ABC, abstractmethod

import cresset

from .... import nn
from ..creation import distribute_module, distribute_tensor
from ..dtensor import DTensor
from ..placement_types import Placement, Replicate, Shard


class ParallelStyle(ABC):
    """What parallelize_module does to a module."""

    src_data_rank = 0

    @abstractmethod
    def _apply(self, module, device_mesh):
        """The module, changed."""


def _placed(value, mesh, given, wanted):
    """A tensor, plain ones being parts of one that is placed as `given`, placed as `wanted`."""
    if not isinstance(value, DTensor):
        value = DTensor.from_local(value, mesh, given, run_check=False)
    return value if value.placements == tuple(wanted) else value.redistribute(mesh, wanted)


def _local(value, use_local_output):
    return value.to_local() if use_local_output and isinstance(value, DTensor) else value


class _Weights(ParallelStyle):
    """The common part of styles with a way to cut weights."""

    use_local_output = True

    def __init__(self, input_layouts, output_layouts, desired, use_local_output):
        self.input_layouts, self.output_layouts = (input_layouts,), (output_layouts,)
        self.desired_input_layouts = (desired,)
        self.use_local_output = use_local_output

    def _cut(self, module, mesh, placements):
        for name, parameter in list(module.named_parameters(recurse=False)):
            placement = placements.get(name)
            if placement is not None:
                made = distribute_tensor(parameter.detach(), mesh, [placement], src_data_rank=self.src_data_rank)
                module.register_parameter(name, nn.Parameter(made, parameter.requires_grad))

    def _input(self, module, inputs, mesh):
        return (_placed(inputs[0], mesh, self.input_layouts, self.desired_input_layouts), *inputs[1:])

    def _output(self, module, outputs, mesh):
        if outputs.placements != self.output_layouts:
            outputs = outputs.redistribute(mesh, self.output_layouts)
        return _local(outputs, self.use_local_output)

    def _apply(self, module, device_mesh):
        return distribute_module(module, device_mesh, self._partition, self._input, self._output)

    def __repr__(self):
        return (
            f"{type(self).__name__}(input_layouts={self.input_layouts}, output_layouts={self.output_layouts}, "
            f"use_local_output={self.use_local_output})"
        )


class ColwiseParallel(_Weights):
    """A Linear or Embedding cut along its results: each process computes some of the features.

    Args:
        input_layouts: how the input is placed; by default whole.
        output_layouts: how the result is wanted; by default cut along the last dimension.
        use_local_output: give the part as a plain tensor.
    """

    def __init__(self, *, input_layouts=None, output_layouts=None, use_local_output=True):
        super().__init__(input_layouts or Replicate(), output_layouts or Shard(-1), Replicate(), use_local_output)

    def _partition(self, name, module, mesh):
        if isinstance(module, nn.Linear):
            self._cut(module, mesh, {"weight": Shard(0), "bias": Shard(0)})
        elif isinstance(module, nn.Embedding):
            self._cut(module, mesh, {"weight": Shard(1)})
        else:
            raise NotImplementedError("ColwiseParallel currently only support nn.Linear and nn.Embedding!")


class RowwiseParallel(_Weights):
    """A Linear cut along its inputs, or an Embedding along its rows: each process has a part of the sum.

    Args:
        input_layouts: how the input is placed; by default cut along the last dimension.
        output_layouts: how the result is wanted; by default whole.
        use_local_output: give the part as a plain tensor.
    """

    def __init__(self, *, input_layouts=None, output_layouts=None, use_local_output=True):
        super().__init__(input_layouts or Shard(-1), output_layouts or Replicate(), Shard(-1), use_local_output)

    def _partition(self, name, module, mesh):
        if isinstance(module, nn.Linear):
            self._cut(module, mesh, {"weight": Shard(1), "bias": Replicate()})
        elif isinstance(module, nn.Embedding):
            self._cut(module, mesh, {"weight": Shard(0)})
        else:
            raise NotImplementedError("RowwiseParallel currently only support nn.Linear and nn.Embedding!")

    def _apply(self, module, device_mesh):
        if isinstance(module, nn.Embedding):
            self.desired_input_layouts = (Replicate(),)
        return super()._apply(module, device_mesh)


class SequenceParallel(ParallelStyle):
    """A layer whose weights are whole and whose input is cut along the sequence: LayerNorm, RMSNorm, Dropout.

    Args:
        sequence_dim: the dimension of the sequence.
        use_local_output: give the part as a plain tensor.
    """

    def __init__(self, *, sequence_dim=1, use_local_output=False):
        self.sequence_sharding, self.use_local_output = (Shard(sequence_dim),), use_local_output

    def _apply(self, module, device_mesh):
        return distribute_module(
            module,
            device_mesh,
            None,
            lambda part, inputs, mesh: (
                _placed(inputs[0], mesh, self.sequence_sharding, self.sequence_sharding),
                *inputs[1:],
            ),
            lambda part, outputs, mesh: _local(outputs, self.use_local_output),
        )

    def __repr__(self):
        return f"{type(self).__name__}(sequence_dim={self.sequence_sharding[0].dim}, " \
               f"use_local_output={self.use_local_output})"  # fmt: skip


def _tuple(layouts):
    return (layouts,) if isinstance(layouts, Placement) or layouts is None else tuple(layouts)


def _prepared(value, mesh, given, wanted, use_local):
    if given is None:
        return value
    if not isinstance(value, cresset.Tensor):
        raise TypeError(f"expected a tensor for the layout {given}, got {type(value).__name__}")
    made = _placed(value, mesh, (given,), (given,))
    if wanted is not None and made.placements != (wanted,):
        made = made.redistribute(mesh, (wanted,))
    return _local(made, use_local)


class PrepareModuleInput(ParallelStyle):
    """Placements of what goes into a module.

    Args:
        input_layouts: for each positional argument how it is placed; None leaves it as it is.
        desired_input_layouts: how the module wants it.
        input_kwarg_layouts, desired_input_kwarg_layouts: the same for arguments by name.
        use_local_output: give the module plain tensors.
    """

    def __init__(
        self, *, input_layouts=None, desired_input_layouts=None, input_kwarg_layouts=None,
        desired_input_kwarg_layouts=None, use_local_output=False,
    ):  # fmt: skip
        self.input_layouts = None if input_layouts is None else _tuple(input_layouts)
        self.desired_input_layouts = None if desired_input_layouts is None else _tuple(desired_input_layouts)
        self.use_local_output = use_local_output
        self.input_kwarg_layouts = input_kwarg_layouts or {}
        self.desired_input_kwarg_layouts = desired_input_kwarg_layouts or {}
        if self.input_layouts is not None:
            if self.desired_input_layouts is None:
                raise AssertionError("desired module inputs should not be None!")
            if len(self.input_layouts) != len(self.desired_input_layouts):
                raise AssertionError("input_layouts and desired_input_layouts should have same length!")
        if len(self.input_kwarg_layouts) != len(self.desired_input_kwarg_layouts):
            raise AssertionError("input_kwarg_layouts and desired_input_kwarg_layouts should have same length!")

    def _positional(self, inputs, mesh):
        if self.input_layouts is None:
            return inputs
        inputs = inputs if isinstance(inputs, tuple) else (inputs,)
        if len(inputs) != len(self.input_layouts):
            raise ValueError("module inputs and input_layouts should have same length!")
        pairs = zip(inputs, self.input_layouts, self.desired_input_layouts, strict=True)
        return tuple(_prepared(value, mesh, a, b, self.use_local_output) for value, a, b in pairs)

    def _named(self, inputs, named, mesh):
        made = {
            name: _prepared(value, mesh, self.input_kwarg_layouts.get(name),
                            self.desired_input_kwarg_layouts.get(name), self.use_local_output)
            for name, value in named.items()
        }  # fmt: skip
        return self._positional(inputs, mesh), made

    def _apply(self, module, device_mesh):
        if self.input_kwarg_layouts:
            module.register_forward_pre_hook(
                lambda part, inputs, named: self._named(inputs, named, device_mesh), with_kwargs=True
            )
        else:
            module.register_forward_pre_hook(lambda part, inputs: self._positional(inputs, device_mesh))
        return module

    def __repr__(self):
        return (
            f"{type(self).__name__}(input_layouts={self.input_layouts}, "
            f"desired_input_layouts={self.desired_input_layouts}, input_kwarg_layouts={self.input_kwarg_layouts}, "
            f"desired_input_kwarg_layouts={self.desired_input_kwarg_layouts}, use_local_output={self.use_local_output})"
        )


class PrepareModuleOutput(ParallelStyle):
    """Placements of what comes out of a module.

    Args:
        output_layouts: for each result how it is placed; None leaves it as it is.
        desired_output_layouts: how it is wanted.
        use_local_output: give plain tensors.
    """

    def __init__(self, *, output_layouts, desired_output_layouts, use_local_output=True):
        self.output_layouts, self.desired_output_layouts = _tuple(output_layouts), _tuple(desired_output_layouts)
        self.use_local_output = use_local_output
        if len(self.output_layouts) != len(self.desired_output_layouts):
            raise AssertionError("output_layouts and desired_output_layouts should have same length!")

    def _outputs(self, outputs, mesh):
        listed = outputs if isinstance(outputs, tuple) else (outputs,)
        if len(listed) != len(self.output_layouts):
            raise ValueError("module outputs and output_layouts should have same length!")
        pairs = zip(listed, self.output_layouts, self.desired_output_layouts, strict=True)
        made = tuple(_prepared(value, mesh, a, b, self.use_local_output) for value, a, b in pairs)
        return made if isinstance(outputs, tuple) else made[0]

    def _apply(self, module, device_mesh):
        module.register_forward_hook(lambda part, inputs, outputs: self._outputs(outputs, device_mesh))
        return module

    def __repr__(self):
        return (
            f"{type(self).__name__}(output_layouts={self.output_layouts}, "
            f"desired_output_layouts={self.desired_output_layouts}, use_local_output={self.use_local_output})"
        )


class PrepareModuleInputOutput(ParallelStyle):
    """PrepareModuleInput and PrepareModuleOutput together; their arguments, with `use_local_input` for the former's."""

    def __init__(
        self, *, input_layouts=None, desired_input_layouts=None, input_kwarg_layouts=None,
        desired_input_kwarg_layouts=None, use_local_input=False, output_layouts, desired_output_layouts,
        use_local_output=True,
    ):  # fmt: skip
        self.prepare_module_input = PrepareModuleInput(
            input_layouts=input_layouts, desired_input_layouts=desired_input_layouts,
            input_kwarg_layouts=input_kwarg_layouts, desired_input_kwarg_layouts=desired_input_kwarg_layouts,
            use_local_output=use_local_input,
        )  # fmt: skip
        self.prepare_module_output = PrepareModuleOutput(
            output_layouts=output_layouts, desired_output_layouts=desired_output_layouts,
            use_local_output=use_local_output,
        )  # fmt: skip

    def _apply(self, module, device_mesh):
        return self.prepare_module_output._apply(self.prepare_module_input._apply(module, device_mesh), device_mesh)

    def __repr__(self):
        return f"{type(self).__name__}({self.prepare_module_input}, {self.prepare_module_output})"


for _class in (ParallelStyle, ColwiseParallel, RowwiseParallel, SequenceParallel, PrepareModuleInput,
               PrepareModuleOutput, PrepareModuleInputOutput):  # fmt: skip
    _class.__module__ = "torch.distributed.tensor.parallel.style"
