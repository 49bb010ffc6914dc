"""autocast and GradScaler do in cresset what they do in PyTorch: which dtype each operation gives, values near, the
same warnings and settings.
"""

import warnings

import pytest

import cresset

torch = pytest.importorskip("torch")

# Programs in which `x`, `y` are square matrices, `i` an image, `v` a volume, `t` class numbers. Each runs with float32
# and with bfloat16 arguments.
PROGRAMS = """
x @ y | torch.mm(x, y) | torch.bmm(x[None], y[None]) | torch.addmm(x, x, y) | torch.baddbmm(x[None], x[None], y[None]) | torch.addbmm(x, x[None], y[None])
torch.mv(x, x[0]) | torch.dot(x[0], y[0]) | torch.matmul(x, x[0]) | x.matmul(y) | torch.einsum('ij,jk->ik', x, y) | torch.tensordot(x, y, 1)
F.linear(x, y) | F.linear(x, y, x[0]) | F.conv1d(i[0], i[:1, :, :3, 0]) | F.conv2d(i, i[:, :, :2, :2]) | F.conv3d(v, v[:, :, :2, :2, :2])
F.conv_transpose2d(i, i[:, :, :2, :2]) | F.prelu(x, x[0, :1]) | F.scaled_dot_product_attention(i, i, i) | torch.chain_matmul(x, y) | torch.linalg.multi_dot([x, y])
torch.linalg.vecdot(x, y) | torch.outer(x[0], y[0]) | torch.addmv(x[0], x, y[0]) | torch.addr(x, x[0], y[0])
F.mse_loss(x, y) | F.l1_loss(x, y) | F.smooth_l1_loss(x, y) | F.huber_loss(x, y) | F.cross_entropy(x, t) | F.nll_loss(x, t) | F.kl_div(x, y)
F.binary_cross_entropy_with_logits(x, y) | F.binary_cross_entropy(x.sigmoid(), y.sigmoid()) | F.soft_margin_loss(x, y) | F.hinge_embedding_loss(x, y)
F.cosine_embedding_loss(x, y, t.float()) | F.margin_ranking_loss(x, y, y) | F.triplet_margin_loss(x, y, x) | F.multi_margin_loss(x, t) | F.poisson_nll_loss(x, y)
F.multilabel_margin_loss(x, torch.zeros(4, 4, dtype=torch.long)) | F.ctc_loss(x[:, None].log_softmax(2), t[None, :2] + 1, (4,), (2,)) | F.gaussian_nll_loss(x, y, x * x)
F.mse_loss(x, y.float()) | F.multilabel_soft_margin_loss(x, y.sigmoid())
torch.softmax(x, 1) | torch.log_softmax(x, 1) | F.layer_norm(x, (4,)) | F.group_norm(i, 1) | x.sum() | x.mean() | x.exp() | x.log() | x.pow(2) | x.cumsum(0) | x.norm()
x.prod() | x.prod(0) | torch.cdist(x, y) | x.trace() | torch.quantile(x, 0.5) | torch.nanquantile(x, 0.5) | torch.polar(x, y) | torch.view_as_complex(x.view(-1, 2))
F.avg_pool3d(v, 2) | F.adaptive_avg_pool3d(v, 1) | F.avg_pool2d(i, 2) | F.max_pool2d(i, 2) | F.grid_sample(i, i[..., :2].reshape(1, 4, 4, 2)) | F.interpolate(i, scale_factor=2.0)
F.max_unpool2d(*F.max_pool2d(i, 2, return_indices=True), 2) | F.batch_norm(i, None, None, training=True) | F.gelu(x) | F.softplus(x) | F.dropout(x, 0.0) | F.relu(x)
torch.cholesky_inverse(x @ x.t()) | torch.linalg.inv(x) | torch.inverse(x) | torch.linalg.qr(x)[0] | torch.linalg.svd(x)[1] | torch.linalg.eigvalsh(x) | torch.linalg.solve(x, y)
torch.linalg.cholesky(x.float() @ x.float().t() + torch.eye(4)) | torch.linalg.matrix_rank(x) | torch.linalg.cond(x) | torch.linalg.lstsq(x, y)[0]
torch.fft.fft(x) | torch.fft.rfft(x) | torch.fft.ifft2(x) | torch.fft.irfft(x) | torch.stft(i.reshape(-1), 4, return_complex=True, window=torch.ones(4))
torch.cat([x, y.float()]) | torch.cat([x, y]) | torch.stack([x, y.bfloat16()]) | x + y | x * y.float() | torch.where(x > 0, x, y)
torch.mm(x.double(), y.double()) | torch.mm(x.double(), y.double()).dtype | torch.bmm(x.long()[None], y.long()[None]) | F.pad(i, (1, 1, 1, 1)) | F.pad(i[0], (1, 1), mode='reflect') | F.pad(i, (1, 1, 1, 1), mode='replicate') | F.pad(i[0], (1, 1), mode='circular') | F.cosine_similarity(x, y)
"""  # noqa: E501
PROGRAMS = [p.strip() for line in PROGRAMS.strip().splitlines() for p in line.split("|")]


