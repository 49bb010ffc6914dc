"""torch.distributed.constants: how long a collective waits when nobody says."""

from .group import DEFAULT_TIMEOUT as default_pg_timeout

__all__ = ["default_pg_timeout"]
