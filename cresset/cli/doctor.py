"""`cresset doctor`: what this machine offers to cresset, what is missing, and how to get it."""

import ctypes
import importlib.metadata
import importlib.util
import json
import os
import shutil
import sys
import time

import cresset
from cresset import __config__, collect_env

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
        return finding("cresset", BAD, f"{version}: a small gradient came out as {x.grad.tolist()}, expected [6.0, 8.0]", "install cresset again")
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
    if not cresset._native.build_info()["openmp"]:
        return finding("threads", ABSENT, "1: built without OpenMP", "build with a compiler that has OpenMP")
    if used > usable:
        return finding("threads", ABSENT, text, "more threads than processors: each operation waits for the slowest; lower OMP_NUM_THREADS")
    try:
        load = os.getloadavg()[0]
    except OSError:
        load = 0.0
    if load > 1.5 * usable:
        return finding("threads", ABSENT, f"{text}; the machine is busy (load {load:.1f})", "OMP_NUM_THREADS=1 is often quicker on a busy machine")
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
    if not os.path.isdir("/dev/shm"):
        return finding("/dev/shm", ABSENT, "not there", "workers of DataLoader pass batches through the temporary folder instead")
    free = shutil.disk_usage("/dev/shm").free
    if free < 256 << 20:
        return finding("/dev/shm", ABSENT, f"{size_text(free)} free", "batches of DataLoader workers need room here; with Docker, start with --shm-size=1g")
    return finding("/dev/shm", GOOD, f"{size_text(free)} free")


def onednn():
    version = cresset._native.build_info()["onednn"]
    if version:
        return finding("oneDNN", GOOD, str(version))
    return finding("oneDNN", ABSENT, "absent: products and convolutions use cresset's own loops", "install a wheel, or build with onednn-devel-cpu-gomp")


def lapack():
    try:
        cresset.linalg.inv(cresset.eye(2))
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


def opens(*names):
    """The first of these libraries that the system can open."""
    for name in names:
        try:
            ctypes.CDLL(name)
        except OSError:
            continue
        return name
    return None


def installed_library(*packages):
    """Whether one of NVIDIA's Python packages with this library is installed."""
    for name in packages:
        try:
            return f"{name} {importlib.metadata.version(name)}"
        except importlib.metadata.PackageNotFoundError:
            continue
    return None


def graphics():
    """The GPU, its driver, and the compiler for its kernels."""
    driver = collect_env.cuda()
    present = os.path.exists("/proc/driver/nvidia/version")
    yield finding("GPU driver", GOOD if present else ABSENT, driver, "" if present else "only for NVIDIA GPUs: install NVIDIA's driver")
    compiler = opens("libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so") or installed_library("nvidia-cuda-nvrtc", "nvidia-cuda-nvrtc-cu13", "nvidia-cuda-nvrtc-cu12")
    yield finding("NVRTC", GOOD if compiler else ABSENT, compiler or "not found", "" if compiler else "only for NVIDIA GPUs: pip install nvidia-cuda-nvrtc-cu12")
    if cresset.cuda.is_available():
        names = [cresset.cuda.get_device_name(i) for i in range(cresset.cuda.device_count())]
        yield finding("CUDA", GOOD, ", ".join(names))
    else:
        yield finding("CUDA", ABSENT, "cresset computes on the CPU here", "")


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
    for look in (works, processor, threads, memory, shared_memory, onednn, lapack, speed, packages, graphics):
        found = look()
        yield from [found] if isinstance(found, dict) else found


def run(options):
    found = []
    for item in findings():
        found.append(item)
        if not options.json:
            print(f"{MARKS[item['state']]}  {item['topic']:{WIDTH}}  {item['text']}", flush=True)
            if item["advice"] and item["state"] != GOOD:
                print(f"    {'':{WIDTH}}  -> {item['advice']}")
    bad = sum(item["state"] == BAD for item in found)
    if options.json:
        print(json.dumps(found, indent=2))
    else:
        print("\n" + (f"{bad} things that cresset needs do not work." if bad else "cresset works here. Marked -- is optional."))
    return int(bad > 0)
