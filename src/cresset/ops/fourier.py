"""The discrete Fourier transform, native, with its derivatives, and the short-time transform made of it. `torch.fft` is
in cresset/fft.py.
"""

import warnings

import cresset

from .._native import name_node
from .batches import all_samples
from .registry import batch, function, operator

fft_complex = operator(
    "fft_complex", """The Fourier transform of a complex tensor along the dimensions `dim`, times `scale`."""
)


@fft_complex.derivative
def _(grad, dim, forward, scale):
    # The transform is linear and symmetric: its adjoint is the transform the other way.
    yield lambda: cresset.fft_complex(grad, dim, not forward, scale)


fft_from_real = operator(
    "fft_from_real",
    """The Fourier transform of a real tensor along the dimensions `dim`, times `scale`: half of the last of them.""",
)


@fft_from_real.derivative
def _(grad, dim, forward, scale, input_info):
    # The adjoint, where the half that was not computed has no gradient.
    def back():
        missing = list(grad.shape)
        missing[dim[-1]] = input_info.shape[dim[-1]] - grad.shape[dim[-1]]
        whole = cresset.cat([grad, grad.new_zeros(missing)], dim[-1]) if missing[dim[-1]] else grad
        return cresset.fft_complex(whole, dim, not forward, scale).real

    yield back


fft_to_real = operator(
    "fft_to_real",
    """The Fourier transform to a real tensor from half of its spectrum, times `scale`: `size` elements of the last of
    the dimensions `dim`.""",
)


@fft_to_real.derivative
def _(grad, dim, size, forward, scale):
    # An element counts twice if its conjugate is another one.
    def back():
        half = cresset.fft_from_real(grad, dim, not forward, scale)
        doubled = (size - 1) // 2
        if not doubled:
            return half
        factors = cresset.ones(half.shape[dim[-1]], dtype=grad.dtype, device=grad.device)
        factors[1 : 1 + doubled] = 2
        return half * factors.reshape([-1 if d == dim[-1] % half.ndim else 1 for d in range(half.ndim)])

    yield back


def _lengths(who, n_fft, hop_length, win_length, window):
    """The hop and the window as they are used: the window of `n_fft` places, zeros around it if it is shorter."""
    hop_length = n_fft // 4 if hop_length is None else hop_length
    win_length = n_fft if win_length is None else win_length
    if hop_length <= 0:
        raise RuntimeError(f"{who}: expected hop_length > 0, but got hop_length={hop_length}")
    if not 0 < win_length <= n_fft:
        raise RuntimeError(f"{who}: expected 0 < win_length <= n_fft={n_fft}, but got win_length={win_length}")
    if window is not None and tuple(window.shape) != (win_length,):
        raise RuntimeError(
            f"{who}: expected a 1D window tensor of size equal to win_length={win_length}, "
            f"but got window with size {list(window.shape)}"
        )
    return hop_length, win_length


def _padded_window(window, win_length, n_fft, like):
    """The window (ones if None) in the middle of `n_fft` places."""
    if window is None:
        window = like.new_ones(win_length)
    if win_length < n_fft:
        left = (n_fft - win_length) // 2
        window = cresset.cat([window.new_zeros(left), window, window.new_zeros(n_fft - win_length - left)])
    return window


def _extended(signal, count, mode):
    """The signals with `count` more samples at both ends."""
    length = signal.size(-1)
    if mode == "constant":
        ends = (signal.new_zeros(signal.size(0), count),) * 2
    elif mode == "replicate":
        ends = tuple(signal.narrow(-1, at, 1).expand(-1, count) for at in (0, length - 1))
    elif mode in ("reflect", "circular"):
        if count > length - (mode == "reflect"):
            raise RuntimeError(
                f"stft: Padding size should be less than the corresponding input dimension, "
                f"but got {count} at both ends of {length} samples"
            )
        if mode == "reflect":
            ends = (signal.narrow(-1, 1, count).flip(-1), signal.narrow(-1, length - 1 - count, count).flip(-1))
        else:
            ends = (signal.narrow(-1, length - count, count), signal.narrow(-1, 0, count))
    else:
        raise NotImplementedError(f"stft: Unrecognised padding mode {mode}")
    return cresset.cat([ends[0], signal, ends[1]], -1)


