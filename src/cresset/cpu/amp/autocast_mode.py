"""PyTorch's torch.cpu.amp.autocast_mode: old names, which amp/old_names.py holds."""


def __getattr__(name):
    from ...amp.old_names import (
        of_cpu,  # upward: amp stands above the devices; its old names are looked up when they are used
    )

    if name in of_cpu:
        return of_cpu[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    from ...amp.old_names import of_cpu  # upward: as above

    return sorted({*globals(), *of_cpu})
