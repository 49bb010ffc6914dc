"""PyTorch's place for the end of a range that has none."""


def __getattr__(name):
    if name not in ("IntInfinity", "int_oo"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from ...fx.experimental.formulas import int_oo  # upward: PyTorch keeps it here, fx uses it

    return int_oo if name == "int_oo" else type(int_oo)
