"""The groups of this process: the one of all, and those that were made of it."""

import concurrent.futures
import contextlib
import os
from datetime import timedelta

from .. import _native
from .engines.alone import Alone
from .errors import DistBackendError, DistError
from .group import DEFAULT_TIMEOUT, ProcessGroup
from .launchers import local_rank
from .liveness import Member
from .rendezvous import rendezvous
from .store import PrefixStore, Store

BACKENDS = ("gloo", "mpi", "nccl", "ucc", "xccl", "undefined")


class Backend(str):
    """The name of an engine, in small letters.

    >>> cresset.distributed.Backend("GLOO")
    'gloo'
    """

    UNDEFINED, GLOO, NCCL, UCC, MPI, XCCL = "undefined", "gloo", "nccl", "ucc", "mpi", "xccl"
    backend_list = list(BACKENDS)
    default_device_backend_map = {"cpu": "gloo", "cuda": "nccl"}

    def __new__(cls, name):
        if not isinstance(name, str):
            raise ValueError(f"Backend constructor parameter must be string-ish, not {type(name).__name__}")
        return super().__new__(cls, name.lower())


class BackendConfig:
    """Which engine serves which kind of device: "gloo", or "cpu:gloo,cuda:nccl"."""

    def __init__(self, backend):
        self.device_backend_map = {}
        text = str(backend or "")
        if ":" in text:
            for pair in text.split(","):
                device, _, name = pair.partition(":")
                if not device or not name or device in self.device_backend_map:
                    raise ValueError(
                        f"Invalid backend {text!r}: device:backend pairs with commas are expected, as "
                        "cpu:gloo,cuda:nccl"
                    )
                self.device_backend_map[device] = Backend(name)
        else:
            self.device_backend_map = {"cpu": Backend(text or "gloo")}
        for name in self.device_backend_map.values():
            if name not in BACKENDS:
                raise ValueError(f"Unknown c10d backend type {name!r}; there are {', '.join(BACKENDS[:3])}")

    def get_device_backend_map(self):
        """The engines by kind of device."""
        return self.device_backend_map

    def __repr__(self):
        return ",".join(f"{device}:{backend}" for device, backend in self.device_backend_map.items())


class World:
    """What this process knows of its groups."""

    default = None
    groups = {}  # ProcessGroup -> {global rank: rank in the group}
    count = 0
    numbered = 0  # groups beside it
    member = None
    store = None
    background = set()  # Futures of what uses a group in threads of its own


class _WorldMeta(type):
    @property
    def WORLD(cls):
        return World.default

    @WORLD.setter
    def WORLD(cls, group):
        World.default = group


class GroupMember(metaclass=_WorldMeta):
    """The group of all (WORLD), and what new_group gives to those outside of a group (NON_GROUP_MEMBER)."""

    NON_GROUP_MEMBER = -100


class group(metaclass=_WorldMeta):
    """`group.WORLD` is the group of all processes."""


def is_initialized():
    """Whether init_process_group was called.

    >>> cresset.distributed.is_initialized()
    False
    """
    return World.default is not None


def is_outside(group):
    """Whether a group is one that this process is not in."""
    return isinstance(group, int) and group == GroupMember.NON_GROUP_MEMBER


def default_group(who):
    """The group of all; ValueError if there is none."""
    if World.default is None:
        raise ValueError(
            f"{who}: Default process group has not been initialized, please make sure to call init_process_group."
        )
    return World.default


def member_of(chosen, who):
    """The group to use: a ProcessGroup, or None for one that this process is not in."""
    chosen = default_group(who) if chosen is None else chosen
    if is_outside(chosen):
        return None
    if not isinstance(chosen, ProcessGroup):
        raise TypeError(f"{who}: group must be a ProcessGroup, not {type(chosen).__name__}")
    if chosen not in World.groups:
        raise ValueError(f"{who}: The given group does not exist; was it destroyed?")
    return chosen


def _checked_timeout(timeout, who):
    if timeout is None:
        return DEFAULT_TIMEOUT
    if not isinstance(timeout, timedelta):
        raise TypeError(f"{who}: Expected timeout argument to be of type datetime.timedelta, got {timeout}")
    return timeout


