"""`cresset profile script.py`: the costliest lines of a program, with time and memory."""

import json
import os
import re
import signal
import subprocess
import sys
import textwrap
import time

import pytest

import cresset
from cresset.profiler.lines import LineProfile, size_text, table, time_text

ROOT = os.path.dirname(os.path.dirname(cresset.__file__))
PROGRAM = """
    import sys
    import time
    import torch

    def multiply(n):
        a = torch.ones(n, n)
        for _ in range(20):
            b = a @ a
        return b

    def count():
        total = 0
        for i in range(1_000_000):
            total += i
        return total

    result = multiply(400)
    count()
    time.sleep(0.2)
    print("argv", sys.argv[1:], __name__)
"""


def environment(**more):
    kept = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "NO_COLOR")}
    return {
        **kept,
        "PYTHONPATH": os.pathsep.join([ROOT, os.environ.get("PYTHONPATH", "")]),
        "OMP_NUM_THREADS": "1",
        **more,
    }


@pytest.fixture
def profiled(tmp_path):
    """Profiles a program: profiled(text, *options, arguments=(), input=None)."""

    def go(text, *options, arguments=(), input=None, **more):
        (tmp_path / "program.py").write_text(textwrap.dedent(text))
        command = [sys.executable, "-m", "cresset", "profile", *options, "program.py", *arguments]
        return subprocess.run(
            command, capture_output=True, text=True, cwd=tmp_path, env=environment(**more), timeout=100, input=input
        )

    return go


def rows(report):
    """The report's lines that name a line of the program: {line number: cells}."""
    found = {}
    for line in report.splitlines():
        if match := re.search(
            r"^ *(\S+ \w+) +(\S+)% +(\S+ \w+) +(\S+) +(-|\S+ \w+) +(-|\S+ \w+)  program.py:(\d+)", line
        ):
            *cells, number = match.groups()
            found[int(number)] = cells
    return found


def milliseconds(text):
    value, unit = text.split()
    return float(value) * {"s": 1000, "ms": 1, "us": 0.001}[unit]


def test_the_file_of_the_command_is_no_line_of_the_program(tmp_path):
    (tmp_path / "cresset_command.py").write_text("import sys\nfrom cresset.cli import main\nsys.exit(main())\n")
    (tmp_path / "program.py").write_text("sum(range(3_000_000))\n")
    done = subprocess.run(
        [sys.executable, tmp_path / "cresset_command.py", "profile", tmp_path / "program.py"],
        capture_output=True, text=True, env=environment(), timeout=100,
    )  # fmt: skip
    assert done.returncode == 0 and "program.py:1" in done.stdout, done.stderr
    assert "cresset_command" not in done.stdout


def test_the_costliest_lines_with_time_and_memory(profiled):
    done = profiled(PROGRAM, arguments=["a", "--lines", "3"])
    assert done.returncode == 0 and "argv ['a', '--lines', '3'] __main__\n" in done.stdout, done.stderr
    found = rows(done.stdout)
    product, sleep = found[9], found[20]
    assert product[3] == "20" and product[4] == "12.2 MiB"  # 20 results of 625 KiB
    assert product[5] in ("1.22 MiB", "625 KiB")  # one is made while the one before is held
    assert 180 <= milliseconds(sleep[0]) < 400 and sleep[3:] == ["-", "-", "-"]
    assert milliseconds(found[15][0]) > 5 or milliseconds(found[14][0]) > 5  # Python's own loop
    assert "b = a @ a" in done.stdout and "time.sleep(0.2)" in done.stdout
    assert "\x1b" not in done.stdout and "Traceback" not in done.stderr


def test_shares_are_of_all_lines(profiled):
    shares = [float(share) for share in re.findall(r" (\d+\.\d)% ", profiled(PROGRAM).stdout)]
    assert 99 <= sum(shares) <= 101


def test_how_many_lines_and_which_first(profiled):
    done = profiled(PROGRAM, "--lines", "1")
    assert len(rows(done.stdout)) == 1 and "other lines" in done.stdout
    by_memory = """
        import time, torch
        small = torch.ones(1000)
        large = torch.ones(1_000_000)
        time.sleep(0.1)
    """
    assert list(rows(profiled(by_memory, "--lines", "1").stdout)) == [5]
    assert list(rows(profiled(by_memory, "--memory", "--lines", "1").stdout)) == [4]


@pytest.mark.parametrize("columns", [60, 80, 120, 200])
def test_no_line_is_longer_than_the_terminal_is_wide(profiled, columns):
    done = profiled(PROGRAM, COLUMNS=str(columns))
    report = done.stdout.partition("__main__\n")[2]
    numbers = len(re.search(r"^( *self .*)line$", report, re.MULTILINE)[1])
    assert max(map(len, report.splitlines())) <= max(columns, numbers + 20)
    assert "time.sleep(0.2)" in report  # below its numbers where there is no room beside them


