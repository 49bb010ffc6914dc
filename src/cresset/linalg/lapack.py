"""LAPACK for matrices and batches of them, reached with ctypes in the OpenBLAS that NumPy or scipy-openblas64 brings.

Each function takes tensors that its caller has checked, works on column-major copies and loops over the batch. Nothing
here is recorded for derivatives. `info` is an int32 tensor with LAPACK's number for each matrix: 0 is success.
"""

import ctypes
import functools
import importlib.util
import math
import os
from pathlib import Path

import cresset

from .. import _native
from . import shapes
from .checking import is_without_values, real_dtype
from .columns import column_major, uninitialized

_LETTERS = {cresset.float32: "s", cresset.float64: "d", cresset.complex64: "c", cresset.complex128: "z"}
_ONE_LETTER = ctypes.c_size_t(1)  # Fortran passes the length of each character argument at the end


def _candidates():
    """The libraries that may hold LAPACK, best first."""
    for package, folders in (("scipy_openblas64", ["lib"]), ("numpy", ["../numpy.libs", ".dylibs", ".libs"])):
        spec = importlib.util.find_spec(package)
        if spec is None or not spec.submodule_search_locations:
            continue
        home = Path(next(iter(spec.submodule_search_locations)))
        for folder in folders:
            yield from sorted(path for path in (home / folder).glob("*openblas64*") if path.suffix != ".a")


# OpenBLAS ends the process when it cannot have a buffer (32 MiB for each of its threads when it is loaded, and one for
# a caller), and interrupts it when it cannot start a thread (8 MiB of stack each, once more after a fork). So nobody
# calls it without that much room.
_BUFFER, _STACK, _REST = 32 << 20, 8 << 20, 16 << 20
_LIBRARY = 64 << 20  # its code and tables, as the loader maps them


def _check_room(size):
    if not _native.has_room(size):
        _native.empty_host_cache()
        if not _native.has_room(size):
            raise MemoryError(
                f"linalg: out of memory: LAPACK (OpenBLAS) needs {size >> 20} MiB of room for its workspace, which "
                "cannot be had"
            )


@functools.cache
def _library():
    _check_room(_LIBRARY + min(os.cpu_count() or 1, 64) * (_BUFFER + _STACK) + _REST)
    for path in _candidates():
        try:
            library = ctypes.CDLL(str(path))
        except OSError:
            continue
        if hasattr(library, "scipy_dgetrf_64_"):
            library.room = _BUFFER + library.scipy_openblas_get_num_threads64_() * _STACK + _REST
            return library
    raise RuntimeError(
        "linalg: this function needs LAPACK, which was not found. Install it with `pip install scipy-openblas64` "
        "(NumPy's wheels for Linux bring it too)"
    )


@functools.cache
def _routine(name, letter):
    routine = getattr(_library(), f"scipy_{letter}{name}_64_")
    routine.restype = None
    return routine


def _call(name, letter, *arguments):
    """Call a routine with text (options), int, an address given as c_void_p, or a tensor each; give its info."""
    info = ctypes.c_int64(0)
    passed, lengths = [], []
    for argument in arguments:
        if isinstance(argument, bytes):
            passed.append(ctypes.c_char_p(argument))
            lengths.append(_ONE_LETTER)
        elif isinstance(argument, int):
            passed.append(ctypes.byref(ctypes.c_int64(argument)))
        elif isinstance(argument, cresset.Tensor):
            passed.append(ctypes.c_void_p(argument.data_ptr()))
        else:
            passed.append(argument)
    routine = _routine(name, letter)
    _check_room(_library().room)
    routine(*passed, ctypes.byref(info), *lengths)
    if info.value < 0 and name != "gesdd":  # whose info is -4 when A has a NaN
        raise AssertionError(f"linalg: {letter}{name} refused argument {-info.value}; this is a mistake in cresset")
    return info.value


def over_samples(function):
    """Inside vmap, the batch is the first of the leading dimensions. Tensors of a device are for cuSOLVER's routine of
    the same name.
    """

    @functools.wraps(function)
    def batched(*args):
        level = max(map(_native.level_of, args))
        if not level and is_without_values(args[0]):
            return getattr(shapes, function.__name__)(*args)
        if not level and any(map(_native.is_dispatched, args)):
            from ..dispatch import handling  # upward: somebody else answers

            return handling.give_own(f"linalg_{function.__name__}", batched, args)
        if not level:
            return function(*args) if _common_device(args).type == "cpu" else _on_device(function, args)
        pairs = [_native.batch_of(arg) if _native.level_of(arg) == level else (arg, None) for arg in args]
        size = next((value.size(dim) for value, dim in pairs if dim is not None), None)
        values = [
            value
            if size is None or not isinstance(value, cresset.Tensor)
            else value.expand(size, *value.shape)
            if dim is None
            else value.movedim(dim, 0)
            for value, dim in pairs
        ]
        results = batched(*values)
        samples = [
            _native.sample_of(r, None if size is None else 0, level) if isinstance(r, cresset.Tensor) else r
            for r in (results if isinstance(results, tuple) else (results,))
        ]
        return tuple(samples) if isinstance(results, tuple) else samples[0]

    return batched


