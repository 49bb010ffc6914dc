"""`cresset doctor`: what this machine offers to cresset, what is missing, and how to get it."""

import ctypes
import importlib.metadata
import importlib.util
import json
import os
import sys
import time

import cresset
from cresset import __config__
from cresset.serialization.quoting import printable
from cresset.utils import collect_env

from .contents import size_text

GOOD, ABSENT, BAD = "good", "absent", "bad"
MARKS = {GOOD: "ok", ABSENT: "--", BAD: "!!"}
WIDTH = len("instruction set")

# Optional packages: name of the module, of the distribution, what it is for.
PACKAGES = [
    ("numpy", "numpy", "exchange arrays with NumPy"),
    ("PIL", "pillow", "read and write images (cresset.vision)"),
    ("pyarrow", "pyarrow", "read Parquet files (utils.data.ParquetDataset)"),
    ("onnx", "onnx", "look into ONNX files"),
    ("onnxruntime", "onnxruntime", "run exported ONNX models"),
    ("tensorboard", "tensorboard", "look at event files"),
]


def finding(topic, state, text, advice=""):
    return {"topic": topic, "state": state, "text": text, "advice": advice}


def works():
    """One step of training on two numbers: does the native part do its work?"""
    try:
        x = cresset.tensor([3.0, 4.0], requires_grad=True)
        (x * x).sum().backward()
        good = x.grad.tolist() == [6.0, 8.0]
    except Exception as error:
        return finding("cresset", BAD, f"a small gradient failed: {error}", "install cresset again")
    version = cresset.version.__version__
    if not good:
        return finding(
            "cresset",
            BAD,
            f"{version}: a small gradient came out as {x.grad.tolist()}, expected [6.0, 8.0]",
            "install cresset again",
        )
    return finding("cresset", GOOD, f"{version}, Python {sys.version.split()[0]}")


def processor():
    build = cresset._native.build_info()
    state, advice = GOOD, ""
    if build["isa"] == "baseline":
        state, advice = ABSENT, "this processor has no AVX2; kernels run, but several times slower"
    yield finding("processor", GOOD, collect_env.processor())
    yield finding("instruction set", state, f"{build['isa']} in use, of {', '.join(build['isa_levels'])}", advice)


def threads():
    usable, used = __config__.usable_processors(), cresset.get_num_threads()
    text = f"{used} of {usable} processors"
    if "OMP_NUM_THREADS" in os.environ:
        text += f" (OMP_NUM_THREADS={os.environ['OMP_NUM_THREADS']})"
    if used > usable:
        return finding(
            "threads",
            ABSENT,
            text,
            "more threads than processors: each operation waits for the slowest; lower OMP_NUM_THREADS",
        )
    try:
        load = os.getloadavg()[0]
    except OSError:
        load = 0.0
    if load > 1.5 * usable:
        return finding(
            "threads",
            ABSENT,
            f"{text}; the machine is busy (load {load:.1f})",
            "OMP_NUM_THREADS=1 is often quicker on a busy machine",
        )
    return finding("threads", GOOD, text)


def memory_lines():
    """/proc/meminfo as numbers of bytes; empty where there is none."""
    try:
        with open("/proc/meminfo") as file:
            return {line.split(":")[0]: int(line.split()[1]) * 1024 for line in file}
    except (OSError, ValueError, IndexError):
        return {}


def memory_limit():
    """What the control group allows, or None."""
    for path in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            with open(path) as file:
                text = file.read().strip()
        except OSError:
            continue
        if text.isdigit() and int(text) < 1 << 60:
            return int(text)
    return None


def memory():
    lines = memory_lines()
    if not lines:
        return finding("memory", GOOD, "unknown on this system")
    text = f"{size_text(lines['MemAvailable'])} free of {size_text(lines['MemTotal'])}"
    limit = memory_limit()
    if limit is not None and limit < lines["MemTotal"]:
        text += f", of which this container may use {size_text(limit)}"
    if lines["MemAvailable"] < 512 << 20:
        return finding("memory", ABSENT, text, "little is left; training may be stopped by the system")
    return finding("memory", GOOD, text)


def shared_memory():
    if hasattr(os, "memfd_create"):
        return finding(
            "shared memory",
            GOOD,
            (
                "batches of DataLoader workers travel through memory that has no name, wherever /dev/shm is and "
                "however "
                "small"
            ),
        )
    return finding(
        "shared memory",
        ABSENT,
        "not of this system",
        "workers of DataLoader pass batches through files in the temporary folder instead",
    )


def lapack():
    try:
        cresset.linalg.eigvalsh(cresset.eye(2))  # small inverses need none
    except RuntimeError as error:
        return finding("LAPACK", ABSENT, str(error).split(". ")[0], "pip install scipy-openblas64 (or numpy)")
    return finding("LAPACK", GOOD, "found (linalg.inv, svd, eigh ...)")


def packages():
    for module, distribution, purpose in PACKAGES:
        if importlib.util.find_spec(module) is None:
            yield finding(distribution, ABSENT, f"not installed; to {purpose}", f"pip install {distribution}")
            continue
        try:
            version = importlib.metadata.version(distribution)
        except importlib.metadata.PackageNotFoundError:
            version = "of unknown version"
        yield finding(distribution, GOOD, version)


