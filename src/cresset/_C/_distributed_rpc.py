"""What programs ask of PyTorch's native RPC: whether it is on."""

import sys


def _is_current_rpc_agent_set():
    """Whether an agent for remote calls runs in this process. Who has not imported torch.distributed.rpc has none."""
    api = sys.modules.get(f"{__name__.partition('.')[0]}.distributed.rpc.api")
    return api is not None and api._is_current_rpc_agent_set()
