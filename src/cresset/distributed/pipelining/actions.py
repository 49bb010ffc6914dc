"""What a stage does with a microbatch, and in which order the processes do it: plain data, without tensors."""

import enum
import re
from typing import NamedTuple


class _ComputationType(enum.StrEnum):
    """The kinds of actions; the values are how they are written."""

    FORWARD = "F"
    BACKWARD_INPUT = "I"
    BACKWARD_WEIGHT = "W"
    UNSHARD = "UNSHARD"
    RESHARD = "RESHARD"
    SEND_F = "SEND_F"
    RECV_F = "RECV_F"
    SEND_B = "SEND_B"
    RECV_B = "RECV_B"
    FULL_BACKWARD = "B"
    OVERLAP_F_B = "OVERLAP_F_B"
    REDUCE_GRAD = "REDUCE_GRAD"

    @staticmethod
    def from_str(action):
        """The kind that is written so."""
        try:
            return _ComputationType(action)
        except ValueError as error:
            raise RuntimeError(f"Invalid computation type {action}") from error


FORWARD, BACKWARD_INPUT, BACKWARD_WEIGHT = (
    _ComputationType.FORWARD,
    _ComputationType.BACKWARD_INPUT,
    _ComputationType.BACKWARD_WEIGHT,
)
FULL_BACKWARD, OVERLAP_F_B, REDUCE_GRAD = (
    _ComputationType.FULL_BACKWARD,
    _ComputationType.OVERLAP_F_B,
    _ComputationType.REDUCE_GRAD,
)
UNSHARD, RESHARD = _ComputationType.UNSHARD, _ComputationType.RESHARD
SEND_F, RECV_F = _ComputationType.SEND_F, _ComputationType.RECV_F
SEND_B, RECV_B = _ComputationType.SEND_B, _ComputationType.RECV_B

COMPUTES = (FORWARD, FULL_BACKWARD, BACKWARD_INPUT, BACKWARD_WEIGHT, OVERLAP_F_B)
WRITTEN = re.compile(r"(\d+)(F|I|B|W|UNSHARD|RESHARD|REDUCE_GRAD|SEND_F|RECV_F|SEND_B|RECV_B)(\d*)$")


class _Action(NamedTuple):
    """A kind of action of a stage with a microbatch; OVERLAP_F_B has two inside.

    >>> cresset.distributed.pipelining.schedules._Action.from_str("2F0")
    2F0
    """

    stage_index: int
    computation_type: _ComputationType
    microbatch_index: int | None = None
    sub_actions: tuple["_Action", ...] | None = None

    def __str__(self):
        return repr(self)

    def __repr__(self):
        if self.sub_actions is not None:
            return f"({';'.join(map(repr, self.sub_actions))}){self.computation_type.value}"
        number = "" if self.microbatch_index is None else self.microbatch_index
        return f"{self.stage_index}{self.computation_type.value}{number}"

    @property
    def is_compute_op(self):
        """Whether a stage computes something."""
        return self.computation_type in COMPUTES

    @staticmethod
    def from_str(action_string):
        """The action that is written so; None for nothing."""
        text = action_string.strip()
        if not text:
            return None
        if text.startswith("(") and ")" in text:
            inside, kind = text[1:].split(")")
            parts = tuple(_Action.from_str(part) for part in inside.split(";"))
            return _Action(-1, _ComputationType.from_str(kind), None, parts)
        if (match := WRITTEN.match(text)) is None:
            raise RuntimeError(
                f"Invalid action string: {text}, should be formatted as [stage][action type][(microbatch)] e.g. 2F0"
            )
        stage, kind, number = match.groups()
        return _Action(int(stage), _ComputationType.from_str(kind), int(number) if number else None)


def flat(order):
    """The actions of a process one after the other, without pauses and pairs."""
    for action in order:
        if action is not None:
            yield from action.sub_actions or (action,)


# ---- orders of single-stage schedules


def gpipe(stage, microbatches):
    """All forward, then all backward."""
    kinds = (FORWARD, FULL_BACKWARD)
    return [_Action(stage, kind, i) for kind in kinds for i in range(microbatches)]


def one_forward_one_backward(stage, stages, microbatches):
    """As many forward as there are stages to come, then one backward and one forward in turn."""
    ahead = min(microbatches, stages - stage)
    order = [_Action(stage, FORWARD, i) for i in range(ahead)]
    for i in range(microbatches):
        order.append(_Action(stage, FULL_BACKWARD, i))
        if ahead + i < microbatches:
            order.append(_Action(stage, FORWARD, ahead + i))
    return order


# ---- orders of schedules with several stages in a process


def looped_breadth_first(local, microbatches):
    """All microbatches through a stage before the next one."""
    forward = [_Action(stage, FORWARD, i) for stage in local for i in range(microbatches)]
    backward = [_Action(stage, FULL_BACKWARD, i) for stage in reversed(local) for i in reversed(range(microbatches))]
    return forward + backward


