"""How processes meet: by environment variables, an address or a file, they come to a store, a rank and a world size."""

import os
from datetime import timedelta

from .launchers import by_slurm, is_launched_by_mpi
from .store import FileStore, PrefixStore, TCPStore

_handlers = {}


def register_rendezvous_handler(scheme, handler):
    """Let `handler(url, rank=..., world_size=..., timeout=...)` answer URLs of a scheme; it yields (store, rank,
    size)."""
    if scheme in _handlers:
        raise RuntimeError(f"Rendezvous handler for {scheme}:// already registered")
    _handlers[scheme] = handler


def rendezvous(url, rank=-1, world_size=-1, **kwargs):
    """Yields (store, rank, world size) for a URL.

    Args:
        url: "env://", "tcp://host:port" or "file:///path", with ?rank= and &world_size= where they are not given.
        rank, world_size: of this process; -1: the URL or the environment says.
    """
    if not isinstance(url, str):
        raise RuntimeError(f"`url` must be a string. {type(url)}: {url}")
    if not isinstance(rank, int) or not isinstance(world_size, int):
        raise RuntimeError(f"`rank` and `world_size` must be integers, not {rank!r} and {world_size!r}")
    from urllib.parse import parse_qs, urlsplit

    parts = urlsplit(url)
    query = {key: values[-1] for key, values in parse_qs(parts.query).items()}
    rank = rank if rank >= 0 else int(query.get("rank", -1))
    world_size = world_size if world_size >= 0 else int(query.get("world_size", -1))
    if parts.scheme not in _handlers:
        raise RuntimeError(f"No rendezvous handler for {parts.scheme}://; there are {', '.join(sorted(_handlers))}")
    return _handlers[parts.scheme](url, rank=rank, world_size=world_size, **kwargs)


def _need(value, name, url):
    if value < 0:
        raise ValueError(f"Error initializing torch.distributed using {url}: {name} parameter missing")
    return value


def _by_environment(url, rank=-1, world_size=-1, timeout=timedelta(minutes=5), **kwargs):
    def variable(name):
        value = os.environ.get(name)
        if value is None:
            raise ValueError(
                f"Error initializing torch.distributed using env:// rendezvous: environment variable {name} "
                "expected, but not set. torchrun sets it, and srun and mpiexec have names of their own for it; a "
                "program that runs alone may set RANK=0 WORLD_SIZE=1 MASTER_ADDR=localhost MASTER_PORT=29500"
            )
        return value

    if "RANK" not in os.environ and rank < 0 and world_size < 0:
        if is_launched_by_mpi() and "SLURM_PROCID" not in os.environ:
            yield _by_mpi(timeout)
            return
        if (told := by_slurm()) is not None:
            rank, world_size, host, port = told
            yield TCPStore(host, port, world_size, rank == 0, timeout, multi_tenant=True), rank, world_size
            return
    rank = rank if rank >= 0 else int(variable("RANK"))
    world_size = world_size if world_size >= 0 else int(variable("WORLD_SIZE"))
    host, port = variable("MASTER_ADDR"), int(variable("MASTER_PORT"))
    # torchrun's agent holds the store; each attempt has keys of its own.
    held = os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"
    store = TCPStore(host, port, world_size, rank == 0 and not held, timeout, multi_tenant=True)
    if held:
        store = PrefixStore(f"/worker/attempt_{os.environ.get('TORCHELASTIC_RESTART_COUNT', '0')}", store)
    yield store, rank, world_size


def _by_mpi(timeout):
    """mpiexec has started this process: MPI knows the others, and rank 0 tells them where its store is."""
    import socket

    from .engines import mpi

    rank, size, tell = mpi.begin_as_launched()
    held = None
    if rank == 0:
        here = os.environ.get("MPI_LOCALNRANKS") == str(size)
        address = "127.0.0.1" if here else socket.gethostbyname(socket.gethostname())
        held = TCPStore(address, 0, size, True, timeout, wait_for_workers=False)
    place = tell(f"{held.host} {held.port}" if held is not None else "")
    host, port = place.split()
    return held if held is not None else TCPStore(host, int(port), size, timeout=timeout), rank, size


def _by_address(url, rank=-1, world_size=-1, timeout=timedelta(minutes=5), **kwargs):
    from urllib.parse import urlsplit

    parts = urlsplit(url)
    if not parts.hostname or parts.port is None:
        raise ValueError(
            f"Error initializing torch.distributed using {url}: tcp://host:port expected, a part is missing"
        )
    rank, world_size = _need(rank, "rank", url), _need(world_size, "world size", url)
    yield TCPStore(parts.hostname, parts.port, world_size, rank == 0, timeout, multi_tenant=True), rank, world_size


def _by_file(url, rank=-1, world_size=-1, timeout=timedelta(minutes=5), **kwargs):
    from urllib.parse import urlsplit

    path = urlsplit(url).path
    if not path:
        raise ValueError(f"Error initializing torch.distributed using {url}: a path is missing")
    rank, world_size = _need(rank, "rank", url), _need(world_size, "world size", url)
    store = FileStore(path, world_size)
    store.set_timeout(timeout)
    yield store, rank, world_size


register_rendezvous_handler("env", _by_environment)
register_rendezvous_handler("tcp", _by_address)
register_rendezvous_handler("file", _by_file)
