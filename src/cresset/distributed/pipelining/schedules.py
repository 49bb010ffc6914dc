"""Schedules: in which order a process computes its stages and microbatches."""

import csv
import dataclasses
from typing import Any

import cresset

from ..work import Work
from . import actions
from .actions import (
    BACKWARD_INPUT,
    BACKWARD_WEIGHT,
    COMPUTES,
    FORWARD,
    FULL_BACKWARD,
    OVERLAP_F_B,
    RECV_B,
    RECV_F,
    REDUCE_GRAD,
    RESHARD,
    SEND_B,
    SEND_F,
    UNSHARD,
    _Action,
    _ComputationType,  # noqa: F401  PyTorch has it here
)
from .microbatch import TensorChunkSpec, _split, merge_chunks, split_args_kwargs_into_chunks

__all__ = [
    "BACKWARD_INPUT", "BACKWARD_WEIGHT", "FORWARD", "FULL_BACKWARD", "OVERLAP_F_B", "PipelineScheduleMulti",
    "PipelineScheduleSingle", "RECV_B", "RECV_F", "REDUCE_GRAD", "RESHARD", "SEND_B", "SEND_F", "Schedule1F1B",
    "ScheduleDualPipeV", "ScheduleGPipe", "ScheduleInterleaved1F1B", "ScheduleInterleavedZeroBubble",
    "ScheduleLoopedBFS", "ScheduleZBVZeroBubble", "UNSHARD", "get_schedule_class",
]  # fmt: skip


def _wait_batch_p2p(work: list[Work]):
    """Wait for several exchanges."""
    for one in work:
        one.wait()


@dataclasses.dataclass
class _PipelineContext:
    """What a function of one's own for a kind of action sees."""

    schedule_ref: Any
    arg_mbs: list | None = None
    kwarg_mbs: list | None = None
    target_mbs: list | None = None
    losses: list | None = None


