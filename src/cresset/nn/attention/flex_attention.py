"""Attention with a score function of one's own, and masks given as functions of positions.

On CUDA the functions become part of one kernel, if they can be traced: flex_kernel.py. Elsewhere they see whole grids
of batch, head, query and key positions at once, so that they cost one pass of ordinary operations. Blocks of keys that
a BlockMask leaves out are not computed.
"""

import inspect
import itertools
import math
from typing import NamedTuple, TypedDict

import cresset

from .flex_kernel import attend

__all__ = [
    "AuxOutput", "AuxRequest", "BlockMask", "FlexKernelOptions", "and_masks", "create_block_mask", "create_mask",
    "flex_attention", "noop_mask", "or_masks",
]  # fmt: skip

_DEFAULT_SPARSE_BLOCK_SIZE = 128


class AuxRequest(NamedTuple):
    """What flex_attention is to return besides the result."""

    lse: bool = False
    max_scores: bool = False


class AuxOutput(NamedTuple):
    """What was asked for with AuxRequest."""

    lse: object = None
    max_scores: object = None


class FlexKernelOptions(TypedDict, total=False):
    """Options of PyTorch's GPU kernels. The sizes of tiles, BLOCK_M (64 or 128), BLOCK_N, BLOCK_M1 and BLOCK_N2 (32 or
    64) choose those of the kernels here, in whose order sums are made. WARPGROUP=False, an option of cresset's, leaves
    products by warpgroups out where the device has them. The others are without effect."""

    num_warps: int
    num_stages: int
    BLOCK_M: int
    BLOCK_N: int
    BLOCK_M1: int
    BLOCK_N1: int
    BLOCK_M2: int
    BLOCK_N2: int
    PRESCALE_QK: bool
    ROWS_GUARANTEED_SAFE: bool
    BLOCKS_ARE_CONTIGUOUS: bool
    WRITE_DQ: bool
    FORCE_USE_FLEX_ATTENTION: bool
    USE_TMA: bool
    WARPGROUP: bool


def noop_mask(batch, head, token_q, token_kv):
    """Everybody sees everything."""
    return cresset.ones((), dtype=cresset.bool, device=batch.device)


def and_masks(*mask_mods):
    """Visible where all masks say so."""
    _check_callables("and_masks", mask_mods)

    def and_mask(b, h, q, kv):
        result = b.new_ones((), dtype=cresset.bool)
        for mask in mask_mods:
            result = result & mask(b, h, q, kv)
        return result

    return and_mask


def or_masks(*mask_mods):
    """Visible where one mask says so."""
    _check_callables("or_masks", mask_mods)

    def or_mask(b, h, q, kv):
        result = b.new_zeros((), dtype=cresset.bool)
        for mask in mask_mods:
            result = result | mask(b, h, q, kv)
        return result

    return or_mask


def _check_callables(name, functions):
    if not all(callable(function) for function in functions):
        raise RuntimeError(f"{name}: all arguments should be callable mask_mods, got {functions}")


def _positions(batch, heads, queries, keys, device, first_query=0):
    """Grids that broadcast to (batch, heads, queries, keys)."""
    sizes = (batch, heads, queries, keys)
    grids = []
    for d, size in enumerate(sizes):
        start = first_query if d == 2 else 0
        grids.append(cresset.arange(start, start + size, device=device).view([-1 if k == d else 1 for k in range(4)]))
    return grids


def create_mask(mod_fn, B, H, Q_LEN, KV_LEN, device=None):  # noqa: N803 - PyTorch's names
    """The whole mask as a tensor (B, H, Q_LEN, KV_LEN): bools of a mask function, or the scores of a score function on
    zeros.

    >>> from cresset.nn.attention.flex_attention import create_mask
    >>> create_mask(lambda b, h, q, kv: q >= kv, 1, 1, 2, 2)
    tensor([[[[ True, False],
              [ True,  True]]]])
    """
    sizes = (1 if B is None else B, 1 if H is None else H, Q_LEN, KV_LEN)
    grids = _positions(*sizes, device)
    if len(inspect.signature(mod_fn).parameters) == 5:
        scores = mod_fn(cresset.zeros(sizes, device=device), *grids)
        return cresset.where(scores.isneginf(), False, True).expand(sizes)
    return mod_fn(*grids).expand(sizes).contiguous()


