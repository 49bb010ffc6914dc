"""The collectives of PyTorch: what each process gives and gets."""

import contextlib
from datetime import timedelta

import cresset

from .engines import COPIED, Kind
from .reductions import RedOpType, Reduction
from .work import Work
from .world import default_group, get_global_rank, get_group_rank, member_of

SUM = RedOpType.SUM


# ---- arguments


def _checked(tensor, who, name="tensor"):
    if not isinstance(tensor, cresset.Tensor):
        raise TypeError(
            f"{who}: Invalid function argument. Expected parameter `{name}` of type torch.Tensor, got "
            f"{type(tensor).__name__}"
        )
    if tensor.layout != cresset.strided:
        raise RuntimeError(f"{who}: sparse tensors cannot be exchanged; `{name}` is one. Use to_dense()")
    return tensor.detach()


def _checked_list(tensors, who, name):
    if not isinstance(tensors, (list, tuple)):
        raise TypeError(f"{who}: Expected parameter `{name}` of type List[torch.Tensor], got {type(tensors).__name__}")
    return [_checked(tensor, who, name) for tensor in tensors]


def _peer(group, rank, group_rank, who, name):
    """The number in the group of the other side, given by either number; None where neither is given."""
    if group_rank is not None:
        if rank is not None:
            raise ValueError(f"{who}: Can't specify both group_{name} and {name}")
        if not 0 <= group_rank < group.size():
            raise ValueError(f"{who}: group_{name}={group_rank} is not in a group of {group.size()}")
        return group_rank
    if rank is not None and group is default_group(who) and not 0 <= rank < group.size():
        raise RuntimeError(f"{who}: invalid root rank: {name}={rank} is not in a group of {group.size()}")
    return None if rank is None else get_group_rank(group, rank)


def _plain(tensor, group):
    """A contiguous tensor with the elements, where an engine of the group takes them; itself, if it is one."""
    if group._gpu is None:
        return tensor if not tensor.is_cuda and tensor.is_contiguous() else tensor.cpu().contiguous()
    device = group._place(tensor.device)
    return tensor if tensor.device == device and tensor.is_contiguous() else tensor.to(device).contiguous()


def _back(tensor, plain):
    """What puts the elements of `plain` into `tensor`; None where they are the same memory."""
    if plain is tensor or plain.data_ptr() == tensor.data_ptr() and plain.device == tensor.device:
        return None
    return lambda: tensor.copy_(plain.view(tensor.shape))


def _then(*steps):
    """All steps that are not None, in order, as one."""
    steps = [step for step in steps if step is not None]
    if not steps:
        return None

    def run():
        with cresset.no_grad():
            for step in steps:
                step()

    return run


def _same_sizes(tensors, who):
    if any(t.shape != tensors[0].shape or t.dtype != tensors[0].dtype for t in tensors):
        shapes = [(list(t.shape), str(t.dtype)) for t in tensors]
        raise ValueError(f"{who}: the tensors of a list must have one shape and dtype, not {shapes}")


def _count(tensors, size, who, name):
    if len(tensors) != size:
        raise RuntimeError(f"{who}: {name} has {len(tensors)} tensors for a group of {size}")


# ---- all to all alike


def all_reduce(tensor, op=SUM, group=None, async_op=False):
    """Reduce the tensors of all processes; each gets the result, in place.

    Args:
        tensor: what this process gives, and gets.
        op: a ReduceOp.
        group: which processes; by default all.
        async_op: give a Work at once, to wait for later.
    """
    value = _checked(tensor, "all_reduce")
    chosen = member_of(group, "all_reduce")
    if chosen is None:
        return None
    return chosen._run(_all_reduce(chosen, value, op, "all_reduce", [tensor]), async_op)


def _all_reduce(group, value, op, who, result):
    reduction = Reduction.of(op, who).check(value, who)
    plain = _plain(value, group)
    reduction.before(plain)
    finish = _then(
        (lambda: reduction.after(plain, group.size())) if reduction.op is RedOpType.AVG else None, _back(value, plain)
    )
    return group._begin(
        Kind.ALL_REDUCE, who, plain, plain, finish, result, reduction.number, words=reduction.name, about=value
    )