class _PipelineSchedule:
    """Stages of this process, and the order of all processes.

    Args:
        stages: those of this process.
        n_microbatches: into how many a batch is divided.
        loss_fn: a function of the last stage's result and the target; None: forward only.
        args_chunk_spec, kwargs_chunk_spec: how arguments are divided; by default along dimension 0.
        output_merge_spec: how results are joined; by default along dimension 0.
        scale_grads: divide the gradients by the number of microbatches, as a loss that is a mean wants it.
    """

    def __init__(
        self,
        stages,
        n_microbatches,
        loss_fn=None,
        args_chunk_spec=None,
        kwargs_chunk_spec=None,
        output_merge_spec=None,
        scale_grads=True,
    ):
        if n_microbatches < 1:
            raise ValueError(f"{type(self).__name__}: n_microbatches={n_microbatches} must be positive")
        self._stages, self._n_microbatches, self._loss_fn = stages, n_microbatches, loss_fn
        self._args_chunk_spec, self._kwargs_chunk_spec = args_chunk_spec, kwargs_chunk_spec
        self._output_merge_spec, self.scale_grads = output_merge_spec, scale_grads
        self._has_backward = loss_fn is not None
        self._num_stages, self.pp_group_size = stages[0].num_stages, stages[0].group_size
        self.num_stages, self.rank = self._num_stages, stages[0].group_rank
        self._functions = {}
        self.pipeline_order = {}

    def _set_order(self, orders):
        """Take the order of every process; one in which somebody would wait for ever is refused."""
        actions.check(orders, self.num_stages, self._n_microbatches)
        self.pipeline_order = orders

    # ---- a step

    def step(self, *args, target=None, losses=None, return_outputs=True, loss_kwargs=None, **kwargs):
        """Send a batch through the stages, forward and backward; gradients of weights add up.

        Args:
            args, kwargs: the model's arguments, in the process with the first stage (kwargs: of each stage made by
                hand).
            target: for the loss, in the process with the last stage.
            losses: a list, whose items become the losses of the microbatches in the process with the last stage.
            return_outputs: give the joined results, in the process with the last stage.
            loss_kwargs: named arguments for loss_fn.
        """
        if self._has_backward and not cresset.is_grad_enabled():
            raise RuntimeError(
                "step() requires gradients to be enabled for backward computation; it should not be used under "
                "torch.no_grad() context. Please call eval() instead."
            )
        return self._run(self._has_backward, args, kwargs, target, losses, return_outputs, loss_kwargs)

    def eval(self, *args, target=None, losses=None, **kwargs):
        """Send a batch through the stages, forward only, without gradients; the arguments are those of `step`."""
        with cresset.no_grad():
            return self._run(False, args, kwargs, target, losses, True, None)

    def _run(self, backward, args, kwargs, target, losses, return_outputs, loss_kwargs):
        count = self._n_microbatches
        args_split, kwargs_split = split_args_kwargs_into_chunks(
            args,
            kwargs,
            count,
            self._args_chunk_spec if args else None,
            self._kwargs_chunk_spec if kwargs else None,
        )
        targets = None if target is None else _split(target, TensorChunkSpec(0), count, "target")
        stages = {stage.stage_index: stage for stage in self._stages}
        for stage in self._stages:
            stage.has_backward = backward
            stage.clear_runtime_states()
        context = _PipelineContext(self, args_split, kwargs_split, targets, losses)
        found = {}
        for action in self.pipeline_order[self.rank]:
            if action is None:
                continue
            if action.computation_type in self._functions:
                self._functions[action.computation_type](action, context)
                continue
            for one in action.sub_actions or (action,):
                if one.computation_type is FORWARD or (backward and one.computation_type in COMPUTES):
                    self._perform(one, stages, context, found, loss_kwargs or {})
        for stage in self._stages:
            stage.wait_for_sends()
            if backward and self.scale_grads:
                stage.scale_grads(count)
        last = stages.get(self.num_stages - 1)
        if losses is not None and last is not None and found:
            losses[:] = [found[i] for i in range(count)]
        if last is None or not return_outputs:
            return None
        return merge_chunks([last.output_chunks[i] for i in range(count)], self._output_merge_spec)

    def _perform(self, action, stages, context, found, loss_kwargs):
        stage, number, kind = stages[action.stage_index], action.microbatch_index, action.computation_type
        is_last = number == self._last_of(action.stage_index, kind)
        if kind is FORWARD:
            args = context.arg_mbs[number] if stage.is_first else ()
            output = stage.forward_one_chunk(number, args, context.kwarg_mbs[number], is_last)
            stage.send_forward(number, stages)
            if stage.is_last and self._loss_fn is not None and context.target_mbs is not None:
                loss = self._loss_fn(output, context.target_mbs[number], **loss_kwargs)
                found[number] = loss
                stage.kept[number].loss = loss
            if not stage.has_backward:
                del stage.kept[number]
        elif kind is FULL_BACKWARD:
            self._check_loss(stage, number)
            stage.send_backward(number, stage.backward_one_chunk(number, is_last), stages)
        elif kind is BACKWARD_INPUT:
            self._check_loss(stage, number)
            stage.send_backward(number, stage.backward_input(number), stages)
        else:
            stage.backward_weight(number, is_last)

    def _last_of(self, stage, kind):
        """The microbatch that comes last in the order, of those whose gradients add up."""
        ends = (FULL_BACKWARD, BACKWARD_WEIGHT)
        numbers = [
            a.microbatch_index
            for a in actions.flat(self.pipeline_order[self.rank])
            if a.stage_index == stage and a.computation_type in ends
        ]
        return numbers[-1] if numbers else -1

    def _check_loss(self, stage, number):
        if stage.is_last and stage.kept[number].loss is None:
            raise RuntimeError(
                f"{type(self).__name__}.step: the process with the last stage must give `target` for the loss"
            )


