"""docs/serving.md: its commands are run, one after the other, as a reader would."""

import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import cresset

ROOT = Path(__file__).resolve().parents[2]
DOCUMENT = (ROOT / "docs" / "serving.md").read_text(encoding="utf-8")


def blocks(mark):
    """The code blocks that stand under <!-- mark -->."""
    return re.findall(rf"<!-- {mark} -->\n```\w+\n(.*?)```", DOCUMENT, re.S)


def test_the_commands_of_the_document_do_what_it_says(tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    path = os.pathsep.join([os.path.dirname(os.path.dirname(cresset.__file__)), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"}
    for name, text in re.findall(r"<!-- file: (\S+) -->\n```\w+\n(.*?)```", DOCUMENT, re.S):
        (tmp_path / name).write_text(text)
    (export,) = blocks("export")
    subprocess.run([sys.executable, "-c", export], cwd=tmp_path, env=environment, check=True, timeout=100)

    def shell(text):
        text = text.replace("cresset ", f"{sys.executable} -m cresset ").replace("8080", str(port))
        return ["bash", "-ec", text]

    (start,) = (f"{text.strip()} --port {port}" for text in blocks("start"))
    server = subprocess.Popen(
        ["setsid", *shell(start)], cwd=tmp_path, env=environment, stderr=subprocess.PIPE, text=True
    )
    try:
        lines = []
        for line in server.stderr:
            lines.append(line)
            if '"event": "listening"' in line:
                break
        assert server.poll() is None, "".join(lines)
        asked = re.findall(r"<!-- ask -->\n```sh\n(.*?)```\n\n```\n(.*?)```", DOCUMENT, re.S)
        assert len(asked) >= 4
        for command, expected in asked:
            done = subprocess.run(
                shell(command), cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=100
            )
            assert done.returncode == 0, (command, done.stderr)
            wanted = re.sub(r"\\d\\\+", r"\\d+", re.escape(expected.strip()).replace(r"\.\.\.", ".*"))
            assert re.fullmatch(wanted, done.stdout.strip(), re.S), (command, done.stdout)
        for command in blocks("measure"):
            command = command.replace("--seconds 1800", "--seconds 1").replace("--seconds 10", "--seconds 1")
            done = subprocess.run(
                shell(command), cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=100
            )
            assert done.returncode == 0 and "p99" in done.stdout, (command, done.stdout, done.stderr)
    finally:
        os.killpg(server.pid, signal.SIGTERM)
        end = time.monotonic() + 30
        while server.poll() is None and time.monotonic() < end:
            time.sleep(0.05)
        server.stderr.close()
        assert server.returncode is not None


def test_every_option_of_the_command_is_in_the_document():
    from cresset import cli

    command = next(action for action in cli.make_parser()._actions if action.dest == "command").choices["serve"]
    options = [option for action in command._actions for option in action.option_strings if option.startswith("--")]
    missing = [option for option in options if option != "--help" and f"`{option}" not in DOCUMENT]
    assert not missing
