"""What autograd calls the node of a result: PyTorch's name for the call, where operators, their overloads and functions
made of several operators are told apart.
"""

import pytest

import cresset
import cresset.nn.functional as F

X = cresset.tensor([0.5, 1.5])
Y = cresset.tensor([2.0, 3.0])

OVERLOADS = [
    (lambda x: x.fmod(2), "FmodBackward0"),
    (lambda x: x.fmod(Y), "FmodBackward1"),
    (lambda x: x**2.5, "PowBackward0"),
    (lambda x: x**Y, "PowBackward1"),
    (lambda x: 2**x, "PowBackward2"),
    (lambda x: (x * 1).pow_(Y), "PowBackward1"),
    (lambda x: x.clamp(0, 1), "ClampBackward1"),
    (lambda x: x.clamp(min=0), "ClampBackward1"),
    (lambda x: x.clamp(min=Y), "ClampBackward0"),
    (lambda x: x.lerp(Y, 0.5), "LerpBackward0"),
    (lambda x: x.lerp(Y, Y), "LerpBackward1"),
    (lambda x: 1 - x, "RsubBackward1"),
    (lambda x: x - 1, "SubBackward0"),
    (lambda x: 2 / x, "MulBackward0"),
    (lambda x: x.div(Y, rounding_mode="floor"), "DivBackward2"),
    (lambda x: x.div(Y, rounding_mode=None), "DivBackward2"),
    (lambda x: x.half().div(Y.half(), rounding_mode="trunc"), "DivBackward2"),
    (lambda x: x.sort().values, "SortBackward0"),
    (lambda x: x.sort(stable=True).values, "SortBackward1"),
    (lambda x: x @ Y, "DotBackward0"),
    (lambda x: x[None] @ Y, "MvBackward0"),
    (lambda x: x[None] @ Y[:, None], "MmBackward0"),
    (lambda x: x[None, None] @ Y[:, None], "UnsafeViewBackward0"),
    (lambda x: F.linear(x[None], cresset.ones(3, 2)), "MmBackward0"),
    (lambda x: F.linear(x[None], cresset.ones(3, 2), cresset.ones(3)), "AddmmBackward0"),
    (lambda x: F.linear(x[None, None], cresset.ones(3, 2), cresset.ones(3)), "ViewBackward0"),
]