class PipelineScheduleSingle(_PipelineSchedule):
    """One stage in each process.

    Args:
        stage: that of this process; the other arguments are those of all schedules.
    """

    def __init__(
        self,
        stage,
        n_microbatches,
        loss_fn=None,
        args_chunk_spec=None,
        kwargs_chunk_spec=None,
        output_merge_spec=None,
        scale_grads=True,
    ):
        super().__init__(
            [stage], n_microbatches, loss_fn, args_chunk_spec, kwargs_chunk_spec, output_merge_spec, scale_grads
        )
        self._stage = stage
        if stage.group_size != stage.num_stages:
            raise ValueError(
                f"{type(self).__name__}: {stage.num_stages} stages for {stage.group_size} processes; one in each is "
                "expected"
            )
        self._set_order({rank: self._order(rank) for rank in range(self.pp_group_size)})

    def _order(self, rank):
        return actions.gpipe(rank, self._n_microbatches)


class _ScheduleForwardOnly(PipelineScheduleSingle):
    """All forward, no backward."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        if self._loss_fn is not None:
            raise RuntimeError("_ScheduleForwardOnly computes no loss; loss_fn must be None")


class ScheduleGPipe(PipelineScheduleSingle):
    """All microbatches forward, then all backward."""


class Schedule1F1B(PipelineScheduleSingle):
    """One forward and one backward in turn: a process keeps as many microbatches as stages come after it."""

    def _order(self, rank):
        return actions.one_forward_one_backward(rank, self.num_stages, self._n_microbatches)


class PipelineScheduleMulti(_PipelineSchedule):
    """Several stages in each process.

    Args:
        stages: those of this process, the first one first; the other arguments are those of all schedules.
        use_full_backward: PyTorch's deprecated switch.
        backward_requires_autograd: PyTorch's, for functions of one's own in place of backward.
    """

    style = "loop"

    def __init__(
        self, stages, n_microbatches, loss_fn=None, args_chunk_spec=None, kwargs_chunk_spec=None,
        output_merge_spec=None, use_full_backward=None, scale_grads=True, backward_requires_autograd=True,
        defer_pp_recv=False,
    ):  # fmt: skip
        super().__init__(
            stages, n_microbatches, loss_fn, args_chunk_spec, kwargs_chunk_spec, output_merge_spec, scale_grads
        )
        count, ranks = self.num_stages, self.pp_group_size
        if count % ranks:
            raise ValueError(f"{type(self).__name__}: {count} stages cannot be divided over {ranks} processes")
        self.n_local_stages = len(stages)
        if self.style == "v" and self.n_local_stages != 2:
            raise ValueError(f"{type(self).__name__} requires exactly 2 stages per rank, but got {len(stages)}.")
        place = [
            i % ranks if (i // ranks) % 2 == 0 or self.style == "loop" else ranks - 1 - i % ranks for i in range(count)
        ]
        self.stage_index_to_group_rank = dict(enumerate(place))
        mine = [stage.stage_index for stage in stages]
        wanted = [stage for stage, rank in self.stage_index_to_group_rank.items() if rank == self.rank]
        if sorted(mine) != wanted:
            raise ValueError(f"{type(self).__name__}: rank {self.rank} must have the stages {wanted}, not {mine}")
        for stage in stages:
            stage.stage_index_to_group_rank = self.stage_index_to_group_rank
        if orders := self._orders():
            self._set_order(orders)

    def _orders(self):
        return {}

    def _local(self, rank):
        return [stage for stage, owner in self.stage_index_to_group_rank.items() if owner == rank]

    def _round(self):
        """How many microbatches a stage computes before the next one."""
        rounds = max(1, self._n_microbatches // self.pp_group_size)
        if self._n_microbatches % rounds:
            raise ValueError(
                f"{type(self).__name__} requires the number of microbatches to be a multiple of the number of rounds "
                f"({rounds}), but got {self._n_microbatches}."
            )
        return self._n_microbatches // rounds

    def _load_csv(self, filename, format="compute_only"):
        """Read the order of every process: a line each, actions as `0F0` with commas between them."""
        if format != "compute_only":
            raise NotImplementedError(f"_load_csv: format {format!r}; messages follow from what is computed here")
        with open(filename, newline="") as file:
            self._set_order(
                {rank: [_Action.from_str(text) for text in row] for rank, row in enumerate(csv.reader(file))}
            )

    def _dump_csv(self, filename):
        """Write the order of every process."""
        with open(filename, "w", newline="") as file:
            csv.writer(file).writerows(
                ["" if action is None else repr(action) for action in order] for order in self.pipeline_order.values()
            )


class _PipelineScheduleRuntime(PipelineScheduleMulti):
    """Several stages in each process, in an order that is given: by a class derived from this or by `_load_csv`."""

    def register_custom_function(self, computation_type, custom_function):
        """Let a function do what a kind of action is.

        Args:
            computation_type: which.
            custom_function: a function of the action and a _PipelineContext.
        """
        if computation_type not in (*COMPUTES, UNSHARD, RESHARD, REDUCE_GRAD):
            raise ValueError(f"Invalid computation type {computation_type}: messages are not replaced")
        self._functions[computation_type] = custom_function


class ScheduleLoopedBFS(_PipelineScheduleRuntime):
    """All microbatches through the first stage of each process, then all through the second, ..."""

    def _orders(self):
        ranks = range(self.pp_group_size)
        return {rank: actions.looped_breadth_first(self._local(rank), self._n_microbatches) for rank in ranks}


class ScheduleInterleaved1F1B(_PipelineScheduleRuntime):
    """One forward and one backward in turn, over several stages in each process."""

    ahead, splits = 2, False

    def _orders(self):
        ranks, in_round = self.pp_group_size, self._round()
        return {
            rank: actions.interleaved(
                rank, ranks, self._local(rank), self._n_microbatches, in_round, self.ahead, self.splits
            )
            for rank in range(ranks)
        }


class ScheduleInterleavedZeroBubble(ScheduleInterleaved1F1B):
    """One forward and one backward in turn; gradients of weights fill the pauses."""

    ahead, splits = 1, True


class ScheduleZBVZeroBubble(_PipelineScheduleRuntime):
    """Two stages in each process, the first and the last in one: microbatches go down and up again, and gradients of
    weights fill the pauses."""

    style, splits = "v", True

    def _orders(self):
        return actions.v_shaped(self.pp_group_size, self._n_microbatches, self.splits)


class ScheduleDualPipeV(ScheduleZBVZeroBubble):
    """Two stages in each process as for ScheduleZBVZeroBubble, with backward in one piece. A forward and a backward of
    one process are computed one after the other here."""

    splits = False


def get_schedule_class(schedule_name):
    """The class of a schedule by its name, in large or small letters.

    >>> cresset.distributed.pipelining.schedules.get_schedule_class("1f1b").__name__
    'Schedule1F1B'
    """
    known = {
        "1F1B": Schedule1F1B, "Interleaved1F1B": ScheduleInterleaved1F1B, "GPipe": ScheduleGPipe,
        "LoopedBFS": ScheduleLoopedBFS, "InterleavedZeroBubble": ScheduleInterleavedZeroBubble,
        "PipelineScheduleSingle": PipelineScheduleSingle, "PipelineScheduleMulti": PipelineScheduleMulti,
        "ZBVZeroBubble": ScheduleZBVZeroBubble, "DualPipeV": ScheduleDualPipeV,
    }  # fmt: skip
    for name, kind in known.items():
        if name.lower() == schedule_name.lower():
            return kind
    raise ValueError(f"Unknown schedule name '{schedule_name}'. The valid options are {list(known)}")
