"""Calls that want memory in every part of the library, and what happens when it cannot be had.

    python tests/memory/sites.py                    # every site at each limit, cold and warm; a line for what went
    wrong python tests/memory/sites.py --short            # at few limits
    python tests/memory/sites.py matmul "group_norm"

For each site and limit a child is forked. It limits its address space (RLIMIT_AS) to what it has and a little more, in
the form "tight" after filling the holes of its heap, and makes the call: it must give a result or raise, for want of
memory. Then the limit is lifted, and the call must give the bits that a child without a limit gave. Nothing else will
do: no signal, no exit, no standing still.
"""

import ctypes
import functools
import gc
import hashlib
import importlib
import io
import mmap
import os
import resource
import signal
import sys
import tempfile
import threading
import time

import cresset as torch
from cresset.data.workers import start_thread
from cresset.nn import functional as F

MiB = 1 << 20
LIMITS = (0, 1 << 14, 1 << 17, 1 << 19, *(n * MiB for n in (1, 2, 3, 5, 7, 9, 12, 16, 20, 28, 40, 64, 100, 160, 256)))
FEW_LIMITS = (0, 1 << 17, 3 * MiB)
PATIENCE = 60  # seconds for one child


# ---- the calls: a function that makes what they need without a limit, and the call -----------------------------------

SITES = {}


def site(make=lambda: (), name=None):
    def keep(call):
        SITES[name or call.__name__] = make, call
        return call

    return keep


def drawn(*shapes, dtype=torch.float32):
    torch.manual_seed(0)
    return tuple(torch.randn(*shape).to(dtype) for shape in shapes)


def simple(name, call, *shapes, dtype=torch.float32):
    site(functools.partial(drawn, *shapes, dtype=dtype), name)(call)


LONG, SQUARE, IMAGES, STEPS = (1 << 19,), (512, 512), (4, 16, 48, 48), (8, 50, 96)