def interleaved(rank, ranks, local, microbatches, in_round, ahead, splits=False):
    """One forward and one backward in turn over the stages of a process, `in_round` microbatches at a time each.

    Args:
        ahead: how many forward come first for each process after this one.
        splits: gradients of inputs first, those of weights as late as `rank` microbatches after.
    """
    total = microbatches * len(local)

    def number(count):
        return count // (in_round * len(local)) * in_round + count % in_round

    def stage(count, backward):
        place = count // in_round % len(local)
        return local[len(local) - 1 - place if backward else place]

    first = min((len(local) - 1) * in_round + ahead * (ranks - 1 - rank), total)
    forward = [_Action(stage(i, False), FORWARD, number(i)) for i in range(total)]
    kind = BACKWARD_INPUT if splits else FULL_BACKWARD
    backward = [_Action(stage(i, True), kind, number(i)) for i in range(total)]
    order, late = forward[:first], []
    for i, action in enumerate(backward):
        if first + i < total:
            order.append(forward[first + i])
        order.append(action)
        if splits:
            late.append(action._replace(computation_type=BACKWARD_WEIGHT))
            if len(late) > rank:
                order.append(late.pop(0))
    return order + late


# ---- what must come before what


def needs(action, stages, done):
    """Whether what an action needs is done: the same microbatch in the stage before or after."""
    stage, kind, number = action.stage_index, action.computation_type, action.microbatch_index
    if kind is FORWARD:
        return stage == 0 or (stage - 1, FORWARD, number) in done
    if kind is BACKWARD_WEIGHT:
        return (stage, BACKWARD_INPUT, number) in done
    if (stage, FORWARD, number) not in done:
        return False
    after = ((stage + 1, BACKWARD_INPUT, number), (stage + 1, FULL_BACKWARD, number))
    return stage == stages - 1 or after[0] in done or after[1] in done


def check(orders, stages, microbatches, backward=True):
    """Refuse orders in which some process waits for ever, or leaves something out."""
    queues = {rank: list(flat(order)) for rank, order in orders.items()}
    done, at, moved = set(), dict.fromkeys(queues, 0), True
    while moved:
        moved = False
        for rank, queue in queues.items():
            while at[rank] < len(queue) and (
                queue[at[rank]].computation_type not in COMPUTES or needs(queue[at[rank]], stages, done)
            ):
                action = queue[at[rank]]
                done.add((action.stage_index, action.computation_type, action.microbatch_index))
                at[rank], moved = at[rank] + 1, True
    stuck = {rank: queue[at[rank]] for rank, queue in queues.items() if at[rank] < len(queue)}
    if stuck:
        words = ", ".join(f"rank {rank} at {action}" for rank, action in stuck.items())
        raise RuntimeError(f"pipeline schedule: these processes wait for each other: {words}")
    for stage in range(stages):
        for number in range(microbatches):
            came = {kind for kind in COMPUTES if (stage, kind, number) in done}
            whole = FULL_BACKWARD in came or {BACKWARD_INPUT, BACKWARD_WEIGHT} <= came
            if FORWARD not in came or (backward and not whole):
                raise RuntimeError(
                    f"pipeline schedule: stage {stage} lacks actions for microbatch {number}: {sorted(came)}"
                )


def v_shaped(ranks, microbatches, splits):
    """Orders for stages r and 2 * ranks - 1 - r in process r, found by playing: in each round a process does the most
    urgent thing that is ready, backward before forward, weights when nothing else is; how many forward a process may be
    ahead is limited, as memory is.

    Args:
        splits: gradients of inputs and of weights are two actions.
    """
    stages, done = 2 * ranks, set()
    orders = {rank: [] for rank in range(ranks)}
    local = {rank: (stages - 1 - rank, rank) for rank in range(ranks)}
    nexts = {stage: {FORWARD: 0, BACKWARD_INPUT: 0, BACKWARD_WEIGHT: 0} for stage in range(stages)}
    kinds = (BACKWARD_INPUT, FORWARD, BACKWARD_WEIGHT) if splits else (BACKWARD_INPUT, FORWARD)
    while any(counts[kind] < microbatches for counts in nexts.values() for kind in kinds):
        chosen = []
        for rank in range(ranks):
            held = sum(nexts[s][FORWARD] - nexts[s][BACKWARD_INPUT] for s in local[rank])
            for kind in kinds:
                ready = [
                    action
                    for stage in local[rank]
                    if (count := nexts[stage][kind]) < microbatches
                    and needs(action := _Action(stage, kind, count), stages, done)
                    and not (kind is FORWARD and stage == rank and held >= stages - rank)
                ]
                if ready:
                    chosen.append((rank, ready[0]))
                    break
            else:
                chosen.append((rank, None))
        for rank, action in chosen:
            orders[rank].append(action)
            if action is not None:
                done.add(action[:3])
                nexts[action.stage_index][action.computation_type] += 1
    if splits:
        return orders
    whole = {
        rank: [
            a and (a._replace(computation_type=FULL_BACKWARD) if a.computation_type is BACKWARD_INPUT else a)
            for a in order
        ]
        for rank, order in orders.items()
    }
    return whole
