"""torch.distributed.launcher: functions and programs as jobs, from a program."""

import os
import signal
import subprocess
import sys
import time

import pytest

from cresset.distributed.elastic.errors import ChildFailedError
from cresset.distributed.elastic.multiprocessing import DefaultLogsSpecs, Std
from cresset.distributed.launcher.api import LaunchConfig, elastic_launch, launch_agent


def config(**more):
    return LaunchConfig(**{"min_nodes": 1, "max_nodes": 1, "nproc_per_node": 2, "rdzv_backend": "c10d",
        "max_restarts": 0, **more})  # fmt: skip


def add_up(number):
    import cresset
    from cresset import distributed

    distributed.init_process_group("gloo")
    total = cresset.tensor([number + distributed.get_rank()])
    distributed.all_reduce(total)
    distributed.destroy_process_group()
    return total.item(), cresset.full((100_000,), float(os.environ["RANK"]))  # more than a pipe holds


def fail_at_first(folder):
    count = len(list(folder.iterdir()))
    if os.environ["RANK"] == "1":
        (folder / str(count)).write_text(os.environ["TORCHELASTIC_RESTART_COUNT"])
        if count < 2:
            raise KeyError("of my own")
    return count


def talk():
    print("a word of", os.environ["RANK"], flush=True)
    print("a complaint", file=sys.stderr, flush=True)


def sleep(path):
    path.with_suffix("." + os.environ["RANK"]).write_text(str(os.getpid()))
    time.sleep(100)


@pytest.mark.parametrize("method", ["spawn", "fork", "forkserver"])
def test_a_function_gives_its_results_by_rank(method):
    found = elastic_launch(config(start_method=method), add_up)(10)
    assert {rank: total for rank, (total, _) in found.items()} == {0: 21, 1: 21}
    assert [found[rank][1][-1].item() for rank in (0, 1)] == [0, 1]


def test_a_failure_is_told_and_begun_again(tmp_path):
    with pytest.raises(ChildFailedError, match="KeyError: 'of my own'") as caught:
        elastic_launch(config(), fail_at_first)(tmp_path)
    assert caught.value.name == "fail_at_first" and caught.value.get_first_failure()[0] == 1
    elastic_launch(config(max_restarts=3), fail_at_first)(tmp_path)
    assert sorted(path.read_text() for path in tmp_path.iterdir()) == ["0", "0", "1"]


def test_what_processes_print_goes_where_it_is_asked_for(tmp_path, capfd):
    logs = DefaultLogsSpecs(str(tmp_path / "logs"), redirects=Std.ERR, tee={0: Std.OUT}, local_ranks_filter={0})
    prefix = "<${role_name} ${rank}> "
    settings = {"run_id": "job", "role": "talker", "log_line_prefix_template": prefix, "logs_specs": logs}
    assert elastic_launch(config(**settings), talk)() == {0: None, 1: None}
    shown = capfd.readouterr()
    assert shown.out == "<talker 0> a word of 0\n" and not shown.err
    folder = tmp_path / "logs" / "job" / "attempt_0"
    assert (folder / "0" / "stdout.log").read_text() == "a word of 0\n"
    assert [(folder / str(rank) / "stderr.log").read_text() for rank in (0, 1)] == ["a complaint\n"] * 2


def test_a_program_is_run_with_its_arguments(tmp_path):
    code = f"import os; open({str(tmp_path)!r} + '/' + os.environ['RANK'], 'w').close()"
    assert launch_agent(config(), sys.executable, ["-c", code]) == {0: None, 1: None}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["0", "1"]


def test_a_signal_ends_the_job(tmp_path):
    (tmp_path / "program.py").write_text(f"""
import sys, pathlib
sys.path.insert(0, {os.path.dirname(__file__)!r})
from test_launcher import config, elastic_launch, sleep
from cresset.distributed.elastic.multiprocessing.api import SignalException
if __name__ == "__main__":
    try:
        elastic_launch(config(), sleep)(pathlib.Path(sys.argv[1]))
    except SignalException as error:
        print(error.sigval.name)
""")
    program = subprocess.Popen([sys.executable, "program.py", str(tmp_path / "pid")], cwd=tmp_path, stdout=-1)
    files = [tmp_path / "pid.0", tmp_path / "pid.1"]
    while not all(path.exists() and path.read_text() for path in files):
        assert program.poll() is None
        time.sleep(0.05)
    program.send_signal(signal.SIGTERM)
    assert program.communicate(timeout=30)[0] == b"SIGTERM\n"
    for path in files:
        with pytest.raises(ProcessLookupError):
            os.kill(int(path.read_text()), 0)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"rdzv_backend": "etcd"}, "'static' and 'c10d'"),
        ({"event_log_handler": "file"}, "'null' and 'console' are there"),
        ({"min_nodes": 2}, "2 to 1 machines"),
        ({"nproc_per_node": 0}, "must be positive"),
        ({"rdzv_backend": "static", "max_nodes": 2}, "come and go"),
    ],
)
def test_what_cannot_be_is_refused_in_words(more, words):
    with pytest.raises(ValueError, match=words):
        elastic_launch(config(**more), talk)()


def test_what_is_not_there_is_refused():
    with pytest.raises(NotImplementedError, match="numa_options"):
        config(numa_options="NODE")
    with pytest.raises(TypeError, match="a function or a program"):
        elastic_launch(config(), 3)()
