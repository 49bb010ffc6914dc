"""A hundred steps of every optimizer on a small CNN, GPT and LSTM, beside PyTorch; states go there and come back."""

import pytest

import cresset

torch = pytest.importorskip("torch")

OPTIMIZERS = {
    "SGD": {"lr": 0.05, "momentum": 0.9},
    "Adam": {"lr": 1e-3, "weight_decay": 1e-4},
    "AdamW": {"lr": 1e-3},
    "Adamax": {"lr": 2e-3},
    "NAdam": {"lr": 1e-3},
    "RAdam": {"lr": 1e-3},
    "Adagrad": {"lr": 1e-2},
    "Adadelta": {"lr": 0.5},
    "RMSprop": {"lr": 1e-3},
    "Rprop": {"lr": 1e-4, "step_sizes": (1e-6, 1e-3)},
    "ASGD": {"lr": 0.05, "t0": 50},
    "Adafactor": {"lr": 2e-3},
    "LBFGS": {"lr": 0.1, "max_iter": 2},
}


def cnn(lib):
    nn = lib.nn

    def block(into, out):
        return [
            nn.Conv2d(into, out, 3, padding=1), nn.BatchNorm2d(out), nn.ReLU(inplace=True), nn.MaxPool2d(2, 2),
            nn.Dropout2d(0.25),
        ]  # fmt: skip

    head = [nn.Flatten(), nn.Linear(24, 16), nn.ReLU(inplace=True), nn.Dropout(0.5), nn.Linear(16, 4)]
    return nn.Sequential(*block(2, 4), *block(4, 6), *head), (6, 2, 8, 8)


