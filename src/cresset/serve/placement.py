"""Where a worker computes: the CPU, or one of the GPUs, among which the workers of a model are divided."""

import time

import cresset

from .datatypes import DATATYPES
from .settings import SettingsError

PATIENCE = 10.0  # seconds that making kernels and plans before the first request may take


def choose(wished, place):
    """The device of the worker that has this place among those of its model: `cuda` is one GPU after the other."""
    if wished == "cpu":
        return cresset.device("cpu")
    count = cresset.cuda.device_count() if cresset.cuda.is_available() else 0
    if not count:
        raise SettingsError(f"device {wished}: there is no GPU that can be used; `cresset doctor` says why")
    index = place % count if wished == "cuda" else cresset.device(wished).index
    if index >= count:
        raise SettingsError(f"device {wished}: there are {count} GPUs, cuda:0 to cuda:{count - 1}")
    cresset.cuda.set_device(index)
    return cresset.device("cuda", index)


def warm_up(program, batch):
    """Compute zeros of each size of a batch, so that no request waits until a kernel is compiled or a plan is made.

    What the model says of zeros is nobody's answer: with one that refuses them, the first requests wait.
    """
    start = time.perf_counter()
    for rows in range(1, batch + 1):
        sizes = [[rows, *(max(size, 1) for size in entry["shape"][1:])] for entry in program.inputs]
        if not sizes or time.perf_counter() - start > PATIENCE:
            return
        try:
            program(
                {
                    entry["name"]: cresset.zeros(size, dtype=DATATYPES[entry["datatype"]])
                    for entry, size in zip(program.inputs, sizes)
                }
            )
        except Exception:
            return


def bound_memory(device, megabytes):
    """From here on, at most so much more of the GPU's memory: what needs more gets an OutOfMemoryError."""
    if device.type == "cuda" and megabytes:
        cresset.cuda.empty_cache()
        total = cresset.cuda.get_device_properties(device).total_memory
        bound = cresset.cuda.memory_reserved(device) + (megabytes << 20)
        cresset.cuda.set_per_process_memory_fraction(min(1.0, bound / total), device)
