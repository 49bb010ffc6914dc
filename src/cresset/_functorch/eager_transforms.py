"""Which arguments a transform is of."""

from ..func.derivatives import checked_argnums


def _slice_argnums(args, argnums, as_tuple=True):
    """The arguments at `argnums`, as a tuple; the one itself, if it is one number and no tuple is asked for."""
    if isinstance(argnums, int) and not as_tuple:
        return args[checked_argnums(argnums, len(args))[0]]
    return tuple(args[place] for place in checked_argnums(argnums, len(args)))
