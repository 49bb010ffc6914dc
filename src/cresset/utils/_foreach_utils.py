"""torch.utils._foreach_utils: what optimizers of other packages ask before they compute on lists of tensors."""

import cresset


def _get_foreach_kernels_supported_devices():
    """The kinds of device with kernels for lists."""
    return ["cuda"]


def _get_fused_kernels_supported_devices():
    """The kinds of device on which a whole step is one kernel."""
    return ["cpu", "cuda"]


def _device_has_foreach_support(device):
    from ..jit import is_scripting  # upward: in a script there are no lists of tensors

    return device.type in (*_get_foreach_kernels_supported_devices(), "cpu") and not is_scripting()


def _has_foreach_support(tensors, device):
    """Whether lists of these can be computed on: tensors proper, of no subclass."""
    return _device_has_foreach_support(device) and all(t is None or type(t) is cresset.Tensor for t in tensors)


def _group_tensors_by_device_and_dtype(tensorlistlist, with_indices=False):
    """Lists that belong together, split by the device and dtype of the first's tensors: {(device, dtype): (lists,
    places)}.

    Args:
        with_indices: say at which places the tensors stood; the places are [] without.
    """
    found = {}
    for place, row in enumerate(zip(*tensorlistlist, strict=True)):
        lists, places = found.setdefault((row[0].device, row[0].dtype), ([[] for _ in tensorlistlist], []))
        for column, tensor in zip(lists, row, strict=True):
            column.append(tensor)
        if with_indices:
            places.append(place)
    return found
