"""Every fault of the matrix once: each survivor names who is to blame, in time, and nothing is left behind."""

import pytest

from cresset.distributed.engines import mpi

from . import faults
from .machines import why_not


@pytest.mark.parametrize("fault", faults.FAULTS)
def test_every_survivor_says_who_and_where(fault):
    if not mpi.is_available():
        pytest.skip("needs MPI: pip install mpich")
    if fault == "network cut" and (reason := why_not()):
        pytest.skip(reason)
    problems = faults.run(fault, seed=1)
    assert not problems, "\n".join(problems)
