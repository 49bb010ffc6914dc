"""A stage: a part of a model in one process, what it keeps for each microbatch, and what it sends to its neighbors.

Every message forward begins with a line of numbers that says what comes: so shapes may differ from microbatch to
microbatch and from step to step, and nobody has to say them before. What comes back has the shapes that went."""

import contextlib

import cresset

from ...nn.parallel import DistributedDataParallel
from ..collectives import irecv, isend
from ..group import DTYPE_NUMBERS
from ..world import member_of

__all__ = ["PipelineStage", "build_stage"]

LINE = 256  # numbers in the line
MOST = 32  # tensors in a message
DTYPES = {number: dtype for dtype, number in DTYPE_NUMBERS.items()}


def _normalize_model_output_as_tuple(output):
    """What a stage gives, as a tuple."""
    if isinstance(output, (list, tuple)):
        return tuple(output)
    return (output,)


class _Kept:
    """What a stage keeps of a microbatch until its backward."""

    __slots__ = ("inputs", "loss", "outputs", "upstream")

    def __init__(self, inputs, outputs):
        self.inputs, self.outputs, self.loss, self.upstream = inputs, outputs, None, None


class _PipelineStageBase:
    """A part of a model.

    Args:
        submodule: the part.
        stage_index, num_stages: which it is, and how many there are.
        device: where it computes.
        group: the processes of the pipeline; None is all.
        dw_builder: gives, for each microbatch, a function that computes the gradients of weights in its place.
    """

    def __init__(self, submodule, stage_index, num_stages, device, group=None, dw_builder=None):
        if not 0 <= stage_index < num_stages:
            raise ValueError(f"Stage index {stage_index} is out of range of {num_stages}")
        self.submod, self.stage_index, self.num_stages = submodule, stage_index, num_stages
        self.device, self.group = cresset.device(device), member_of(group, "PipelineStage")
        self.group_rank, self.group_size = self.group.rank(), self.group.size()
        if self.group_size > num_stages:
            raise RuntimeError(
                f"Pipeline group size {self.group_size} cannot be larger than number of stages {num_stages}"
            )
        self.dw_builder, self._root_kwargs_only = dw_builder, False
        self.has_backward, self.is_first = False, stage_index == 0
        self.is_last = stage_index == num_stages - 1
        self.stage_index_to_group_rank = {i: i % self.group_size for i in range(num_stages)}
        self.clear_runtime_states()

    def clear_runtime_states(self):
        """Forget the microbatches of the last step."""
        self.kept, self.output_chunks = {}, {}
        self._given, self._gradients = {}, {}  # from a neighbor in the same process
        self._sent, self._dw = [], {}

    # ---- messages

    def _tag(self, number, place, backward):
        return ((number * 2 + backward) * self.num_stages + self.stage_index) * MOST + place

    def _peer(self, stage):
        return self.stage_index_to_group_rank[stage]

    def send_forward(self, number, stages):
        """Give what a microbatch became to the next stage."""
        if self.is_last:
            return
        outputs = self.kept[number].outputs
        if len(outputs) >= MOST or not all(isinstance(o, cresset.Tensor) for o in outputs):
            kinds = [type(o).__name__ for o in outputs]
            raise ValueError(
                f"PipelineStage: stage {self.stage_index} must give less than {MOST} tensors to the next, not {kinds}"
            )
        peer = self._peer(self.stage_index + 1)
        if peer == self.group_rank:
            stages[self.stage_index + 1]._given[number] = [
                o.detach().requires_grad_(o.requires_grad and self.has_backward) for o in outputs
            ]
            return
        line = [len(outputs)]
        for o in outputs:
            line += [DTYPE_NUMBERS[o.dtype], int(o.requires_grad), o.dim(), *o.shape]
        if len(line) > LINE:
            raise ValueError(f"PipelineStage: stage {self.stage_index} gives tensors of too many dimensions")
        line = cresset.tensor(line + [0] * (LINE - len(line)), device=self.device)
        self._send([line, *(o.detach().contiguous() for o in outputs)], peer, number, False)

    def _send(self, tensors, peer, number, backward):
        for place, tensor in enumerate(tensors):
            work = isend(tensor, group=self.group, group_dst=peer, tag=self._tag(number, place, backward))
            self._sent.append((work, tensor))

    def receive_forward(self, number):
        """What the stage before made of a microbatch."""
        if number in self._given:
            return self._given.pop(number)
        before = self._peer(self.stage_index - 1)
        tag = ((number * 2) * self.num_stages + self.stage_index - 1) * MOST
        line = cresset.zeros(LINE, dtype=cresset.int64, device=self.device)
        irecv(line, group=self.group, group_src=before, tag=tag).wait()
        words, places = iter(line.tolist()), []
        for _ in range(next(words)):
            dtype, grad, dims = DTYPES[next(words)], next(words), next(words)
            place = cresset.empty([next(words) for _ in range(dims)], dtype=dtype, device=self.device)
            places.append((place, grad))
        works = [
            irecv(place, group=self.group, group_src=before, tag=tag + 1 + i) for i, (place, _) in enumerate(places)
        ]
        for work in works:
            work.wait()
        return [place.requires_grad_(bool(grad) and self.has_backward) for place, grad in places]

    def send_backward(self, number, gradients, stages):
        """Give the gradients of a microbatch's inputs to the stage before."""
        if self.is_first:
            return
        peer = self._peer(self.stage_index - 1)
        if peer == self.group_rank:
            stages[self.stage_index - 1]._gradients[number] = gradients
        else:
            self._send([g.contiguous() for g in gradients], peer, number, True)

    def _receive_backward(self, number, outputs):
        if number in self._gradients:
            return self._gradients.pop(number)
        peer, works = self._peer(self.stage_index + 1), []
        places = [cresset.empty_like(o, memory_format=cresset.contiguous_format) for o in outputs]
        for i, place in enumerate(places):
            tag = ((number * 2 + 1) * self.num_stages + self.stage_index + 1) * MOST + i
            works.append(irecv(place, group=self.group, group_src=peer, tag=tag))
        for work in works:
            work.wait()
        return places

    def wait_for_sends(self):
        """At the end of a step: what was sent has come."""
        for work, _ in self._sent:
            work.wait()
        self._sent = []

    # ---- computing

    def _together(self, is_last):
        """Models that average gradients do so with the last microbatch only."""
        if isinstance(self.submod, DistributedDataParallel) and not is_last:
            return self.submod.no_sync()
        return contextlib.nullcontext()

    def forward_one_chunk(self, number, args, kwargs=None, is_last=True):
        """Compute a microbatch; the result.

        Args:
            args: of the first stage its inputs.
            kwargs: named arguments.
            is_last: whether it is the step's last microbatch.
        """
        inputs = list(args) if self.is_first else self.receive_forward(number)
        named = {} if kwargs is None or (self._root_kwargs_only and not self.is_first) else kwargs
        with self._together(is_last):
            output = self.submod(*inputs, **named)
        outputs = _normalize_model_output_as_tuple(output)
        self.kept[number] = _Kept(inputs if self.has_backward else [], outputs)
        if self.is_last:
            self.output_chunks[number] = output
        return output

    def _roots(self, number):
        """Where backward begins, and with which gradients; kept for a second walk."""
        kept = self.kept[number]
        if kept.upstream is None:
            if self.is_last:
                kept.upstream = ([kept.loss], [None])
            else:
                outputs = [o for o in kept.outputs if o.requires_grad]
                kept.upstream = (outputs, self._receive_backward(number, outputs))
        return kept.upstream

    def _wanted(self, number):
        return [i for i in self.kept[number].inputs if isinstance(i, cresset.Tensor) and i.requires_grad]

    def backward_one_chunk(self, number, is_last=True):
        """The gradients of weights, which add up, and of a microbatch's inputs, which are given."""
        roots, gradients = self._roots(number)
        wanted = self._wanted(number)
        for one in wanted:
            one.grad = None
        if roots:
            with self._together(is_last):
                cresset.autograd.backward(roots, gradients)
        del self.kept[number]
        return [cresset.zeros_like(i) if i.grad is None else i.grad for i in wanted]

    def backward_input(self, number):
        """Only the gradients of a microbatch's inputs."""
        roots, gradients = self._roots(number)
        wanted = [] if self.is_first else self._wanted(number)
        if not wanted or not roots:
            return [cresset.zeros_like(i) for i in wanted]
        found = cresset.autograd.grad(roots, wanted, gradients, retain_graph=True, allow_unused=True)
        if self.dw_builder is not None:
            self._dw[number] = self.dw_builder()
        return [cresset.zeros_like(i) if g is None else g for i, g in zip(wanted, found, strict=True)]

    def backward_weight(self, number, is_last=True):
        """The gradients of weights, which add up; the graph is walked a second time."""
        if number in self._dw:
            self._dw.pop(number)()
        else:
            roots, gradients = self._roots(number)
            parameters = [p for p in self.submod.parameters() if p.requires_grad]
            if roots and parameters:
                with self._together(is_last):
                    cresset.autograd.backward(roots, gradients, inputs=parameters)
        del self.kept[number]

    def scale_grads(self, grad_scale_factor):
        """Divide the gradients of weights."""
        if grad_scale_factor != 1:
            with cresset.no_grad():
                for p in self.submod.parameters():
                    if p.grad is not None:
                        p.grad.div_(grad_scale_factor)


