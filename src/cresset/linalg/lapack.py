"""LAPACK for matrices and batches of them, reached with ctypes in the OpenBLAS that NumPy or scipy-openblas64 brings.

Each function takes tensors that its caller has checked, works on column-major copies and calls the routine for the
whole batch at once. Nothing here is recorded for derivatives. `info` is an int32 tensor with LAPACK's number for each
matrix: 0 is success.
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
from .columns import column_major, in_columns, to_read, uninitialized

_LETTERS = {cresset.float32: "s", cresset.float64: "d", cresset.complex64: "c", cresset.complex128: "z"}


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
# Matrices of fewer bytes are for one thread: OpenBLAS wakes all of its own for every matrix but tiny ones, and they
# look out for work for longer than a small one takes. Whatever set_num_threads says, so that no result depends on it.
_FOR_ONE_THREAD = 128 << 10


def _no_room(size):
    return MemoryError(
        f"linalg: out of memory: LAPACK (OpenBLAS) needs {size >> 20} MiB of room for its workspace, which cannot be "
        "had"
    )


def _has_room(size):
    if not _native.has_room(size):
        _native.empty_host_cache()
    return _native.has_room(size)


@functools.cache
def _library():
    room = _LIBRARY + min(os.cpu_count() or 1, 64) * (_BUFFER + _STACK) + _REST
    if not _has_room(room):
        raise _no_room(room)
    for path in _candidates():
        try:
            library = ctypes.CDLL(str(path))
        except OSError:
            continue
        if hasattr(library, "scipy_dgetrf_64_"):
            library.threads = library.scipy_openblas_get_num_threads64_()
            library.room = _BUFFER + library.threads * _STACK + _REST
            setter = ctypes.cast(library.scipy_openblas_set_num_threads64_, ctypes.c_void_p).value
            _native.set_fortran(library.room, library.threads, setter, _FOR_ONE_THREAD)
            return library
    raise RuntimeError(
        "linalg: this function needs LAPACK, which was not found. Install it with `pip install scipy-openblas64` "
        "(NumPy's wheels for Linux bring it too)"
    )


@functools.cache
def _routine(name, letter):
    """The address of a routine."""
    return ctypes.cast(getattr(_library(), f"scipy_{letter}{name}_64_"), ctypes.c_void_p).value


def _call(name, letter, *arguments, matrices=1):
    """Call a routine for each of some matrices with text (options), int, or what `_each` and `_same` give; the list of
    its infos.
    """
    routine = _routine(name, letter)
    infos = _native.call_fortran(routine, arguments, matrices)
    if infos is None and _has_room(_library().room):
        infos = _native.call_fortran(routine, arguments, matrices)
    if infos is None:
        raise _no_room(_library().room)
    if min(infos, default=0) < 0 and name != "gesdd":  # gesdd's is -4 when A has a NaN
        raise AssertionError(f"linalg: {letter}{name} refused argument {-min(infos)}; this is a mistake in cresset")
    return infos


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
    """How many matrices there are."""
    return math.prod(like.shape[:-2])


def _each(tensor, ndim=2, first=0):
    """To each call its matrix (or vector, ndim=1, or number, 0) of a batch, from the one with the number `first`."""
    step = math.prod(tensor.shape[tensor.ndim - ndim :]) * tensor.dtype.itemsize
    return tensor.data_ptr() + first * step, step


def _same(tensor):
    """To all calls the same memory."""
    return tensor.data_ptr(), 0


def _infos(like, numbers):
    return cresset.tensor(numbers, dtype=cresset.int32, device="cpu").reshape(like.shape[:-2])


_sizes: dict[tuple, tuple[int, int]] = {}  # of workspaces that routines want, by what was asked for
_MOST_SIZES = 1024


def _workspace(ask, dtype, *what):
    """Workspaces of the sizes a routine wants for `what` (its name and the sizes of its matrices): `ask` calls it with
    workspaces of one element and length -1.

    The first has the matrices' dtype; a second is of integers.
    """
    sizes = _sizes.get((dtype, what))
    if sizes is None:
        work = cresset.zeros(1, dtype=dtype, device="cpu")
        integers = cresset.zeros(1, dtype=cresset.int64, device="cpu")
        ask(work, integers)
        # Single precision may round the size down: two more per million are never missing.
        size = int(work.real.item() if work.is_complex() else work.item())
        sizes = max(1, size + size // 500_000 + 1), max(1, int(integers.item()))
        if len(_sizes) >= _MOST_SIZES:
            _sizes.clear()
        _sizes[dtype, what] = sizes
    return (
        cresset.empty(sizes[0], dtype=dtype, device="cpu"),
        cresset.empty(sizes[1], dtype=cresset.int64, device="cpu"),
    )


@over_samples
def getrf(A, pivot=True):
    """LU = PᵀA with row exchanges: (LU in one matrix, pivots from 1 as int32, info). LAPACK has none without."""
    if not pivot:
        raise RuntimeError("linalg.lu: LU without pivoting is not implemented on the CPU")
    lu, (m, n), letter = column_major(A), A.shape[-2:], _LETTERS[A.dtype]
    pivots = uninitialized(A, min(m, n), dtype=cresset.int64)
    numbers = [0] * _batch(A)
    if m and n:
        numbers = _call("getrf", letter, m, n, _each(lu), m, _each(pivots, 1), matrices=_batch(A))
    return lu, pivots.to(cresset.int32), _infos(A, numbers)


@over_samples
def getrs(lu, pivots, B, trans=b"N"):
    """Solve A X = B (trans "T": AᵀX = B, "C": AᴴX = B) from getrf's result. All have the same batch."""
    n, columns, letter = lu.size(-1), B.size(-1), _LETTERS[lu.dtype]
    lu, X, pivots = in_columns(lu), column_major(B), pivots.to(cresset.int64).contiguous()
    if n and columns:
        arguments = (trans, n, columns, _each(lu), n, _each(pivots, 1), _each(X), n)
        _call("getrs", letter, *arguments, matrices=_batch(lu))
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
    numbers = [0] * _batch(A)
    if n:
        numbers = _call("potrf", letter, b"U" if upper else b"L", n, _each(factor), n, matrices=_batch(A))
        # A pivot that is nan makes all later ones so, and is not positive; some LAPACKs do not say it.
        pivots = factor.diagonal(dim1=-2, dim2=-1).reshape(-1, n)
        if pivots[:, -1].isnan().any():
            places = ((pivots == pivots).sum(-1) + 1).tolist()
            numbers = [number or (place if place <= n else 0) for number, place in zip(numbers, places, strict=True)]
    return (factor.triu_() if upper else factor.tril_()), _infos(A, numbers)