def _common_device(args):
    device = args[0].device
    for arg in args[1:]:
        if isinstance(arg, cresset.Tensor) and arg.device != device:
            raise RuntimeError(
                f"linalg: Expected all tensors to be on the same device, but found at least two devices, {device} and "
                f"{arg.device}!"
            )
    return device


def _on_device(function, args):
    from . import cusolver

    routine = cusolver.routine(function.__name__, args)
    return _on_cpu(function, args) if routine is None else routine(*args)


def _on_cpu(function, args):
    """For want of a routine: the tensors travel to the CPU, and the results back."""
    device = args[0].device
    _native.cuda.note_host(f"linalg: {function.__name__}", device.index)
    results = function(*(arg.cpu() if isinstance(arg, cresset.Tensor) else arg for arg in args))
    back = tuple(
        r.to(device) if isinstance(r, cresset.Tensor) else r
        for r in (results if isinstance(results, tuple) else (results,))
    )
    return back if isinstance(results, tuple) else back[0]


def _batch(like):
    return range(math.prod(like.shape[:-2]))


def _at(tensor, place, ndim=2):
    """The address of matrix (or vector, ndim=1) number `place` of a batch."""
    items = math.prod(tensor.shape[-ndim:])
    return ctypes.c_void_p(tensor.data_ptr() + place * items * tensor.dtype.itemsize)


def _infos(like, numbers):
    return cresset.tensor(numbers, dtype=cresset.int32, device="cpu").reshape(like.shape[:-2])


