"""Tensors seen by other libraries: NumPy's arrays, DLPack, the CUDA array interface, the array API."""

import enum

from .. import _native

Tensor = _native.Tensor


class DLDeviceType(enum.IntEnum):
    """The kinds of devices that DLPack has a number for."""

    kDLCPU = 1
    kDLCUDA = 2
    kDLCUDAHost = 3
    kDLOpenCL = 4
    kDLVulkan = 7
    kDLMetal = 8
    kDLVPI = 9
    kDLROCM = 10
    kDLROCMHost = 11
    kDLExtDev = 12
    kDLCUDAManaged = 13
    kDLOneAPI = 14
    kDLWebGPU = 15
    kDLHexagon = 16
    kDLMAIA = 17


def numpy(self, *, force=False):
    """The tensor as a NumPy array that shares its memory. force=True: whatever it takes (detach, copy to the host)."""
    try:
        import numpy as np
    except ModuleNotFoundError as error:
        if error.name != "numpy":
            raise
        raise RuntimeError(
            "Numpy is not available: numpy() needs NumPy, which is not installed; pip install numpy brings it"
        ) from None

    if _native.is_dispatched(self) and self.device.type != "meta" and _native.storage_info(self)[2] == 0 < self.numel():
        raise RuntimeError(f".numpy() is not supported for tensor subclasses. This is a {self.__class__.__name__}")
    if force:
        self = self.detach().cpu()
    elif self.requires_grad and _native.is_grad_enabled():
        raise RuntimeError("Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.")
    if self.device.type != "cpu":
        raise TypeError(
            f"can't convert {self.device} device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host "
            "memory first."
        )
    if self.dtype in (_native.bfloat16, _native.complex32) or (
        self.dtype.is_floating_point and self.dtype.itemsize == 1
    ):
        raise TypeError(
            f"Got unsupported ScalarType {str(self.dtype)[6:]}; NumPy has no such type. Convert it first, for example "
            "with .float()"
        )
    array = np.asarray(memoryview(self.detach() if self.requires_grad else self))
    _native.forbid_resizing(self)
    return array


def __array__(self, dtype=None, copy=None):
    array = self.numpy()
    if dtype is not None:
        array = array.astype(dtype, copy=False)
    return array.copy() if copy else array


def __array_wrap__(self, array, context=None, return_scalar=False):
    if array.dtype == bool:
        array = array.astype("uint8")
    return _native.from_buffer(array)


def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
    if self.requires_grad:
        raise BufferError("Can't export tensors that require gradient, use tensor.detach()")
    if self.layout != _native.strided:
        raise BufferError("Can't export tensors with layout other than torch.strided; call to_dense() first")
    if stream is not None and not isinstance(stream, int):
        raise TypeError("stream must be ``int`` or ``none``")
    if not self.is_cuda and stream not in (None, -1):
        raise AssertionError("stream should be None on cpu.")
    if self.is_cuda and stream is not None and stream != -1:
        from ..cuda.streams import ExternalStream, current_stream

        reader, writer = ExternalStream(0 if stream == 1 else stream, self.device), current_stream(self.device)
        if reader != writer:
            reader.wait_stream(writer)
    found = self if dl_device is None else _on_dlpack_device(self, dl_device, copy)
    copied = found is not self or bool(copy)
    versioned = max_version is not None and max_version[0] >= 1
    return _native.to_dlpack(self.clone() if copied and found is self else found, versioned, copied)


def _on_dlpack_device(tensor, place, copy):
    """The tensor where DLPack's pair of a kind and a number says."""
    kind, index = int(place[0]), place[1]
    if kind not in (DLDeviceType.kDLCPU, DLDeviceType.kDLCUDA):
        raise BufferError(f"__dlpack__: Unsupported device_type: {kind}")
    device = _native.device("cpu") if kind == DLDeviceType.kDLCPU else _native.device("cuda", index)
    if device == tensor.device:
        return tensor
    if copy is False:
        raise ValueError(
            f"__dlpack__: cannot move (i.e. copy=False) tensor from {tensor.device} to {device} without copying."
        )
    return tensor.to(device)


def __dlpack_device__(self):
    if self.device.type not in ("cpu", "cuda"):
        raise ValueError(f"Unknown device type {self.device.type} for Dlpack")
    return (DLDeviceType.kDLCUDA, self.device.index) if self.is_cuda else (DLDeviceType.kDLCPU, 0)


_ARRAY_TYPES = {
    "float16": "<f2", "float32": "<f4", "float64": "<f8", "complex64": "<c8", "complex128": "<c16", "uint8": "|u1",
    "int8": "|i1",
    "int16": "<i2", "int32": "<i4", "int64": "<i8", "uint16": "<u2", "uint32": "<u4", "uint64": "<u8", "bool": "|b1",
    "bfloat16": "<f2",
}  # fmt: skip


def __cuda_array_interface__(self):
    """The memory of a tensor on a CUDA device for other libraries (Numba, CuPy)."""
    if not self.is_cuda:
        raise AttributeError(
            f"Can't get __cuda_array_interface__ on non-CUDA tensor type: {self.type()}. If CUDA data is required use "
            "tensor.cuda() to copy tensor to device memory."
        )
    if self.requires_grad:
        raise RuntimeError(
            "Can't get __cuda_array_interface__ on Variable that requires grad. If gradients aren't required, use "
            "var.detach() to get Variable that doesn't require grad."
        )
    width = self.element_size()
    strides = None if self.is_contiguous() else tuple(step * width for step in self.stride())
    data = (self.data_ptr() if self.numel() else 0, False)
    return {
        "typestr": _ARRAY_TYPES[str(self.dtype)[6:]],
        "shape": tuple(self.shape),
        "strides": strides,
        "data": data,
        "version": 2,
    }


_native.add_attribute("__cuda_array_interface__", __cuda_array_interface__)


def __array_namespace__(self, *, api_version=None):
    import cresset

    return cresset