class PipelineStage(_PipelineStageBase):
    """A part of a model, made by hand. The first stage is called with the model's arguments, each other one with what
    the one before gives: a tensor, or a tuple of them.

    Args:
        submodule: the part.
        stage_index, num_stages: which it is, and how many there are.
        device: where it computes; it must be there already.
        input_args, output_args, output_grads, input_grads: PyTorch's examples of what comes and goes; messages say it
            here.
        group: the processes of the pipeline; None is all.
        dw_builder: gives, for each microbatch, a function that computes the gradients of weights in its place.
        get_mesh: PyTorch's, for distributed tensors between stages.
    """

    def __init__(
        self, submodule, stage_index, num_stages, device, input_args=None, output_args=None, output_grads=None,
        input_grads=None, group=None, dw_builder=None, get_mesh=None,
    ):  # fmt: skip
        super().__init__(submodule, stage_index, num_stages, device, group, dw_builder)


class _PipelineStage(_PipelineStageBase):
    """A part that `pipeline` cut out: named arguments are for the first stage."""

    def __init__(self, stage_module, stage_index, pipe_info, device, group=None):
        super().__init__(stage_module, stage_index, pipe_info.num_stages, device, group)
        self._root_kwargs_only = True


def build_stage(stage_module, stage_index, pipe_info, device, group=None):
    """A stage of what `pipeline` cut out.

    Args:
        stage_module: `pipe.get_stage_module(stage_index)`, or what was made of it.
        pipe_info: `pipe.info()`.
        device: where it computes.
        group: the processes of the pipeline; None is all.
    """
    return _PipelineStage(stage_module, stage_index, pipe_info, device, group)
