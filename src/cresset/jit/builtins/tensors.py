"""Questions to tensors, tensors from numbers, and switches: what a program calls that is no tensor operator of its
own."""

from ... import _native
from ..numbering import number_of, to_dtype

_dtype_numbers = {}


def dtype_number(input):
    """`x.dtype`: a number, as in PyTorch's programs."""
    found = _dtype_numbers.get(input.dtype)
    if found is None:
        found = _dtype_numbers[input.dtype] = number_of(input.dtype)
    return found


def _attribute(name):
    def ask(input):
        return getattr(input, name)

    return ask


def _item(kind):
    """A number from a tensor of one element, of the kind that is asked for."""

    def convert(input):
        if input.numel() != 1:
            raise RuntimeError(f"a Tensor with {input.numel()} elements cannot be converted to Scalar")
        return kind(input.item())

    return convert


def _implicit(kind, name):
    def convert(input):
        if isinstance(input, _native.Tensor):
            if input.requires_grad:
                raise RuntimeError(f"Cannot input a tensor that requires grad as a scalar argument ({name})")
            if input.dim() != 0:
                raise RuntimeError(f"Cannot input a tensor of dimension other than 0 as a scalar argument ({name})")
            return kind(input.item())
        return kind(input)

    return convert


def tensor_of(data, dtype=None, device=None, requires_grad=False):
    """`torch.tensor` of numbers and lists of them."""
    import cresset

    return cresset.tensor(data, dtype=dtype, device=device, requires_grad=requires_grad)


def as_tensor(data, dtype=None, device=None):
    import cresset

    return cresset.as_tensor(data, dtype=dtype, device=device)


def number_to_tensor(number):
    """A number of a recording as a 0-d tensor."""
    import cresset

    return cresset.tensor(number, dtype=cresset.float64 if isinstance(number, float) else None)


def to_list(input, *_):
    return input.tolist()


def autocast_enabled(*_):
    import cresset

    return cresset.is_autocast_enabled()


def _device(name, index=None):
    return _native.device(name) if index is None else _native.device(name, index)


def set_grad(enabled):
    _native.set_grad_mode(enabled)


def manual_seed(seed, *_):
    import cresset

    cresset.manual_seed(seed)


def infer_size(first, second):
    import cresset

    return list(cresset.broadcast_shapes(tuple(first), tuple(second)))


def promote(first, second):
    import cresset

    return number_of(cresset.promote_types(to_dtype(first), to_dtype(second)))


def _can_cast(first, second):
    import cresset

    return cresset.can_cast(first, second)


def wait(future):
    return future.wait()


_FLAGS = (
    "is_cuda", "is_cpu", "is_meta", "is_mps", "is_xpu", "is_xla", "is_ipu", "is_maia", "is_mtia", "is_vulkan",
    "is_mkldnn", "is_sparse", "is_sparse_csr", "is_quantized", "is_nested",
    "requires_grad", "device", "data", "grad", "itemsize", "nbytes", "name", "mT", "mH", "H", "T", "real", "imag",
)  # fmt: skip

builtins = {
    **{f"prim::{name}": _attribute(name) for name in _FLAGS},
    "prim::dtype": dtype_number, "prim::layout": lambda input: number_of(input.layout),
    "prim::NumToTensor": number_to_tensor, "aten::Int": _item(int), "aten::Float": _item(float),
    "aten::Complex": _item(complex), "aten::IntImplicit": _implicit(int, "int"),
    "aten::FloatImplicit": _implicit(float, "float"), "aten::ComplexImplicit": _implicit(complex, "complex"),
    "aten::ScalarImplicit": _implicit(lambda value: value, "Scalar"), "prim::tolist": to_list,
    "aten::tensor": tensor_of, "aten::as_tensor": as_tensor,
    "prim::abs": abs, "aten::wait": wait, "prim::Guard": lambda input: input,
    "aten::retain_grad": lambda input: input.retain_grad(),
    "aten::retains_grad": lambda input: input.retains_grad, "aten::output_nr": lambda input: input.output_nr,
}  # fmt: skip

creation = {
    "aten::tensor": tensor_of, "aten::as_tensor": as_tensor, "prim::NumToTensor": number_to_tensor,
    "aten::device": _device, "aten::is_grad_enabled": _native.is_grad_enabled,
    "aten::set_grad_enabled": set_grad, "aten::manual_seed": manual_seed, "aten::_infer_size": infer_size,
    "aten::broadcast_shapes": infer_size, "aten::promote_types": promote,
    "aten::is_autocast_enabled": autocast_enabled, "aten::is_autocast_cpu_enabled": autocast_enabled,
    "aten::is_scripting": lambda: True, "aten::has_torch_function": lambda *_: False,
    "prim::type": lambda device: device.type, "prim::index": lambda device: device.index, "aten::wait": wait,
    "aten::_get_tracing_state": lambda: False,
    "aten::_size_if_not_equal": lambda mine, other: None if mine == other else mine, "aten::can_cast": _can_cast,
}  # fmt: skip