def _workspace(ask, dtype):
    """Workspaces of the sizes a routine wants: `ask` calls it with workspaces of one element and length -1.

    The first has the matrices' dtype; a second is of integers.
    """
    work = cresset.zeros(1, dtype=dtype, device="cpu")
    integers = cresset.zeros(1, dtype=cresset.int64, device="cpu")
    ask(work, integers)
    # Single precision may round the size down: two more per million are never missing.
    size = int(work.real.item() if work.is_complex() else work.item())
    size = max(1, size + size // 500_000 + 1)
    return cresset.empty(size, dtype=dtype, device="cpu"), cresset.empty(
        max(1, int(integers.item())), dtype=cresset.int64, device="cpu"
    )


@over_samples
def getrf(A, pivot=True):
    """LU = PᵀA with row exchanges: (LU in one matrix, pivots from 1 as int32, info). LAPACK has none without."""
    if not pivot:
        raise RuntimeError("linalg.lu: LU without pivoting is not implemented on the CPU")
    lu, (m, n), letter = column_major(A), A.shape[-2:], _LETTERS[A.dtype]
    pivots = uninitialized(A, min(m, n), dtype=cresset.int64)
    numbers = [
        _call("getrf", letter, m, n, _at(lu, i), max(m, 1), _at(pivots, i, 1)) if m and n else 0 for i in _batch(A)
    ]
    return lu, pivots.to(cresset.int32), _infos(A, numbers)


@over_samples
def getrs(lu, pivots, B, trans=b"N"):
    """Solve A X = B (trans "T": AᵀX = B, "C": AᴴX = B) from getrf's result. All have the same batch."""
    n, columns, letter = lu.size(-1), B.size(-1), _LETTERS[lu.dtype]
    lu, X, pivots = column_major(lu), column_major(B), pivots.to(cresset.int64).contiguous()
    if n and columns:
        for i in _batch(lu):
            _call("getrs", letter, trans, n, columns, _at(lu, i), n, _at(pivots, i, 1), _at(X, i), n)
    return X


@over_samples
def row_order(pivots, m):
    """Which of m rows stands where after getrf's exchanges: exchange i is of the rows i and pivots[i], from 1."""
    rows = []
    for exchanges in (
        pivots.reshape(-1, pivots.size(-1)).tolist() if pivots.numel() else [[]] * math.prod(pivots.shape[:-1])
    ):
        order = list(range(m))
        for i, other in enumerate(exchanges):
            order[i], order[other - 1] = order[other - 1], order[i]
        rows.extend(order)
    return cresset.tensor(rows, dtype=cresset.int64, device="cpu").reshape(*pivots.shape[:-1], m)


@over_samples
def potrf(A, upper):
    """Cholesky's factor of A, of which one triangle is read: (factor, the other triangle zero; info)."""
    factor, n, letter = column_major(A), A.size(-1), _LETTERS[A.dtype]
    numbers = [_call("potrf", letter, b"U" if upper else b"L", n, _at(factor, i), n) if n else 0 for i in _batch(A)]
    return (factor.triu_() if upper else factor.tril_()), _infos(A, numbers)


@over_samples
def trsm(A, B, upper, left, unitriangular):
    """Solve A X = B (or X A = B unless `left`) with triangular A of the same batch as B."""
    A, X, letter = column_major(A), column_major(B), _LETTERS[B.dtype]
    (m, n), order = X.shape[-2:], A.size(-1)
    one = cresset.ones(1, dtype=B.dtype, device="cpu")
    if m and n:
        for i in _batch(X):
            options = (b"L" if left else b"R", b"U" if upper else b"L", b"N", b"U" if unitriangular else b"N")
            # BLAS gives no info: trsm leaves that argument alone.
            _call("trsm", letter, *options, m, n, one, _at(A, i), order, _at(X, i), m)
    return X


@over_samples
def geqrf(A):
    """Householder's form of QR: (R above reflectors, their factors tau)."""
    a, (m, n), letter = column_major(A), A.shape[-2:], _LETTERS[A.dtype]
    tau = uninitialized(A, min(m, n))
    if m and n:
        work, _ = _workspace(lambda work, _: _call("geqrf", letter, m, n, a, m, tau, work, -1), A.dtype)
        for i in _batch(A):
            _call("geqrf", letter, m, n, _at(a, i), m, _at(tau, i, 1), work, work.numel())
    return a, tau


@over_samples
def orgqr(a, tau, columns):
    """The first `columns` columns of the product of geqrf's reflectors."""
    m, k, letter = a.size(-2), tau.size(-1), _LETTERS[a.dtype]
    q = uninitialized(a, m, columns)
    q.zero_()[..., : min(columns, a.size(-1))].copy_(a.detach()[..., : min(columns, a.size(-1))])
    tau = tau.detach().contiguous().resolve_conj()
    name = "ungqr" if a.is_complex() else "orgqr"
    if m and columns:
        work, _ = _workspace(lambda work, _: _call(name, letter, m, columns, k, q, m, tau, work, -1), a.dtype)
        for i in _batch(a):
            _call(name, letter, m, columns, k, _at(q, i), m, _at(tau, i, 1), work, work.numel())
    return q


@over_samples
def ormqr(a, tau, C, left, adjoint):
    """Q C, or C Q unless `left`, where Q is the whole product of geqrf's reflectors (`adjoint`: Qᴴ). All have the same
    batch.
    """
    a, tau, C, letter = column_major(a), tau.detach().contiguous().resolve_conj(), column_major(C), _LETTERS[a.dtype]
    (m, n), k = C.shape[-2:], tau.size(-1)
    if not (C.numel() and k):
        return C
    name, form = ("unmqr", b"C") if a.is_complex() else ("ormqr", b"T")
    options = (b"L" if left else b"R", form if adjoint else b"N", m, n, k)
    work, _ = _workspace(lambda work, _: _call(name, letter, *options, a, a.size(-2), tau, C, m, work, -1), a.dtype)
    for i in _batch(a):
        _call(name, letter, *options, _at(a, i), a.size(-2), _at(tau, i, 1), _at(C, i), m, work, work.numel())
    return C


@over_samples
def gesdd(A, vectors, full_matrices=False, _driver=None):
    """Singular values: (U, S, Vh, info), U and Vh None unless `vectors`. The driver is for CUDA."""
    a, (m, n), letter = column_major(A), A.shape[-2:], _LETTERS[A.dtype]
    k = min(m, n)
    S = uninitialized(A, k, dtype=real_dtype(A.dtype))
    U = Vh = None
    if vectors:
        U = uninitialized(A, m, m if full_matrices else k)
        Vh = uninitialized(A, n if full_matrices else k, n)
    if not k:
        for basis in (U, Vh) if vectors else ():
            basis.zero_()
            basis.diagonal(0, -2, -1).fill_(1)
        return U, S, Vh, _infos(A, [0] * len(_batch(A)))
    job = (b"A" if full_matrices else b"S") if vectors else b"N"
    sizes = (m, U.size(-1) if vectors else 1, Vh.size(-2) if vectors else 1)
    nothing = cresset.empty(1, dtype=A.dtype, device="cpu")
    integers = cresset.empty(8 * k, dtype=cresset.int64, device="cpu")
    larger = max(m, n)
    real_work = []
    if A.is_complex():  # the documented sizes, which serve all versions of LAPACK
        count = max(5 * k * k + 5 * k, 2 * larger * k + 2 * k * k + k) if vectors else 7 * k
        real_work = [cresset.empty(count, dtype=S.dtype, device="cpu")]

    with_infinities = ()  # gesdd may never come back from these: their results are nan
    if bool(A.isinf().any()):
        with_infinities = [i for i, has in enumerate(A.isinf().any(-1).any(-1).reshape(-1).tolist()) if has]
        for part in (U, S, Vh) if vectors else (S,):
            part.fill_(math.nan)

    def run(i, work, size):
        if i in with_infinities and size != -1:
            return -4 if bool(A.reshape(-1, m, n)[i].isnan().any()) else 0
        u, vh = (_at(U, i), _at(Vh, i)) if vectors else (nothing, nothing)
        arguments = (job, m, n, _at(a, i), m, _at(S, i, 1), u, sizes[0], vh, sizes[2], work, size, *real_work, integers)
        return _call("gesdd", letter, *arguments)

    work, _ = _workspace(lambda work, _: run(0, work, -1), A.dtype)
    return U, S, Vh, _infos(A, [run(i, work, work.numel()) for i in _batch(A)])


@over_samples
def syevd(A, upper, vectors):
    """Eigenvalues, in rising order, of symmetric (Hermitian) matrices of which one triangle is read: (L, V, info)."""
    V, n, letter = column_major(A), A.size(-1), _LETTERS[A.dtype]
    L = uninitialized(A, n, dtype=real_dtype(A.dtype))
    if not n:
        return L, V, _infos(A, [0] * len(_batch(A)))
    options = (b"V" if vectors else b"N", b"U" if upper else b"L")
    if A.is_complex():
        count = 1 + 5 * n + 2 * n * n if vectors else n
        real_work = cresset.empty(count, dtype=L.dtype, device="cpu")

        def run(i, work, size, integers, integer_size):
            arguments = (work, size, real_work, count, integers, integer_size)
            return _call("heevd", letter, *options, n, _at(V, i), n, _at(L, i, 1), *arguments)
    else:

        def run(i, work, size, integers, integer_size):
            return _call("syevd", letter, *options, n, _at(V, i), n, _at(L, i, 1), work, size, integers, integer_size)

    work, integers = _workspace(lambda work, integers: run(0, work, -1, integers, -1), A.dtype)
    numbers = [run(i, work, work.numel(), integers, integers.numel()) for i in _batch(A)]
    return L, V, _infos(A, numbers)


@over_samples
def geev(A, vectors):
    """Eigenvalues of any square matrices, complex: (L, V or None, info)."""
    a, n, letter = column_major(A), A.size(-1), _LETTERS[A.dtype]
    is_complex = A.is_complex()
    parts = [uninitialized(A, n) for _ in range(1 if is_complex else 2)]
    V = uninitialized(A, n, n) if vectors else None
    dtype = A.dtype if is_complex else cresset.complex64 if A.dtype == cresset.float32 else cresset.complex128
    numbers = [0] * len(_batch(A))
    if n:
        nothing = cresset.empty(1, dtype=A.dtype, device="cpu")
        real_work = [cresset.empty(2 * n, dtype=real_dtype(A.dtype), device="cpu")] if is_complex else []

        def run(i, work, size):
            v = _at(V, i) if vectors else nothing
            values = [_at(part, i, 1) for part in parts]
            job = b"V" if vectors else b"N"
            return _call("geev", letter, b"N", job, n, _at(a, i), n, *values, nothing, 1, v, n, work, size, *real_work)

        work, _ = _workspace(lambda work, _: run(0, work, -1), A.dtype)
        numbers = [run(i, work, work.numel()) for i in _batch(A)]
    L = parts[0] if is_complex else cresset.complex(*parts)
    if vectors and not is_complex:
        V = paired(V, parts[1]).to(dtype)
    return L, V, _infos(A, numbers)


def paired(V, imaginary):
    """Real matrices' eigenvectors: of a pair of conjugate values, geev gives the real and the imaginary part as
    columns.
    """
    # Column j opens a pair if its value's imaginary part is positive; column j + 1 then closes it.
    opens, closes = (imaginary > 0).unsqueeze(-2), (imaginary < 0).unsqueeze(-2)
    following, previous = V.roll(-1, -1), V.roll(1, -1)
    real = cresset.where(closes, previous, V)
    zero = cresset.zeros((), dtype=V.dtype, device=V.device)
    return cresset.complex(real, cresset.where(opens, following, cresset.where(closes, -V, zero)))


@over_samples
def sytrf(A, hermitian):
    """LDLᵀ (LDLᴴ) with pivots, of the lower triangle: (LD, pivots as int32, info)."""
    ld, n, letter = column_major(A), A.size(-1), _LETTERS[A.dtype]
    name = "hetrf" if hermitian and A.is_complex() else "sytrf"
    pivots = uninitialized(A, n, dtype=cresset.int64)
    if not n:
        return ld, pivots.to(cresset.int32), _infos(A, [0] * len(_batch(A)))

    def run(i, work, size):
        return _call(name, letter, b"L", n, _at(ld, i), n, _at(pivots, i, 1), work, size)

    work, _ = _workspace(lambda work, _: run(0, work, -1), A.dtype)
    numbers = [run(i, work, work.numel()) for i in _batch(A)]
    return ld.tril_(), pivots.to(cresset.int32), _infos(A, numbers)


@over_samples
def sytrs(ld, pivots, B, hermitian):
    """Solve A X = B from sytrf's result. All have the same batch."""
    n, columns, letter = ld.size(-1), B.size(-1), _LETTERS[ld.dtype]
    name = "hetrs" if hermitian and ld.is_complex() else "sytrs"
    ld, X, pivots = column_major(ld), column_major(B), pivots.to(cresset.int64).contiguous()
    if n and columns:
        for i in _batch(ld):
            _call(name, letter, b"L", n, columns, _at(ld, i), n, _at(pivots, i, 1), _at(X, i), n)
    return X


@over_samples
def least_squares(A, B, rcond, driver):
    """The X that makes ‖A X − B‖ least, by gels, gelsy, gelsd or gelss: (max(m, n) rows of which n are X, rank,
    singular values).

    The rank is None for gels, the singular values for gels and gelsy.
    """
    a, (m, n), columns, letter = column_major(A), A.shape[-2:], B.size(-1), _LETTERS[A.dtype]
    X, is_complex = uninitialized(A, max(m, n), columns), A.is_complex()
    X.zero_()[..., :m, :].copy_(B.detach())
    k = min(m, n)
    real = real_dtype(A.dtype)
    values = uninitialized(A, k, dtype=real) if driver in ("gelsd", "gelss") else None
    ranks = None if driver == "gels" else cresset.zeros(A.shape[:-2], dtype=cresset.int64, device="cpu")
    numbers = [0] * len(_batch(A))
    if not (k and columns):
        return X, ranks, values, _infos(A, numbers)
    bound = cresset.full((1,), rcond, dtype=real, device="cpu")
    real_work, integer_work = [], []
    if driver == "gelsy":
        integer_work = [cresset.zeros(n, dtype=cresset.int64, device="cpu")]
        real_work = [cresset.empty(2 * n, dtype=real, device="cpu")] if is_complex else []
    elif driver == "gelss":
        real_work = [cresset.empty(5 * k, dtype=real, device="cpu")] if is_complex else []
    elif driver == "gelsd":
        # The documented sizes, with the smallest subproblem LAPACK may use (25) taken as 1 to be safe.
        levels = max(0, int(math.log2(k)) + 1)
        integer_work = [cresset.empty(3 * k * levels + 11 * k, dtype=cresset.int64, device="cpu")]
        if is_complex:
            count = 10 * max(m, n) + 2 * 25 * max(m, n) + 8 * max(m, n) * levels + 3 * 25 * columns
            real_work = [
                cresset.empty(count + max(26**2, max(m, n) * (1 + columns) + 2 * columns), dtype=real, device="cpu")
            ]

    def run(i, work, size):
        matrices = (m, n, columns, _at(a, i), m, _at(X, i), max(m, n))
        if driver == "gels":
            return _call(driver, letter, b"N", *matrices, work, size)
        rank = ctypes.c_void_p(ranks.data_ptr() + i * 8)
        if driver == "gelsy":
            integer_work[0].zero_()
            return _call(driver, letter, *matrices, *integer_work, bound, rank, work, size, *real_work)
        return _call(driver, letter, *matrices, _at(values, i, 1), bound, rank, work, size, *real_work, *integer_work)

    work, _ = _workspace(lambda work, _: run(0, work, -1), A.dtype)
    numbers = [run(i, work, work.numel()) for i in _batch(A)]
    return X, ranks, values, _infos(A, numbers)