def all_reduce_coalesced(tensors, op=SUM, group=None, async_op=False):
    """all_reduce of several tensors at once."""
    values = _checked_list(
        [tensors] if isinstance(tensors, cresset.Tensor) else tensors, "all_reduce_coalesced", "tensors"
    )
    chosen = member_of(group, "all_reduce_coalesced")
    if chosen is None:
        return None
    with _together([chosen] if values else [], values[0] if values else None):
        works = [_all_reduce(chosen, value, op, "all_reduce_coalesced", [value]) for value in values]
    return chosen._run(_All(works), async_op)


def average(tensors, share, group):
    """Begin to average tensors of one dtype over the processes of a group, in place; a Work.

    Args:
        share: the sum is divided by this.
    """
    if _sums_lists(group, tensors[0].device):
        words = f"average of {len(tensors)} tensors" if len(tensors) > 1 else "average"
        plain = [tensor if tensor.is_contiguous() else tensor.contiguous() for tensor in tensors]
        return group._begin(
            Kind.ALL_REDUCE,
            "all_reduce",
            plain,
            plain,
            _then(*map(_back, tensors, plain)),
            tensors,
            words=words,
            about=_Whole(plain),
            factor=1 / share,
        )
    with cresset.no_grad():
        for tensor in tensors:
            tensor.div_(share)
    return _All([_all_reduce(group, tensor.detach(), SUM, "all_reduce", [tensor]) for tensor in tensors])


def _sums_lists(group, device):
    """Whether tensors on a device are added up together, where they lie."""
    return group._engine.sums_lists and device.type == "cpu"


def copied_to_average(group, device):
    """Bytes of a tensor below which it is better copied together with others before `average`."""
    return group._engine.copied if _sums_lists(group, device) else COPIED


class _Whole:
    """Several tensors as one, for messages."""

    def __init__(self, tensors):
        self.shape, self.dtype = (sum(tensor.numel() for tensor in tensors),), tensors[0].dtype

    def numel(self):
        return self.shape[0]


def broadcast(tensor, src=None, group=None, async_op=False, group_src=None):
    """Give the tensor of one process to all.

    Args:
        tensor: of the sender its elements; of the others the place for them.
        src: the sender's number in the group of all.
        group_src: or its number in the group.
    """
    value = _checked(tensor, "broadcast")
    chosen = member_of(group, "broadcast")
    if chosen is None:
        return None
    root = _peer(chosen, src, group_src, "broadcast", "src") or 0
    plain = _plain(value, chosen)
    finish = _then(_back(value, plain)) if chosen.rank() != root else None
    return chosen._run(
        chosen._begin(
            Kind.BROADCAST, "broadcast", plain, plain, finish, [tensor], root=root, words=f"src={root}", about=value
        ),
        async_op,
    )


def reduce(tensor, dst=None, op=SUM, group=None, async_op=False, group_dst=None):
    """Reduce the tensors of all processes; one gets the result, in place."""
    value = _checked(tensor, "reduce")
    chosen = member_of(group, "reduce")
    if chosen is None:
        return None
    root = _peer(chosen, dst, group_dst, "reduce", "dst") or 0
    reduction = Reduction.of(op, "reduce").check(value, "reduce")
    plain = _plain(value, chosen)
    reduction.before(plain)
    finish = None
    if chosen.rank() == root:
        finish = _then(
            (lambda: reduction.after(plain, chosen.size())) if reduction.op is RedOpType.AVG else None,
            _back(value, plain),
        )
    words = f"{reduction.name}, dst={root}"
    return chosen._run(
        chosen._begin(
            Kind.REDUCE, "reduce", plain, plain, finish, [tensor], reduction.number, root, words, about=value
        ),
        async_op,
    )


def barrier(group=None, async_op=False, device_ids=None, timeout=None):
    """Wait until all processes have come here.

    Args:
        device_ids: the GPUs to use, for the engine of GPUs.
        timeout: how long to wait for the others, a timedelta; by default the group's.
    """
    chosen = member_of(group, "barrier")
    if chosen is None:
        return None
    work = chosen._begin(Kind.BARRIER, "barrier", None, None)
    if timeout is not None:
        work._patience = timeout.total_seconds()
    return chosen._run(work, async_op)


