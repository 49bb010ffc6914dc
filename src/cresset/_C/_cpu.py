"""Questions about the processor, under the name that other packages have for them."""

from ..cpu import _is_amx_tile_supported, _is_avx2_supported, _is_avx512_supported, _is_vnni_supported

__all__ = ["_is_amx_tile_supported", "_is_avx2_supported", "_is_avx512_supported", "_is_vnni_supported"]
