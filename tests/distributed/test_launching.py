"""Jobs on several machines (network namespaces, each with its address), under Slurm and under mpiexec."""

import os
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import time

import pytest

import cresset.distributed as dist
from cresset.distributed.engines import mpi
from cresset.distributed.launchers import by_slurm, first_host

from .faults import environment, processes_with, wait_for
from .machines import Machines, why_not

PROGRAM = """
import os, socket
import cresset as torch, cresset.distributed as dist
dist.init_process_group("gloo")
x = torch.full((1000,), dist.get_rank() + 1.0)
dist.all_reduce(x)
text = f"rank {dist.get_rank()} of {dist.get_world_size()} on {socket.gethostname()}: {x[0].item()};"
os.write(1, text.encode())
dist.destroy_process_group()
"""
MEETINGS = {
    "static": ["--nnodes", "2", "--node-rank", "{number}", "--master-addr", "{first}", "--master-port", "29500"],
    "c10d": ["--nnodes", "2", "--rdzv-backend", "c10d", "--rdzv-endpoint", "{first}:29400", "--rdzv-id", "job"],
    "as many as come": [
        "--nnodes", "1:4", "--rdzv-backend", "c10d", "--rdzv-endpoint", "{first}:29400", "--rdzv-id", "job",
        "--rdzv-conf", "last_call_timeout=4",
    ],
}  # fmt: skip


@pytest.fixture
def program(tmp_path):
    if not mpi.is_available():
        pytest.skip("needs MPI: pip install mpich")
    file = tmp_path / "program.py"
    file.write_text(PROGRAM)
    return file


@pytest.fixture
def machines():
    if reason := why_not():
        pytest.skip(reason)
    with Machines(2) as made:
        yield made


def begin(machines, number, options, program):
    words = [option.format(number=number, first=machines.address(0)) for option in options]
    command = [sys.executable, "-m", "cresset.distributed.run", *words, "--nproc-per-node", "2", str(program)]
    return subprocess.Popen(
        machines.command(number, command), env=environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        text=True, start_new_session=True,
    )  # fmt: skip


def outcome(agents, seconds=90):
    """What all agents printed, and how they ended."""
    outputs = []
    for agent in agents:
        try:
            outputs.append(agent.communicate(timeout=seconds)[0])
        except subprocess.TimeoutExpired:
            os.killpg(agent.pid, signal.SIGKILL)
            outputs.append("did not end: " + agent.communicate()[0])
    return "".join(outputs), [agent.returncode for agent in agents]


@pytest.mark.slow
@pytest.mark.parametrize("meeting", MEETINGS)
def test_two_machines_are_one_job(machines, program, meeting):
    agents = [begin(machines, number, MEETINGS[meeting], program) for number in range(2)]
    output, statuses = outcome(agents)
    assert statuses == [0, 0], output
    for rank in range(4):
        assert f"rank {rank} of 4 on machine" in output and output.count(": 10.0;") == 4, output
    assert output.count("on machine0") == output.count("on machine1") == 2, output


@pytest.mark.slow
def test_the_job_goes_on_without_a_machine_that_is_lost(machines, program, tmp_path):
    program.write_text(
        PROGRAM.replace(
            'dist.init_process_group("gloo")',
            f"""
import time
dist.init_process_group("gloo")
if dist.get_world_size() == 4:
    open({str(tmp_path)!r} + f"/ready{{dist.get_rank()}}", "w").close()
    while True:
        dist.barrier()
""",
        )
    )
    options = [*MEETINGS["as many as come"], "--max-restarts", "2", "--shutdown-timeout", "2"]
    agents = [begin(machines, number, options, program) for number in range(2)]
    deadline = time.monotonic() + 60
    while not all((tmp_path / f"ready{rank}").exists() for rank in range(4)) and time.monotonic() < deadline:
        time.sleep(0.05)
    machines.cut(1)
    output, statuses = outcome(agents)
    assert statuses[0] == 0 and statuses[1] != 0, output
    assert "rank 0 of 2 on machine0: 3.0;" in output and "rank 1 of 2 on machine0: 3.0;" in output, output


def test_slurm_says_who_is_who(program):
    told = {"SLURM_NTASKS": "2", "SLURM_JOB_ID": str(os.getpid()), "SLURM_NNODES": "1", "SLURM_JOB_NODELIST": "node1"}
    ranks = [
        subprocess.Popen(
            [sys.executable, str(program)], env={**environment(), **told, "SLURM_PROCID": str(rank)},
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True,
        )
        for rank in range(2)
    ]  # fmt: skip
    output, statuses = outcome(ranks)
    assert statuses == [0, 0] and output.count(" of 2 on ") == 2 and output.count(": 3.0;") == 2, output


