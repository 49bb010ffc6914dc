"""torch.fx beside PyTorch: the same programs give the same graphs and the same code, letter by letter."""

import pytest

torch = pytest.importorskip("torch")

EXPRESSIONS = """
torch.relu(x) + 1
x.view(x.shape[0], -1)[:, 1:3]
x.sum(dim=-1, keepdim=True), -x, 2 - x, x @ x, x > 1, x ** 2, abs(x), ~x, x // 2, x % 3, 1 / x, x << 1
torch.cat([x, x], dim=1)
x[..., None], x[1:, None], x[(0, 1)], x.T, x.unbind(0)[0]
torch.nn.functional.relu(x), torch.nn.functional.relu(x, inplace=True)
torch.nn.functional.dropout(x, 0.5, training=True)
torch.nn.functional.layer_norm(x, (3,))
torch.nn.functional.interpolate(x, scale_factor=2)
torch.nn.functional.cross_entropy(x, x)
torch.nn.functional.softmax(x, -1)
torch.nn.functional.pad(x, (1, 1))
torch.nn.functional.max_pool2d(x, 2)
torch.arange(x.shape[0]), torch.zeros_like(x), torch.full((2,), x.shape[0])
x.to(torch.float16), x.to(device=torch.device("cpu")), x.to(torch.device("cuda", 1))
(x > 0) & (x < 1), torch.where(x > 0, x, 0.0), x.masked_fill(x > 0, float("-inf"))
{"a": (x, [x, 1]), "b": None, "c": slice(0, x.shape[0])}
x.foo.bar(1, key=x.shape)
x.new_zeros(2, 3).add_(x)
torch.stack((x, x)).chunk(2), torch.sigmoid(x).unsqueeze(-1)
torch.nn.functional.batch_norm(x, x, x), torch.nn.functional.embedding(x, x), torch.nn.functional.normalize(x)
torch.nn.functional.mse_loss(x, x), torch.nn.functional.hardswish(x), torch.nn.functional.silu(x)
max(1, 2) * x, x.size(), x.dim(), x.numel()
""".strip().splitlines()


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_the_same_code(agree, expression):
    agree(f"torch.fx.symbolic_trace(lambda x: ({expression})).code")


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_the_same_graph(agree, expression):
    agree(f"str(torch.fx.symbolic_trace(lambda x: ({expression})).graph)")


MODULE = """
class Block(torch.nn.Module):
    def __init__(self, c):
        super().__init__()
        self.conv, self.bn, self.drop = torch.nn.Conv2d(c, c, 3, padding=1), torch.nn.BatchNorm2d(c), torch.nn.Dropout(0.1)
        self.register_buffer("scale", torch.ones(1))
        self.gain = torch.nn.Parameter(torch.ones(1))
    def forward(self, x):
        y = torch.nn.functional.relu(self.bn(self.conv(x)), inplace=True)
        return self.drop(y) * self.scale * self.gain + x
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = torch.nn.ModuleList([Block(3), Block(3)])
        self.head = torch.nn.Linear(3, 2)
    def forward(self, x, mask=None, *rest, key: int = 2, **others):
        for block in self.blocks:
            x = block(x)
        x = torch.nn.functional.adaptive_avg_pool2d(x, 1).flatten(1)
        n = x.size(0)
        if mask is not None:
            x = x.reshape(n, -1) * mask
        return torch.nn.functional.log_softmax(self.head(x), dim=-1), {"n": n, "x": [x, x.shape[0] + key]}
torch.manual_seed(0)
net = Net().eval()
x = torch.arange(96.0).view(2, 3, 4, 4) / 50
"""  # noqa: E501


@pytest.mark.parametrize(
    "last",
    [
        (
            "(torch.fx.symbolic_trace(net).code, str(torch.fx.symbolic_trace(net).graph), "
            "str(torch.fx.symbolic_trace(net)))"
        ),
        (
            "[(n.name, n.op, str(n.target) if isinstance(n.target, str) else n.target.__name__, [u.name for u in "
            "n.users]) for n in torch.fx.symbolic_trace(net).graph.nodes]"
        ),
        (
            "[(n.name, [path for path, kind in n.meta['nn_module_stack'].values()]) for n in "
            "torch.fx.symbolic_trace(net).graph.nodes if n.meta.get('nn_module_stack')]"
        ),
        "sorted(torch.fx.symbolic_trace(net).state_dict())",
    ],
    ids=["text", "nodes", "stacks", "state"],
)
def test_the_same_module(agree, last):
    agree(MODULE + last)