def outcome(lib, program, low, dtype="bfloat16"):
    """(dtype, elements as numbers) of a program inside autocast, or the class of its error."""
    lib.manual_seed(0)
    base = [0.5, -0.25, 1.5, 0.75, -1.0, 0.25, 0.125, 2.0, 0.375, -0.5, 1.25, 1.0, 0.625, -1.5, 0.875, -0.75]
    x = lib.tensor(base).view(4, 4) + 2 * lib.eye(4)
    y = lib.tensor(base[::-1]).view(4, 4)
    names = {"x": x, "y": y, "i": x.view(1, 1, 4, 4) + 0.1, "v": lib.stack([x, y, x + y, x - y]).view(1, 1, 4, 4, 4)}
    if low:
        names = {name: value.to(getattr(lib, dtype)) for name, value in names.items()}
    names |= {"t": lib.tensor([0, 1, 2, 3]), "torch": lib, "F": lib.nn.functional}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            with lib.autocast("cpu", dtype=getattr(lib, dtype)):
                result = eval(compile(program, "<program>", "eval"), names)
        except Exception as error:
            return type(error).__name__, None
    if not isinstance(result, lib.Tensor):
        return str(result), None
    return str(result.dtype), result.to(lib.complex128 if result.is_complex() else lib.float64).reshape(-1).tolist()


@pytest.mark.parametrize("low", [False, True], ids=["float32", "bfloat16"])
@pytest.mark.parametrize("program", PROGRAMS)
def test_the_result_has_the_dtype_of_pytorch_and_is_near(program, low):
    ours, theirs = outcome(cresset, program, low), outcome(torch, program, low)
    assert ours[0] == theirs[0]
    if theirs[1] is not None:
        assert len(ours[1]) == len(theirs[1])
        scale = max([1.0, *(abs(v) for v in theirs[1] if v == v and abs(v) != float("inf"))])
        for a, b in zip(ours[1], theirs[1], strict=True):
            assert a == b or a != a and b != b or abs(a - b) <= 0.02 * scale


@pytest.mark.parametrize(
    "program", ["x @ y", "F.linear(x, y)", "F.cross_entropy(x, t)", "torch.cat([x, y.float()])", "F.mse_loss(x, y)"]
)
def test_float16_is_chosen_as_well(program):
    assert outcome(cresset, program, False, "float16")[0] == outcome(torch, program, False, "float16")[0]


@pytest.mark.parametrize(
    "settings",
    [
        ("cpu",),
        ("cuda",),
        ("xpu",),
        ("mps",),
        ("hpu",),
        ("cpu", "float32"),
        ("cpu", "float16"),
        ("cpu", "float64"),
        ("foo",),
        (3,),
    ],
)
def test_the_region_starts_with_the_same_settings(settings):
    def facts(lib):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            try:
                region = lib.autocast(settings[0], *(getattr(lib, name) for name in settings[1:]))
            except Exception as error:
                return type(error)
        return (
            region.device,
            str(region.fast_dtype),
            region._enabled,
            region._cache_enabled,
            [str(w.message) for w in caught],
        )

    assert facts(cresset) == facts(torch)