def init_process_group(
    backend=None, init_method=None, timeout=None, world_size=-1, rank=-1, store=None, group_name="", pg_options=None,
    device_id=None, _ranks=None,
):  # fmt: skip
    """Meet the other processes and make the group of all.

    Args:
        backend: "gloo" and "mpi" both name the engine for CPU tensors, "nccl" the one for CUDA; "cpu:gloo,cuda:nccl"
            both.
        init_method: where to meet: "env://" (the default: MASTER_ADDR, MASTER_PORT, RANK and WORLD_SIZE, as torchrun
            sets them), "tcp://host:port" or "file:///path".
        timeout: how long a collective waits for the others; 30 minutes.
        world_size, rank: how many processes there are and which this is, where the meeting place does not say.
        store: a Store to meet in, in place of init_method.
        group_name: PyTorch's deprecated name.
        pg_options: settings of PyTorch's engines; not used here.
        device_id: the device of this process, for engines of GPUs.

    >>> cresset.distributed.init_process_group(store=cresset.distributed.HashStore(), rank=0, world_size=1)
    >>> cresset.distributed.get_world_size()
    1
    >>> cresset.distributed.destroy_process_group()
    """
    if World.default is not None:
        raise ValueError("trying to initialize the default process group twice!")
    if store is not None and init_method is not None:
        raise ValueError("init_process_group: Cannot specify both init_method and store.")
    timeout = _checked_timeout(timeout, "init_process_group")
    config = BackendConfig(backend)
    if store is not None:
        if not isinstance(store, Store):
            raise TypeError(f"init_process_group: store must be a Store, not {type(store).__name__}")
        if world_size <= 0 or rank < 0:
            raise ValueError(
                "init_process_group: world_size must be positive and rank must be non-negative if using store, not "
                f"{world_size} and {rank}"
            )
    else:
        meeting = min(timeout, timedelta(minutes=5))
        store, rank, world_size = next(iter(rendezvous(init_method or "env://", rank, world_size, timeout=meeting)))
        store.set_timeout(meeting)
    if not 0 <= rank < world_size:
        raise ValueError(f"init_process_group: rank {rank} is not one of 0 ... {world_size - 1}")
    generation = World.count
    World.count += 1
    inner = PrefixStore(f"default_pg/{generation}", store)
    name = Backend(backend) if backend and ":" not in backend else config.device_backend_map.get("cpu", Backend("gloo"))
    device = _native.device(device_id) if isinstance(device_id, str) else device_id
    gpu = _engine_of_gpus(backend, config, inner, rank, world_size, device)
    held = os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"
    member = None if world_size == 1 else Member(store, str(rank), "torchrun" if held else "rank 0")
    try:
        if gpu is not None and set(config.device_backend_map.values()) == {"nccl"}:
            engine = gpu
        elif world_size == 1:
            engine = Alone()
        else:
            from .engines import mpi

            engine = mpi.world(PrefixStore("mpi", inner), rank, world_size, inner.timeout.total_seconds())
    except BaseException:
        if member is not None:
            member.leave()
        raise
    made = ProcessGroup(engine, range(world_size), inner, "0", name, timeout, "default_pg", member, device, gpu=gpu)
    World.default, World.member, World.store = made, member, store
    World.groups = {made: {r: r for r in range(world_size)}}
    World.numbered = 0
    if world_size > 1:  # nobody goes on before all are there
        member.meet(inner, "ready", world_size, inner.timeout)


def _engine_of_gpus(backend, config, store, rank, size, device):
    """NCCL, where it is asked for; where nothing is asked for and there is a GPU, too. None otherwise."""
    from .engines import nccl

    asked = "nccl" in config.device_backend_map.values()
    if not asked and (backend is not None or size == 1):
        return None
    if not nccl.is_available():
        if asked and size > 1:
            raise DistBackendError(
                "init_process_group: backend 'nccl' needs a GPU and NCCL "
                f"({_native.distributed.nccl_problem() or 'no GPU is here'}); without them use 'gloo'"
            )
        return None
    return nccl.Nccl(store, rank, size, device)