simple("add", lambda x: x + x, LONG)
simple("add with another dtype", lambda x: x + x.double(), LONG)
simple("exp of a transpose", lambda x: x.mT.exp(), SQUARE)
simple("sum of columns", lambda x: x.sum(0), SQUARE)
simple("var", lambda x: torch.var_mean(x, 1), SQUARE)
simple("cumsum", lambda x: x.cumsum(0), LONG)
simple("softmax", lambda x: x.softmax(1), SQUARE)
simple("layer_norm", lambda x: F.layer_norm(x, (512,)), SQUARE)
simple("batch_norm", lambda x: F.batch_norm(x, None, None, training=True), IMAGES)
simple("group_norm", lambda x: F.group_norm(x, 4), IMAGES)
simple("matmul", lambda x: x @ x.mT, SQUARE)
simple("matmul of float64", lambda x: x @ x.mT, SQUARE, dtype=torch.float64)
simple("matmul of bfloat16", lambda x: x @ x.mT, SQUARE, dtype=torch.bfloat16)
simple("matmul of integers", lambda x: x @ x.mT, (200, 200), dtype=torch.int64)
simple("matmul of complex numbers", lambda x: x @ x.mT, (200, 200), dtype=torch.complex64)
simple("bmm", lambda x: x @ x.mT, (16, 128, 128))
simple("a long inner product", lambda x: x @ x, (1 << 20,))
simple("einsum", lambda x, y: torch.einsum("abc,acd,bd->ad", x, y, x[0][:, :40]), (20, 30, 50), (20, 50, 40))
simple("linear", lambda x, w: F.linear(x, w, w[:, 0]), (256, 512), (384, 512))
simple("conv2d", lambda x, w: F.conv2d(x, w, padding=1), IMAGES, (24, 16, 3, 3))
simple("conv2d with a stride", lambda x, w: F.conv2d(x, w, stride=2), IMAGES, (24, 16, 5, 5))
simple("conv2d in groups", lambda x, w: F.conv2d(x, w, groups=16), IMAGES, (16, 1, 3, 3))
simple("conv1d", lambda x, w: F.conv1d(x, w), (8, 50, 96), (20, 50, 3))
simple("conv3d", lambda x, w: F.conv3d(x, w), (2, 4, 12, 12, 12), (6, 4, 3, 3, 3))
simple("conv_transpose2d", lambda x, w: F.conv_transpose2d(x, w, stride=2), IMAGES, (16, 8, 3, 3))
simple("max_pool2d", lambda x: F.max_pool2d(x, 3, return_indices=True), IMAGES)
simple("interpolate", lambda x: F.interpolate(x, scale_factor=2, mode="bicubic"), IMAGES)
simple("unfold", lambda x: F.unfold(x, 3), IMAGES)
simple("attention", lambda x: F.scaled_dot_product_attention(x, x, x, is_causal=True), (2, 4, 128, 64))
simple("sort", lambda x: x.sort(), LONG)
simple("sort of rows", lambda x: x.sort(1, stable=True), SQUARE)
simple("topk", lambda x: x.topk(20, 1)[0], SQUARE)
simple("unique", lambda x: torch.unique((x * 100).long(), return_inverse=True, return_counts=True), LONG)
simple("median", lambda x: x.median(), LONG)
simple("cat", lambda x: torch.cat([x, x, x[:3]]), SQUARE)
simple("stack of many", lambda x: torch.stack(list(x)), SQUARE)
simple("index by a mask", lambda x: x[x > 0], LONG)
simple("index by numbers", lambda x: x[torch.arange(0, 512, 3)], SQUARE)
simple("index_put", lambda x: x.clone().index_put_((torch.arange(512) % 7,), x, accumulate=True), SQUARE)
simple("scatter_add", lambda x: torch.zeros(512, 512).scatter_add(0, (x * 10).long() % 512, x), SQUARE)
simple(
    "embedding_bag",
    lambda x: F.embedding_bag((x * 100).long().view(-1) % 512, x, torch.arange(0, 5000, 7), mode="mean"),
    SQUARE,
)
simple("nonzero", lambda x: (x > 1).nonzero(), SQUARE)
simple("fft", lambda x: torch.fft.fft(x), (30_030,))
simple("fft of a prime length", lambda x: torch.fft.fft(x), (10_007,))
simple("rfft2", lambda x: torch.fft.rfft2(x), SQUARE)
simple("stft", lambda x: torch.stft(x, 512, return_complex=True, window=torch.ones(512)), (40_000,))
simple("solve", lambda x: torch.linalg.solve(x, x[:, :3]), (80, 80))
simple("svd", lambda x: torch.linalg.svdvals(x), (80, 80))
simple("eigh", lambda x: torch.linalg.eigvalsh(x + x.mT), (80, 80))
simple("qr", lambda x: torch.linalg.qr(x), (80, 80))
simple("matrix_exp", lambda x: torch.matrix_exp(x / 100), (80, 80))
simple("tensor from a list", lambda x: torch.tensor(x.tolist()), (300, 300))
simple("tolist", lambda x: x.tolist(), SQUARE)
# NumPy is there before the limit: importing it loads OpenBLAS, which ends the process where it has no memory.
site(lambda: (*drawn(SQUARE), importlib.import_module("numpy")), "numpy")(
    lambda x, numpy: torch.from_numpy(numpy.multiply(x.numpy(), 2, dtype="float64"))
)
simple("repr", lambda x: repr(x), (300, 300))
simple("contiguous", lambda x: x.mT.contiguous(), SQUARE)
simple("pad", lambda x: F.pad(x, (3, 4, 5, 6), mode="reflect"), IMAGES)
simple("vmap", lambda x: torch.vmap(lambda a: (a @ a.mT).softmax(-1).sum())(x), (16, 64, 64))
simple("jacobian", lambda x: torch.func.jacrev(lambda a: a.sin() * a.sum())(x), (200,))
simple("cdist", lambda x: torch.cdist(x, x), (400, 20))
simple("histogram", lambda x: torch.histc(x, 100), LONG)
simple("sparse product", lambda x: torch.sparse.mm((x * (x > 1)).to_sparse(), x), (200, 200))
simple(
    "nested tensor", lambda x: torch.nested.to_padded_tensor(torch.nested.nested_tensor([x[:3], x[:200]]), 0.0), SQUARE
)
simple("quantize", lambda x: torch.quantize_per_tensor(x, 0.1, 3, torch.quint8).dequantize(), SQUARE)
simple("deepcopy", lambda x: __import__("copy").deepcopy({"a": [x, x.mT]})["a"][1], SQUARE)
simple("foreach", lambda x: torch._foreach_add(torch._foreach_mul(list(x.split(8)), 2.0), 1.0), SQUARE)