class BlockMask:
    """Which blocks of keys each block of queries sees: in part (then `mask_mod` decides), wholly, or not at all."""

    def __init__(
        self, seq_lengths, kv_num_blocks, kv_indices, full_kv_num_blocks, full_kv_indices, q_num_blocks, q_indices,
        full_q_num_blocks, full_q_indices, BLOCK_SIZE=_DEFAULT_SPARSE_BLOCK_SIZE, mask_mod=None, *, dq_write_order=None,
        dq_write_order_full=None, dq_kv_order=None, dq_kv_order_spt=None,  # noqa: N803
    ):  # fmt: skip
        self.seq_lengths = seq_lengths
        self.kv_num_blocks, self.kv_indices = kv_num_blocks, kv_indices
        self.full_kv_num_blocks, self.full_kv_indices = full_kv_num_blocks, full_kv_indices
        self.q_num_blocks, self.q_indices = q_num_blocks, q_indices
        self.full_q_num_blocks, self.full_q_indices = full_q_num_blocks, full_q_indices
        self.BLOCK_SIZE = (BLOCK_SIZE, BLOCK_SIZE) if isinstance(BLOCK_SIZE, int) else tuple(BLOCK_SIZE)
        self.mask_mod = mask_mod if mask_mod is not None else noop_mask
        self.dq_write_order, self.dq_write_order_full = dq_write_order, dq_write_order_full
        self.dq_kv_order, self.dq_kv_order_spt = dq_kv_order, dq_kv_order_spt

    @classmethod
    def from_kv_blocks(
        cls, kv_num_blocks, kv_indices, full_kv_num_blocks=None, full_kv_indices=None,
        BLOCK_SIZE=_DEFAULT_SPARSE_BLOCK_SIZE, mask_mod=None, seq_lengths=None, compute_q_blocks=True, *,
        dq_write_order=None, dq_write_order_full=None, dq_kv_order=None,  # noqa: N803
    ):  # fmt: skip
        """From the lists of key blocks that each query block sees in part, and those it sees wholly."""
        if kv_indices.dim() < 2:
            raise RuntimeError(f"BlockMask must have at least 2 dimensions, got {kv_indices.dim()}")
        if (full_kv_num_blocks is None) != (full_kv_indices is None):
            raise RuntimeError("BlockMask: full_kv_num_blocks and full_kv_indices are given together or not at all")
        size = (BLOCK_SIZE, BLOCK_SIZE) if isinstance(BLOCK_SIZE, int) else tuple(BLOCK_SIZE)
        if seq_lengths is None:
            seq_lengths = (kv_indices.shape[-2] * size[0], kv_indices.shape[-1] * size[1])
        of_queries = [None] * 4
        if compute_q_blocks:
            of_queries[:2] = _transposed(kv_num_blocks, kv_indices)
            if full_kv_num_blocks is not None:
                of_queries[2:] = _transposed(full_kv_num_blocks, full_kv_indices)
        return cls(
            seq_lengths, kv_num_blocks, kv_indices, full_kv_num_blocks, full_kv_indices, *of_queries, size, mask_mod,
            dq_write_order=dq_write_order, dq_write_order_full=dq_write_order_full, dq_kv_order=dq_kv_order,
        )  # fmt: skip

    @property
    def shape(self):
        return (*self.kv_num_blocks.shape[:-1], *self.seq_lengths)

    def numel(self):
        return math.prod(self.shape)

    def sparsity(self):
        """The share of elements in blocks that nobody looks at, in percent. Blocks count as whole, so that where the
        lengths are no multiples of a block's the share comes out too small, even below zero, as PyTorch's does."""
        seen = self.to_dense().sum().item() * self.BLOCK_SIZE[0] * self.BLOCK_SIZE[1]
        return 100 * (1 - seen / self.numel())

    def to_dense(self):
        """Ones where a block is seen, in part or wholly: (…, query blocks, key blocks)."""
        dense = self.listed(False)
        return dense if self.full_kv_num_blocks is None else dense | self.listed(True)

    def listed(self, wholly):
        """Ones where a block is seen wholly, or in part."""
        if wholly:
            return _ordered_to_dense(self.full_kv_num_blocks, self.full_kv_indices)
        return _ordered_to_dense(self.kv_num_blocks, self.kv_indices)

    def as_tuple(self, flatten=True):
        size = self.BLOCK_SIZE if flatten else (self.BLOCK_SIZE,)
        lengths = self.seq_lengths if flatten else (self.seq_lengths,)
        return (
            *lengths, self.kv_num_blocks, self.kv_indices, self.full_kv_num_blocks, self.full_kv_indices,
            self.q_num_blocks, self.q_indices, self.full_q_num_blocks, self.full_q_indices, *size, self.mask_mod,
        )  # fmt: skip

    def __getitem__(self, index):
        """Part of the batch or of the heads; or, as third index, some of the query blocks."""
        index = index if isinstance(index, tuple) else (index,)
        keep = tuple(slice(i, i + 1) if isinstance(i, int) else i for i in index)
        parts = [
            t[keep] if t is not None else None
            for t in (self.kv_num_blocks, self.kv_indices, self.full_kv_num_blocks, self.full_kv_indices)
        ]
        rows = parts[1].shape[-2] * self.BLOCK_SIZE[0]
        lengths = self.seq_lengths if len(index) < 3 else (min(rows, self.seq_lengths[0]), self.seq_lengths[1])
        return BlockMask.from_kv_blocks(*parts, self.BLOCK_SIZE, self.mask_mod, lengths)

    def to(self, device):
        """The same on another device."""
        moved = [
            None if t is None else t.to(device)
            for t in (self.kv_num_blocks, self.kv_indices, self.full_kv_num_blocks, self.full_kv_indices)
        ]
        return BlockMask.from_kv_blocks(
            *moved, self.BLOCK_SIZE, self.mask_mod, self.seq_lengths, self.q_indices is not None
        )

    def to_string(self, grid_size=(20, 20), limit=4):
        """A picture of each head: a full square where all blocks are seen, a light one where some are.

        Args:
            grid_size: the most squares down and across, one number for both; -1 draws every block.
            limit: how many heads are drawn.
        """
        dense = self.to_dense().bool()
        down, across = grid_size if isinstance(grid_size, tuple) else (grid_size, grid_size)
        heads = list(itertools.product(*map(range, dense.shape[:-2])))
        pictures = [f"{head}\n{_picture(dense[head], down, across)}" for head in heads[:limit]]
        if len(heads) > limit:
            pictures.append(
                "...\nTo print out more, set BlockMask.to_string(limit=N)\n"
                "You can also index (BlockMask[batch, head]) to choose a specific batch or head"
            )
        return "\n".join(pictures)

    def __str__(self):
        return f"BlockMask(shape={self.shape}, sparsity={self.sparsity():.2f}%, \n{self.to_string().strip()}\n)"

    def __repr__(self):
        lists = [f"{name}={None if (t := getattr(self, name)) is None else t.shape}" for name in _LISTS]
        rest = [f"BLOCK_SIZE={self.BLOCK_SIZE}", f"shape={self.shape}", f"sparsity={self.sparsity():.2f}%"]
        mask_mod = getattr(self.mask_mod, "__name__", self.mask_mod)
        return "BlockMask(\n    " + ",\n    ".join([*lists, *rest, f"mask_mod={mask_mod}"]) + "\n)"