def monitored_barrier(group=None, timeout=None, wait_all_ranks=False):
    """A barrier that says who did not come. Every barrier here does.

    Args:
        timeout: how long to wait, a timedelta; by default the group's.
        wait_all_ranks: name all that are missing, which is done in any case.
    """
    barrier(group, timeout=timeout)


# ---- one from each


def all_gather(tensor_list, tensor, group=None, async_op=False):
    """Collect the tensors of all processes, in each.

    Args:
        tensor_list: places for them, in the order of ranks; they may have different sizes, the same in every process.
        tensor: what this process gives.
    """
    value, places = _checked(tensor, "all_gather"), _checked_list(tensor_list, "all_gather", "tensor_list")
    chosen = member_of(group, "all_gather")
    if chosen is None:
        return None
    _count(places, chosen.size(), "all_gather", "tensor_list")
    if any(place.numel() != value.numel() or place.dtype != value.dtype for place in places):
        return chosen._run(_uneven_all_gather(chosen, places, value), async_op)
    plain = _plain(value, chosen)
    flat = cresset.empty(chosen.size() * plain.numel(), dtype=plain.dtype, device=plain.device)
    finish = _then(lambda: _spread(flat, places))
    return chosen._run(chosen._begin(Kind.ALL_GATHER, "all_gather", plain, flat, finish, places, about=value), async_op)


def _spread(flat, places):
    """Put consecutive elements into the places."""
    at = 0
    for place in places:
        place.copy_(flat[at : at + place.numel()].view(place.shape))
        at += place.numel()


def _uneven_all_gather(group, places, value):
    mine = places[group.rank()]
    if mine.shape != value.shape or any(p.dtype != value.dtype for p in places):
        raise ValueError(
            f"all_gather: the place for rank {group.rank()} has shape {list(mine.shape)} of {mine.dtype}, its tensor "
            f"{list(value.shape)} of {value.dtype}"
        )
    works = []
    for rank, place in enumerate(places):
        plain = _plain(value if rank == group.rank() else place, group)
        finish = _then(lambda place=place, plain=plain: place.copy_(plain))
        works.append(group._begin(Kind.BROADCAST, "all_gather", plain, plain, finish, [place], root=rank, about=place))
    return _All(works)


def all_gather_into_tensor(output_tensor, input_tensor, group=None, async_op=False):
    """all_gather into one tensor: the inputs one after the other, or stacked, as its shape says."""
    value, place = _checked(input_tensor, "all_gather_into_tensor"), _checked(output_tensor, "all_gather_into_tensor")
    chosen = member_of(group, "all_gather_into_tensor")
    if chosen is None:
        return None
    if place.dtype != value.dtype or place.numel() != chosen.size() * value.numel():
        raise ValueError(
            f"all_gather_into_tensor: the output has {place.numel()} elements of {place.dtype}, which is not "
            f"{chosen.size()} "
            f"times the input's {value.numel()} of {value.dtype}"
        )
    plain, flat = _plain(value, chosen), _plain(place, chosen)
    work = chosen._begin(
        Kind.ALL_GATHER, "all_gather_into_tensor", plain, flat, _then(_back(place, flat)), [output_tensor], about=value
    )
    return chosen._run(work, async_op)


def all_gather_coalesced(output_tensor_lists, input_tensor_list, group=None, async_op=False):
    """all_gather of several tensors: `output_tensor_lists[rank][i]` is tensor `i` of a process."""
    values = _checked_list(input_tensor_list, "all_gather_coalesced", "input_tensor_list")
    chosen = member_of(group, "all_gather_coalesced")
    if chosen is None:
        return None
    _count(output_tensor_lists, chosen.size(), "all_gather_coalesced", "output_tensor_lists")
    works = [
        all_gather([places[i] for places in output_tensor_lists], value, chosen, True) for i, value in enumerate(values)
    ]
    return chosen._run(_All(works), async_op)


