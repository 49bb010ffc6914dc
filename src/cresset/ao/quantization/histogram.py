"""HistogramObserver: the range of numbers for which quantization errs least, which may cut off rare extremes."""

import struct
import warnings

import cresset

from .observer import UniformQuantizationObserverBase

_FINER = 16  # into so many parts a bin is cut before its count goes into the bins of a wider range
_STEP = 1e-5  # by this part of all numbers an end of the range moves at a time


def _single(number):
    """The nearest float32."""
    return struct.unpack("f", struct.pack("f", number))[0]


def _cubes(begin, end, density):
    """The integral of density * x^2 from begin to end."""
    return density * ((end * end * end - begin * begin * begin) / 3)


class HistogramObserver(UniformQuantizationObserverBase):
    """Keeps a histogram, and takes the range with the least squared error of quantization.

    Args:
        bins: of the histogram.

    >>> observer = cresset.ao.quantization.HistogramObserver()
    >>> _ = observer(cresset.linspace(0.0, 255.0, 10000))
    >>> observer.calculate_qparams()
    (tensor([0.9995]), tensor([0], dtype=torch.int32))
    """

    def __init__(
        self, bins=2048, dtype=cresset.quint8, qscheme=cresset.per_tensor_affine, *args, is_dynamic=False, **kwargs
    ):
        if qscheme not in (cresset.per_tensor_affine, cresset.per_tensor_symmetric):
            raise NotImplementedError(
                "HistogramObserver's qscheme only support torch.per_tensor_symmetric and torch.per_tensor_affine."
            )
        if is_dynamic:
            raise NotImplementedError("HistogramObserver doesn't support dynamic quantization")
        super().__init__(dtype, qscheme, *args, **kwargs)
        self.bins = bins
        self.register_buffer("histogram", self.eps.new_zeros(bins))
        self.register_buffer("min_val", self.eps.new_tensor(float("inf")))
        self.register_buffer("max_val", self.eps.new_tensor(float("-inf")))
        self.dst_nbins = 2 ** (32 if dtype in (cresset.qint32, cresset.int32) else 8)
        self.upsample_rate = _FINER

    def forward(self, x_orig):
        if x_orig.numel() == 0:
            return x_orig
        x = x_orig.detach()
        least, greatest = x.aminmax()
        if least == float("-inf") or greatest == float("inf"):
            warnings.warn("torch.inf detected in input tensor, ignoring input", stacklevel=2)
            x = x[x.abs() != float("inf")]
            if x.numel() == 0:
                return x_orig
            least, greatest = x.aminmax()
        if self.min_val != float("inf") and self.max_val != float("-inf"):
            least, greatest = cresset.minimum(self.min_val, least), cresset.maximum(self.max_val, greatest)
            counts = self._count(x, least, greatest) + self._moved(least, greatest)
        else:
            counts = self._count(x, least, greatest)
        self.histogram.copy_(counts)
        self.min_val.copy_(least)
        self.max_val.copy_(greatest)
        return x_orig

    def _count(self, x, least, greatest):
        return cresset.histc(x, self.bins, min=float(least), max=float(greatest))

    def _moved(self, least, greatest):
        """The counts so far in the bins of a wider range."""
        if least == self.min_val and greatest == self.max_val:
            return self.histogram
        if self.min_val == self.max_val:
            return self._count(self.min_val, least, greatest) * self.histogram.sum()
        parts = self.bins * _FINER
        width = (self.max_val - self.min_val) / parts
        middles = cresset.linspace(float(self.min_val), float(self.max_val), parts + 1)[:-1] + 0.5 * width
        borders = cresset.linspace(float(least), float(greatest), self.bins + 1)
        place = (cresset.bucketize(middles, borders, right=True) - 1).clamp(0, self.bins - 1)
        counts = self.histogram.repeat_interleave(_FINER) / _FINER
        return cresset.bincount(place, weights=counts, minlength=self.bins)

    def _error(self, first, last):
        """The squared error when the bins from `first` to `last` are quantized and the others are cut off.

        Within a bin numbers are spread evenly: it begins in one step of quantization, ends in another, and covers those
        between them; the error of each part is the integral of the squared distance from the middle of its step.
        """
        width = (self.max_val.item() - self.min_val.item()) / self.bins
        step = width * (last - first + 1) / self.dst_nbins
        if step == 0.0:
            return 0.0
        begins = (cresset.arange(self.bins) - first) * width
        ends = begins + width
        step_of_begin, step_of_end = (
            cresset.div(edge, step, rounding_mode="floor").clamp(0, self.dst_nbins - 1) for edge in (begins, ends)
        )
        density = self.histogram / width
        half = cresset.tensor(step / 2)
        error = _cubes(begins - (step_of_begin + 0.5) * step, half, density)
        error = error + (step_of_end - step_of_begin - 1) * _cubes(-half, half, density)
        error = error + _cubes(-half, ends - (step_of_end * step + step / 2), density)
        return error.sum().item()

    def _best_range(self):
        """The range that is left when the end with fewer numbers has moved in as long as that made the error less."""
        total, so_far = self.histogram.sum().item(), self.histogram.cumsum(0).tolist()
        below, above, first, last, least = 0.0, 1.0, 0, self.bins - 1, float("inf")
        while below < above:
            bound_below, bound_above = _single((below + _STEP) * total), _single((above - _STEP) * total)
            left, right = first, last
            while left < last and so_far[left] < bound_below:
                left += 1
            while right > first and so_far[right] > bound_above:
                right -= 1
            if left - first > last - right:
                candidate, below = (left, last), below + _STEP
            else:
                candidate, above = (first, right), above - _STEP
            if candidate == (first, last):
                continue
            error = self._error(*candidate)
            if error > least:
                break
            least, (first, last) = error, candidate
        width = (self.max_val - self.min_val) / self.bins
        return self.min_val + width * first, self.min_val + width * (last + 1)

    def calculate_qparams(self):
        """(scale, zero_point) of the best range."""
        if self.min_val == float("inf") and self.max_val == float("-inf"):
            return self._parameters_of_nothing()
        return self._parameters_of(*(end.reshape(-1) for end in self._best_range()))

    def extra_repr(self):
        return f"min_val={self.min_val}, max_val={self.max_val}"
