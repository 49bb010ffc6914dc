"""torch.distributed.algorithms: what stands on the collectives."""

from .join import Join, Joinable, JoinHook

__all__ = ["Join", "JoinHook", "Joinable"]
