"""How tensors look as text: `repr`, `format` and the options of `set_printoptions`.

The elements to show are fetched first, as nested lists of Python numbers; everything after that is work on strings,
so printing needs nothing of a tensor but slices and `tolist()`.
"""

import contextlib
import math
import sys
import types
import warnings

from .. import _native

__all__ = ["get_printoptions", "printoptions", "set_printoptions", "tensor_format", "tensor_repr"]

PROFILES: dict[str, dict[str, float]] = {
    "default": {"precision": 4, "threshold": 1000, "edgeitems": 3, "linewidth": 80},
    "short": {"precision": 2, "threshold": 1000, "edgeitems": 2, "linewidth": 80},
    "full": {"precision": 4, "threshold": math.inf, "edgeitems": 3, "linewidth": 80},
}

# Dtypes whose elements are bytes of which nothing more is known.
_CONTAINERS = {
    _native.float4_e2m1fn_x2, _native.bits1x8, _native.bits2x4, _native.bits4x2, _native.bits8, _native.bits16,
    *(getattr(_native, f"{sign}int{bits}") for sign in ("", "u") for bits in range(1, 8)),
}  # fmt: skip

PRINT_OPTS = types.SimpleNamespace(**PROFILES["default"], sci_mode=None)


def set_printoptions(precision=None, threshold=None, edgeitems=None, linewidth=None, profile=None, sci_mode=None):
    """Choose how tensors print. An option that is None keeps its value, except `sci_mode`, which is set in any case.

    Args:
        precision: digits after the decimal point (4 at first).
        threshold: a tensor with more elements than this is shown by its edges only (1000 at first).
        edgeitems: how many elements each edge has (3 at first).
        linewidth: where lines break (80 at first).
        profile: `"default"`, `"short"` or `"full"`: values for the four options above; those given beside it win.
        sci_mode: True for `1.0000e+00` always, False for never, None to decide from the values.

    >>> cresset.set_printoptions(precision=2)
    >>> cresset.tensor([1.12345])
    tensor([1.12])
    >>> cresset.set_printoptions(profile="default")
    >>> cresset.tensor([1.12345])
    tensor([1.1235])
    """
    if profile is not None and profile not in PROFILES:
        known = ", ".join(PROFILES)
        warnings.warn(f"set_printoptions: profile {profile!r} is unknown; there are {known}", stacklevel=2)
    given = {"precision": precision, "threshold": threshold, "edgeitems": edgeitems, "linewidth": linewidth}
    vars(PRINT_OPTS).update(PROFILES.get(profile, {}))
    vars(PRINT_OPTS).update({name: value for name, value in given.items() if value is not None})
    PRINT_OPTS.sci_mode = sci_mode


def get_printoptions():
    """The current options, as a dictionary that `set_printoptions(**options)` takes.

    >>> printing.get_printoptions()["precision"]
    4
    """
    return dict(vars(PRINT_OPTS))


@contextlib.contextmanager
def printoptions(**kwargs):
    """Print with other options inside a `with` block. The arguments are those of `set_printoptions`.

    >>> with printing.printoptions(precision=2):
    ...     print(cresset.tensor([1.12345]))
    tensor([1.12])
    """
    before = get_printoptions()
    set_printoptions(**kwargs)
    try:
        yield
    finally:
        set_printoptions(**before)


def tensor_format(tensor, format_spec):
    """`Tensor.__format__`: a tensor without dimensions formats as its number, any other as an object.

    >>> f"{cresset.tensor(2 / 3):.2f}"
    '0.67'
    """
    import cresset

    if tensor.dim() == 0 and type(tensor) is cresset.Tensor and not tensor.is_meta:
        return format(tensor.item(), format_spec)
    return object.__format__(tensor, format_spec)


def _parameter_class():
    """nn.Parameter, or None while nn is not loaded: then there are no parameters, and printing must not load it."""
    module = sys.modules.get("cresset.nn.parameter") or getattr(sys.modules.get("cresset.nn"), "parameter", None)
    return getattr(module, "Parameter", None)


def tensor_repr(tensor, *, tensor_contents=None):
    """`Tensor.__repr__`, of parameters and other subclasses too.

    Args:
        tensor_contents: text to show in place of the elements.

    >>> cresset.tensor([[1.0, 2.5], [-3.0, 4.0]], requires_grad=True)
    tensor([[ 1.0000,  2.5000],
            [-3.0000,  4.0000]], requires_grad=True)
    """
    handling = sys.modules.get("cresset.dispatch.handling")
    with handling.without_modes() if handling is not None and handling.stack() else contextlib.nullcontext():
        return _tensor_repr(tensor, tensor_contents)