def gather(tensor, gather_list=None, dst=None, group=None, async_op=False, group_dst=None):
    """Collect the tensors of all processes in one.

    Args:
        tensor: what this process gives.
        gather_list: of the one that collects, places in the order of ranks; None of the others.
    """
    value = _checked(tensor, "gather")
    chosen = member_of(group, "gather")
    if chosen is None:
        return None
    root = _peer(chosen, dst, group_dst, "gather", "dst") or 0
    collects = chosen.rank() == root
    if collects != bool(gather_list):
        raise ValueError(
            f"gather: Argument ``gather_list`` must {'be' if collects else 'NOT be'} specified on "
            f"{'' if collects else 'non-'}destination rank."
        )
    plain, flat, finish, places = _plain(value, chosen), None, None, []
    if collects:
        places = _checked_list(gather_list, "gather", "gather_list")
        _count(places, chosen.size(), "gather", "gather_list")
        _same_sizes([value, *places], "gather")
        flat = cresset.empty(chosen.size() * plain.numel(), dtype=plain.dtype, device=plain.device)
        finish = _then(lambda: _spread(flat, places))
    work = chosen._begin(
        Kind.GATHER, "gather", plain, flat, finish, places, root=root, words=f"dst={root}", about=value
    )
    return chosen._run(work, async_op)


def scatter(tensor, scatter_list=None, src=None, group=None, async_op=False, group_src=None):
    """Give each process its tensor of a list that one of them has.

    Args:
        tensor: the place for it.
        scatter_list: of the sender, the tensors in the order of ranks; None of the others.
    """
    value = _checked(tensor, "scatter")
    chosen = member_of(group, "scatter")
    if chosen is None:
        return None
    root = _peer(chosen, src, group_src, "scatter", "src") or 0
    sends = chosen.rank() == root
    if sends != bool(scatter_list):
        raise ValueError(
            f"scatter: Argument ``scatter_list`` must {'be' if sends else 'NOT be'} specified on "
            f"{'' if sends else 'non-'}source rank."
        )
    flat = None
    if sends:
        values = _checked_list(scatter_list, "scatter", "scatter_list")
        _count(values, chosen.size(), "scatter", "scatter_list")
        _same_sizes([value, *values], "scatter")
        flat = cresset.cat([_plain(v, chosen).reshape(-1) for v in values])
    plain = _plain(value, chosen)
    work = chosen._begin(
        Kind.SCATTER,
        "scatter",
        flat,
        plain,
        _then(_back(value, plain)),
        [tensor],
        root=root,
        words=f"src={root}",
        about=value,
    )
    return chosen._run(work, async_op)


def reduce_scatter(output, input_list, op=SUM, group=None, async_op=False):
    """Reduce lists of tensors over the processes; each gets the one of its rank."""
    values = _checked_list(input_list, "reduce_scatter", "input_list")
    chosen = member_of(group, "reduce_scatter")
    if chosen is None:
        return None
    _count(values, chosen.size(), "reduce_scatter", "input_list")
    _same_sizes([_checked(output, "reduce_scatter", "output"), *values], "reduce_scatter")
    flat = cresset.cat([_plain(v, chosen).reshape(-1) for v in values])
    return chosen._run(_reduce_scatter(chosen, output, flat, op, "reduce_scatter"), async_op)


def reduce_scatter_tensor(output, input, op=SUM, group=None, async_op=False):
    """Reduce tensors over the processes; each gets the part of its rank."""
    value, place = (
        _checked(input, "reduce_scatter_tensor", "input"),
        _checked(output, "reduce_scatter_tensor", "output"),
    )
    chosen = member_of(group, "reduce_scatter_tensor")
    if chosen is None:
        return None
    if place.dtype != value.dtype or value.numel() != chosen.size() * place.numel():
        raise ValueError(
            f"reduce_scatter_tensor: the input has {value.numel()} elements of {value.dtype}, which is not "
            f"{chosen.size()} times "
            f"the output's {place.numel()} of {place.dtype}"
        )
    flat = _plain(value, chosen)
    flat = flat.clone() if flat.data_ptr() == value.data_ptr() and type(op) is not RedOpType else flat
    return chosen._run(_reduce_scatter(chosen, output, flat, op, "reduce_scatter_tensor"), async_op)


