"""The safetensors format under a short name: see serialization/safetensors.py."""

from .serialization.safetensors import (  # noqa: F401
    SafetensorError,
    load,
    load_file,
    load_model,
    safe_open,
    save,
    save_file,
    save_model,
)