def _tensor_repr(tensor, tensor_contents):
    if _native.level_of(tensor):
        return _batch_repr(tensor)
    import cresset

    parameter = _parameter_class()
    is_plain = type(tensor) in (cresset.Tensor, parameter) or _is_sparse(tensor)
    prefix = "tensor(" if is_plain else f"{type(tensor).__name__}("
    if tensor_contents is None and _native.is_dispatched(tensor) and not _native.storage_info(tensor)[2]:
        tensor_contents = f"..., size={tuple(tensor.shape)}"  # what the elements are, only its class knows
    if tensor_contents is None:
        tensor_contents = _contents(tensor, indent=len(prefix))
    text = _append(prefix + tensor_contents, _suffixes(tensor), len(prefix), new_line=tensor.is_sparse) + ")"
    # A tensor subclass can be marked as a parameter without being derived from Parameter: isinstance sees the mark.
    if parameter and isinstance(tensor, parameter) and not is_plain:
        text = f"Parameter({text})"
    if parameter in type(tensor).__mro__:
        text = "Parameter containing:\n" + text
    return text


def described(tensor, suffixes):
    """The elements of a tensor, followed by what `suffixes` say of it."""
    return _append("tensor(" + _contents(tensor, indent=7), suffixes, 7, new_line=False) + ")"


# --- The parts of a repr ---------------------------------------------------------------------------------------------


def _batch_repr(tensor):
    """A tensor inside vmap shows the batch it stands for."""
    batch, dim = _native.batch_of(tensor)
    inner = "".join("    " + line for line in repr(batch).splitlines(keepends=True))
    return f"BatchedTensor(lvl={_native.level_of(tensor)}, bdim={dim}, value=\n{inner}\n)"


def _contents(tensor, indent):
    """The elements as text, lines after the first indented."""
    if _is_sparse(tensor):
        return _sparse_contents(tensor, indent)
    if tensor.is_meta:
        return "..."
    if tensor.numel() == 0:
        return "[]"
    dim = tensor.dim()
    elements = _elements(tensor)
    if tensor.dtype.is_complex:
        write, width = _complex_writer(_leaves(elements, dim))
    elif tensor.dtype.is_floating_point:
        write, width = _float_writer(_leaves(elements, dim))
    else:
        write, width = _plain_writer(_leaves(elements, dim))
    return _layout(elements, dim, indent, write, width)


def _sparse_contents(tensor, indent):
    """The tensors that a sparse one is made of, one below the other."""
    texts = []
    for name, part in _sparse_parts(tensor):
        start = f"{name}=tensor("
        size = f", size={tuple(part.shape)}" if part.is_meta or part.numel() == 0 else ""
        texts.append(start + _contents(part, indent + len(start)) + size + ")")
    return (",\n" + " " * indent).join(texts)


def _suffixes(tensor):
    """What follows the elements: only what the elements do not say by themselves."""
    import cresset

    default = cresset.get_default_dtype()
    if tensor.device.type != "cpu":
        yield f"device='{tensor.device}'"
    is_sparse = _is_sparse(tensor)
    if (tensor.is_meta or tensor.numel() == 0) and not is_sparse:
        # There are no elements from which an integer or bool could be told.
        shows_dtype = tensor.dtype != default
        shows_size = tensor.is_meta or tensor.dim() != 1
    else:
        default_complex = cresset.complex128 if default == cresset.float64 else cresset.complex64
        shows_dtype = tensor.dtype not in (default, default_complex, cresset.int64, cresset.bool)
        shows_size = is_sparse or not PRINT_OPTS.edgeitems
    if shows_size:
        yield f"size={tuple(tensor.shape)}"
    if is_sparse and not tensor.is_meta:
        yield f"nnz={tensor._nnz()}"
    if shows_dtype:
        yield f"dtype={tensor.dtype}"
    if tensor.layout != cresset.strided:
        yield f"layout={tensor.layout}"
    name = grad_fn_name(tensor)
    if name is not None:
        yield f"grad_fn=<{name}>"
    elif tensor.requires_grad:
        yield "requires_grad=True"
    tangent = _tangent(tensor)
    if tangent is not None:
        yield f"tangent={tangent}"


def grad_fn_name(tensor):
    """The name of the node that made the tensor, None if there is none, `Invalid` if it cannot be known."""
    try:
        grad_fn = tensor.grad_fn
    except RuntimeError:  # a view whose base was changed so that its history is undefined
        return "Invalid"
    return None if grad_fn is None else grad_fn.name().rsplit("::", 1)[-1]


def _tangent(tensor):
    """The tangent of a dual tensor. There are none before the module that makes them was imported."""
    import cresset

    forward_ad = sys.modules.get(f"{cresset.__name__}.autograd.forward_ad")
    return None if forward_ad is None else forward_ad.unpack_dual(tensor).tangent


def _append(text, suffixes, indent, new_line):
    """Add each suffix to the last line if it fits there, on a new line otherwise. `new_line` is for the first."""
    # The length counts the separator before the first suffix; PyTorch counts it once more in the comparison.
    length = len(text) - (text.rfind("\n") + 1) + 2
    for suffix in suffixes:
        if new_line or length + len(suffix) + 2 > PRINT_OPTS.linewidth:
            text += ",\n" + " " * indent + suffix
            length = indent + len(suffix)
            new_line = False
        else:
            text += ", " + suffix
            length += len(suffix) + 2
    return text


# --- Which elements --------------------------------------------------------------------------------------------------


def _is_sparse(tensor):
    return "sparse" in str(tensor.layout)


