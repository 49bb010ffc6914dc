"""Structured logs: one JSON object a line on standard error."""

import json
import sys
import time


def log(event, **facts):
    """Write a line. Control characters in facts are escaped by JSON, so that a request cannot forge lines."""
    now = time.time()
    stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now)) + f".{int(now % 1 * 1000):03d}Z"
    try:
        sys.stderr.write(json.dumps({"time": stamp, "event": event, **facts}) + "\n")
        sys.stderr.flush()
    except OSError:
        pass  # nobody reads the log any more: no reason to stop serving
