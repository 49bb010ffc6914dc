"""What programs ask of PyTorch's native RPC: whether it is on. There is no RPC here."""


def _is_current_rpc_agent_set():
    """Whether an agent for remote calls runs in this process: never."""
    return False