def _sparse_parts(tensor):
    """Names and tensors: the positions, then the values."""
    layout, tensor = str(tensor.layout), tensor.detach()
    if tensor.is_sparse:
        return [("indices", tensor._indices()), ("values", tensor._values())]
    if layout in ("torch.sparse_csr", "torch.sparse_bsr"):
        positions = [("crow_indices", tensor.crow_indices()), ("col_indices", tensor.col_indices())]
    else:
        positions = [("ccol_indices", tensor.ccol_indices()), ("row_indices", tensor.row_indices())]
    return [*positions, ("values", tensor.values())]


def _elements(tensor):
    """The elements to show as nested lists, with `...` where the middle of a large tensor is left out."""
    import cresset

    tensor = tensor.detach()
    if tensor.layout != cresset.strided:
        tensor = tensor.to_dense()
    if tensor.dtype in _CONTAINERS:  # an element is some numbers in a byte: the byte is shown
        is_float = tensor.is_floating_point()
        tensor = tensor.view(cresset.uint16 if tensor.itemsize == 2 else cresset.uint8)
        tensor = tensor.float() if is_float else tensor
    return _edges(tensor, 0) if tensor.numel() > PRINT_OPTS.threshold else tensor.tolist()


def _edges(tensor, dim):
    """Cut the middle out of every dimension from `dim` on that is longer than its two edges."""
    if dim == tensor.dim():
        return tensor.tolist()
    edge, size = PRINT_OPTS.edgeitems, tensor.shape[dim]
    if size <= 2 * edge:
        return _edges(tensor, dim + 1)
    head = _edges(tensor.narrow(dim, 0, edge), dim + 1)
    tail = _edges(tensor.narrow(dim, size - edge, edge), dim + 1)
    return _join(head, tail, dim)


def _join(head, tail, depth):
    """Put two nested lists side by side along the dimension `depth`, with `...` between them."""
    if depth == 0:
        return [*head, ..., *tail]
    return [_join(first, last, depth - 1) for first, last in zip(head, tail, strict=True)]


def _leaves(elements, dim):
    """The numbers in nested lists, in order."""
    if dim == 0:
        return [elements]
    for _ in range(dim - 1):
        elements = [element for part in elements if part is not ... for element in part]
    return [element for element in elements if element is not ...]


# --- How a number is written -----------------------------------------------------------------------------------------
#
# A writer is made from all numbers that will be shown. It comes with the width to which it aligns them.


def _plain_writer(numbers):
    """For int and bool."""
    width = max((len(str(number)) for number in numbers), default=1)
    return lambda number: str(number).rjust(width), width


def _float_writer(numbers):
    """All numbers look alike: `1.` if they are whole, `1.5000` if they are of like size, `1.5000e+00` otherwise.

    Zero, nan and infinity have no say in the choice, nor in the width.
    """
    typical = [number for number in numbers if number and math.isfinite(number)]
    style = _float_style(typical)

    def write(number):
        text = style % number
        return text if math.isfinite(number) else text.rstrip(".")

    width = max((len(write(number)) for number in typical), default=1)
    return lambda number: write(number).rjust(width), width


def _float_style(numbers):
    if not numbers:
        return "%.0f."
    scientific = PRINT_OPTS.sci_mode
    if scientific is None:
        largest, smallest = max(map(abs, numbers)), min(map(abs, numbers))
        scientific = largest / smallest > 1000.0 or largest > 1e8 or smallest < 1e-4
    if scientific:
        return f"%.{PRINT_OPTS.precision}e"
    if all(map(float.is_integer, numbers)):
        return "%.0f."
    return f"%.{PRINT_OPTS.precision}f"


def _complex_writer(numbers):
    """Real and imaginary parts have a style each; only the real part is aligned."""
    write_real, real_width = _float_writer([number.real for number in numbers])
    write_imag, imag_width = _float_writer([number.imag for number in numbers])

    def write(number):
        imag = write_imag(number.imag).lstrip() + "j"
        return write_real(number.real) + (imag if imag.startswith("-") else "+" + imag)

    return write, real_width + imag_width + 1


# --- Rows and brackets -----------------------------------------------------------------------------------------------


def _layout(elements, dim, indent, write, width):
    """Nested lists as text. Rows break at the line width; n line breaks separate blocks of n dimensions."""
    if dim == 0:
        return write(elements)
    if dim == 1:
        return _row(elements, indent, write, width)
    blocks = ("..." if part is ... else _layout(part, dim - 1, indent + 1, write, width) for part in elements)
    return "[" + ("," + "\n" * (dim - 1) + " " * (indent + 1)).join(blocks) + "]"


def _row(elements, indent, write, width):
    if elements == [...]:
        return "[...]"
    texts = [" ..." if element is ... else write(element) for element in elements]
    per_line = max(1, int((PRINT_OPTS.linewidth - indent) // (width + 2)))
    lines = (", ".join(texts[start : start + per_line]) for start in range(0, len(texts), per_line))
    return "[" + (",\n" + " " * (indent + 1)).join(lines) + "]"
