"""Calling functions in other processes."""

import functools
import os
from datetime import timedelta

from ..rendezvous import rendezvous
from ..store import PrefixStore
from . import names
from .agent import Agent
from .constants import DEFAULT_SHUTDOWN_TIMEOUT, UNSET_RPC_TIMEOUT
from .options import TensorPipeRpcBackendOptions
from .rref import RRef, _key

__all__ = ["get_worker_info", "init_rpc", "remote", "rpc_async", "rpc_sync", "shutdown"]


class _state:
    agent = None
    generation = 0
    gathered = 0


def _is_current_rpc_agent_set():
    return _state.agent is not None


def _current_agent():
    if _state.agent is None:
        raise RuntimeError("RPC has not been initialized. Call torch.distributed.rpc.init_rpc first.")
    return _state.agent


def _require_initialized(func):
    """`func`, which refuses to run before init_rpc."""

    @functools.wraps(func)
    def checked(*args, **kwargs):
        _current_agent()
        return func(*args, **kwargs)

    return checked


def init_rpc(name, backend=None, rank=-1, world_size=None, rpc_backend_options=None):
    """Meet the other workers; after this, functions run in them.

    Args:
        name: of this worker, unlike all others.
        backend: PyTorch's BackendType; there is one.
        rank: the number of this worker; by default from RANK.
        world_size: how many there are; by default from WORLD_SIZE.
        rpc_backend_options: a TensorPipeRpcBackendOptions.
    """
    if _state.agent is not None:
        raise RuntimeError("init_rpc: RPC is initialized already")
    if not isinstance(name, str) or not name or not all(c.isalnum() or c in "_-:" for c in name):
        raise ValueError(f"init_rpc: Worker name must match ^[A-Za-z0-9-_:]*$, not {name!r}")
    options = TensorPipeRpcBackendOptions() if rpc_backend_options is None else rpc_backend_options
    if not hasattr(options, "num_worker_threads"):
        raise TypeError(f"init_rpc: rpc_backend_options must be a TensorPipeRpcBackendOptions, not {type(options)}")
    rank = int(os.environ.get("RANK", -1)) if rank < 0 else rank
    world_size = int(os.environ.get("WORLD_SIZE", -1)) if world_size is None else world_size
    store, rank, world_size = next(
        iter(rendezvous(options.init_method, rank, world_size, timeout=timedelta(minutes=5)))
    )
    store = PrefixStore(f"rpc_prefix_{_state.generation}", store)
    _state.generation += 1
    agent = Agent(store, name, rank, world_size, options)
    _state.agent = agent
    agent.store.barrier("ready", world_size, timedelta(minutes=5))  # nobody is called before all can answer


def shutdown(graceful=True, timeout=DEFAULT_SHUTDOWN_TIMEOUT):
    """Leave the workers.

    Args:
        graceful: wait until all come here: until then, they can call this one.
        timeout: seconds to wait; 0 is for ever.
    """
    agent = _current_agent()
    if graceful:
        limit = timedelta(seconds=timeout) if timeout else timedelta(days=1)
        agent.store.barrier("leaving", agent.size, limit)
        agent.open = False
        agent.store.barrier("left", agent.size, limit)
    _state.agent = None
    agent.close()


def get_worker_info(worker_name=None):
    """A worker by its name; by default this one."""
    agent = _current_agent()
    return agent.info if worker_name is None else agent.worker(worker_name)


def rpc_async(to, func, args=None, kwargs=None, timeout=UNSET_RPC_TIMEOUT):
    """Run a function in another worker; a Future of the result.

    Args:
        to: the worker: its name, number or WorkerInfo.
        func: a function or class at the top of a module that both have.
        args, kwargs: its arguments: numbers, text, containers, tensors, RRefs.
        timeout: seconds; 0 is for ever; by default as init_rpc says.
    """
    agent = _current_agent()
    name = names.name_of(func)
    data = names.to_bytes([list(args or ()), dict(kwargs or {})], f"rpc: an argument of {name}")
    return agent.ask(agent.worker(to), b"call", name, data, timeout)._followed(
        lambda done: names.from_bytes(done.value())
    )


def rpc_sync(to, func, args=None, kwargs=None, timeout=UNSET_RPC_TIMEOUT):
    """Run a function in another worker, and wait for the result; the arguments are those of rpc_async."""
    return rpc_async(to, func, args, kwargs, timeout).wait()


def remote(to, func, args=None, kwargs=None, timeout=UNSET_RPC_TIMEOUT):
    """Run a function in another worker, where the result stays; an RRef of it. The arguments are those of rpc_async."""
    agent = _current_agent()
    name, key, worker = names.name_of(func), _key(agent), agent.worker(to)
    data = names.to_bytes([key, list(args or ()), dict(kwargs or {})], f"rpc: an argument of {name}")
    return RRef._of(worker.name, key, agent.ask(worker, b"make", name, data, timeout), agent)


def _all_gather(obj, worker_names=None, timeout=UNSET_RPC_TIMEOUT):
    """The objects of all workers, by name; every one calls this."""
    agent = _current_agent()
    _state.gathered += 1
    who = sorted(agent.workers) if worker_names is None else sorted(worker_names)
    place = PrefixStore(f"gather/{_state.gathered}", agent.store)
    place.set(agent.info.name, names.to_bytes(obj, "_all_gather"))
    limit = timedelta(seconds=timeout if timeout > 0 else agent.timeout or 60)
    place.wait(who, limit)
    return {name: names.from_bytes(place.get(name)) for name in who}