def test_what_was_gathered_is_told_when_the_program_fails(profiled):
    done = profiled("import torch\nx = torch.ones(100, 100)\ny = x @ x\nraise ValueError('no')\n")
    assert done.returncode == 1 and "ValueError: no" in done.stderr and "line 4" in done.stderr
    assert "runpy" not in done.stderr and "profiling.py" not in done.stderr
    assert rows(done.stdout)[3][3] == "1"


@pytest.mark.parametrize("text, status", [("import sys; sys.exit(5)", 5), ("raise SystemExit", 0)])
def test_the_programs_exit_status_is_kept(profiled, text, status):
    done = profiled(f"import torch\ntorch.ones(3)\n{text}\n")
    assert done.returncode == status and rows(done.stdout)[2][3] == "1"


def test_an_interrupted_program_tells_what_was_gathered(tmp_path):
    (tmp_path / "program.py").write_text(
        "import time, torch\ntorch.ones(5)\nprint('ready', flush=True)\nwhile True:\n    time.sleep(0.01)\n"
    )
    command = [sys.executable, "-m", "cresset", "profile", "program.py"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path, env=environment()
    ) as process:
        assert process.stdout.readline() == "ready\n"
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=60)
    assert process.returncode == 130 and "KeyboardInterrupt" in errors
    assert milliseconds(rows(output)[5][0]) > 200


def test_threads_count_and_are_waited_for(profiled):
    done = profiled("""
        import threading, time, torch
        def work():
            time.sleep(0.3)
            for _ in range(50):
                torch.ones(300, 300)
        thread = threading.Thread(target=work)
        thread.start()
    """)
    assert rows(done.stdout)[6][3:5] == ["50", "17.2 MiB"], done.stdout + done.stderr
    assert "4" not in map(str, rows(done.stdout)) or milliseconds(rows(done.stdout)[4][0]) < 100  # it only waits


def test_a_program_reads_its_input(profiled):
    done = profiled("import torch\nprint('got', input())\n", input="hello\n")
    assert "got hello\n" in done.stdout and "waiting" in done.stdout


def test_a_forked_child_tells_nothing(profiled):
    done = profiled("""
        import os, torch
        child = os.fork()
        if child == 0:
            torch.ones(2)
        else:
            os.waitpid(child, 0)
            torch.ones(3)
    """)
    assert done.returncode == 0 and done.stdout.count("waiting") == 1, done.stdout + done.stderr


def test_a_program_goes_to_another_folder(profiled, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    done = profiled("import os, torch\nos.chdir('elsewhere')\nx = torch.ones(40)\n", "--output", "report.txt")
    assert done.stdout == "" and "x = torch.ones(40)" in (tmp_path / "report.txt").read_text()


def test_a_module_by_its_name(tmp_path):
    (tmp_path / "lesson.py").write_text("import sys, torch\nx = torch.ones(4)\nprint(sys.argv[1:])\n")
    command = [sys.executable, "-m", "cresset", "profile", "-m", "lesson", "x"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment(), timeout=100)
    assert "['x']" in done.stdout and "-m lesson: " in done.stdout and "x = torch.ones(4)" in done.stdout, done.stderr


def test_trace_flame_graph_and_memory_timeline(profiled, tmp_path):
    files = "--trace", "trace.json", "--flame", "flame.svg", "--memory-timeline", "memory.html"
    done = profiled(PROGRAM, *files)
    assert done.returncode == 0, done.stderr
    trace = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert sum(event["name"] == "aten::matmul" for event in trace) == 20
    flame = (tmp_path / "flame.svg").read_text()
    assert "aten::matmul: " in flame and "multiply program.py:9" in flame and "program.py:20" in flame
    assert "program.py:9" in (tmp_path / "memory.html").read_text()


@pytest.mark.parametrize(
    "options, told",
    [
        (["nothing.py"], "there is no program 'nothing.py'"),
        (["--flame", "a.png", "program.py"], "--flame draws an SVG file"),
        (["--trace", "no/folder/a.json", "program.py"], "there is no folder for 'no/folder/a.json'"),
    ],
)
def test_mistakes_are_told_before_the_program_runs(tmp_path, options, told):
    (tmp_path / "program.py").write_text("print('ran')")
    command = [sys.executable, "-m", "cresset", "profile", *options]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment(), timeout=100)
    assert done.returncode == 1 and told in done.stderr and "ran" not in done.stdout
    assert len(done.stderr.splitlines()) == 1


