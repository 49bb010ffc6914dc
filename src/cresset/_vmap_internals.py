"""torch._vmap_internals: PyTorch's older vmap, which is `cresset.func.vmap`."""

from .func import vmap


def _vmap(func, in_dims=0, out_dims=0, allow_none_pass_through=False):
    """`func.vmap`. `allow_none_pass_through` changes nothing: None comes out as it is."""
    return vmap(func, in_dims, out_dims)