def _after_fork():
    """A child of fork, such as a worker of a DataLoader, may ask about the groups of its parent, but is no rank."""
    for group in World.groups:
        if group.size() > 1:
            group._broken = (
                f"is of process {os.getppid()}, its rank {group.rank()}: a child of fork takes no part in exchanges"
            )


os.register_at_fork(after_in_child=_after_fork)


def destroy_process_group(group=None):
    """Let go of a group; without one, of all. What is saved in the background is waited for."""
    if is_outside(group):
        return
    concurrent.futures.wait(set(World.background))
    chosen = World.default if group is None else group
    if chosen is None or chosen not in World.groups:
        raise AssertionError("destroy_process_group: Invalid process group specified or it was destroyed before")
    if chosen is not World.default:
        del World.groups[chosen]
        if chosen._broken is None:
            chosen._engine.release()
        if chosen._gpu is not None:
            chosen._gpu.release()
        return
    for one in World.groups:
        if one._gpu is not None:
            one._gpu.release()
    if World.member is not None:
        World.member.leave()
        if not chosen._broken:
            # Whoever holds the store waits for the others: they may still read from it.
            with contextlib.suppress(DistError):
                chosen._store.barrier("leaving", chosen.size(), timedelta(seconds=5))
    World.default = World.member = World.store = None
    World.groups = {}


def new_group(
    ranks=None, timeout=None, backend=None, pg_options=None, use_local_synchronization=False, group_desc=None,
    device_id=None,
    sort_ranks=True,
):  # fmt: skip
    """A group of some of the processes. All processes call this, also those outside of it (unless
    `use_local_synchronization`), in the same order.

    Args:
        ranks: numbers in the group of all; None: all.
        timeout: how long a collective waits; by default as that of the group of all.
        backend: as in init_process_group; by default the same.
        pg_options: settings of PyTorch's engines; not used here.
        use_local_synchronization: only members call this.
        group_desc: what it is for.
        device_id: the device of this process.
        sort_ranks: number the members in the order of their numbers in the group of all, not as they are listed.
    """
    world = default_group("new_group")
    ranks = list(range(world.size())) if ranks is None else [int(r) for r in ranks]
    if sort_ranks:
        ranks.sort()
    if len(set(ranks)) != len(ranks) or any(not 0 <= r < world.size() for r in ranks):
        raise ValueError(f"new_group: ranks must be different and from 0 to {world.size() - 1}, not {ranks}")
    if not ranks:
        raise ValueError("new_group: the new group's world size should be positive")
    timeout = world._timeout if timeout is None else _checked_timeout(timeout, "new_group")
    name = world._backend if backend is None else next(iter(BackendConfig(backend).device_backend_map.values()))
    World.numbered += 1
    text = "_".join(map(str, ranks))
    number = f"local_{text}" if use_local_synchronization else str(World.numbered)
    if use_local_synchronization:
        World.numbered -= 1
        number += f"_{sum(1 for g in World.groups if g.group_name.startswith(number))}"
    mine = world.rank()
    if mine not in ranks:
        return GroupMember.NON_GROUP_MEMBER
    store = PrefixStore(f"group/{number}", world._store)
    gpu = None
    if world._gpu is not None:
        from .engines import nccl

        gpu = nccl.Nccl(store, ranks.index(mine), len(ranks), device_id or world._gpu.device)
    if gpu is not None and world._gpu is world._engine:
        engine = gpu
    elif len(ranks) == 1:
        engine = Alone()
    else:
        store.barrier("making", len(ranks), min(timeout, timedelta(minutes=5)))  # then making it does not wait
        tag = World.numbered if not use_local_synchronization else 10000 + sum(ranks)
        engine = world._engine.among(ranks, tag % 15000 + 1)
    made = ProcessGroup(
        engine, ranks, store, number, name, timeout, group_desc or "undefined", World.member, device_id, gpu=gpu
    )
    World.groups[made] = {r: i for i, r in enumerate(ranks)}
    return made