def test_the_same_split(agree):
    agree(
        "import importlib\n" + MODULE.replace("mask=None, *rest, key: int = 2, **others", "key=2, mask=None")
        + """
traced = torch.fx.symbolic_trace(net, concrete_args={"mask": None, "key": 2})
count = [0]
def part(node):
    count[0] += 1
    return count[0] // 4
split = importlib.import_module(torch.__name__ + ".fx.passes.split_module").split_module(traced, net, part)
(split.code, split.submod_1.code, [name for name, _ in split.named_children()], torch.equal(split(x)[0], net(x)[0]))
"""
    )  # fmt: skip


PROGRAMS = {
    "concrete": "torch.fx.symbolic_trace(lambda x, b: x + 1 if b else x, concrete_args={'b': True}).code",
    "tree": (
        "g = torch.fx.symbolic_trace(lambda d: d['a'] + d['b'][0], concrete_args={'d': {'a': torch.fx.PH, 'b': "
        "[torch.fx.PH]}})\n(g.code, g({'a': torch.ones(1), 'b': [torch.ones(1)]}))"
    ),
    "unpack": "def f(x):\n    a, b = x.chunk(2)\n    return b, a\ntorch.fx.symbolic_trace(f).code",
    "insert": """
g = torch.fx.Graph()
x = g.placeholder("x")
y = g.call_function(torch.add, (x, 1))
g.output(g.call_method("relu", (y,)))
with g.inserting_after(y):
    n = g.call_function(torch.mul, (y, 2))
y.replace_all_uses_with(n, delete_user_cb=lambda user: user is not n)
g.lint()
(str(g), g.python_code("self").src, [n.name for n in reversed(g.nodes)], len(g.nodes), str(n.all_input_nodes), str(y.users))
""",  # noqa: E501
    "replace": """
def f(x, y):
    z = torch.add(x, y).relu()
    return z + torch.add(z, x).relu()
m = torch.fx.symbolic_trace(f)
found = torch.fx.replace_pattern(m, lambda a, b: torch.add(a, b).relu(), lambda a, b: torch.mul(a, b).sigmoid())
(len(found), m.code, m(torch.ones(2), torch.ones(2)))
""",
    "replace where it is read": """
m = torch.fx.symbolic_trace(lambda a, b: torch.relu(a * 2) + b + torch.relu(b) + a)
torch.fx.replace_pattern(m, lambda x, y: torch.relu(x) + y, lambda x, y: torch.exp(x) - y)
n = torch.fx.symbolic_trace(lambda a, b: (torch.relu(a), torch.neg(a).exp().tanh(), torch.sin(b))[0])
torch.fx.replace_pattern(n, lambda x: torch.neg(x).exp(), lambda x: torch.rsqrt(x))
(m.code, n.code)
""",
    "branch": "torch.fx.symbolic_trace(lambda x: x if x.sum() > 0 else -x)",
    "loop": "torch.fx.symbolic_trace(lambda x: [i for i in x])",
    "length": "torch.fx.symbolic_trace(lambda x: len(x))",
    "erase": "g = torch.fx.Graph()\nx = g.placeholder('x')\ng.output(x)\ng.erase_node(x)",
    "mutation": "g = torch.fx.Graph()\nc = g.call_function(torch.cat, ([g.placeholder('x')],))\nc.args[0].append(1)",
    "names": (
        "g = torch.fx.Graph()\n[g.create_node('call_function', torch.add, name=n).name for n in ('add', 'add', "
        "'add_1', '3d', 'a-b', 'sum', 'class', 'a_1', 'a_1', 'BatchNorm2d')]"
    ),
    "types": (
        "def f(x: torch.Tensor, n: int = 3) -> torch.Tensor:\n    return x * "
        "n\n(torch.fx.symbolic_trace(f).code, str(torch.fx.symbolic_trace(f).graph))"
    ),
}


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_the_same_program(agree, program):
    agree(program)
