"""How this cresset was built and what it found on this machine: `cresset.__config__.show()`."""

import os


def facts():
    """What `show` prints, as a dictionary from a short title to a string."""
    from . import _native

    build = _native.build_info()
    levels = ", ".join(build["isa_levels"])
    return {
        "cresset": build["version"],
        "compiler": f"{build['compiler']} ({build['build_type']})",
        "instruction set": f"{build['isa']} in use; this build carries {levels}",
        "threads": f"{_threads()} of {usable_processors()} processors",
    }


def show():
    """The build and the machine in a few lines, for a bug report.

    >>> print(cresset.__config__.show())  # doctest: +SKIP
    cresset          0.1.0
    compiler         GCC 12.2.0 (Release)
    instruction set  avx512 in use; this build carries baseline, avx2, avx512
    threads          2 of 2 processors
    """
    return lines(facts())


def _cxx_flags():
    """How the native part was compiled, as far as it knows."""
    from . import _native

    build = _native.build_info()
    return f"{build['compiler']} {build['build_type']} {' '.join(build['isa_levels'])}"


def parallel_info():
    """How many threads work on one operation, and what decided it."""
    chosen = {name: os.environ[name] for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS") if name in os.environ}
    return lines({"threads": _threads(), "processors": usable_processors(), **chosen})


def lines(titled):
    """A dictionary as aligned lines."""
    width = max(map(len, titled))
    return "\n".join(f"{title:{width}}  {value}" for title, value in titled.items())


def usable_processors():
    """The processors this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()


def _threads():
    import cresset

    return cresset.get_num_threads()
