"""Batches in pinned memory, from which a device copies while the program goes on."""

import queue

import cresset

__all__ = ["pin_memory"]


def pin_memory(data, device=None):
    """The tensors of a batch in pinned memory; the batch as it is where no device could use that.

    Args:
        device: which kind of device will read them; pinned memory is the same for all.
    """
    if not cresset.cuda.is_available() or isinstance(data, (str, bytes)):
        return data
    if hasattr(data, "pin_memory"):
        return data.pin_memory()
    if isinstance(data, dict):
        return {key: pin_memory(value) for key, value in data.items()}
    if isinstance(data, (list, tuple)):
        parts = [pin_memory(value) for value in data]
        return type(data)(*parts) if hasattr(data, "_fields") else type(data)(parts)
    return data


def _pin_memory_loop(in_queue, out_queue, device_id, done_event, device):
    """In a thread: pins what comes in, (number, batch), until `done_event` is set."""
    from .._utils import ExceptionWrapper

    cresset.accelerator.set_device_index(device_id)
    while not done_event.is_set():
        try:
            number, data = in_queue.get(timeout=5.0)
        except queue.Empty:
            continue
        if not isinstance(data, ExceptionWrapper):
            try:
                data = pin_memory(data, device)
            except Exception:
                data = ExceptionWrapper(where=f"in pin memory thread for device {device_id}")
        while not done_event.is_set():
            try:
                out_queue.put((number, data), timeout=5.0)
                break
            except queue.Full:
                continue
