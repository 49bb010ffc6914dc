"""Found on the path of processes that a program under `cresset run` starts: puts cresset in the place of torchvision."""

import importlib
import sys

from cresset.cli import stand_in

stand_in.install()
sys.modules["torchvision"] = importlib.import_module(stand_in.PLACES["torchvision"])
