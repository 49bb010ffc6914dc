"""LAPACK's workspace: where OpenBLAS could not have its buffers, it would end the process; there is an exception
instead.
"""

import os
import subprocess
import sys
import textwrap

import pytest

CALLS = {
    "solve": "torch.linalg.solve(a, a)", "inv": "torch.linalg.inv(a)", "svd": "torch.linalg.svd(a)",
    "eigh": "torch.linalg.eigh(a + a.mT)", "qr": "torch.linalg.qr(a)",
    "cholesky": "torch.linalg.cholesky(a @ a.mT + 60 * torch.eye(60))", "lstsq": "torch.linalg.lstsq(a, a)",
    "eig": "torch.linalg.eig(a)", "det": "torch.linalg.det(a)",
}  # fmt: skip


def run(program):
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], env=environment, capture_output=True, text=True, timeout=120
    )
    assert (done.returncode, done.stderr) == (0, ""), (done.returncode, done.stdout, done.stderr)
    return done.stdout


@pytest.mark.parametrize("loaded", [False, True])
@pytest.mark.parametrize("call", CALLS)
def test_without_room_for_the_workspace_there_is_an_exception_and_the_process_goes_on(call, loaded):
    """OpenBLAS itself prints "Memory allocation still failed after 10 retries" and calls exit."""
    assert run(f"""
        import resource
        import cresset as torch
        torch.manual_seed(0)
        a = torch.randn(60, 60)
        if {loaded}:
            torch.linalg.eigvalsh(torch.eye(2))
        size = int(open("/proc/self/statm").read().split()[0]) * 4096
        refused = 0
        for extra in (1, 4, 16, 24, 30, 34, 40, 60, 90, 130, 170, 230):
            resource.setrlimit(resource.RLIMIT_AS, (size + (extra << 20), resource.RLIM_INFINITY))
            try:
                {CALLS[call]}
            except (MemoryError, RuntimeError) as error:
                assert "memory" in str(error) or isinstance(error, MemoryError), error
                refused += 1
            resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        assert refused
        {CALLS[call]}
        print("well")
    """) == "well\n"  # fmt: skip
