"""PowerSGD: instead of a matrix of gradients M travel two thin ones, P = M Q and Q = Mᵀ P with orthonormal columns of
the other; P Qᵀ is close to M, and what is lost is added to the next step's gradients (Vogels, Karimireddy, Jaggi,
2019)."""

import logging
import math
from collections import defaultdict

import cresset

from ...collectives import all_reduce
from ...world import default_group
from .default_hooks import averaged, group_or_all

__all__ = ["PowerSGDState", "batched_powerSGD_hook", "powerSGD_hook"]

logger = logging.getLogger(__name__)


class PowerSGDState:
    """What PowerSGD is set to, and what it remembers from step to step.

    Args:
        process_group: the processes; None is all.
        matrix_approximation_rank: columns of P and Q.
        start_powerSGD_iter: how many steps average plainly before.
        min_compression_rate: a tensor travels whole unless P and Q have so many times fewer elements.
        use_error_feedback: add what was lost to the next gradients.
        warm_start: begin with the last step's Q.
        orthogonalization_epsilon: added to norms, for gradients that vanish.
        random_seed: of the first Q, the same in every process.
        compression_stats_logging_frequency: steps between reports.
        batch_tensors_with_same_shape: compute gradients of one shape together.
    """

    __slots__ = [
        "batch_tensors_with_same_shape", "compression_stats_logging_frequency", "error_dict", "iter",
        "matrix_approximation_rank", "min_compression_rate", "next_stats_report", "orthogonalization_epsilon",
        "p_memory_dict", "process_group", "q_memory_dict", "rng", "start_powerSGD_iter",
        "total_numel_after_compression", "total_numel_before_compression", "use_error_feedback", "warm_start",
    ]  # fmt: skip

    def __init__(
        self, process_group, matrix_approximation_rank=1, start_powerSGD_iter=1_000, min_compression_rate=2,
        use_error_feedback=True, warm_start=True, orthogonalization_epsilon=0, random_seed=0,
        compression_stats_logging_frequency=10_000, batch_tensors_with_same_shape=False,
    ):  # fmt: skip
        if (use_error_feedback or warm_start) and start_powerSGD_iter <= 1:
            raise ValueError(
                "Expect `start_powerSGD_iter` > 1 if `use_error_feedback` or `warm_start` is enabled, because the "
                f"buckets of the first step are not those of later ones; got {start_powerSGD_iter}"
            )
        self.process_group, self.matrix_approximation_rank = process_group, matrix_approximation_rank
        self.start_powerSGD_iter, self.min_compression_rate = start_powerSGD_iter, min_compression_rate
        self.use_error_feedback, self.warm_start = use_error_feedback, warm_start
        self.orthogonalization_epsilon = orthogonalization_epsilon
        self.rng = cresset.Generator().manual_seed(random_seed)
        self.error_dict, self.p_memory_dict, self.q_memory_dict = {}, {}, {}
        self.iter, self.next_stats_report = 0, 0
        self.total_numel_before_compression = self.total_numel_after_compression = 0
        self.compression_stats_logging_frequency = max(1, compression_stats_logging_frequency)
        self.batch_tensors_with_same_shape = batch_tensors_with_same_shape

    def __getstate__(self):
        state = {slot: getattr(self, slot) for slot in self.__slots__ if slot != "process_group"}
        return {**state, "rng": self.rng.get_state()}

    def __setstate__(self, state):
        self.process_group = default_group("PowerSGDState")
        for slot, value in state.items():
            setattr(self, slot, value)
        self.rng = cresset.Generator()
        self.rng.set_state(state["rng"])

    def maybe_increase_iter(self, bucket):
        """Count steps by their last bucket."""
        if bucket.is_last():
            self.iter += 1

    def compression_stats(self):
        """How many times fewer elements travelled, how many there were, how many travelled."""
        before, after = self.total_numel_before_compression, self.total_numel_after_compression
        return (before / after if after else 0), before, after

    def next_seed(self):
        """A number below a billion: those of NumPy's RandomState, whose generator is the same."""
        while True:
            number = int(cresset.empty((), dtype=cresset.int32).random_(generator=self.rng)) % (1 << 30)
            if number < 1_000_000_000:
                return number

    def report(self, bucket):
        """Write down now and then how much is saved."""
        if bucket.is_last() and self.iter >= self.next_stats_report:
            rate, before, after = self.compression_stats()
            logger.info("PowerSGD: step %s, %s elements became %s, rate %s", self.iter, before, after, rate)
            self.next_stats_report = self.iter + self.compression_stats_logging_frequency


def _orthonormal(matrices, epsilon):
    """Make the columns of a batch of matrices orthonormal, in place."""
    columns = matrices.shape[2]
    if columns > 2 and matrices.dtype not in (cresset.float16, cresset.bfloat16):
        matrices.copy_(cresset.linalg.qr(matrices)[0])
        return
    for i in range(columns):  # Gram and Schmidt: works in half precision, too
        column = matrices[:, :, i : i + 1]
        column /= column.norm(dim=1, keepdim=True) + epsilon
        rest = matrices[:, :, i + 1 :]
        rest -= (column * rest).sum(1, keepdim=True) * column


def _with_error(state, bucket, flat):
    """The gradients with what earlier steps lost, and a copy of them; the copy is None where nothing is fed back."""
    if not state.use_error_feedback:
        return None
    if bucket.index() in state.error_dict:
        flat.add_(state.error_dict[bucket.index()])
    return flat.clone()


