"""`torch.return_types`: the named tuples in which functions give several tensors, by the name of the function."""

import cresset

from .ops import return_types as _made_in_python

__all__ = ["all_return_types"]


def _native_types():
    """The types that native operators give their results in, as each gives them."""
    one = cresset.zeros(1)
    calls = {
        "aminmax": (), "cummax": (0,), "cummin": (0,), "kthvalue": (1,), "max": (0,), "median": (0,), "min": (0,),
        "mode": (0,),
        "nanmedian": (0,), "sort": (), "topk": (1,),
    }  # fmt: skip
    return {name: type(getattr(cresset, name)(one, *arguments)) for name, arguments in calls.items()}


all_return_types = []
_types = {**_native_types(), **{k: v for k, v in vars(_made_in_python).items() if isinstance(v, type)}}
for _name, _type in sorted(_types.items()):
    globals()[_name] = globals()[_name + "_out"] = _type
    __all__ += [_name, _name + "_out"]
    all_return_types.append(_type)
