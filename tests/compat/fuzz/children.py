"""Forked processes that do dangerous work: with limited memory, watched, and named when they die or stand still."""

import faulthandler
import os
import resource
import signal
import sys
import time
import traceback

STILL_AFTER = 30  # seconds of processor time in one call or program; ten times that by the clock
RECORD = 4096  # bytes of the journal that hold the work under way; the totals follow
MOST_MEMORY = 12 << 30


def processor_time(pid):
    """Seconds that a process has computed: other than the clock they say nothing about how busy the machine is."""
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def fork(output, work, most_memory=MOST_MEMORY):
    """The id of a process that does the work, with limited memory, and writes what it prints to a file."""
    sys.stdout.flush()
    pid = os.fork()
    if pid:
        return pid
    status = 1
    try:
        os.dup2(output.fileno(), 1)
        os.dup2(output.fileno(), 2)
        if most_memory:
            resource.setrlimit(resource.RLIMIT_AS, (most_memory, most_memory))
        faulthandler.enable()
        work()
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        os._exit(status)


def note(journal, text):
    """Write down what is under way."""
    os.pwrite(journal, text.encode().ljust(RECORD)[:RECORD], 0)


def watch(pid, journal):
    """Wait for the process, and end it when one piece of work takes too long. Returns how it ended: 0, or another
    status.
    """
    last, since, used = None, time.monotonic(), 0.0
    while True:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            return status
        time.sleep(0.02)
        now = os.pread(journal.fileno(), 40, 0)
        if now != last:
            last, since, used = now, time.monotonic(), processor_time(pid)
        elif processor_time(pid) - used > STILL_AFTER or time.monotonic() - since > 10 * STILL_AFTER:
            os.kill(pid, signal.SIGKILL)
