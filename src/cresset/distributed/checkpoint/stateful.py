"""torch.distributed.checkpoint.stateful: what `save` asks for its state, and `load` gives it back to."""

from typing import Any, Protocol, runtime_checkable

__all__ = ["Stateful"]


@runtime_checkable
class Stateful(Protocol):
    """Something that knows its state.

    >>> isinstance(nn.Linear(1, 1), cresset.distributed.checkpoint.stateful.Stateful)
    True
    """

    def state_dict(self) -> dict[str, Any]:
        """The state."""
        ...

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take it over."""
        ...
