"""Call several modules at once, each in a thread of its own with its device as the current one."""

import threading

import cresset
from cresset._utils import ExceptionWrapper

__all__ = ["get_a_var", "parallel_apply"]


def get_a_var(obj):
    """The first tensor inside lists, tuples and dictionaries; None if there is none."""
    if isinstance(obj, cresset.Tensor):
        return obj
    if isinstance(obj, dict):
        obj = obj.items()
    elif not isinstance(obj, (list, tuple)):
        return None
    return next((found for found in map(get_a_var, obj) if found is not None), None)


def parallel_apply(modules, inputs, kwargs_tup=None, devices=None):
    """Call each module with its inputs, all at the same time, and give the list of their results.

    Args:
        inputs: for each module its positional arguments; what is no tuple is the only one.
        kwargs_tup: for each module its named arguments.
        devices: for each module its device; by default that of its first tensor.
    """
    _check_counts(modules, inputs, kwargs_tup, devices)
    if devices is not None:
        for device in devices:
            if device is not None and not isinstance(device, int) and cresset.device(device).type == "cpu":
                raise ValueError(f"Expected a cuda device, but got: {device}")
    if not cresset.accelerator.is_available():
        raise RuntimeError("Cannot access accelerator device when none is available.")
    places = [_place(i, given, devices[i] if devices else None) for i, given in enumerate(inputs)]
    return call_in_threads(modules, inputs, kwargs_tup, lambda i: cresset.cuda.device(places[i]))


def _check_counts(modules, inputs, kwargs_tup, devices):
    for what, values in (("inputs", inputs), ("keyword arguments", kwargs_tup), ("devices", devices)):
        if values is not None and len(values) != len(modules):
            raise AssertionError(
                f"The number of modules {len(modules)} is not equal to the number of {what} {len(values)}"
            )


def _place(number, given, device):
    if device is not None:
        return device
    tensor = get_a_var(given)
    if tensor is None:
        raise RuntimeError(
            f"parallel_apply: no device was given for replica {number}, and none of its inputs is a tensor"
        )
    return tensor.device


def call_in_threads(modules, inputs, kwargs_tup, entered):
    """Each module's result, in order. `entered(i)` is the context in which module i runs; what one raises is raised
    here.

    Gradient mode and autocast belong to a thread, so they are carried over.
    """
    kwargs_tup = kwargs_tup or [{}] * len(modules)
    recording = cresset.is_grad_enabled()
    casting = {kind: (cresset.is_autocast_enabled(kind), cresset.get_autocast_dtype(kind)) for kind in ("cpu", "cuda")}
    results = [None] * len(modules)

    def call(number):
        arguments = inputs[number] if isinstance(inputs[number], (list, tuple)) else (inputs[number],)
        (on, dtype), (cuda_on, cuda_dtype) = casting.values()
        try:
            with (
                cresset.set_grad_enabled(recording),
                entered(number),
                cresset.autocast("cpu", dtype, enabled=on),
                cresset.autocast("cuda", cuda_dtype, enabled=cuda_on),
            ):
                results[number] = modules[number](*arguments, **kwargs_tup[number])
        except Exception:
            results[number] = ExceptionWrapper(where=f"in replica {number}")

    if len(modules) == 1:
        call(0)
    else:
        threads = [threading.Thread(target=call, args=(number,)) for number in range(len(modules))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    for result in results:
        if isinstance(result, ExceptionWrapper):
            result.reraise()
    return results
