"""A job whose ranks are killed ends as if nobody had been."""

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
