"""Who started this process, if not torchrun: Slurm and mpiexec say its number in variables of their own."""

import os
import re

STARTED_BY_OTHERS = ("PMI_FD", "PMI_PORT", "PMIX_NAMESPACE", "PMIX_RANK")
LOCAL = ("LOCAL_RANK", "SLURM_LOCALID", "MPI_LOCALRANKID", "OMPI_COMM_WORLD_LOCAL_RANK")


def local_rank():
    """The number of this process on its machine, or None."""
    return next((int(os.environ[name]) for name in LOCAL if name in os.environ), None)


def is_launched_by_mpi():
    """Whether mpiexec or the like started this process, and answers MPI's questions itself."""
    return any(name in os.environ for name in STARTED_BY_OTHERS)


def first_host(nodes):
    """The first machine of a list as Slurm writes it.

    >>> first_host("gpu[003-010,12],login"), first_host("a,b")
    ('gpu003', 'a')
    """
    match = re.match(r"([^,\[]*)(?:\[([^\],-]*)[^\]]*\])?([^,]*)", nodes)
    assert match is not None  # every part may be empty
    return match[1] + (match[2] or "") + match[3]


def by_slurm():
    """What `srun` says, as (rank, world size, address, port) of this step; None elsewhere.

    MASTER_ADDR and MASTER_PORT win where they are set.
    """
    if "SLURM_PROCID" not in os.environ or "SLURM_NTASKS" not in os.environ:
        return None
    nodes = next((os.environ[n] for n in ("SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST") if os.environ.get(n)), "")
    size, only_here = int(os.environ["SLURM_NTASKS"]), os.environ.get("SLURM_NNODES", "1") == "1"
    address = os.environ.get("MASTER_ADDR") or ("127.0.0.1" if only_here or not nodes else first_host(nodes))
    # Every step of every job has a port of its own, as far as numbers allow.
    step = int(os.environ.get("SLURM_JOB_ID", 0)) * 31 + int(os.environ.get("SLURM_STEP_ID", 0))
    return int(os.environ["SLURM_PROCID"]), size, address, int(os.environ.get("MASTER_PORT") or 20000 + step % 20000)
