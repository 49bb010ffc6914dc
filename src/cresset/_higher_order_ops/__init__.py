"""Where PyTorch keeps control flow as functions: `torch._higher_order_ops`, with a module for each."""

import sys

from ..func import control_flow
from ..func.control_flow import associative_scan, cond, map, scan, while_loop
from .out_dtype import out_dtype

__all__ = ["associative_scan", "cond", "map", "out_dtype", "scan", "while_loop"]

for _name in ("associative_scan", "cond", "map", "scan", "while_loop"):
    sys.modules[f"{__name__}.{_name}"] = control_flow