def _reduce_scatter(group, output, flat, op, who):
    reduction = Reduction.of(op, who).check(flat, who)
    place = output.detach()
    reduction.before(flat)
    plain = _plain(place, group)
    finish = _then(
        (lambda: reduction.after(plain, group.size())) if reduction.op is RedOpType.AVG else None, _back(place, plain)
    )
    return group._begin(
        Kind.REDUCE_SCATTER, who, flat, plain, finish, [output], reduction.number, words=reduction.name, about=place
    )


def all_to_all_single(output, input, output_split_sizes=None, input_split_sizes=None, group=None, async_op=False):
    """Send each process its part of `input`, and collect what they send in `output`.

    Args:
        output_split_sizes, input_split_sizes: how many rows come from and go to each rank; by default equally many.
    """
    value, place = _checked(input, "all_to_all_single", "input"), _checked(output, "all_to_all_single", "output")
    chosen = member_of(group, "all_to_all_single")
    if chosen is None:
        return None
    if value.dtype != place.dtype:
        raise ValueError(f"all_to_all_single: input is of {value.dtype} and output of {place.dtype}")
    counts = []
    for tensor, sizes, name in ((value, input_split_sizes, "input"), (place, output_split_sizes, "output")):
        rows = tensor.shape[0] if tensor.ndim else 1
        if not sizes:
            if rows % chosen.size():
                raise ValueError(
                    f"all_to_all_single: the {name}'s {rows} rows cannot be divided among {chosen.size()} processes"
                )
            sizes = [rows // chosen.size()] * chosen.size()
        if len(sizes) != chosen.size() or sum(sizes) != rows:
            raise ValueError(
                f"all_to_all_single: {name}_split_sizes {list(sizes)} do not sum to {rows} rows for {chosen.size()} "
                "processes"
            )
        row = tensor.numel() // rows if rows else 0
        counts.append([size * row for size in sizes])
    return chosen._run(_all_to_all(chosen, value, place, counts, "all_to_all_single", [output]), async_op)


def _all_to_all(group, value, place, counts, who, result, after=None):
    """Like another exchange whose sizes may differ from rank to rank: only that all call it can be checked."""
    plain, flat = _plain(value, group), _plain(place, group)
    about = cresset.empty(0, dtype=value.dtype)
    return group._begin(
        Kind.ALL_TO_ALL,
        who,
        plain,
        flat,
        _then(_back(place, flat), after),
        result,
        about=about,
        sent=counts[0],
        received=counts[1],
    )


def all_to_all(output_tensor_list, input_tensor_list, group=None, async_op=False):
    """Send each process its tensor of a list, and collect what they send in another."""
    values = _checked_list(input_tensor_list, "all_to_all", "input_tensor_list")
    places = _checked_list(output_tensor_list, "all_to_all", "output_tensor_list")
    chosen = member_of(group, "all_to_all")
    if chosen is None:
        return None
    _count(values, chosen.size(), "all_to_all", "input_tensor_list")
    _count(places, chosen.size(), "all_to_all", "output_tensor_list")
    flat = cresset.cat([_plain(v, chosen).reshape(-1) for v in values])
    into = cresset.empty(sum(p.numel() for p in places), dtype=flat.dtype, device=flat.device)
    counts = [[v.numel() for v in values], [p.numel() for p in places]]
    work = _all_to_all(chosen, flat, into, counts, "all_to_all", places, lambda: _spread(into, places))
    return chosen._run(work, async_op)


# ---- from one to another


def _exchange(kind, who, tensor, peer, group, tag, plain, finish=None):
    return group._begin(
        kind,
        who,
        plain if kind is Kind.SEND else None,
        plain if kind is Kind.RECEIVE else None,
        finish,
        [tensor],
        root=peer,
        tag=tag,
    )


def isend(tensor, dst=None, group=None, tag=0, group_dst=None):
    """Begin to send a tensor to a process; a Work."""
    value = _checked(tensor, "isend")
    chosen = member_of(group, "isend")
    if chosen is None:
        return None
    peer = _peer(chosen, dst, group_dst, "isend", "dst")
    if peer is None or peer == chosen.rank():
        raise ValueError(
            "isend: Invalid destination rank: destination rank should not be the same as the rank of the current "
            f"process ({dst})"
        )
    return _exchange(Kind.SEND, "isend", tensor, peer, chosen, tag, _plain(value, chosen))


def irecv(tensor, src=None, group=None, tag=0, group_src=None):
    """Begin to receive a tensor from a process, or from any (src=None); a Work."""
    value = _checked(tensor, "irecv")
    chosen = member_of(group, "irecv")
    if chosen is None:
        return None
    peer = _peer(chosen, src, group_src, "irecv", "src")
    plain = _plain(value, chosen)
    return _exchange(
        Kind.RECEIVE, "irecv", tensor, -1 if peer is None else peer, chosen, tag, plain, _then(_back(value, plain))
    )


def send(tensor, dst=None, group=None, tag=0, group_dst=None):
    """Send a tensor to a process.

    Args:
        tag: a number that `recv` must have, too.
    """
    work = isend(tensor, dst, group, tag, group_dst)
    if work is not None:
        work.wait()


def recv(tensor, src=None, group=None, tag=0, group_src=None):
    """Receive a tensor from a process, or from any; who sent it."""
    work = irecv(tensor, src, group, tag, group_src)
    if work is None:
        return -1
    work.wait()
    return (
        work.source_rank()
        if src is None and group_src is None
        else (src if src is not None else get_global_rank(group or default_group("recv"), group_src))
    )


class P2POp:
    """One `isend` or `irecv` of several that batch_isend_irecv begins together."""

    def __init__(self, op, tensor, peer=None, group=None, tag=0, group_peer=None):
        if op not in (isend, irecv):
            raise RuntimeError(
                "P2POp: Invalid ``op``. Expected ``op`` to be of type ``torch.distributed.isend`` or "
                "``torch.distributed.irecv``."
            )
        _checked(tensor, "P2POp")
        self.op, self.tensor, self.peer, self.group, self.tag, self.group_peer = (
            op,
            tensor,
            peer,
            group,
            tag,
            group_peer,
        )

    def __repr__(self):
        return f"P2POp({self.op.__name__}, peer={self.peer}, shape={list(self.tensor.shape)}, tag={self.tag})"


def batch_isend_irecv(p2p_op_list):
    """Begin several sends and receives; their Works."""
    if not p2p_op_list or not all(isinstance(one, P2POp) for one in p2p_op_list):
        raise ValueError(
            "batch_isend_irecv: Invalid ``p2p_op_list``. Each op is expected to be of type ``torch.distributed.P2POp``."
        )
    groups = [member_of(one.group, "batch_isend_irecv") for one in p2p_op_list]
    with _together([g for g, one in zip(groups, p2p_op_list, strict=True) if g is not None], p2p_op_list[0].tensor):
        works = [one.op(one.tensor, one.peer, one.group, one.tag, one.group_peer) for one in p2p_op_list]
    return [work for work in works if work is not None]


@contextlib.contextmanager
def _together(groups, tensor):
    """Exchanges between GPUs begin at once, in place of one after the other."""
    engines = {id(g._gpu): g._gpu for g in groups if g._gpu is not None and (tensor.is_cuda or g._gpu is g._engine)}
    for engine in engines.values():
        engine.group_start(tensor.device)
    try:
        yield
    finally:
        for engine in engines.values():
            engine.group_end()


class _All(Work):
    """Several Works as one."""

    def __init__(self, works):
        self._works = [work for work in works if work is not None]
        super().__init__(self._poll_all, result=[t for work in self._works for t in work._result])

    def _poll_all(self, microseconds):
        steps = [work._step(microseconds) for work in self._works]  # every one moves
        return all(steps)

    def wait(self, timeout=timedelta(0)):
        for work in self._works:
            work.wait(timeout)
        return super().wait(timeout)


all_gather_single, reduce_scatter_single = all_gather_into_tensor, reduce_scatter_tensor
