"""The copying forms of views beside PyTorch's: whatever the order of the elements in memory was, the copies are in the
plain one."""

import pytest

import cresset

torch = pytest.importorskip("torch")

COPIES = {
    "alias_copy": (), "detach_copy": (), "as_strided_copy": ((2, 2), (1, 16)), "diagonal_copy": (), "squeeze_copy": (),
    "expand_copy": ((2, 4, 4, 4),), "permute_copy": ((0, 2, 1, 3),), "transpose_copy": (0, 1), "unsqueeze_copy": (1,),
    "select_copy": (0, 1), "slice_copy": (0, 0, 1), "split_copy": (1,), "split_with_sizes_copy": ([1, 1],),
    "unbind_copy": (), "view_copy": ((2, 4, 4, 4),), "unfold_copy": (0, 2, 1),
}  # fmt: skip


@pytest.mark.parametrize("name", COPIES)
def test_copies_lie_as_pytorchs_do(name):
    found = []
    for lib in (cresset, torch):
        x = lib.arange(2 * 4 * 4 * 4.0).view(2, 4, 4, 4).contiguous(memory_format=lib.channels_last)
        copies = getattr(lib.ops.aten, name)(x, *COPIES[name])
        found.append([(t.tolist(), t.stride()) for t in (copies if isinstance(copies, (tuple, list)) else [copies])])
    assert found[0] == found[1]