@over_samples
def trsm(A, B, upper, left, unitriangular):
    """Solve A X = B (or X A = B unless `left`) with triangular A of the same batch as B."""
    (A, form), X, letter = to_read(A), column_major(B), _LETTERS[B.dtype]
    (m, n), order = X.shape[-2:], A.size(-1)
    one = cresset.ones(1, dtype=B.dtype, device="cpu")
    if m and n:
        triangle = b"U" if upper == (form == b"N") else b"L"  # of a transposed matrix it is the other one
        options = (b"L" if left else b"R", triangle, form, b"U" if unitriangular else b"N")
        # BLAS gives no info: trsm leaves that argument alone.
        _call("trsm", letter, *options, m, n, _same(one), _each(A), order, _each(X), m, matrices=_batch(X))
    return X


@over_samples
def potrs(factor, B, upper):
    """Solve A X = B from potrf's factor of the same batch: A = L Lᴴ, or Lᴴ L if `upper`."""
    between = trsm(factor.mH if upper else factor, B, False, True, False)
    return trsm(factor if upper else factor.mH, between, True, True, False)


@over_samples
def geqrf(A):
    """Householder's form of QR: (R above reflectors, their factors tau)."""
    a, (m, n), letter = column_major(A), A.shape[-2:], _LETTERS[A.dtype]
    tau = uninitialized(A, min(m, n))
    if m and n:
        arguments = (m, n, _each(a), m, _each(tau, 1))
        work, _ = _workspace(lambda work, _: _call("geqrf", letter, *arguments, _same(work), -1), A.dtype, "qr", m, n)
        _call("geqrf", letter, *arguments, _same(work), work.numel(), matrices=_batch(A))
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
        arguments = (m, columns, k, _each(q), m, _each(tau, 1))
        ask = lambda work, _: _call(name, letter, *arguments, _same(work), -1)
        work, _ = _workspace(ask, a.dtype, name, m, columns, k)
        _call(name, letter, *arguments, _same(work), work.numel(), matrices=_batch(a))
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
    arguments = (*options, _each(a), a.size(-2), _each(tau, 1), _each(C), m)
    ask = lambda work, _: _call(name, letter, *arguments, _same(work), -1)
    work, _ = _workspace(ask, a.dtype, name, *options)
    _call(name, letter, *arguments, _same(work), work.numel(), matrices=_batch(a))
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
        return U, S, Vh, _infos(A, [0] * _batch(A))
    job = (b"A" if full_matrices else b"S") if vectors else b"N"
    sizes = (m, U.size(-1) if vectors else 1, Vh.size(-2) if vectors else 1)
    nothing = cresset.empty(1, dtype=A.dtype, device="cpu")
    integers = cresset.empty(8 * k, dtype=cresset.int64, device="cpu")
    larger = max(m, n)
    real_work = []
    if A.is_complex():  # the documented sizes, which serve all versions of LAPACK
        count = max(5 * k * k + 5 * k, 2 * larger * k + 2 * k * k + k) if vectors else 7 * k
        real_work = [cresset.empty(count, dtype=S.dtype, device="cpu")]

    def run(work, size, matrices, first=0):
        u, vh = (_each(U, 2, first), _each(Vh, 2, first)) if vectors else (_same(nothing), _same(nothing))
        results = (_each(S, 1, first), u, sizes[0], vh, sizes[2])
        more = (_same(work), size, *map(_same, real_work), _same(integers))
        return _call("gesdd", letter, job, m, n, _each(a, 2, first), m, *results, *more, matrices=matrices)

    work, _ = _workspace(lambda work, _: run(work, -1, 1), A.dtype, "gesdd", job, m, n)

    if not bool(A.isinf().any()):
        return U, S, Vh, _infos(A, run(work, work.numel(), _batch(A)))
    # gesdd may never come back from infinities: the results of their matrices are nan.
    for part in (U, S, Vh) if vectors else (S,):
        part.fill_(math.nan)
    numbers = []
    for i, matrix in enumerate(A.reshape(-1, m, n)):
        if bool(matrix.isinf().any()):
            numbers.append(-4 if bool(matrix.isnan().any()) else 0)
        else:
            numbers += run(work, work.numel(), 1, i)
    return U, S, Vh, _infos(A, numbers)


