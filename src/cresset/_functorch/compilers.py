"""Compilers to begin with: they look at a graph, and let it run as it is."""

__all__ = ["nop", "print_compile"]


def nop(fx_g, _):
    """The graph, as it is."""
    return fx_g


def print_compile(fx_g, _):
    """The graph, as it is, after its code was printed."""
    print(fx_g.code)
    return fx_g
