"""Settings of PyTorch's capture of frames. Nothing captures frames here: see docs/ignored_arguments.md."""

import types

_settings = {"lru_cache": True}


def _set_lru_cache(enabled):
    """Keep the setting of the order of guards; there are no guards on frames, so that it has no effect."""
    _settings["lru_cache"] = bool(enabled)


eval_frame = types.SimpleNamespace(_set_lru_cache=_set_lru_cache)