@over_samples
def syevd(A, upper, vectors):
    """Eigenvalues, in rising order, of symmetric (Hermitian) matrices of which one triangle is read: (L, V, info)."""
    V, n, letter = column_major(A), A.size(-1), _LETTERS[A.dtype]
    L = uninitialized(A, n, dtype=real_dtype(A.dtype))
    if not n:
        return L, V, _infos(A, [0] * _batch(A))
    options = (b"V" if vectors else b"N", b"U" if upper else b"L")
    matrices = (n, _each(V), n, _each(L, 1))
    if A.is_complex():
        count = 1 + 5 * n + 2 * n * n if vectors else n
        real_work = cresset.empty(count, dtype=L.dtype, device="cpu")
        name, real_part = "heevd", (_same(real_work), count)
    else:
        name, real_part = "syevd", ()

    def run(work, size, integers, integer_size, count):
        more = (_same(work), size, *real_part, _same(integers), integer_size)
        return _call(name, letter, *options, *matrices, *more, matrices=count)

    work, integers = _workspace(lambda work, integers: run(work, -1, integers, -1, 1), A.dtype, name, *options, n)
    return L, V, _infos(A, run(work, work.numel(), integers, integers.numel(), _batch(A)))


@over_samples
def geev(A, vectors):
    """Eigenvalues of any square matrices, complex: (L, V or None, info)."""
    a, n, letter = column_major(A), A.size(-1), _LETTERS[A.dtype]
    is_complex = A.is_complex()
    parts = [uninitialized(A, n) for _ in range(1 if is_complex else 2)]
    V = uninitialized(A, n, n) if vectors else None
    dtype = A.dtype if is_complex else cresset.complex64 if A.dtype == cresset.float32 else cresset.complex128
    numbers = [0] * _batch(A)
    if n:
        nothing = cresset.empty(1, dtype=A.dtype, device="cpu")
        real_work = [cresset.empty(2 * n, dtype=real_dtype(A.dtype), device="cpu")] if is_complex else []

        def run(work, size, matrices):
            v = _each(V) if vectors else _same(nothing)
            results = (*(_each(part, 1) for part in parts), _same(nothing), 1, v, n)
            more = (_same(work), size, *map(_same, real_work))
            job = b"V" if vectors else b"N"
            return _call("geev", letter, b"N", job, n, _each(a), n, *results, *more, matrices=matrices)

        work, _ = _workspace(lambda work, _: run(work, -1, 1), A.dtype, "geev", vectors, n)
        numbers = run(work, work.numel(), _batch(A))
    L = parts[0] if is_complex else cresset.complex(*parts)
    if vectors and not is_complex:
        V = column_major(paired(V, parts[1]).to(dtype))
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
        return ld, pivots.to(cresset.int32), _infos(A, [0] * _batch(A))

    arguments = (b"L", n, _each(ld), n, _each(pivots, 1))
    ask = lambda work, _: _call(name, letter, *arguments, _same(work), -1)
    work, _ = _workspace(ask, A.dtype, name, n)
    numbers = _call(name, letter, *arguments, _same(work), work.numel(), matrices=_batch(A))
    return ld.tril_(), pivots.to(cresset.int32), _infos(A, numbers)


