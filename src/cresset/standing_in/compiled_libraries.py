"""Compiled libraries of other packages that `torch.ops.load_library` is asked for, and what stands in their place.

They are compiled for PyTorch's own C++ and cannot be loaded. torchvision's operators and picture formats are ours;
torchaudio's library holds loops, which are here.
"""

import os

from .. import library

__all__ = ["load"]


def load(path):
    """Define the operators of a known library; OSError for others."""
    path = os.fspath(path)
    package, stem = os.path.basename(os.path.dirname(path)), os.path.basename(path).partition(".")[0]
    if package == "torchvision" and stem in ("_C", "_C_stable"):
        from ..vision.torchvision_operators import define

        return define()
    if package == "torchvision" and stem == "image":
        from ..vision import image_operators

        return image_operators.define()
    if stem in ("_torchaudio", "libtorchaudio"):
        return _define_torchaudio()
    from ..utils.cpp_extension.opening import is_extension, open_extension

    if is_extension(path):
        return open_extension(path, stem.partition("-")[0])
    said = INSTEAD.get(package) or INSTEAD.get(os.path.basename(os.path.dirname(os.path.dirname(path))))
    if said is None and not os.path.exists(path):
        raise OSError(f"Could not load this library: {path}: there is no such file")
    raise OSError(
        f"load_library: {path} holds operators compiled for PyTorch, which cresset cannot load; "
        + (
            said
            or "define them with torch.library, or compile them with torch.utils.cpp_extension against "
            "cresset/extension.h"
        )
    )


# Packages that are compiled extensions of PyTorch, and what there is instead.
INSTEAD = {
    "flash_attn": "torch.nn.functional.scaled_dot_product_attention computes the same",
    "xformers": "torch.nn.functional.scaled_dot_product_attention computes the same",
    "bitsandbytes": "torch.ao.quantization quantizes models",
}

_audio = []


def _define_torchaudio():
    if _audio:
        return
    about, loops = library.Library("_torchaudio", "FRAGMENT"), library.Library("torchaudio", "FRAGMENT")
    for schema, answer in (
        ("cuda_version() -> int?", None),
        ("is_align_available() -> bool", False),
        ("is_rir_available() -> bool", False),
    ):
        about.define(schema)
        about.impl(schema.partition("(")[0], lambda answer=answer: answer, "CompositeExplicitAutograd")
    loops.define("_lfilter_core_loop(Tensor input, Tensor coefficients, Tensor(a!) padded_output) -> ()")
    loops.impl("_lfilter_core_loop", _filter_loop, "CompositeExplicitAutograd")
    loops.define(
        "_overdrive_core_loop(Tensor waveform, Tensor temp, Tensor last_in, Tensor last_out, Tensor(a!) output) -> ()"
    )
    loops.impl("_overdrive_core_loop", _overdrive_loop, "CompositeExplicitAutograd")
    _audio.extend([about, loops])


def _filter_loop(input, coefficients, padded_output):
    """A recursive filter: out[t] = input[t] - sum over k of coefficients[k] out[t - order + k]. (batch, channels,
    time); coefficients (channels, order + 1).
    """
    order = coefficients.shape[1]
    for t in range(input.shape[2]):
        before = padded_output[:, :, t : t + order]
        padded_output[:, :, t + order - 1] = input[:, :, t] - (before * coefficients).sum(2)


def _overdrive_loop(waveform, temp, last_in, last_out, output):
    """out[t] = (waveform[t] + 1.5 high[t]) / 2, where high is `temp` without its slow part: a first-order high-pass."""
    for t in range(waveform.shape[1]):
        last_out = temp[:, t] - last_in + 0.995 * last_out
        last_in = temp[:, t]
        output[:, t] = waveform[:, t] * 0.5 + last_out * 0.75