@site()
def randn():
    torch.manual_seed(1)
    return torch.randn(1 << 19), torch.randperm(50_000), torch.rand(1 << 18), torch.multinomial(torch.ones(1000), 500)


@site(lambda: (*drawn(STEPS), torch.nn.LSTM(96, 64, 2, batch_first=True, bidirectional=True)))
def lstm(x, model):
    for p in model.parameters():
        torch.nn.init.constant_(p, 0.01)
    model.zero_grad()
    model(x)[0].sum().backward()
    return [p.grad for p in model.parameters()]


@site(lambda: drawn((64, 100), (100, 100)))
def a_long_history(x, w):
    w = w.clone().requires_grad_()
    y = x
    for _ in range(60):
        y = (y @ w / 30).tanh() + x
    y.square().mean().backward()
    return w.grad


@site(lambda: drawn(IMAGES, (24, 16, 3, 3)))
def convolution_backward(x, w):
    x, w = x.clone().requires_grad_(), w.clone().requires_grad_()
    F.max_pool2d(F.conv2d(x, w, padding=1).relu(), 2).square().sum().backward()
    return x.grad, w.grad


def small_net():
    torch.manual_seed(3)
    return torch.nn.Sequential(
        torch.nn.Linear(256, 256), torch.nn.GELU(), torch.nn.Dropout(0.1), torch.nn.Linear(256, 256)
    )


@site(lambda: drawn((64, 256)))
def optimizers(x):
    results = []
    for kind in (torch.optim.SGD, torch.optim.AdamW, torch.optim.RMSprop, torch.optim.Adagrad):
        net = small_net()
        optimizer = kind(net.parameters(), lr=0.01)
        for _ in range(2):
            optimizer.zero_grad()
            net(x).square().mean().backward()
            optimizer.step()
        results.append(net[0].weight.detach())
    return results


@site(lambda: drawn((32, 20, 64)))
def transformer(x):
    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(64, 4, 128, dropout=0.0, batch_first=True)
    layer(x).sum().backward()
    return [p.grad for p in layer.parameters()]


@site(lambda: drawn((64, 256)))
def checkpointing(x):
    net = small_net().eval()
    x = x.clone().requires_grad_()
    torch.utils.checkpoint.checkpoint(net, x, use_reentrant=False).sum().backward()
    return x.grad


@site(lambda: drawn((64, 256)))
def autocast(x):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        return small_net().eval()(x).detach()


@site(lambda: drawn(SQUARE))
def save_and_load(x):
    file = io.BytesIO()
    torch.save({"x": x, "list": [x[:5], 3, "text"], "net": small_net().state_dict()}, file)
    file.seek(0)
    return torch.load(file)["x"]


@site(lambda: drawn(SQUARE))
def safetensors(x):
    import cresset.safetensors as files

    with tempfile.TemporaryDirectory() as folder:
        files.save_file({"x": x}, folder + "/x.safetensors")
        return files.load_file(folder + "/x.safetensors")["x"]


@site(lambda: drawn((600, 300)))
def loader(x):
    return list(torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, x[:, 0]), batch_size=64, shuffle=False))


@site(lambda: drawn((200, 300)))
def loader_with_threads(x):
    return list(
        torch.utils.data.DataLoader(
            torch.utils.data.TensorDataset(x), batch_size=64, num_workers=2, worker_type="thread"
        )
    )


@site(lambda: drawn((200, 300)))
def loader_with_processes(x):
    try:
        return list(
            torch.utils.data.DataLoader(
                torch.utils.data.TensorDataset(x), batch_size=64, num_workers=1, multiprocessing_context="fork"
            )
        )
    except RuntimeError as error:
        if "exited unexpectedly" not in str(error):  # what it had no memory for, the worker has written to stderr
            raise
        raise MemoryError("a worker had no memory") from error


