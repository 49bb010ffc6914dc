"""The door of a compiled function: arguments of a call become what its schema says, or the call is refused with
PyTorch's words.
"""

from ..graph.types import TensorType, UnionType
from .lowering import program
from .typed_values import Mismatch, accept, give


def _as_it_is(value):
    return value


class Door:
    """Calls a Function from Python; a method's object is its first argument."""

    __slots__ = ("_checks", "_function", "_give", "_names", "_schema", "program", "tensors")

    def __init__(self, function):
        self.program = program(function)
        self._function, self._schema = function, function.schema
        arguments = self._schema.arguments
        self._names = [argument.name for argument in arguments]
        self._checks = [accept(argument.type) for argument in arguments]
        if function.owner is not None:
            self._checks[0] = _as_it_is  # a method is found through its object
        self._give = give(self._schema.returns)
        # How many tensors it takes, if it takes nothing else and what it gives needs no change: then a call needs one
        # look at each. Else -1.
        plain = self._give is None and all(isinstance(argument.type, TensorType) for argument in arguments)
        self.tensors = len(arguments) if plain else -1

    def __call__(self, args, kwargs):
        if kwargs or len(args) != len(self._checks):
            args = self._complete(args, kwargs)
        try:
            values = [check(value) for check, value in zip(self._checks, args, strict=True)]
        except Mismatch:
            self._refuse(args)
        result = self.program(*values)
        return result if self._give is None else self._give(result)

    def _complete(self, args, kwargs):
        """All arguments in order: those given by name put in place, defaults filled in."""
        name, arguments = self._schema.name, self._schema.arguments
        if len(args) > len(arguments):
            raise RuntimeError(
                f"{name}() expected at most {len(arguments)} argument(s) but received {len(args)} argument(s). "
                f"Declaration: {self._schema}"
            )
        values, used = list(args), 0
        for argument in arguments[len(args) :]:
            if argument.name in kwargs:
                values.append(kwargs[argument.name])
                used += 1
            elif argument.has_default:
                values.append(argument.default_value)
            else:
                raise RuntimeError(
                    f"{name}() is missing value for argument '{argument.name}'. Declaration: {self._schema}"
                )
        if used != len(kwargs):
            for given in kwargs:
                if given not in self._names:
                    raise RuntimeError(
                        f"Unknown keyword argument '{given}' for operator '{name}'. Schema: {self._schema}"
                    )
            twice = next(given for given in kwargs if given in self._names[: len(args)])
            raise RuntimeError(f"{name}() got multiple values for argument '{twice}'. Declaration: {self._schema}")
        return values

    def _refuse(self, args):
        for position, (check, value) in enumerate(zip(self._checks, args, strict=True)):
            try:
                check(value)
            except Mismatch:
                argument = self._schema.arguments[position]
                wanted = f"value of type '{argument.type.annotation_str}'"
                if isinstance(argument.type, UnionType):
                    wanted = f"member of {argument.type.annotation_str}"
                raise RuntimeError(
                    f"{self._schema.name}() Expected a {wanted} for argument "
                    f"'{argument.name}' but instead found type '{type(value).__name__}'.\n"
                    f"Position: {position}\nValue: {value!r}\nDeclaration: {self._schema}"
                ) from None
