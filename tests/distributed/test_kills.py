"""A job whose ranks are killed ends as if nobody had been."""

import mmap
import os

import pytest

from cresset.distributed.engines import mpi

from . import kills


@pytest.mark.slow
def test_a_job_whose_ranks_are_killed_ends_with_the_same_bits():
    if not mpi.is_available():
        pytest.skip("needs MPI: pip install mpich")
    _, wanted, problems = kills.run(0, 0)
    assert wanted and not problems, problems
    done, bits, problems = kills.run(3, 5)
    assert done >= 1 and bits == wanted and not problems, (done, problems)


def test_shared_memory_that_no_process_has_open_is_taken_away():
    orphan, used = "/dev/shm/mpich_shm_cresset_orphan", "/dev/shm/mpich_shm_cresset_used"
    for path in (orphan, used):
        with open(path, "wb") as file:
            file.write(b"x" * 4096)
    with open(used, "r+b") as file, mmap.mmap(file.fileno(), 4096):
        mpi.remove_orphans()
        assert not os.path.exists(orphan) and os.path.exists(used)
    mpi.remove_orphans()
    assert not os.path.exists(used)
