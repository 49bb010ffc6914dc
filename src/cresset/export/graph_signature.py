"""What the inputs and outputs of an exported graph are: parameters, buffers, constants, what the user gives and
gets."""

import dataclasses
import enum

__all__ = [
    "ConstantArgument", "CustomObjArgument", "ExportBackwardSignature", "ExportGraphSignature", "InputKind",
    "InputSpec", "OutputKind", "OutputSpec", "SymBoolArgument",
    "SymFloatArgument", "SymIntArgument", "TensorArgument", "TokenArgument",
]  # fmt: skip


@dataclasses.dataclass
class TensorArgument:
    """A tensor, by the name of its node."""

    name: str


@dataclasses.dataclass
class TokenArgument:
    """An order between effects, by the name of its node."""

    name: str


@dataclasses.dataclass
class SymIntArgument:
    """A size, by the name of its node."""

    name: str


@dataclasses.dataclass
class SymFloatArgument:
    """A number that depends on sizes, by the name of its node."""

    name: str


@dataclasses.dataclass
class SymBoolArgument:
    """A condition on sizes, by the name of its node."""

    name: str


@dataclasses.dataclass
class CustomObjArgument:
    """An object of a class of the program's own."""

    name: str
    class_fqn: str
    fake_val: object = None


@dataclasses.dataclass
class ConstantArgument:
    """A number, text or None that is the same in every call."""

    name: str
    value: object


class InputKind(enum.Enum):
    """Where an input of the graph comes from."""

    USER_INPUT = enum.auto()
    PARAMETER = enum.auto()
    BUFFER = enum.auto()
    CONSTANT_TENSOR = enum.auto()
    CUSTOM_OBJ = enum.auto()
    TOKEN = enum.auto()


class OutputKind(enum.Enum):
    """Where an output of the graph goes."""

    USER_OUTPUT = enum.auto()
    LOSS_OUTPUT = enum.auto()
    BUFFER_MUTATION = enum.auto()
    PARAMETER_MUTATION = enum.auto()
    GRADIENT_TO_PARAMETER = enum.auto()
    GRADIENT_TO_USER_INPUT = enum.auto()
    USER_INPUT_MUTATION = enum.auto()
    TOKEN = enum.auto()


@dataclasses.dataclass
class InputSpec:
    """An input of the graph."""

    kind: InputKind
    arg: object
    target: str | None
    persistent: bool | None = None

    def __post_init__(self):
        if self.kind is InputKind.BUFFER and self.persistent is None:
            raise AssertionError("Failed to specify persistent flag on BUFFER.")

    def __str__(self):
        target = "" if self.target is None else f" target={self.target!r}"
        persistent = "" if self.persistent is None else f" persistent={self.persistent}"
        return f"{self.arg.name}: {self.kind.name}{target}{persistent}"


@dataclasses.dataclass
class OutputSpec:
    """An output of the graph."""

    kind: OutputKind
    arg: object
    target: str | None

    def __str__(self):
        target = "" if self.target is None else f" target={self.target!r}"
        return f"{self.arg.name}: {self.kind.name}{target}"


@dataclasses.dataclass
class ExportBackwardSignature:
    """Which outputs are gradients, of a graph that computes them."""

    gradients_to_parameters: dict
    gradients_to_user_inputs: dict
    loss_output: str


@dataclasses.dataclass
class ExportGraphSignature:
    """All inputs and outputs of a graph, in its order."""

    input_specs: list
    output_specs: list

    def _inputs(self, *kinds):
        return [spec for spec in self.input_specs if spec.kind in kinds]

    @property
    def parameters(self):
        """The names of the parameters, as the module has them."""
        return tuple(spec.target for spec in self._inputs(InputKind.PARAMETER))

    @property
    def buffers(self):
        return tuple(spec.target for spec in self._inputs(InputKind.BUFFER))

    @property
    def non_persistent_buffers(self):
        return tuple(spec.target for spec in self._inputs(InputKind.BUFFER) if not spec.persistent)

    @property
    def lifted_tensor_constants(self):
        return tuple(spec.target for spec in self._inputs(InputKind.CONSTANT_TENSOR))

    @property
    def lifted_custom_objs(self):
        return tuple(spec.target for spec in self._inputs(InputKind.CUSTOM_OBJ))

    @property
    def user_inputs(self):
        """What the user gives: names of nodes, and the values of constants."""
        return tuple(
            spec.arg.value if isinstance(spec.arg, ConstantArgument) else spec.arg.name
            for spec in self._inputs(InputKind.USER_INPUT)
        )

    @property
    def user_outputs(self):
        outputs = [spec for spec in self.output_specs if spec.kind in (OutputKind.USER_OUTPUT, OutputKind.LOSS_OUTPUT)]
        return tuple(spec.arg.value if isinstance(spec.arg, ConstantArgument) else spec.arg.name for spec in outputs)

    @property
    def inputs_to_parameters(self):
        return {spec.arg.name: spec.target for spec in self._inputs(InputKind.PARAMETER)}

    @property
    def inputs_to_buffers(self):
        return {spec.arg.name: spec.target for spec in self._inputs(InputKind.BUFFER)}

    @property
    def inputs_to_lifted_tensor_constants(self):
        return {spec.arg.name: spec.target for spec in self._inputs(InputKind.CONSTANT_TENSOR)}

    @property
    def inputs_to_lifted_custom_objs(self):
        return {spec.arg.name: spec.target for spec in self._inputs(InputKind.CUSTOM_OBJ)}

    def _written(self, kind):
        return {spec.arg.name: spec.target for spec in self.output_specs if spec.kind is kind}

    @property
    def buffers_to_mutate(self):
        """The outputs that are new values of buffers: {name of the output: name of the buffer}."""
        return self._written(OutputKind.BUFFER_MUTATION)

    @property
    def parameters_to_mutate(self):
        return self._written(OutputKind.PARAMETER_MUTATION)

    @property
    def user_inputs_to_mutate(self):
        return self._written(OutputKind.USER_INPUT_MUTATION)

    @property
    def input_tokens(self):
        return tuple(spec.arg.name for spec in self._inputs(InputKind.TOKEN))

    @property
    def output_tokens(self):
        return tuple(spec.arg.name for spec in self.output_specs if spec.kind is OutputKind.TOKEN)

    @property
    def backward_signature(self):
        """None: graphs of gradients are not exported."""
        return None

    @property
    def assertion_dep_token(self):
        return None

    def replace_all_uses(self, old, new):
        """Call what was called `old` by another name."""
        for spec in (*self.input_specs, *self.output_specs):
            if not isinstance(spec.arg, ConstantArgument) and spec.arg.name == old:
                spec.arg.name = new

    def __str__(self):
        inputs = "\n".join(map(str, self.input_specs))
        outputs = "\n".join(map(str, self.output_specs))
        return f"\n# inputs\n{inputs}\n\n# outputs\n{outputs}\n"
