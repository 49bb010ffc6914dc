"""ZeroRedundancyOptimizer: each process keeps the optimizer's state of a part of the parameters, steps those, and gets
the others from those who did."""

import logging

import cresset

from ...optim import Optimizer
from ..algorithms.join import Join, Joinable, JoinHook
from ..collectives import broadcast
from ..objects import gather_object
from ..world import get_global_rank, member_of

__all__ = ["ZeroRedundancyOptimizer"]

logger = logging.getLogger(__name__)


class _ZeROJoinHook(JoinHook):
    def __init__(self, zero):
        self.zero = zero

    def main_hook(self):
        """The others step: so does this process, with its part of the parameters and the gradients they averaged."""
        self.zero.step()


def _on_cpu(value):
    return cresset.utils._pytree.tree_map(lambda v: v.cpu() if isinstance(v, cresset.Tensor) else v, value)


class ZeroRedundancyOptimizer(Optimizer, Joinable):
    """An optimizer whose state is divided over the processes.

    Args:
        params: parameters or groups of them, the same in every process.
        optimizer_class: the class of the optimizer that steps this process's part.
        process_group: the processes; by default all.
        parameters_as_bucket_view: keep the parameters of a process in one piece of memory, which saves a copy.
        overlap_with_ddp: step while backward runs, by a hook of `ddp_comm_hooks.ddp_zero_hook`; `step` does nothing.
        defaults: settings of the optimizer.
    """

    def __init__(
        self,
        params,
        optimizer_class,
        process_group=None,
        parameters_as_bucket_view=False,
        overlap_with_ddp=False,
        **defaults,
    ):
        self._set_up = False
        Optimizer.__init__(self, params, defaults)
        Joinable.__init__(self)
        self._check_dtypes()
        self.process_group = member_of(process_group, "ZeroRedundancyOptimizer")
        self.world_size, self.rank = self.process_group.size(), self.process_group.rank()
        self.global_rank = get_global_rank(self.process_group, self.rank)
        self.parameters_as_bucket_view, self._overlap_with_ddp = parameters_as_bucket_view, overlap_with_ddp
        self._class, self._all_state_dicts = optimizer_class, []
        self._set_up = True
        self._divide()

    def _check_dtypes(self):
        dtypes = {p.dtype for group in self.param_groups for p in group["params"]}
        if len(dtypes) > 1:
            raise ValueError(
                f"ZeroRedundancyOptimizer only supports parameters of one dtype, not {sorted(map(str, dtypes))}"
            )

    # ---- who has what

    def _partition_parameters(self):
        """For each rank, the groups with its parameters: the largest first, each to the rank that has least."""
        loads, parts = [0] * self.world_size, [[] for _ in range(self.world_size)]
        for group in self.param_groups:
            lists = [[] for _ in range(self.world_size)]
            for p in sorted(group["params"], key=lambda p: p.numel(), reverse=True):
                rank = loads.index(min(loads))
                lists[rank].append(p)
                loads[rank] += p.numel() if p.requires_grad else 0
            settings = {key: value for key, value in group.items() if key not in ("params", "param_names")}
            for part, params in zip(parts, lists, strict=True):
                part.append({"params": params, **settings})
        return parts

    def _divide(self):
        state = self.optim.state if hasattr(self, "optim") else {}
        self._parts = self._partition_parameters()
        self._param_to_rank = {
            p: rank for rank, part in enumerate(self._parts) for group in part for p in group["params"]
        }
        self.optim = self._class(
            [{**group, "params": list(group["params"])} for group in self._parts[self.rank]], **self.defaults
        )
        for p, values in state.items():
            if self._param_to_rank[p] == self.rank:
                self.optim.state[p] = values
        self._flats = self._in_one_piece() if self.parameters_as_bucket_view else None
        self._sync_settings(self.optim.param_groups, self.param_groups)

    def _owned(self):
        """For each rank, its parameters in lists of one device."""
        owned = []
        for part in self._parts:
            by_device = {}
            for group in part:
                for p in group["params"]:
                    by_device.setdefault(p.device, []).append(p)
            owned.append(list(by_device.values()))
        return owned

    @cresset.no_grad()
    def _in_one_piece(self):
        flats = []
        for lists in self._owned():
            flats.append([])
            for params in lists:
                flat = cresset.cat([p.detach().reshape(-1) for p in params])
                for p, piece in zip(params, flat.split([p.numel() for p in params]), strict=True):
                    p.data = piece.view(p.shape)
                flats[-1].append(flat)
        return flats

    def add_param_group(self, param_group):
        super().add_param_group(param_group)
        if self._set_up:
            self._divide()

    @staticmethod
    def _sync_settings(source, target):
        for one, other in zip(source, target, strict=True):
            other.update({key: value for key, value in one.items() if key not in ("params", "param_names")})

    # ---- steps

    def step(self, closure=None, **kwargs):
        """Step this process's parameters, and exchange them all.

        Args:
            closure: computes the loss again and gives it.
        """
        if self._overlap_with_ddp:
            logger.warning("`step()` should not be included in the training loop when `overlap_with_ddp=True`")
            return None
        Join.notify_join_context(self)
        loss = self._local_step(closure, **kwargs)
        self._exchange()
        return loss

    def _local_step(self, closure=None, **kwargs):
        self._sync_settings(self.param_groups, self.optim.param_groups)
        loss = self.optim.step(**kwargs) if closure is None else self.optim.step(closure=closure, **kwargs)
        self._sync_settings(self.optim.param_groups, self.param_groups)
        return loss

    def _step_with(self, parameters, gradients):
        """Step those of the parameters that are this process's with the given gradients."""
        mine = [(p, g) for p, g in zip(parameters, gradients, strict=True) if self._param_to_rank.get(p) == self.rank]
        before = [(p, p.grad) for group in self.optim.param_groups for p in group["params"]]
        try:
            for p, _ in before:
                p.grad = None
            for p, gradient in mine:
                p.grad = gradient
            self._local_step()
        finally:
            for p, gradient in before:
                p.grad = gradient

    @cresset.no_grad()
    def _exchange(self):
        works, copies = [], []
        for rank, lists in enumerate(self._owned()):
            for number, params in enumerate(lists):
                if self._flats is not None:
                    flat = self._flats[rank][number]
                else:
                    flat = cresset.cat([p.detach().reshape(-1) for p in params])
                    copies.append((flat, params) if rank != self.rank else (flat, []))
                works.append(broadcast(flat, group=self.process_group, group_src=rank, async_op=True))
        for work in works:
            work.wait()
        for flat, params in copies:
            for p, piece in zip(params, flat.split([p.numel() for p in params]) if params else (), strict=True):
                p.data.copy_(piece.view(p.shape))

    # ---- state

    def consolidate_state_dict(self, to=0):
        """Collect the state of all processes in one; every process calls this.

        Args:
            to: its rank in the group.
        """
        self._sync_settings(self.param_groups, self.optim.param_groups)
        collected = [None] * self.world_size if self.rank == to else None
        gather_object(_on_cpu(self.optim.state_dict()), collected, group=self.process_group, group_dst=to)
        self._all_state_dicts = collected or []

    def state_dict(self):
        """The state of all parameters as consolidate_state_dict collected it last, as the optimizer itself would give
        it in one process.
        """
        if not self._all_state_dicts:
            raise RuntimeError(
                "Optimizer state has not been consolidated on this rank. "
                f"Please call `consolidate_state_dict(to={self.rank})` on all ranks beforehand if you meant to save "
                "the global state."
            )
        result = super().state_dict()
        number = {id(p): i for i, p in enumerate(p for group in self.param_groups for p in group["params"])}
        state = {}
        for part, local in zip(self._parts, self._all_state_dicts, strict=True):
            for group, saved in zip(part, local["param_groups"], strict=True):
                for p, index in zip(group["params"], saved["params"], strict=True):
                    if index in local["state"]:
                        state[number[id(p)]] = local["state"][index]
        result["state"] = dict(sorted(state.items()))
        return result

    def load_state_dict(self, state_dict):
        """Take this process's part of the state of all.

        Args:
            state_dict: what `state_dict` gave, with any number of processes, or one of the optimizer's class.
        """
        number = {p: i for i, p in enumerate(p for group in self.param_groups for p in group["params"])}
        mine = self.optim.state_dict()
        local = {
            index: state_dict["state"][number[p]]
            for group, saved in zip(self._parts[self.rank], mine["param_groups"], strict=True)
            for p, index in zip(group["params"], saved["params"], strict=True)
            if number[p] in state_dict["state"]
        }
        self._sync_settings(state_dict["param_groups"], self.param_groups)
        self._sync_settings(state_dict["param_groups"], mine["param_groups"])
        self.optim.load_state_dict({"state": local, "param_groups": mine["param_groups"]})

    # ---- joining

    def join_hook(self, **kwargs):
        """What this process does in place of the others' steps, for Join."""
        return _ZeROJoinHook(self)

    @property
    def join_device(self):
        """Where its collectives run."""
        return self.param_groups[0]["params"][0].device

    @property
    def join_process_group(self):
        """The processes that take part."""
        return self.process_group
