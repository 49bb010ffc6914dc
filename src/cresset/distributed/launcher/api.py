"""Start a function, or a command, in the processes of a job.

config = LaunchConfig(min_nodes=1, max_nodes=1, nproc_per_node=2, rdzv_backend="c10d", max_restarts=0)
results = elastic_launch(config, train)(0.1)  # {0: what train(0.1) gave in rank 0, 1: in rank 1}
"""

import os
import signal
from dataclasses import dataclass, field
from typing import Any

from ..elastic.agent import Agent, Settings, meeting_place
from ..elastic.multiprocessing.api import DefaultLogsSpecs, SignalException

TIMEOUT = 900  # seconds for the machines to meet


@dataclass
class LaunchConfig:
    """What a job is made of.

    Args:
        min_nodes, max_nodes: machines.
        nproc_per_node: processes on each of them.
        logs_specs: a LogsSpecs: what goes to files; nothing if None.
        run_id: the job's name; a new one if ''.
        role: what the processes are called.
        rdzv_endpoint: where machines meet: HOST:PORT.
        rdzv_backend: how: "static" (rdzv_configs["rank"] numbers them) or "c10d".
        rdzv_configs: "rank", "timeout" (seconds), "join_timeout", "last_call_timeout".
        rdzv_timeout: the older way to say "timeout".
        max_restarts: how often to start again after a failure.
        monitor_interval: seconds between two looks at the processes.
        start_method: "spawn", "fork" or "forkserver", of functions.
        log_line_prefix_template: before lines that are shown, with ${role_name}, ${rank}, ${local_rank}.
        metrics_cfg: PyTorch's; there are no metrics here.
        local_addr: the address of this machine, for the others.
        event_log_handler: "null" or "console".
        numa_options, duplicate_stdout_filters, duplicate_stderr_filters: None.
        signals_to_handle: signals that end the job.
        virtual_local_rank: every process sees LOCAL_RANK=0 and its own GPU as the only one.
        shutdown_timeout: seconds between asking a process to end and killing it; 30.
    """

    min_nodes: int
    max_nodes: int
    nproc_per_node: int
    logs_specs: Any = None
    run_id: str = ""
    role: str = "default_role"
    rdzv_endpoint: str = ""
    rdzv_backend: str = "etcd"
    rdzv_configs: dict[str, Any] = field(default_factory=dict)
    rdzv_timeout: int = -1
    max_restarts: int = 3
    monitor_interval: float = 0.1
    start_method: str = "spawn"
    log_line_prefix_template: str | None = None
    metrics_cfg: dict[str, str] = field(default_factory=dict)
    local_addr: str | None = None
    event_log_handler: str = "null"
    numa_options: Any = None
    signals_to_handle: str = "SIGTERM,SIGINT,SIGHUP,SIGQUIT"
    duplicate_stdout_filters: list[str] | None = None
    duplicate_stderr_filters: list[str] | None = None
    virtual_local_rank: bool = False
    shutdown_timeout: int | None = None

    def __post_init__(self):
        for name in ("numa_options", "duplicate_stdout_filters", "duplicate_stderr_filters"):
            if getattr(self, name):
                raise NotImplementedError(f"LaunchConfig: {name} is not there; pass None")
        if self.rdzv_timeout != -1:
            self.rdzv_configs["timeout"] = self.rdzv_timeout
        self.rdzv_configs.setdefault("timeout", TIMEOUT)
        if self.shutdown_timeout is None:
            self.shutdown_timeout = int(os.environ.get("TORCH_ELASTIC_SHUTDOWN_TIMEOUT", 30))
        if self.logs_specs is None:
            self.logs_specs = DefaultLogsSpecs()


def _streams(what):
    """As torchrun's command line says it."""
    return ",".join(f"{rank}:{int(std)}" for rank, std in what.items()) if isinstance(what, dict) else str(int(what))


def _settings(config, entrypoint, args):
    host, port = meeting_place(config.rdzv_backend, config.rdzv_endpoint, config.max_nodes)
    if config.event_log_handler not in ("null", "console"):
        raise ValueError(
            f"LaunchConfig: event_log_handler {config.event_log_handler!r}: 'null' and 'console' are there"
        )
    if not 1 <= config.min_nodes <= config.max_nodes:
        raise ValueError(f"LaunchConfig: {config.min_nodes} to {config.max_nodes} machines")
    if config.nproc_per_node < 1:
        raise ValueError(f"LaunchConfig: nproc_per_node must be positive, is {config.nproc_per_node}")
    is_static, configs, logs = config.rdzv_backend == "static", config.rdzv_configs, config.logs_specs
    if is_static and config.min_nodes != config.max_nodes:
        raise ValueError("LaunchConfig: machines that come and go need rdzv_backend='c10d'")
    is_function = callable(entrypoint)
    return Settings(
        command=[] if is_function else [entrypoint, *map(str, args)],
        function=entrypoint if is_function else None,
        args=tuple(args),
        start_method=config.start_method,
        least=config.min_nodes,
        most=config.max_nodes,
        processes=config.nproc_per_node,
        node_rank=int(configs.get("rank", 0)) if is_static else None,
        host=host,
        port=port,
        job=config.run_id or "none",
        max_restarts=config.max_restarts,
        interval=config.monitor_interval,
        role=config.role,
        log_dir=logs.root_log_dir,
        redirects=_streams(logs._redirects),
        tee=_streams(logs._tee),
        prefix=config.log_line_prefix_template,
        shown=sorted(logs._local_ranks_filter or ()),
        signals=[name for name in config.signals_to_handle.split(",") if name],
        patience=float(config.shutdown_timeout),
        virtual=config.virtual_local_rank,
        join=float(configs.get("join_timeout", configs["timeout"])),
        last_call=float(configs.get("last_call_timeout", 30)),
        says=config.event_log_handler == "console",
        address=config.local_addr,
    )


def launch_agent(config, entrypoint, args, health_check_server=None):
    """Run a job on this machine; what the function gave, by rank.

    Args:
        entrypoint: a function, or a program.
        args: its arguments.
        health_check_server: None.

    Raises ChildFailedError if the job fails, SignalException if a signal ended it.
    """
    if health_check_server is not None:
        raise NotImplementedError("launch_agent: health_check_server is not there; pass None")
    if not callable(entrypoint) and not isinstance(entrypoint, str):
        raise TypeError(f"launch_agent: entrypoint is a function or a program's name, not {entrypoint!r}")
    agent = Agent(_settings(config, entrypoint, args))
    try:
        agent.run()
    except SystemExit as end:
        number = signal.Signals(end.code - 128)
        raise SignalException(f"Process {os.getpid()} got signal: {number.value}", number) from None
    return agent.results()


class elastic_launch:  # noqa: N801
    """Run a function, or a program, in the processes of a job when it is called with the arguments.

    Args:
        config: a LaunchConfig.
        entrypoint: a function that can be pickled (with start_method "fork", any), or a program.
        health_check_server: None.
    """

    def __init__(self, config, entrypoint, health_check_server=None):
        self._config, self._entrypoint, self._health_check_server = config, entrypoint, health_check_server

    def __call__(self, *args):
        return launch_agent(self._config, self._entrypoint, list(args), self._health_check_server)


for _one in (LaunchConfig, launch_agent, elastic_launch):
    _one.__module__ = "torch.distributed.launcher.api"
