"""torch._prims_common, as far as other packages name it."""

from ..backends.determinism import alert_not_deterministic

__all__ = ["alert_not_deterministic"]