def test_the_state_is_told_alike():
    def facts(lib):
        said = []

        def note():
            said.append(
                (
                    lib.is_autocast_enabled("cpu"),
                    lib.is_autocast_enabled(),
                    str(lib.get_autocast_dtype("cpu")),
                    lib.is_autocast_cache_enabled(),
                )
            )

        note()
        with lib.autocast("cpu", dtype=lib.float16, cache_enabled=False):
            note()
            with lib.autocast("cpu", enabled=False):
                note()
            note()
        note()
        lib.set_autocast_enabled("cpu", True)
        lib.set_autocast_dtype("cpu", lib.float16)
        note()
        lib.set_autocast_enabled("cpu", False)
        lib.set_autocast_dtype("cpu", lib.bfloat16)
        said.append((lib.autocast_increment_nesting(), lib.autocast_decrement_nesting(), lib.clear_autocast_cache()))
        said.append([lib.amp.is_autocast_available(kind) for kind in ("cpu", "cuda", "xpu", "meta")])
        return said

    assert facts(cresset) == facts(torch)


def train(lib, scaler_device, dtype):
    x = lib.tensor([[0.5, -0.25, 1.5], [1.0, 0.5, -0.5], [0.25, 0.75, 1.0], [-1.0, 0.5, 0.25]])
    y = lib.tensor([0, 1, 0, 1])
    model = lib.nn.Sequential(lib.nn.Linear(3, 4), lib.nn.Tanh(), lib.nn.Linear(4, 2))
    with lib.no_grad():
        for n, parameter in enumerate(model.parameters()):
            parameter.copy_(((lib.arange(parameter.numel()) * (n + 3)) % 7 - 3).view(parameter.shape) / 4)
    optimizer = lib.optim.SGD(model.parameters(), lr=0.1)
    scaler = lib.amp.GradScaler(scaler_device, init_scale=256.0, growth_interval=3)
    losses = []
    for _ in range(10):
        optimizer.zero_grad()
        with lib.autocast("cpu", dtype=getattr(lib, dtype)):
            loss = lib.nn.functional.cross_entropy(model(x), y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        losses.append(loss.item())
    return losses, scaler.state_dict(), [str(p.grad.dtype) for p in model.parameters()]


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_training_takes_the_same_way(dtype):
    ours, theirs = train(cresset, "cpu", dtype), train(torch, "cpu", dtype)
    assert ours[0] == pytest.approx(theirs[0], rel=0.02)
    assert ours[1:] == theirs[1:]


def test_the_scaler_does_the_same_at_an_overflow():
    def run(lib):
        parameter = lib.nn.Parameter(lib.tensor([2.0]))
        optimizer = lib.optim.SGD([parameter], lr=0.1)
        scaler, said = lib.amp.GradScaler("cpu", init_scale=8.0, growth_interval=2), []
        for factor in (1.0, float("inf"), 1.0, 1.0, float("nan"), 1.0):
            optimizer.zero_grad()
            scaler.scale((parameter * factor).sum()).backward()
            scaler.step(optimizer)
            scaler.update()
            said.append((scaler.get_scale(), scaler._get_growth_tracker(), parameter.item()))
        return said, scaler.state_dict()

    assert run(cresset) == run(torch)


LAYERS = {
    "LSTM": "torch.nn.LSTM(8, 8, batch_first=True)(x)", "GRU": "torch.nn.GRU(8, 8)(x)", "RNN": "torch.nn.RNN(8, 8)(x)",
    "LSTMCell": "torch.nn.LSTMCell(8, 8)(x[0])",
    "MultiheadAttention": "torch.nn.MultiheadAttention(8, 2)(x, x, x)",
    "TransformerEncoderLayer": "torch.nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0)(x)",
    "normed": ("torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.LayerNorm(8), torch.nn.GELU(), "
              "torch.nn.Softmax(-1))(x)"),
    "convolutions": ("torch.nn.Sequential(torch.nn.Conv1d(5, 4, 3), torch.nn.BatchNorm1d(4), torch.nn.ReLU(), "
                    "torch.nn.Flatten(), torch.nn.Linear(24, 2))(x)"),
    "Bilinear": "torch.nn.Bilinear(8, 8, 3)(x, x)", "PReLU": "torch.nn.PReLU()(x)",
    "ConvTranspose1d": "torch.nn.ConvTranspose1d(5, 5, 3)(x)",
    "Embedding": "torch.nn.Sequential(torch.nn.Embedding(4, 8), torch.nn.Linear(8, 8))(torch.tensor([1, 2]))",
}  # fmt: skip


@pytest.mark.parametrize("program", LAYERS.values(), ids=list(LAYERS))
def test_layers_give_the_dtype_of_pytorch_and_near_values(program):
    def run(lib):
        lib.manual_seed(0)  # the same weights in both
        x = lib.randn(2, 5, 8)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with lib.autocast("cpu"):
                result = eval(compile(program, "<program>", "eval"), {"torch": lib, "x": x})
        while not isinstance(result, lib.Tensor):
            result = result[0]
        return str(result.dtype), result.float().reshape(-1).tolist()

    ours, theirs = run(cresset), run(torch)
    assert ours[0] == theirs[0] and ours[1] == pytest.approx(theirs[1], rel=0.05, abs=0.03)


class TestPyTorchsLists:
    """The policy of every operation in the lists that PyTorch tests its own autocast with."""

    # What PyTorch's lists call otherwise, or what is made of operators that are in the lists themselves.
    SPELLED = {
        "_convolution": "convolution", "conv1d": "convolution", "conv2d": "convolution", "conv3d": "convolution",
        "conv_transpose1d": "convolution",
        "conv_transpose2d": "convolution", "conv_transpose3d": "convolution", "nll_loss2d": "nll_loss",
        "reflection_pad1d": "reflection_pad",
        "linalg_vecdot": "vecdot", "linalg_multi_dot": "multi_dot", "__matmul__": "matmul", "__pow__": "pow",
    }  # fmt: skip
    NOT_HERE = {"_addmm_activation", "_native_multi_head_attention", "cudnn_convolution", "cudnn_convolution_transpose"}
    BY_PARTS = {("cpu", "conv_tbc")}  # made of `convolution`, which is low

    def check(self, device, names, words):
        import cresset.linalg
        import cresset.nn.functional.root  # noqa: F401
        from cresset.ops.autocast import policies, read_formulas

        read_formulas()
        for name in set(names) - self.NOT_HERE:
            if (device, name) not in self.BY_PARTS:
                assert policies[self.SPELLED.get(name, name)].get(device) in words, name

    @pytest.mark.parametrize("device", ["cpu", "cuda"])
    def test_they_agree(self, device):
        lists = pytest.importorskip("torch.testing._internal.autocast_test_lists")
        kind = lists.AutocastCPUTestLists if device == "cpu" else lists.AutocastTestLists
        found = vars(kind(torch.device("cpu")))
        named = {key: [row[0] for row in rows] for key, rows in found.items() if isinstance(rows, list)}
        for key, names in named.items():
            if key.endswith(("_16", "_fp16")):
                self.check(device, names, {"lower"})
            elif key.endswith("_fp32"):
                self.check(device, names, {"float32", "accumulate"})
            elif key.endswith("_need_autocast_promote"):
                self.check(device, names, {"promote"})
        assert not named.get("banned") or named["banned"] == ["binary_cross_entropy"]


@pytest.mark.parametrize("with_state", [False, True])
@pytest.mark.parametrize("lower", ["float16", "bfloat16"])
@pytest.mark.parametrize("kept", ["float16", "bfloat16", "float32"])
def test_a_gru_of_another_half_precision_than_autocasts(kept, lower, with_state):
    def dtypes(t):
        kind = getattr(t, kept)
        state = (t.zeros(1, 1, 4, dtype=kind),) if with_state else ()
        with t.autocast("cpu", dtype=getattr(t, lower)):
            output, last = t.nn.GRU(3, 4).to(kind)(t.ones(2, 1, 3, dtype=kind), *state)
        return str(output.dtype), str(last.dtype)

    assert dtypes(cresset) == dtypes(torch)