def _approximate(state, bucket, group, matrices, before, flat):
    """A Future of the gradients with each batch of matrices replaced by its approximation.

    Args:
        before: a Future of what else travels.
    """
    index, size, epsilon = bucket.index(), group.size(), state.orthogonalization_epsilon
    ranks = [min(m.shape[1], m.shape[2], state.matrix_approximation_rank) for m in matrices]
    p_sizes = [m.shape[0] * m.shape[1] * r for m, r in zip(matrices, ranks, strict=True)]
    q_sizes = [m.shape[0] * m.shape[2] * r for m, r in zip(matrices, ranks, strict=True)]
    starts = not state.warm_start or index not in state.p_memory_dict
    if starts:
        state.p_memory_dict[index], state.q_memory_dict[index] = (
            flat.new_empty(sum(p_sizes)),
            flat.new_empty(sum(q_sizes)),
        )
    batches = list(zip(matrices, ranks, strict=True))
    ps = [
        part.view(m.shape[0], m.shape[1], r)
        for part, (m, r) in zip(state.p_memory_dict[index].split(p_sizes), batches, strict=True)
    ]
    qs = [
        part.view(m.shape[0], m.shape[2], r)
        for part, (m, r) in zip(state.q_memory_dict[index].split(q_sizes), batches, strict=True)
    ]
    if starts:
        generator = cresset.Generator().manual_seed(state.next_seed())
        for q in qs:
            q.copy_(cresset.randn(q.shape, dtype=q.dtype, generator=generator))
    for m, p, q in zip(matrices, ps, qs, strict=True):
        _orthonormal(q, epsilon)
        p.copy_(cresset.bmm(m, q))

    def exchange_ps(done):
        done.value()
        all_reduce(state.p_memory_dict[index], group=group)
        for m, p, q in zip(matrices, ps, qs, strict=True):
            _orthonormal(p, epsilon)
            q.copy_(cresset.bmm(m.transpose(1, 2), p))
        all_reduce(state.q_memory_dict[index], group=group)
        state.q_memory_dict[index].div_(size)
        for m, p, q in zip(matrices, ps, qs, strict=True):
            m.copy_(cresset.bmm(p, q.transpose(1, 2)))

    return before.then(exchange_ps)


def _forget(state, bucket, original, flat):
    """The end of a step: remember what was lost, and only that if Q starts anew."""
    if original is not None:
        state.error_dict[bucket.index()] = original - flat
    if not state.warm_start:
        state.p_memory_dict.clear()
        state.q_memory_dict.clear()
    state.maybe_increase_iter(bucket)


def _worth_it(state, rows, columns):
    """Whether a matrix travels as P and Q; counts what travels."""
    small = (rows + columns) * min(rows, columns, state.matrix_approximation_rank)
    worth = small * state.min_compression_rate < rows * columns
    state.total_numel_before_compression += rows * columns
    state.total_numel_after_compression += small if worth else rows * columns
    return worth


@cresset.no_grad()
def powerSGD_hook(state, bucket):
    """Exchange the gradient of each parameter as two thin matrices.

    Args:
        state: a PowerSGDState.
    """
    group, flat = group_or_all(state.process_group), bucket.buffer()
    if state.iter < state.start_powerSGD_iter:
        state.maybe_increase_iter(bucket)
        return averaged(flat, group)
    original = _with_error(state, bucket, flat)
    by_shape, whole = defaultdict(list), []
    for tensor in bucket.gradients():
        matrix = tensor.view(tensor.shape[0] if tensor.dim() else 1, -1)
        by_shape[matrix.shape].append(matrix) if _worth_it(state, *matrix.shape) else whole.append(tensor)
    state.report(bucket)
    groups = list(by_shape.values())
    if not state.batch_tensors_with_same_shape:
        groups = [[matrix] for group_ in groups for matrix in group_]
    matrices = [cresset.stack(same) if len(same) > 1 else same[0][None] for same in groups]
    rest = cresset.cat([t.reshape(-1) for t in whole]) if whole else flat.new_empty(0)
    approximated = _approximate(state, bucket, group, matrices, averaged(rest, group), flat)

    def back(done):
        done.value()
        for tensor, part in zip(whole, rest.split([t.numel() for t in whole]), strict=True):
            tensor.copy_(part.view(tensor.shape))
        for same, batch in zip(groups, matrices, strict=True):
            if len(same) > 1:
                for matrix, values in zip(same, batch, strict=True):
                    matrix.copy_(values)
        _forget(state, bucket, original, flat)
        return flat

    return approximated.then(back)


@cresset.no_grad()
def batched_powerSGD_hook(state, bucket):
    """Exchange all gradients of a bucket as one square matrix: faster, and less exact.

    Args:
        state: a PowerSGDState.
    """
    group, flat = group_or_all(state.process_group), bucket.buffer()
    if state.iter < state.start_powerSGD_iter:
        state.maybe_increase_iter(bucket)
        return averaged(flat, group)
    side = math.ceil(math.sqrt(flat.numel()))
    state.total_numel_before_compression += flat.numel()
    state.total_numel_after_compression += 2 * side * state.matrix_approximation_rank
    state.report(bucket)
    original = _with_error(state, bucket, flat)
    square = cresset.nn.functional.pad(flat, (0, side * side - flat.numel())).view(1, side, side)
    nothing = averaged(flat.new_empty(0), group)

    def back(done):
        done.value()
        flat.copy_(square.view(-1)[: flat.numel()])
        _forget(state, bucket, original, flat)
        return flat

    return _approximate(state, bucket, group, [square], nothing, flat).then(back)
