"""torch.utils.collect_env: what a bug report should say about the machine; see cresset.collect_env."""

import shlex
import subprocess

from ..collect_env import cuda, facts, get_pretty_env_info

__all__ = ["facts", "get_nvidia_driver_version", "get_pretty_env_info", "main", "run"]


def run(command):
    """Run a command (a list, or one line without a shell): its exit status, output and errors."""
    try:
        done = subprocess.run(shlex.split(command) if isinstance(command, str) else command, capture_output=True, text=True)
    except OSError as error:
        return 127, "", str(error)
    return done.returncode, done.stdout.strip(), done.stderr.strip()


def get_nvidia_driver_version(run_lambda=run):
    """The version of NVIDIA's driver, or None."""
    text = cuda()
    return text.split()[1].rstrip(",") if text.startswith("driver ") else None


def main():
    """Print the report."""
    print(get_pretty_env_info())


if __name__ == "__main__":
    main()