FUNCTIONS = [
    (lambda x: F.mse_loss(x, Y), "MseLossBackward0"),
    (lambda x: F.mse_loss(x, Y, reduction="sum"), "MseLossBackward0"),
    (lambda x: F.mse_loss(x, Y, weight=Y), "DivBackward0"),
    (lambda x: F.l1_loss(x, Y), "MeanBackward0"),
    (lambda x: F.smooth_l1_loss(x, Y), "SmoothL1LossBackward0"),
    (lambda x: F.smooth_l1_loss(x, Y, beta=0.0), "MeanBackward0"),
    (lambda x: F.huber_loss(x, Y), "HuberLossBackward0"),
    (lambda x: F.huber_loss(x, Y, weight=Y), "MeanBackward0"),
    (lambda x: F.kl_div(x, Y, reduction="none"), "SubBackward0"),
    (lambda x: F.kl_div(x, Y, reduction="none", log_target=True), "MulBackward0"),
    (lambda x: F.binary_cross_entropy_with_logits(x, Y, weight=Y), "BinaryCrossEntropyWithLogitsBackward0"),
    (lambda x: F.cross_entropy(x[None], cresset.tensor([1])), "NllLossBackward0"),
    (lambda x: F.cross_entropy(x[None, :, None], cresset.tensor([[1]])), "NllLoss2DBackward0"),
    (lambda x: F.cross_entropy(x[None], cresset.tensor([1]), label_smoothing=0.1), "AddBackward0"),
    (lambda x: F.cross_entropy(x[None], Y[None]), "DivBackward1"),
    (lambda x: F.rms_norm(x, (2,)), "MulBackward0"),
    (lambda x: F.pad(x, (1, 1)), "ConstantPadNdBackward0"),
    (lambda x: F.pad(x, (-1, 0)), "ConstantPadNdBackward0"),
    (lambda x: F.pad(x[None], (1, 1), "reflect"), "ReflectionPad1DBackward0"),
    (lambda x: F.pad(x[None, None], (1, 1, 0, 0), "replicate"), "ReplicationPad2DBackward0"),
    (lambda x: F.interpolate(x[None, None], 3), "UpsampleNearest1DBackward0"),
    (lambda x: F.interpolate(x[None, None], 3, mode="nearest-exact"), "UpsampleNearestExact1DBackward0"),
    (
        lambda x: F.interpolate(x[None, None, None], (1, 3), mode="bilinear", antialias=True),
        "UpsampleBilinear2DAaBackward0",
    ),
    (lambda x: F.avg_pool1d(x[None], 2), "SqueezeBackward1"),
    (lambda x: F.adaptive_avg_pool2d(x[None, None], 1), "MeanBackward1"),
    (lambda x: F.embedding_bag(cresset.tensor([[0, 1]]), x[:, None]), "EmbeddingBagBackward0"),
    (lambda x: F.rrelu(x * 1, inplace=True), "RreluWithNoiseBackward1"),
    (lambda x: F.bilinear(x[None], Y[None], cresset.ones(3, 2, 2)), "ViewBackward0"),
    (lambda x: cresset.rsub(x, Y), "RsubBackward0"),
    (lambda x: x.round(decimals=1), "RoundBackward1"),
    (lambda x: cresset.dist(x, Y), "DistBackward0"),
    (lambda x: x.diag(), "DiagEmbedBackward0"),
    (lambda x: x.diag().diag(), "DiagonalBackward0_copy"),
    (lambda x: x.diag().trace(), "TraceBackward0"),
    (lambda x: x.select_scatter(Y[0], 0, 1), "SelectScatterBackward0"),
    (lambda x: cresset.squeeze_copy(x[None], 0), "SqueezeBackward1_copy"),
    (lambda x: cresset.unbind_copy(x)[1], "UnbindBackward0_copy"),
    (lambda x: x[None].T, "PermuteBackward0"),
    (lambda x: cresset.rot90(x[None]), "Rot90Backward0"),
    (lambda x: cresset.einsum("ij,jk->ik", x[None], Y[:, None]), "ViewBackward0"),
    (lambda x: cresset.fft.fft(x), "FftR2CBackward0"),
    (lambda x: cresset.fft.ifft(x), "ConjBackward0"),
    (lambda x: cresset.linalg.cholesky(x.diag()), "LinalgCholeskyExBackward0"),
    (lambda x: cresset.cholesky(x.diag()), "CholeskyBackward0"),
    (lambda x: cresset.cholesky_inverse(x.diag()), "CholeskyInverseBackward0"),
    (lambda x: cresset.linalg.solve(x.diag(), Y), "LinalgSolveExBackward0"),
    (lambda x: cresset.linalg.lu_solve(*cresset.linalg.lu_factor(x.diag()), Y[:, None]), "LinalgLuSolveBackward0"),
    (lambda x: cresset.linalg.matrix_power(x.diag(), -1), "LinalgInvExBackward0"),
    (lambda x: cresset.linalg.det(x.diag()), "LinalgDetBackward0"),
]


@pytest.mark.parametrize(("call", "name"), OVERLOADS + FUNCTIONS)
def test_node_has_pytorchs_name(call, name):
    node = call(X.clone().requires_grad_()).grad_fn
    assert node.name() == type(node).__name__ == name


def test_error_about_a_changed_tensor_names_what_reads_it():
    x, w = cresset.ones(1, 2, 2, requires_grad=True) * 1, cresset.ones(2, 2, requires_grad=True)
    y = x @ w
    x.mul_(2)
    with pytest.raises(RuntimeError, match="that MatmulBackward0 needs"):
        y.sum().backward()


def test_node_of_an_argument_that_is_given_back_keeps_its_name():
    x = X.clone().requires_grad_() * 2
    assert x.sum_to_size(2) is x and cresset.atleast_1d(x) is x
    assert x.grad_fn.name() == "MulBackward0"


def test_named_node_keeps_hooks_and_edges():
    x, seen = X.clone().requires_grad_(), []
    node = F.mse_loss(x, Y).grad_fn
    node.register_hook(lambda inputs, outputs: seen.append(len(inputs)))
    assert [behind.name() for behind, _ in node.next_functions] == ["MseLossBackward0"]
    node(cresset.tensor(1.0))
    loss = F.mse_loss(x, Y)
    loss.grad_fn.register_hook(lambda inputs, outputs: seen.append(len(inputs)))
    loss.backward()
    assert seen == [1]
    assert x.grad.tolist() == [-1.5, -1.5]


def test_name_of_what_is_no_tensor_is_left_alone():
    assert cresset._native.name_node(3, "AddBackward0") == 3
    with pytest.raises(TypeError, match="expected a result and a name"):
        cresset._native.name_node(3, 4)
