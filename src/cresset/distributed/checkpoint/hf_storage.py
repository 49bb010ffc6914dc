"""torch.distributed.checkpoint.hf_storage: checkpoints as safetensors files that several processes write. Refused:
`safetensors.torch` writes and reads such files in one process, and FileSystemWriter writes from several.
"""

__all__ = ["HuggingFaceStorageReader", "HuggingFaceStorageWriter"]


def _refusal(what):
    return NotImplementedError(
        f"{what}: safetensors checkpoints of several processes are not supported; FileSystemReader and "
        "FileSystemWriter are, and safetensors.torch in one process"
    )


class HuggingFaceStorageWriter:
    """Refused: see the module."""

    def __init__(self, path, *args, **kwargs):
        raise _refusal(f"HuggingFaceStorageWriter({path!r})")


class HuggingFaceStorageReader:
    """Refused: see the module."""

    def __init__(self, path, *args, **kwargs):
        raise _refusal(f"HuggingFaceStorageReader({path!r})")
