"""`python run.py NAME`: trains what NAME.py prepares, and prints the losses and the seconds as one line of JSON."""

import importlib
import json
import sys
import time
import warnings

import cpu_build  # noqa: F401

if __name__ == "__main__":
    warnings.simplefilter("ignore")
    train = importlib.import_module(sys.argv[1]).prepare()
    start = time.perf_counter()
    losses = train()
    print(json.dumps({"losses": losses, "seconds": time.perf_counter() - start}))
