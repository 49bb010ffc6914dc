"""torch.utils._mode_utils: a block without __torch_dispatch__, and a question."""


def __getattr__(name):
    if name == "no_dispatch":
        from ..dispatch.modes import no_dispatch  # upward: the public name of what stands above

        return no_dispatch
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def all_same_mode(modes):
    """Whether all of these are one mode."""
    return all(tuple(mode == modes[0] for mode in modes))