@site(lambda: drawn((100, 100)))
def profiler(x):
    with torch.profiler.profile(profile_memory=True, record_shapes=True) as record:
        y = (x @ x).relu().sum()
    record.key_averages().table()
    return y


@site(lambda: drawn((256, 256)))
def threads_of_a_program(x):
    results = [None] * 3

    ended = [threading.Lock() for _ in results]  # released without memory; an Event may want some to wake who waits

    def work(i):
        try:
            results[i] = (x @ x + i).sum()
        finally:
            ended[i].release()

    for i, lock in enumerate(ended):
        lock.acquire()
        start_thread(functools.partial(work, i))
    for lock in ended:
        lock.acquire()
    if None in results:
        raise MemoryError("a thread had no memory")
    return results


def png():
    try:
        from PIL import Image
    except ImportError:
        return (None,)
    file = io.BytesIO()
    Image.effect_mandelbrot((300, 200), (-3, -2.5, 2, 2.5), 50).convert("RGB").save(file, "PNG")
    return (torch.frombuffer(bytearray(file.getvalue()), dtype=torch.uint8),)


@site(png)
def decode_image(file):
    if file is None:
        return 0
    from cresset.vision import io as images

    return images.decode_image(file)


@site(lambda: drawn((3, 200, 200)))
def transforms(image):
    from cresset.vision import transforms

    return transforms.Compose(
        [transforms.Resize(150), transforms.CenterCrop(120), transforms.Normalize([0.5] * 3, [0.2] * 3)]
    )(image)


@site()
def distributions():
    torch.manual_seed(2)
    d = torch.distributions.MultivariateNormal(torch.zeros(50), torch.eye(50) + 0.1)
    return d.log_prob(d.sample((500,))), torch.distributions.Gamma(torch.ones(20_000), 2.0).sample()


@site()
def modules():
    torch.manual_seed(4)
    net = torch.nn.Sequential(*(torch.nn.Linear(64, 64) for _ in range(30)))
    return torch.nn.utils.parameters_to_vector(net.parameters()).detach(), str(net)


# ---- running them ----------------------------------------------------------------------------------------------------


def digest(value, to=None):
    h = hashlib.sha256() if to is None else to
    if isinstance(value, torch.Tensor):
        value = value.detach()
        value = torch.view_as_real(value) if value.is_complex() else value
        h.update(f"{tuple(value.shape)} {value.dtype}".encode())
        h.update((value.float() if value.dtype is torch.bfloat16 else value).contiguous().numpy().tobytes())
    elif isinstance(value, (list, tuple)):
        for v in value:
            digest(v, h)
    else:
        h.update(repr(value).encode())
    return h.hexdigest()


def address_space():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[0]) * resource.getpagesize()


def limit(size):
    resource.setrlimit(resource.RLIMIT_AS, (size, resource.RLIM_INFINITY))


reserve = mmap.mmap(-1, 8 * MiB)  # so that there is memory for lifting the limit


def lift():
    reserve.close()
    limit(resource.RLIM_INFINITY)


class Filling:
    """Takes what malloc can still give without asking the system, in pieces down to `least` bytes, and gives it
    back."""

    def __init__(self, least):
        self.library = ctypes.CDLL(None)
        self.library.malloc.restype = ctypes.c_void_p
        self.library.malloc.argtypes = [ctypes.c_size_t]
        self.library.free.argtypes = [ctypes.c_void_p]
        self.first = None
        size = 1 << 24
        while size >= least:
            piece = self.library.malloc(size)
            if not piece:
                size //= 2
                continue
            ctypes.cast(piece, ctypes.POINTER(ctypes.c_void_p))[0] = (
                self.first
            )  # a chain: a list would want memory itself
            self.first = piece

    def free(self):
        while self.first:
            following = ctypes.cast(self.first, ctypes.POINTER(ctypes.c_void_p))[0]
            self.library.free(self.first)
            self.first = following