_LISTS = [
    whole + side + what
    for side in ("kv_", "q_")
    for whole in ("", "full_")
    for what in ("num_blocks", "indices")
]  # fmt: skip


def _picture(dense, down, across):
    """One head's blocks as lines of squares, several blocks to a square where there are more than `down`, `across`."""
    rows, columns = dense.shape
    high, wide = (max(1, -(-size // most)) for size, most in ((rows, down), (columns, across)))
    seen = {True: "██", False: "  "}
    lines = []
    for row in range(0, rows, high):
        parts = [dense[row : row + high, column : column + wide] for column in range(0, columns, wide)]
        lines.append("".join(seen[bool(part.any())] if part.all() or not part.any() else "░░" for part in parts))
    return "\n".join(lines) + "\n"


def _dense_to_ordered(dense):
    dense = dense.to(cresset.int32)
    counts = dense.sum(-1)
    indices = dense.argsort(dim=-1, descending=True, stable=True)
    return counts.to(cresset.int32).contiguous(), indices.to(cresset.int32).contiguous()


def _ordered_to_dense(counts, indices):
    """The inverse: bools (…, query blocks, key blocks)."""
    columns = indices.shape[-1]
    listed = cresset.arange(columns, device=counts.device) < counts.unsqueeze(-1)
    dense = cresset.zeros(indices.shape, dtype=cresset.int32, device=counts.device)
    return dense.scatter_add(-1, indices.long(), listed.to(cresset.int32)).bool()


def _transposed(counts, indices):
    return _dense_to_ordered(_ordered_to_dense(counts, indices).mT)


_AT_ONCE = 1 << 22  # positions of a mask that are asked for together


def _count_seen(mask_mod, sizes, rows, columns, device):
    """How many positions of each block are seen: (B, H, query blocks, key blocks).

    Some rows of blocks at a time: the whole mask of long sequences is larger than all tensors of the attention.
    """
    b, h, q, kv = _positions(*sizes, device)
    batch, heads, _, keys = sizes
    queries = rows * max(1, _AT_ONCE // max(1, batch * heads * rows * keys))
    parts = []
    for some in q.split(queries, 2):
        mask = mask_mod(b, h, some, kv).expand(batch, heads, some.shape[2], keys)
        padded = cresset.nn.functional.pad(mask, (0, -keys % columns, 0, -some.shape[2] % rows))
        down, across = padded.shape[2] // rows, padded.shape[3] // columns
        parts.append(padded.view(batch, heads, down, rows, across, columns).sum((3, 5)))
    return parts[0] if len(parts) == 1 else cresset.cat(parts, 2)


def create_block_mask(
    mask_mod,
    B,
    H,
    Q_LEN,
    KV_LEN,
    device=None,
    BLOCK_SIZE=_DEFAULT_SPARSE_BLOCK_SIZE,
    _compile=False,
    separate_full_blocks=True,
    compute_dq_write_order=False,
    dq_kv_order=True,
):  # noqa: N803
    """Find out which blocks of keys each block of queries sees.

    Args:
        separate_full_blocks: keep a list of the blocks that are seen wholly; without it they are among those that are
            seen in part.
        compute_dq_write_order: not supported; the order of writes is that of the blocks.

    >>> from cresset.nn.attention.flex_attention import create_block_mask
    >>> create_block_mask(lambda b, h, q, kv: q >= kv, None, None, 256, 256).to_dense()[0, 0].int()
    tensor([[1, 0],
            [1, 1]], dtype=torch.int32)
    """
    if compute_dq_write_order:
        raise NotImplementedError("create_block_mask: compute_dq_write_order=True is not supported")
    rows, columns = (BLOCK_SIZE, BLOCK_SIZE) if isinstance(BLOCK_SIZE, int) else BLOCK_SIZE
    if len(inspect.signature(mask_mod).parameters) == 5:
        raise AssertionError(f"create-block_mask requires a mask_mod function! Got {mask_mod}")
    seen = _count_seen(mask_mod, (1 if B is None else B, 1 if H is None else H, Q_LEN, KV_LEN), rows, columns, device)
    whole = seen == rows * columns
    if not separate_full_blocks:
        return BlockMask.from_kv_blocks(
            *_dense_to_ordered(seen > 0), None, None, (rows, columns), mask_mod, (Q_LEN, KV_LEN)
        )
    partial = (seen > 0) & ~whole
    return BlockMask.from_kv_blocks(
        *_dense_to_ordered(partial), *_dense_to_ordered(whole), (rows, columns), mask_mod, (Q_LEN, KV_LEN)
    )


def flex_attention(
    query,
    key,
    value,
    score_mod=None,
    block_mask=None,
    scale=None,
    enable_gqa=False,
    return_lse=False,
    kernel_options=None,
    *,
    return_aux=None,
):
    """Attention whose scores pass through `score_mod(score, batch, head, q, kv)` and whose mask is a BlockMask.

    On CUDA it is one kernel, with the functions in it, and two backward; where that is not possible, a warning says why
    and ordinary operators compute. The kernel's gradients cannot be differentiated again.

    Args:
        query, key, value: (batch, heads, length, width).
        scale: 1 / sqrt(width) if None.
        enable_gqa: several query heads share a key head.
        kernel_options: sizes of the kernels' tiles: see FlexKernelOptions.
        return_aux: AuxRequest(lse=True) also returns the log of the sum of exponentials.

    >>> from cresset.nn.attention.flex_attention import flex_attention
    >>> q = cresset.ones(1, 1, 2, 4)
    >>> flex_attention(q, q, q, score_mod=lambda score, b, h, i, j: score - (i - j).abs()).shape
    torch.Size([1, 1, 2, 4])
    """
    if query.dim() != 4 or key.dim() != 4 or value.dim() != 4:
        raise ValueError(
            f"flex_attention: query, key and value must be 4-D, got {query.dim()}, {key.dim()} and {value.dim()} "
            "dimensions"
        )
    if query.size(-1) != key.size(-1):
        raise ValueError(
            f"Expect query and key/value to have the same embedding dimension, but got E={query.size(-1)} and "
            f"E={key.size(-1)}."
        )
    batch, heads, queries, width = query.shape
    if not enable_gqa and heads != key.size(1):
        raise ValueError(
            f"Expect query and key/value to have the same number of heads but got Hq={heads} and Hkv={key.size(1)}. "
            "Try setting enable_gqa=True for GQA."
        )
    if enable_gqa and heads % key.size(1):
        raise ValueError(
            f"Expect number of query heads to be a multiple of kv heads for GQA but got Hq={heads} and "
            f"Hkv={key.size(1)}."
        )
    if key.size(0) != batch:
        key, value = (t.expand(batch, *t.shape[1:]) for t in (key, value))
    scale = 1.0 / math.sqrt(width) if scale is None else scale
    if block_mask is not None and (block_mask.seq_lengths[0] < queries or block_mask.seq_lengths[1] < key.size(2)):
        raise ValueError(
            f"block_mask was created for block_mask.shape={block_mask.shape} but got q_len={queries} and "
            f"kv_len={key.size(2)}."
        )
    found = attend(query, key, value, score_mod, block_mask, scale, kernel_options) if query.is_cuda else None
    result, lse, peak = found or _attend_by_blocks(query, key, value, score_mod, block_mask, scale)
    if return_aux is not None:
        return result, AuxOutput(
            lse=lse if return_aux.lse else None, max_scores=peak if return_aux.max_scores else None
        )
    return (result, lse) if return_lse else result


def _attend_by_blocks(query, key, value, score_mod, block_mask, scale):
    """By ordinary operators, one block of queries after the other."""
    batch, heads, queries, _ = query.shape
    if heads != key.size(1):
        key, value = (t.repeat_interleave(heads // t.size(1), 1) for t in (key, value))
    rows, columns = block_mask.BLOCK_SIZE if block_mask is not None else (_DEFAULT_SPARSE_BLOCK_SIZE, key.size(2))
    parts = [
        _attend(query[:, :, start : start + rows], key, value, start, rows, columns, score_mod, block_mask, scale)
        for start in range(0, queries, rows)
    ]
    results, lses, peaks = ([part[k] for part in parts] for k in range(3))
    result = cresset.cat(results, 2) if parts else query.new_zeros(batch, heads, 0, value.size(-1))
    lse, peak = (cresset.cat(t, 2) if t else query.new_zeros(batch, heads, 0) for t in (lses, peaks))
    return result, lse, peak


def _attend(query, key, value, start, rows, columns, score_mod, block_mask, scale):
    """One block of queries over the key blocks it sees: result, log of the sum of exponentials, largest score."""
    batch, heads, queries, _ = query.shape
    keys = key.size(2)
    if block_mask is not None:
        seen = block_mask.to_dense()[..., start // rows, :].flatten(0, -2).any(0).tolist()
        kept = list(
            itertools.chain.from_iterable(
                range(k * columns, min((k + 1) * columns, keys))
                for k, is_seen in enumerate(seen)
                if is_seen and k * columns < keys
            )
        )
        if not kept:
            return (
                query.new_zeros(batch, heads, queries, value.size(-1)),
                query.new_full((batch, heads, queries), -math.inf),
                query.new_full((batch, heads, queries), -math.inf),
            )
        index = cresset.tensor(kept, device=query.device)
        key, value = key.index_select(2, index), value.index_select(2, index)
    else:
        index = cresset.arange(keys, device=query.device)
    wide = cresset.float64 if query.dtype == cresset.float64 else cresset.float32
    scores = (query.to(wide) @ key.to(wide).mT) * scale
    b, h, q, _ = _positions(batch, heads, queries, 1, query.device, start)
    kv = index.view(1, 1, 1, -1)
    if score_mod is not None:
        scores = score_mod(scores, b, h, q, kv).to(wide).expand_as(scores)
    if block_mask is not None:
        visible = block_mask.mask_mod(b, h, q, kv)
        dense = block_mask.to_dense()[..., start // rows, :].unsqueeze(-2)
        listed = dense[..., (index // columns)]
        scores = scores.masked_fill(~(visible & listed), -math.inf)
    peak = scores.amax(-1)
    lse = scores.logsumexp(-1)
    weights = (scores - lse.masked_fill(lse.isneginf(), 0).unsqueeze(-1)).exp()
    return (weights @ value.to(wide)).to(query.dtype), lse, peak