@function(method=True, autocast={"cpu": "float32"})
def stft(
    input,
    n_fft,
    hop_length=None,
    win_length=None,
    window=None,
    center=True,
    pad_mode="reflect",
    normalized=False,
    onesided=None,
    return_complex=None,
    align_to_window=None,
):
    """The Fourier transforms of overlapping stretches of a signal.

    Args:
        input: shape (samples,) or (batch, samples).
        n_fft: the number of samples of a stretch.
        hop_length: the distance of stretches; n_fft / 4 if None.
        win_length, window: weights for the middle of each stretch; ones if None.
        center: put the middle of stretch t at sample t * hop_length, extending the signal at both ends by `pad_mode`.
        normalized: divide by √n_fft.
        onesided: only the frequencies from 0 up; the default for real signals.
        return_complex: a complex result, or else a last dimension of real and imaginary part. Needed for real signals.

    Shape of the result: ([batch,] frequencies, stretches).

    >>> cresset.stft(cresset.ones(8), 4, window=cresset.ones(4), return_complex=True).shape
    torch.Size([3, 9])
    """
    is_complex = input.is_complex() or (window is not None and window.is_complex())
    if return_complex is None:
        if not is_complex:
            raise RuntimeError(
                "stft requires the return_complex parameter be given for real inputs; True gives a complex result"
            )
        return_complex = True
    onesided = not is_complex if onesided is None else onesided
    if onesided and is_complex:
        raise RuntimeError("stft: Cannot have onesided output if window or input is complex")
    if not (input.is_floating_point() or input.is_complex()) or input.ndim not in (1, 2):
        raise RuntimeError(
            f"stft: expected a 1D or 2D tensor of floating types, got {input.dtype} of shape {list(input.shape)}"
        )
    if align_to_window is not None and center:
        raise RuntimeError("stft align_to_window should only be set when center = false.")
    hop_length, win_length = _lengths("stft", n_fft, hop_length, win_length, window)
    signal = input.unsqueeze(0) if input.ndim == 1 else input
    if center:
        signal = _extended(signal, n_fft // 2, pad_mode)
    samples = signal.size(-1)
    if align_to_window and win_length < n_fft:
        # The stretches begin where the window does, so that its zeros may lie outside of the signal.
        left = (n_fft - win_length) // 2
        edges = (signal.new_zeros(signal.size(0), left), signal.new_zeros(signal.size(0), n_fft - win_length - left))
        signal = cresset.cat([edges[0], signal, edges[1]], -1)
        samples = signal.size(-1)
    if not 0 < n_fft <= samples:
        raise RuntimeError(f"stft: expected 0 < n_fft < {samples}, but got n_fft={n_fft}")
    if window is None:
        warnings.warn(
            "A window was not provided. A rectangular window will be applied by stft, which smears each frequency over "
            "its neighbors (spectral leakage); torch.hann_window(win_length) does so less. Give "
            "window=torch.ones(win_length) to keep the rectangular one",
            stacklevel=3,
        )
    stretches = signal.unfold(-1, n_fft, hop_length)
    if window is not None or win_length < n_fft:
        stretches = stretches * _padded_window(window, win_length, n_fft, signal)
    transform = cresset.fft.rfft if onesided else cresset.fft.fft
    result = transform(stretches, norm="ortho" if normalized else None).transpose(1, 2)
    result = result.squeeze(0) if input.ndim == 1 else result
    name_node(result, "SqueezeBackward4" if input.ndim == 1 else "TransposeBackward1")
    return result if return_complex else cresset.view_as_real(result)


@function(method=True)
def istft(
    input,
    n_fft,
    hop_length=None,
    win_length=None,
    window=None,
    center=True,
    normalized=False,
    onesided=None,
    length=None,
    return_complex=False,
):
    """The signal whose `stft` this is: the least-squares estimate by overlapping and adding.

    Args:
        input: complex, of shape ([batch,] frequencies, stretches); the other arguments are those given to `stft`.
        length: the number of samples to give back.
        return_complex: the signal is complex.

    >>> signal = cresset.tensor([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0])
    >>> window = cresset.ones(4)
    >>> cresset.istft(cresset.stft(signal, 4, window=window, return_complex=True), 4, window=window)
    tensor([1., 2., 3., 4., 5., 6., 7., 8.])
    """
    if not input.is_complex():
        raise RuntimeError(
            "istft: requires a complex-valued input tensor matching the output from stft with return_complex=True, "
            f"got {input.dtype}"
        )
    if input.ndim not in (2, 3) or input.numel() == 0:
        raise RuntimeError(f"istft: expected a non-empty tensor with 2 or 3 dimensions, got shape {list(input.shape)}")
    hop_length, win_length = _lengths("istft", n_fft, hop_length, win_length, window)
    if window is None:
        warnings.warn(
            "A window was not provided. A rectangular window will be applied by istft. Give the window that was given "
            "to stft, or window=torch.ones(win_length) where that was none",
            stacklevel=2,
        )
    if hop_length > win_length:
        raise RuntimeError(
            f"istft: expected 0 < hop_length <= win_length={win_length}, but got hop_length={hop_length}"
        )
    spectrum = input.unsqueeze(0) if input.ndim == 2 else input
    frequencies = spectrum.size(1)
    onesided = frequencies != n_fft if onesided is None else onesided
    expected = n_fft // 2 + 1 if onesided else n_fft
    if frequencies != expected:
        raise RuntimeError(
            f"istft: expected the frequency dimension to have {expected} elements for n_fft={n_fft} and "
            f"onesided={onesided}, got {frequencies}"
        )
    if return_complex and onesided:
        raise RuntimeError("istft: cannot have onesided input for a complex signal")
    norm = "ortho" if normalized else None
    stretches = spectrum.transpose(1, 2)
    if return_complex:
        stretches = cresset.fft.ifft(stretches, norm=norm)
    else:
        if not onesided:
            stretches = stretches.narrow(2, 0, n_fft // 2 + 1)
        if window is not None and window.is_complex():
            raise RuntimeError("istft: Complex windows are incompatible with return_complex=False")
        stretches = cresset.fft.irfft(stretches, n_fft, norm=norm)
    window = _padded_window(window, win_length, n_fft, spectrum.real).to(stretches.dtype)

    # Where sample s of stretch t lies in the signal, and how much of each sample all windows together hold.
    batch, count = stretches.size(0), stretches.size(1)
    whole = n_fft + hop_length * (count - 1)
    place = cresset.arange(count, device=input.device).unsqueeze(1) * hop_length + cresset.arange(
        n_fft, device=input.device
    )
    place = place.reshape(-1)
    signal = stretches.new_zeros(batch, whole).index_add(1, place, (stretches * window).reshape(batch, -1))
    share = window.new_zeros(whole).index_add(0, place, (window * window).repeat(count))

    start = n_fft // 2 if center else 0
    end = start + length if length is not None else whole - n_fft // 2 if center else whole
    signal, share = signal[:, start:end], share[start:end]
    if bool((all_samples(share).abs() <= 1e-11).any()):
        raise RuntimeError("istft: window overlap add min: the windows leave a sample out, so it cannot be known")
    signal = signal / share
    if end > whole:
        signal = cresset.cat([signal, signal.new_zeros(batch, end - whole)], 1)
    return signal.squeeze(0) if input.ndim == 2 else signal


# --- inside vmap ---


@batch("fft_complex", "fft_from_real", "fft_to_real")
def _(call):
    return call.run(call.front(), [call.dim(dim) for dim in call.args[1]], *call.args[2:])
