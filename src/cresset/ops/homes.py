"""Which of the functions of the main namespace PyTorch keeps elsewhere: what their `__module__` says."""

__all__ = ["HOMES"]

_HOMES = {
    "torch.functional": """atleast_1d atleast_2d atleast_3d block_diag broadcast_shapes broadcast_tensors
        cartesian_prod cdist chain_matmul einsum lu meshgrid norm split stft tensordot unique unique_consecutive
        unravel_index""",
    "torch._linalg_utils": "eig lstsq matrix_rank solve symeig",
    "torch._lobpcg": "lobpcg",
    "torch._lowrank": "pca_lowrank svd_lowrank",
}
HOMES = {name: home for home, names in _HOMES.items() for name in names.split()}