def gpt(lib):
    nn, F = lib.nn, lib.nn.functional

    class Block(nn.Module):
        def __init__(self, d, heads):
            super().__init__()
            self.norm1, self.norm2 = nn.LayerNorm(d), nn.LayerNorm(d)
            self.qkv, self.proj = nn.Linear(d, 3 * d), nn.Linear(d, d)
            self.up, self.down = nn.Linear(d, 4 * d), nn.Linear(4 * d, d)
            self.heads = heads

        def forward(self, x):
            b, t, c = x.shape
            parts = self.qkv(self.norm1(x)).split(c, 2)
            q, k, v = (z.view(b, t, self.heads, c // self.heads).transpose(1, 2) for z in parts)
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).contiguous().view(b, t, c)
            x = x + self.proj(y)
            return x + self.down(F.gelu(self.up(self.norm2(x))))

    class Model(nn.Module):
        def __init__(self, vocabulary=16, d=12, heads=2, length=6):
            super().__init__()
            self.token, self.position = nn.Embedding(vocabulary, d), nn.Embedding(length, d)
            self.block = Block(d, heads)
            self.norm, self.head = nn.LayerNorm(d), nn.Linear(d, 4, bias=False)

        def forward(self, x):
            x = self.token(x) + self.position(lib.arange(x.shape[1]))
            return self.head(self.norm(self.block(x))).mean(1)

    return Model(), None


def lstm(lib):
    nn = lib.nn

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.rnn, self.out = nn.LSTM(3, 8, 1, batch_first=True), nn.Linear(8, 4)

        def forward(self, x):
            return self.out(self.rnn(x)[0][:, -1])

    return Model(), (6, 5, 3)


def prepare(lib, make):
    """The model and its data, the same in either library: values come from PyTorch."""
    torch.manual_seed(3)
    source, shape = make(torch)
    tokens = torch.randint(0, 16, (6, 6)) if shape is None else torch.randn(shape)
    target = torch.randint(0, 4, (6,))
    if lib is torch:
        return source, tokens, target
    model, _ = make(lib)
    model.load_state_dict({name: lib.tensor(value.tolist()) for name, value in source.state_dict().items()})
    return model, lib.tensor(tokens.tolist()), lib.tensor(target.tolist())


def curve(lib, make, name, settings, steps=100):
    model, x, y = prepare(lib, make)
    optimizer = getattr(lib.optim, name)(model.parameters(), **settings)
    lib.manual_seed(7)

    def closure():
        optimizer.zero_grad()
        loss = lib.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        return loss

    return [optimizer.step(closure).item() for _ in range(steps)], model, optimizer


@pytest.mark.parametrize("name", OPTIMIZERS)
@pytest.mark.parametrize("make, tolerance", [(cnn, 1e-3), (gpt, 1e-4), (lstm, 1e-4)], ids=["cnn", "gpt", "lstm"])
def test_the_loss_falls_as_pytorchs_does(make, tolerance, name):
    mine, theirs = (curve(lib, make, name, OPTIMIZERS[name])[0] for lib in (cresset, torch))
    assert mine == pytest.approx(theirs, rel=tolerance, abs=tolerance)
    assert mine[-1] < mine[0]


def as_lists(value):
    if isinstance(value, (cresset.Tensor, torch.Tensor)):
        return value.tolist()
    if isinstance(value, dict):
        return {key: as_lists(v) for key, v in value.items()}
    return [as_lists(v) for v in value] if isinstance(value, (list, tuple)) else value


def moved(value, lib):
    """A state with its tensors in the other library."""
    if isinstance(value, (cresset.Tensor, torch.Tensor)):
        dtype = getattr(lib, str(value.dtype).removeprefix("torch."))
        return lib.tensor(value.tolist(), dtype=dtype).reshape(tuple(value.shape))
    if isinstance(value, dict):
        return type(value)((key, moved(v, lib)) for key, v in value.items())
    return type(value)(moved(v, lib) for v in value) if isinstance(value, (list, tuple)) else value


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_states_go_to_pytorch_and_come_back(name):
    settings = OPTIMIZERS[name]
    _, mine, optimizer = curve(cresset, lstm, name, settings, steps=3)
    _, theirs, their_optimizer = curve(torch, lstm, name, settings, steps=1)
    theirs.load_state_dict(moved(mine.state_dict(), torch))
    their_optimizer.load_state_dict(moved(optimizer.state_dict(), torch))
    again, their_again = closure_of(cresset, mine, optimizer), closure_of(torch, theirs, their_optimizer)
    for _ in range(3):
        assert optimizer.step(again).item() == pytest.approx(their_optimizer.step(their_again).item(), rel=1e-4)

    mine.load_state_dict(moved(theirs.state_dict(), cresset))
    assert as_lists(mine.state_dict()) == as_lists(theirs.state_dict())
    fresh = getattr(cresset.optim, name)(mine.parameters(), **settings)
    fresh.load_state_dict(moved(their_optimizer.state_dict(), cresset))
    assert list(fresh.state_dict()["param_groups"][0]) == list(optimizer.state_dict()["param_groups"][0])
    assert fresh.state_dict()["state"].keys() == optimizer.state_dict()["state"].keys()
    loss, their_loss = fresh.step(closure_of(cresset, mine, fresh)), their_optimizer.step(their_again)
    assert loss.item() == pytest.approx(their_loss.item(), rel=1e-4)


def closure_of(lib, model, optimizer):
    _, x, y = prepare(lib, lstm)

    def closure():
        optimizer.zero_grad()
        loss = lib.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        return loss

    return closure


REFUSALS = {
    "an unknown key": lambda lib: lib.nn.Linear(2, 2).load_state_dict(
        {"weight": lib.ones(2, 2), "bias": lib.ones(2), "more": lib.ones(1)}
    ),
    "a missing key": lambda lib: lib.nn.Linear(2, 2).load_state_dict({"weight": lib.ones(2, 2)}),
    "a wrong shape": lambda lib: lib.nn.Linear(2, 2, bias=False).load_state_dict({"weight": lib.ones(3, 2)}),
    "two groups": lambda lib: two_groups(lib),
    "a negative rate": lambda lib: lib.optim.SGD([lib.nn.Parameter(lib.ones(1))], lr=-0.1),
    "no parameters": lambda lib: lib.optim.Adam([]),
    "no tensors": lambda lib: lib.optim.Adam([1.0]),
    "another state": lambda lib: lib.optim.SGD([lib.nn.Parameter(lib.ones(1))], lr=0.1).load_state_dict(
        {"state": {}, "param_groups": []}
    ),
    "a bad beta": lambda lib: lib.optim.Adam([lib.nn.Parameter(lib.ones(1))], betas=(1.0, 0.9)),
    "fused and foreach": lambda lib: lib.optim.Adam([lib.nn.Parameter(lib.ones(1))], fused=True, foreach=True),
}
PHRASES = {
    "an unknown key": 'Unexpected key(s) in state_dict: "more"',
    "a missing key": 'Missing key(s) in state_dict: "bias"',
    "a wrong shape": "size mismatch for weight",
    "two groups": "some parameters appear in more than one parameter group",
    "a negative rate": "Invalid learning rate: -0.1",
    "no parameters": "optimizer got an empty parameter list",
    "no tensors": "optimizer can only optimize Tensors",
    "another state": "loaded state dict has a different number of parameter groups",
    "a bad beta": "Invalid beta parameter at index 0: 1.0",
    "fused and foreach": "`fused` and `foreach` cannot be `True` together",
}


def two_groups(lib):
    p = lib.nn.Parameter(lib.ones(1))
    lib.optim.SGD([{"params": [p]}, {"params": [p]}], lr=0.1)


@pytest.mark.parametrize("what", REFUSALS)
def test_bad_input_is_refused_as_by_pytorch(what):
    raised = []
    for lib in (cresset, torch):
        with pytest.raises(Exception) as error:
            REFUSALS[what](lib)
        raised.append(error.type)
        assert PHRASES[what] in str(error.value)
    assert raised[0] is raised[1]
