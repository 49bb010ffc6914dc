"""torch._prims_common, as far as other packages name it."""

from .determinism import alert_not_deterministic

__all__ = ["alert_not_deterministic"]