def want_of_memory(error):
    """Whether an error says so, or follows from one that does."""
    seen = []
    while error is not None and error not in seen:
        text = str(error).lower()
        if (
            isinstance(error, MemoryError)
            or "memory" in text
            or "allocate" in text
            or "can't start new thread" in text
            or getattr(error, "errno", 0) == 12
        ):
            return True
        if isinstance(error, ImportError) and "failed to map segment" in text:
            return True
        # CPython's compiler and its calls of functions written in Python have no word for it, nor has its loop where
        # there is no room for a frame (as in importlib's own calls); NumPy's ufuncs neither.
        if isinstance(error, SystemError) and (
            text == "error return without exception set"
            or "returned null without setting" in text
            and text.startswith(("<built-in function compile>", "<function ", "<ufunc "))
        ):
            return True
        seen.append(error)
        error = error.__cause__ or error.__context__
    return False


def attempt(name, extra, tight, warm, expected, output):
    """In a child: the call under a limit, and without. Writes what came of it."""
    make, call = SITES[name]
    arguments = make()
    if expected is None:
        return os.write(output, digest(call(*arguments)).encode())
    if warm:
        call(*arguments)
        torch._native.empty_host_cache()
    gc.collect()
    filling = None
    before = address_space()
    result = None
    limit(before + (0 if tight else extra))
    try:
        if tight:
            filling = Filling(4096)
            limit(before + extra)
        result = call(*arguments)
        outcome = b"done"
    except Exception as error:
        lift()
        outcome = (
            b"refused" if want_of_memory(error) else f"another error: {type(error).__name__}: {error}".encode()[:300]
        )
        error.__traceback__ = None
    lift()
    if filling:
        filling.free()
    if result is not None and digest(result) != expected:
        outcome = b"wrong under the limit"
    del result
    if digest(call(*arguments)) != expected:
        outcome = b"wrong afterwards"
    os.write(output, outcome)


def in_a_child(name, extra=0, tight=False, warm=False, expected=None):
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            os.close(reading)
            attempt(name, extra, tight, warm, expected, writing)
            code = 0
        except BaseException as error:
            lift()
            os.write(writing, f"afterwards: {type(error).__name__}: {error}".encode()[:300])
        finally:
            os._exit(code)
    os.close(writing)
    end = time.monotonic() + PATIENCE
    while True:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            break
        if time.monotonic() > end:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            os.close(reading)
            return "stands still"
        time.sleep(0.001)
    with os.fdopen(reading, "rb") as file:
        text = file.read().decode(errors="replace")
    if os.WIFSIGNALED(status):
        return f"ended by signal {os.WTERMSIG(status)} {text}"
    return text or f"ended with status {os.WEXITSTATUS(status)}"


def sweep(name, short):
    """What went wrong at this site, how many calls were refused, and how many were done."""
    expected = in_a_child(name)
    if len(expected) != 64:
        return [f"{name}: without a limit: {expected}"], 0, 0
    wrong, refused, done = [], 0, 0
    for tight, warm in (
        ((False, False), (True, True)) if short else ((False, False), (False, True), (True, False), (True, True))
    ):
        for extra in FEW_LIMITS if short else LIMITS:
            outcome = in_a_child(name, extra, tight, warm, expected)
            refused += outcome == "refused"
            done += outcome == "done"
            if outcome not in ("refused", "done"):
                wrong.append(f"{name}: {extra} more bytes{', tight' * tight}{', warm' * warm}: {outcome}")
            if outcome == "done" and extra > 16 * MiB:  # more room changes nothing
                break
    return wrong, refused, done


def main(names):
    short = "--short" in names
    names = [name for name in names if name != "--short"]
    start, total, refusals, completions = time.monotonic(), 0, 0, 0
    for name in names or SITES:
        wrong, refused, done = sweep(name, short)
        total += len(wrong)
        refusals += refused
        completions += done
        print(
            f"{name}: {refused} refused, {done} done{', WRONG:' if wrong else ''}",
            *wrong,
            sep="\n  " if wrong else "",
            flush=True,
        )
    print(
        f"{len(names or SITES)} sites, {refusals} calls refused, {completions} done, {total} wrong, "
        f"{time.monotonic() - start:.0f} s"
    )
    return total


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]) > 0)
