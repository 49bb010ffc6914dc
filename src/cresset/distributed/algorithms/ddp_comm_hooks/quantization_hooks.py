"""Gradients as bytes: each process sends its own in 8 bits with the scale, and all add up what the scales make of
them."""

import cresset

from ...collectives import all_gather
from ...world import default_group

__all__ = ["quantization_perchannel_hook", "quantization_pertensor_hook"]

LEVELS = 255  # of quint8


def _gathered(tensor, group):
    places = [cresset.empty_like(tensor) for _ in range(group.size())]
    return all_gather(places, tensor, group, async_op=True).get_future()


def _mean_of_bytes(rows, group):
    """The mean over the group of rows that travel as bytes, each with its scale and zero point."""
    low, high = rows.amin(1).clamp(max=0), rows.amax(1).clamp(min=0)
    scale = ((high - low) / LEVELS).clamp(min=cresset.finfo(cresset.float32).eps)
    zero = (-(low / scale).round()).clamp(0, LEVELS)
    quantized = ((rows / scale[:, None]).round() + zero[:, None]).clamp(0, LEVELS).to(cresset.uint8)
    scales = _gathered(cresset.stack([scale, zero]), group)

    def add_up(done):
        total = cresset.zeros_like(rows)
        for (s, z), part in zip(scales.wait(), done.value(), strict=True):
            total += (part.to(rows.dtype) - z[:, None]) * s[:, None]
        return total / group.size()

    return _gathered(quantized, group).then(add_up)


def quantization_pertensor_hook(process_group, bucket):
    """The average of gradients that are sent in 8 bits, with one scale for a bucket."""
    group = default_group("quantization_pertensor_hook") if process_group is None else process_group
    return _mean_of_bytes(bucket.buffer()[None], group).then(lambda done: done.value()[0])


def quantization_perchannel_hook(process_group, bucket, bucket_size=512):
    """The average of gradients that are sent in 8 bits, with a scale for every `bucket_size` of them."""
    group = default_group("quantization_perchannel_hook") if process_group is None else process_group
    flat = bucket.buffer()
    padded = cresset.nn.functional.pad(flat, (0, -flat.numel() % bucket_size))
    mean = _mean_of_bytes(padded.view(-1, bucket_size), group)
    return mean.then(lambda done: done.value().reshape(-1)[: flat.numel()])
