"""PyTorch's place for the range of a symbolic size."""


def __getattr__(name):
    if name != "ValueRanges":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from ...fx.experimental.formulas import ValueRanges  # upward: PyTorch keeps it here, fx uses it

    return ValueRanges