def test_whose_a_line_is():
    profile = LineProfile()
    assert profile.is_own("/home/me/train.py") and profile.is_own("train.py")
    assert not profile.is_own(cresset.nn.__file__) and not profile.is_own(os.__file__)
    assert not profile.is_own("/home/me/.venv/lib/python3.11/site-packages/tqdm/std.py")
    assert not profile.is_own("<string>") and not profile.is_own("<frozen importlib._bootstrap>")
    profile.own_folder = "/venv/lib/python3.11/site-packages/theirs/"
    assert profile.is_own("/venv/lib/python3.11/site-packages/theirs/train.py")
    assert not profile.is_own("/venv/lib/python3.11/site-packages/tqdm/std.py")
    profile.own_folder = "/home/me/"
    assert not profile.is_own("/home/me/.venv/lib/python3.11/site-packages/tqdm/std.py")


def test_sizes_and_times_have_three_digits():
    assert [time_text(n) for n in (0, 950, 12_345, 999_999, 61 * 10**9)] == [
        "0.00 us",
        "0.95 us",
        "12.3 us",
        "1000 us",
        "61.0 s",
    ]
    assert [size_text(n) for n in (0, 12, 1000, 1536, 5 << 30)] == ["-", "12 B", "0.98 KiB", "1.50 KiB", "5.00 GiB"]


def test_an_empty_program_has_an_empty_table(profiled):
    done = profiled("")
    assert done.returncode == 0 and "no tensors" in done.stdout and rows(done.stdout) == {}


def test_lines_are_added_up_by_hand():
    """The table from sums that are known."""
    profile = LineProfile()
    profile.folder = "/home/me"
    from cresset.profiler.stacks import Stacks

    profile.stacks = Stacks(
        [(-1, "train.py", 3, "<module>"), (0, "train.py", 8, "step"), (1, cresset.nn.__file__, 1, "f")]
    )
    profile.recording = type("Recording", (), {"events": []})()
    profile.time, profile.samples, profile.peaks = 100, 1, (64, 0)
    profile.sums = {
        "operators": [(2, "aten::mm", 2, 60), (1, "aten::exp", 1, 20)],
        "python": [(0, 10), (2, 10)],
        "memory": [(2, "cpu", 3, 96, 32, 64, 64)],
    }
    profile.attribute()
    step, module = profile.lines["/home/me/train.py", 8], profile.lines["/home/me/train.py", 3]
    assert (step.own, step.total, step.calls, step.operators, step.python) == (90, 90, 3, 80, 10)
    assert (module.own, module.total, module.calls) == (10, 100, 0)
    assert (step.allocated, step.at_peak) == (96, 64)
    assert "90.0%" in table(profile) and "train.py:8" in table(profile)


def test_letters_that_the_terminal_lacks(profiled):
    done = profiled("import torch\nx = torch.ones(9)  # \u00fc\u4e2d\n", PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    assert done.returncode == 0 and "x = torch.ones(9)  # \\xfc\\u4e2d" in done.stdout, done.stderr


def test_a_program_that_records_by_itself(profiled):
    done = profiled("""
        import torch
        with torch.profiler.profile() as prof:
            x = torch.ones(5)
        print([event.name for event in prof.events()])
        y = torch.ones(6)
    """)
    assert "['aten::ones']" in done.stdout, done.stderr
    assert rows(done.stdout)[4][3] == rows(done.stdout)[6][3] == "1"


def test_a_line_that_writes_is_not_blamed_for_the_one_before(profiled):
    """Python's time goes to the line that ran, not to the next one that gives the interpreter away."""
    done = profiled("""
        import torch
        def count():
            total = 0
            for i in range(400_000):
                total += i * i
            return total
        for number in range(12):
            count()
            print(number, flush=True)
    """)
    found = rows(done.stdout)
    loop = sum(milliseconds(found[number][0]) for number in (5, 6) if number in found)
    write = milliseconds(found[10][0]) if 10 in found else 0
    assert loop > 3 * write, done.stdout


def test_calls_of_the_system_go_on(profiled):
    """What makes Python look interrupts nothing that the program waits for."""
    done = profiled("""
        import os, time, torch
        reading, writing = os.pipe()
        if os.fork() == 0:
            time.sleep(0.3)
            os.write(writing, b"x" * 10)
            os._exit(0)
        end = time.monotonic() + 0.15
        while time.monotonic() < end:
            pass
        print(os.read(reading, 10), os.wait()[1])
    """)
    assert "b'xxxxxxxxxx' 0\n" in done.stdout, done.stdout + done.stderr
