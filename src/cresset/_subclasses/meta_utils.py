"""What tensors that stand for others have in common with them."""


def assert_eq(a, b):
    """An AssertionError if the two differ."""
    if a != b:
        raise AssertionError(f"{a} != {b}")


def assert_metadata_eq(assert_eq, m1, m2, *, skip_symbolic=False, skip_leaf=False):
    """Compare by `assert_eq(a, b)` what is known of two tensors beside their elements.

    Args:
        skip_symbolic: leave out sizes, strides and places in memory.
        skip_leaf: leave out whether they are leaves.
    """
    assert_eq(m1.dtype, m2.dtype)
    if not skip_symbolic:
        assert_eq(m1.shape, m2.shape)
    assert_eq(m1.requires_grad, m2.requires_grad)
    if not skip_leaf:
        assert_eq(m1.is_leaf, m2.is_leaf)
    assert_eq(m1.layout, m2.layout)
    assert_eq(m1.is_sparse, m2.is_sparse)
    assert_eq(m1.is_inference(), m2.is_inference())
    assert_eq(m1.is_conj(), m2.is_conj())
    assert_eq(m1.is_neg(), m2.is_neg())
    if m1.is_sparse:
        assert_eq(m1.dense_dim(), m2.dense_dim())
        assert_eq(m1.sparse_dim(), m2.sparse_dim())
        assert_eq(m1.is_coalesced(), m2.is_coalesced())
    elif not skip_symbolic:
        assert_eq(m1.stride(), m2.stride())
        assert_eq(m1.storage_offset(), m2.storage_offset())
        assert_eq(m1._is_view(), m2._is_view())