def test_the_first_machine_of_slurms_list_is_where_they_meet(monkeypatch):
    assert first_host("gpu[003-010,12],login") == "gpu003" and first_host("a-1,b") == "a-1"
    assert first_host("rack2-n[7]") == "rack2-n7" and first_host("n[1-2]-ib,x") == "n1-ib"
    told = {"SLURM_PROCID": "5", "SLURM_NTASKS": "16", "SLURM_NNODES": "2", "SLURM_STEP_NODELIST": "n[07-08]"}
    for name, value in {**told, "SLURM_JOB_ID": "1000", "SLURM_STEP_ID": "1", "SLURM_LOCALID": "3"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("MASTER_ADDR", raising=False)
    monkeypatch.delenv("MASTER_PORT", raising=False)
    assert by_slurm() == (5, 16, "n07", 20000 + 31001 % 20000)
    monkeypatch.setenv("MASTER_ADDR", "10.0.0.9")
    monkeypatch.setenv("MASTER_PORT", "1234")
    assert by_slurm() == (5, 16, "10.0.0.9", 1234)
    monkeypatch.delenv("LOCAL_RANK", raising=False)
    assert dist.get_node_local_rank() == 3


def test_mpiexec_starts_a_job(program):
    mpiexec = shutil.which("mpiexec", path=os.pathsep.join([sysconfig.get_path("scripts"), os.environ.get("PATH", "")]))
    if mpiexec is None:
        pytest.skip("there is no mpiexec here")
    job = subprocess.Popen(
        [mpiexec, "-n", "3", sys.executable, str(program)], env=environment(), stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, start_new_session=True,
    )  # fmt: skip
    output, statuses = outcome([job])
    assert statuses == [0] and output.count(" of 3 on ") == 3 and output.count(": 6.0;") == 3, output


def test_a_full_dev_shm_is_named_at_the_start(tmp_path):
    if not mpi.is_available():
        pytest.skip("needs MPI: pip install mpich")
    program = tmp_path / "program.py"
    program.write_text("import cresset.distributed as dist\ndist.init_process_group('gloo')\n")
    command = [sys.executable, "-m", "cresset.distributed.run", "--standalone", "--nproc-per-node=2", str(program)]
    small = ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs -o size=1500k none /dev/shm && exec "$@"', "sh"]
    if subprocess.run([*small, "true"], capture_output=True).returncode:
        pytest.skip("mounting a small /dev/shm is not permitted here")
    done = subprocess.run([*small, *command], env=environment(), capture_output=True, text=True, timeout=120)
    assert done.returncode == 1
    assert re.search(r"init_process_group: rank \d on \S+ needs 1114112 bytes in /dev/shm: No space left", done.stderr)
    assert "SIGBUS" not in done.stderr


def test_when_the_first_machine_dies_the_others_say_so_and_end(tmp_path):
    if not mpi.is_available() or (reason := why_not()):
        pytest.skip("needs MPI: pip install mpich" if not mpi.is_available() else reason)
    program = tmp_path / "program.py"
    program.write_text("""
import os, sys
import cresset as torch, cresset.distributed as dist
rank, folder = os.environ["RANK"], sys.argv[1]
dist.init_process_group("gloo")
dist.barrier()
with open(f"{folder}/pid{rank}.new", "w") as file:
    file.write(str(os.getpid()))
os.rename(f"{folder}/pid{rank}.new", f"{folder}/pid{rank}")
while True:
    dist.all_reduce(torch.ones(3))
""")
    with Machines(2) as machines:
        meeting = ["--nnodes", "2", "--master-addr", machines.address(0), "--master-port", "29500"]
        run = [sys.executable, "-m", "cresset.distributed.run", "--nproc-per-node", "1", *meeting, "--node-rank"]
        agents = [
            subprocess.Popen(
                machines.command(i, [*run, str(i), str(program), str(tmp_path)]), env=environment(), text=True,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True,
            )
            for i in range(2)
        ]  # fmt: skip
        try:
            assert wait_for([tmp_path / "pid0", tmp_path / "pid1"], 60)
            time.sleep(0.3)
            agents[0].kill()
            os.kill(int((tmp_path / "pid0").read_text()), signal.SIGKILL)
            said = agents[1].communicate(timeout=30)[0]
        finally:
            for agent in agents:
                agent.kill()
                agent.communicate()
        assert agents[1].returncode and re.search(r"the store at 10\.213\.\d+\.1:29500 is (lost|gone)", said), said
        assert not processes_with(str(tmp_path))
