"""Settings of init_rpc."""

from .constants import DEFAULT_INIT_METHOD, DEFAULT_NUM_WORKER_THREADS, DEFAULT_RPC_TIMEOUT_SEC


class RpcBackendOptions:
    """How long a call may take, and where the processes meet.

    Args:
        rpc_timeout: seconds; 0 is for ever.
        init_method: as in init_process_group.
    """

    def __init__(self, rpc_timeout=DEFAULT_RPC_TIMEOUT_SEC, init_method=DEFAULT_INIT_METHOD):
        self.rpc_timeout, self.init_method = float(rpc_timeout), init_method


class TensorPipeRpcBackendOptions(RpcBackendOptions):
    """How long a call may take, where the processes meet, how many calls run at once.

    Args:
        num_worker_threads: calls of others that run at once in this process.
        rpc_timeout: seconds; 0 is for ever.
        init_method: as in init_process_group.
        device_maps, devices: PyTorch's way for tensors on GPUs; they travel by way of the CPU here, and this is
            refused.
        _transports, _channels: PyTorch's choice of connections; there is one here.
    """

    def __init__(
        self, *, num_worker_threads=DEFAULT_NUM_WORKER_THREADS, rpc_timeout=DEFAULT_RPC_TIMEOUT_SEC,
        init_method=DEFAULT_INIT_METHOD, device_maps=None, devices=None, _transports=None, _channels=None,
    ):  # fmt: skip
        if device_maps or devices:
            raise ValueError(
                "TensorPipeRpcBackendOptions: device_maps and devices are not supported; move tensors to the "
                "CPU before they are sent"
            )
        super().__init__(rpc_timeout, init_method)
        self.num_worker_threads, self.device_maps, self.devices = num_worker_threads, {}, []
