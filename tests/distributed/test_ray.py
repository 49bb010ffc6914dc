"""Jobs on Ray, with the real package on one machine."""

import os

import pytest

import cresset
import cresset.distributed as dist
from cresset.distributed.engines import mpi

ray = pytest.importorskip("ray", reason="needs Ray: pip install ray")


@pytest.fixture(scope="module", autouse=True)
def cluster():
    if not mpi.is_available():
        pytest.skip("needs MPI: pip install mpich")
    here = os.pathsep.join([os.path.dirname(os.path.dirname(cresset.__file__)), os.environ.get("PYTHONPATH", "")])
    ray.init(num_cpus=3, include_dashboard=False, runtime_env={"env_vars": {"PYTHONPATH": here}}, log_to_driver=False)
    yield
    ray.shutdown()


def test_workers_are_the_ranks_of_a_job():
    def job(factor):
        import cresset as torch
        import cresset.distributed as dist

        x = torch.full((3,), dist.get_rank() + 1.0)
        dist.all_reduce(x)
        return dist.get_rank(), dist.get_node_local_rank(), x.mul(factor).tolist()

    assert dist.on_ray(job, 2, 10) == [(0, 0, [30.0] * 3), (1, 1, [30.0] * 3)]


def test_the_error_of_a_rank_is_raised():
    def job():
        import cresset.distributed as dist

        if dist.get_rank() == 1:
            raise KeyError("of my own")
        dist.barrier()

    with pytest.raises((KeyError, dist.DistBackendError), match="of my own"):
        dist.on_ray(job, 2)
