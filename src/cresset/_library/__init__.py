"""torch._library: what stands behind torch.library. `operator` is a defined operator, `registration` defines and
implements, `custom_ops` makes operators of Python functions, `checking` is opcheck.
"""