# The CUDA libraries: title, file names, the function that tells the version, what it is for.
CUDA_LIBRARIES = [
    (
        "NVRTC",
        ("libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"),
        "nvrtcVersion",
        "compiles the kernels for the GPU at hand; nothing runs there without it",
    ),
    ("cuBLASLt", ("libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so"), "cublasLtGetVersion", "matrix products"),
    ("cuDNN", ("libcudnn.so.9", "libcudnn.so"), "cudnnGetVersion", "convolutions"),
    ("cuFFT", ("libcufft.so.12", "libcufft.so.11", "libcufft.so"), None, "Fourier transforms"),
    ("cuSOLVER", ("libcusolver.so.12", "libcusolver.so.11", "libcusolver.so"), None, "linear algebra"),
    ("CUPTI", ("libcupti.so.13", "libcupti.so.12", "libcupti.so"), None, "times of kernels in torch.profiler"),
    ("NVTX", ("libnvtx3interop.so.1", "libnvToolsExt.so.1"), None, "names of ranges in NVIDIA's profilers"),
]


def library_version(library, function):
    """What a library says its version is, as text; empty where it does not say."""
    ask = getattr(library, function or "", None)
    if ask is None:
        return ""
    if function == "nvrtcVersion":
        major, minor = ctypes.c_int(), ctypes.c_int()
        ask(ctypes.byref(major), ctypes.byref(minor))
        return f"{major.value}.{minor.value}"
    ask.restype = ctypes.c_size_t
    number = ask()
    return f"{number // 10000}.{number // 100 % 100}.{number % 100}"


def graphics():
    """The GPU, its driver, the libraries for it, and whether a small computation there comes out right."""
    from cresset.cuda.libraries import open_library

    present, problem = cresset.cuda.is_available(), cresset._native.cuda.problem()
    if present:
        version = cresset._native.cuda.driver_version()
        yield finding("GPU driver", GOOD, f"for CUDA {version // 1000}.{version // 10 % 100}")
    else:
        yield finding(
            "GPU driver",
            ABSENT,
            problem or "it has no device",
            "only for NVIDIA GPUs: install NVIDIA's driver, or see CUDA_VISIBLE_DEVICES",
        )
    for title, names, function, purpose in CUDA_LIBRARIES:
        library, path = open_library(*names)
        if library is not None:
            yield finding(title, GOOD, " ".join(filter(None, [library_version(library, function), path])))
        else:
            advice = (
                "pip install nvidia-nvtx"
                if title == "NVTX"
                else "pip install cresset[cuda], or [cuda12] for drivers before 580"
            )
            yield finding(
                title, ABSENT, f"not found ({purpose})", advice if present else f"only for NVIDIA GPUs: {advice}"
            )
    if not present:
        yield finding("CUDA", ABSENT, "cresset computes on the CPU here", "")
        return
    for number in range(cresset.cuda.device_count()):
        facts = cresset.cuda.get_device_properties(number)
        free, total = cresset.cuda.mem_get_info(number)
        text = (
            f"{facts.name}, sm_{facts.major}{facts.minor}, {facts.multi_processor_count} processors, "
            f"{size_text(free)} free of {size_text(total)}"
        )
        yield finding(f"cuda:{number}", GOOD, text)
    yield device_works()


def device_works():
    """The small gradient of `works`, on the device: the driver, the compiler and the kernels do their work together."""
    start = time.perf_counter()
    try:
        x = cresset.tensor([3.0, 4.0], device="cuda", requires_grad=True)
        (x * x).sum().backward()
        found = x.grad.tolist()
    except Exception as error:
        return finding(
            "CUDA",
            BAD,
            f"a small gradient on the GPU failed: {str(error).splitlines()[0]}",
            "pip install cresset[cuda], or [cuda12] for drivers before 580",
        )
    if found != [6.0, 8.0]:
        return finding(
            "CUDA",
            BAD,
            f"a small gradient on the GPU came out as {found}, expected [6.0, 8.0]",
            "install NVIDIA's driver and cresset again",
        )
    compiled, from_disk, *_ = cresset._native.cuda.compile_statistics()
    return finding(
        "CUDA",
        GOOD,
        (
            f"a small gradient took {time.perf_counter() - start:.2f} s ({compiled} kernels compiled, {from_disk} from "
            "the cache)"
        ),
    )


def speed():
    """How quick a product is: a machine that is throttled or busy shows here."""
    a, best = cresset.ones(512, 512), 1e9
    for _ in range(10):
        start = time.perf_counter()
        a @ a
        best = min(best, time.perf_counter() - start)
    return finding("speed", GOOD, f"{2 * 512**3 / best / 1e9:.0f} GFLOP/s in a product of 512 x 512 matrices")


def findings():
    """The findings, one by one as they are made."""
    for look in (works, processor, threads, memory, shared_memory, lapack, speed, packages, graphics):
        found = look()
        yield from [found] if isinstance(found, dict) else found


def run(options):
    found = []
    for item in findings():
        found.append(item)
        if not options.json:
            print(f"{MARKS[item['state']]}  {item['topic']:{WIDTH}}  {printable(item['text'])}", flush=True)
            if item["advice"] and item["state"] != GOOD:
                print(f"    {'':{WIDTH}}  -> {item['advice']}")
    bad = sum(item["state"] == BAD for item in found)
    if options.json:
        print(json.dumps(found, indent=2))
    else:
        print(
            "\n"
            + (f"{bad} things that cresset needs do not work." if bad else "cresset works here. Marked -- is optional.")
        )
    return int(bad > 0)