@over_samples
def sytrs(ld, pivots, B, hermitian):
    """Solve A X = B from sytrf's result. All have the same batch."""
    n, columns, letter = ld.size(-1), B.size(-1), _LETTERS[ld.dtype]
    name = "hetrs" if hermitian and ld.is_complex() else "sytrs"
    ld, X, pivots = in_columns(ld), column_major(B), pivots.to(cresset.int64).contiguous()
    if n and columns:
        arguments = (b"L", n, columns, _each(ld), n, _each(pivots, 1), _each(X), n)
        _call(name, letter, *arguments, matrices=_batch(ld))
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
    numbers = [0] * _batch(A)
    if not (k and columns):
        return X, ranks, values, _infos(A, numbers)
    bound = cresset.full((1,), rcond, dtype=real, device="cpu")
    real_work, integer_work = [], []
    if driver == "gelsy":
        order = cresset.zeros((*A.shape[:-2], n), dtype=cresset.int64, device="cpu")  # zeros: any column may move
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

    def run(work, size, matrices):
        arguments = (m, n, columns, _each(a), m, _each(X), max(m, n))
        more = (_same(work), size, *map(_same, real_work), *map(_same, integer_work))
        if driver == "gels":
            arguments = (b"N", *arguments)
        elif driver == "gelsy":
            arguments = (*arguments, _each(order, 1), _same(bound), _each(ranks, 0))
        else:
            arguments = (*arguments, _each(values, 1), _same(bound), _each(ranks, 0))
        return _call(driver, letter, *arguments, *more, matrices=matrices)

    work, _ = _workspace(lambda work, _: run(work, -1, 1), A.dtype, driver, m, n, columns)
    return X, ranks, values, _infos(A, run(work, work.numel(), _batch(A)))