def new_subgroups(group_size=None, group=None, timeout=None, backend=None, pg_options=None, group_desc=None):
    """Groups of neighbors, `group_size` each; this process's one and the list of all.

    Args:
        group_size: members of each; by default the processes of a machine (LOCAL_WORLD_SIZE).
    """
    size = get_world_size(group)
    group_size = int(os.environ.get("LOCAL_WORLD_SIZE", size)) if group_size is None else group_size
    if group_size <= 0 or size % group_size:
        raise ValueError(f"new_subgroups: the world size ({size}) must be divisible by group_size={group_size}")
    everyone = get_process_group_ranks(group)
    lists = [everyone[i : i + group_size] for i in range(0, size, group_size)]
    return new_subgroups_by_enumeration(lists, timeout, backend, pg_options, group_desc)


def new_subgroups_by_enumeration(ranks_per_subgroup_list, timeout=None, backend=None, pg_options=None, group_desc=None):
    """Groups of the listed processes; this process's one and the list of all."""
    if not ranks_per_subgroup_list:
        raise ValueError("new_subgroups_by_enumeration: The arg 'ranks_per_subgroup_list' cannot be empty")
    flat = [rank for ranks in ranks_per_subgroup_list for rank in ranks]
    if len(set(flat)) != len(flat):
        raise ValueError(f"new_subgroups_by_enumeration: a rank is in more than one group: {ranks_per_subgroup_list}")
    made = [new_group(r, timeout, backend, pg_options, group_desc=group_desc) for r in ranks_per_subgroup_list]
    mine = [g for g in made if not is_outside(g)]
    return (mine[0] if mine else None), made


def split_group(parent_pg=None, split_ranks=None, timeout=None, pg_options=None, group_desc=None, backend=None):
    """Split a group into the listed ones; the one of this process, or None."""
    parent = member_of(parent_pg, "split_group")
    if not split_ranks:
        raise ValueError("split_group: split_ranks cannot be None or empty")
    lists = [[parent._ranks[r] for r in ranks] for ranks in split_ranks]
    made = [new_group(r, timeout, backend, pg_options, group_desc=group_desc) for r in lists]
    return next((g for g in made if not is_outside(g)), None)


# ---- questions


def get_rank(group=None):
    """The number of this process in a group; -1 outside of it."""
    chosen = member_of(group, "get_rank")
    return -1 if chosen is None else chosen.rank()


def get_world_size(group=None):
    """How many processes are in a group; -1 outside of it."""
    chosen = member_of(group, "get_world_size")
    return -1 if chosen is None else chosen.size()


def get_backend(group=None):
    """The engine's name, as it was asked for."""
    chosen = member_of(group, "get_backend")
    if chosen is None:
        raise ValueError("get_backend: this process is not in the group")
    return Backend(chosen._backend)


def get_backend_config(group=None):
    """The engines by kind of device, as text."""
    return repr(BackendConfig(get_backend(group)))


def get_process_group_ranks(group):
    """The numbers of a group's members in the group of all."""
    return list(member_of(group, "get_process_group_ranks")._ranks)


def get_group_rank(group, global_rank):
    """The number in `group` of the process that is `global_rank` in the group of all."""
    chosen = member_of(group, "get_group_rank")
    if chosen is None or global_rank not in chosen._ranks:
        raise ValueError(f"get_group_rank: Global rank {global_rank} is not part of group {group}")
    return chosen._ranks.index(global_rank)


def get_global_rank(group, group_rank):
    """The number in the group of all of the process that is `group_rank` in `group`."""
    chosen = member_of(group, "get_global_rank")
    if chosen is None or not 0 <= group_rank < chosen.size():
        raise ValueError(f"get_global_rank: Group rank {group_rank} is not part of group {group}")
    return chosen._ranks[group_rank]


def get_pg_count():
    """How many groups there are."""
    return len(World.groups)


def get_node_local_rank(fallback_rank=None):
    """The number of this process on its machine (LOCAL_RANK, or what Slurm or mpiexec say)."""
    if (told := local_rank()) is not None:
        return told
    if fallback_rank is not None:
        return int(fallback_rank)
    raise RuntimeError(
        "get_node_local_rank: LOCAL_RANK is not in the environment; torchrun sets it. Pass fallback_rank"
    )


def get_default_backend_for_device(device):
    """The engine for a kind of device."""
    kind = _native.device(device).type if isinstance(device, str) else device.type
    if kind not in Backend.default_device_backend_map:
        raise ValueError(f"Default backend not registered for device : {device}")
    return Backend.default_device_backend_map[kind]
