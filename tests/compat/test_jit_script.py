"""torch.jit.script on both libraries: the same source gives the same results, and the same class of error."""

import importlib.util
import itertools

import pytest

torch = pytest.importorskip("torch")
import cresset  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning")  # PyTorch's word of its own functions

HEAD = """import math
from enum import Enum
from typing import Any, Dict, List, NamedTuple, Optional, Tuple, Union

import {library} as torch
import {library}.nn as nn
import {library}.nn.functional as F
from {library} import Tensor

"""
_numbers = itertools.count()


def load(library, source, folder):
    """The module with this source, on a library."""
    name = f"program_{next(_numbers)}"
    file = folder / f"{name}.py"
    file.write_text(HEAD.format(library=library.__name__) + source)
    spec = importlib.util.spec_from_file_location(name, file)
    module = importlib.util.module_from_spec(spec)
    import sys

    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def plain(value):
    """A result as numbers and text, with the dtype of tensors."""
    if isinstance(value, (torch.Tensor, cresset.Tensor)):
        return ["tensor", str(value.dtype), value.tolist()]
    if isinstance(value, tuple):
        return ("tuple", *map(plain, value))
    if isinstance(value, list):
        return [plain(one) for one in value]
    if isinstance(value, dict):
        return {key: plain(one) for key, one in value.items()}
    return str(value) if not isinstance(value, (int, float, str, bool, type(None))) else value


def close(first, second):
    if isinstance(first, float) and isinstance(second, float):
        return (
            first == second
            or (first != first and second != second)
            or abs(first - second) <= 1e-5 * max(1.0, abs(first))
        )
    if isinstance(first, (list, tuple)) and type(first) is type(second):
        return len(first) == len(second) and all(map(close, first, second))
    if isinstance(first, dict) and isinstance(second, dict):
        return list(first) == list(second) and all(close(first[key], second[key]) for key in first)
    return type(first) is type(second) and first == second


X = "torch.arange(6.0).reshape(2, 3) - 2"
PROGRAMS = {
    "arithmetic": (("def f(x: Tensor, n: int, r: float):\n    return 1 - x, 2 / (x + 9), x // 2, n // 2, n % 3, r ** "
                   "2, n / 2, -x, x % 2, 2 ** x, n ** 2, not n > 2\n"), f"{X}, 7, 1.5"),
    "branches": (("def f(x: Tensor):\n    if x.sum() > 0:\n        return x + 1\n    elif x.sum() < -100:\n        y = "
                 "x * 2\n    else:\n        y = x - 1\n    return y\n"), X),
    "early_exits": (
        "def f(x: Tensor, n: int):\n    for i in range(n):\n        if i == 1:\n            continue\n        for j "
        "in range(3):\n            if j == 2:\n                break\n            if i + j == 4:\n"
        "                return x * 100\n            x = x + j\n        if i > 5:\n            break\n    return x\n",
        f"{X}, 3", f"{X}, 5", f"{X}, 9",
    ),
    "while_and_else": (("def f(n: int) -> int:\n    total = 0\n    while n > 0:\n        if n % 2 == 0:\n            "
                       "total += n\n        n -= 1\n    else_ = total\n    return else_\n"), "7"),
    "optional": (("def f(x: Tensor, y: Optional[Tensor] = None, k: Optional[int] = None):\n    if y is None:\n        "
                 "y = x\n    if k is not None and k > 2:\n        y = y * k\n    return x + y\n"), X, f"{X}, {X}, 5"),
    "lists": (
        "def f(xs: List[int]):\n    ys = [x * 2 for x in xs]\n    ys.append(7)\n    ys[0] = 5\n    ys.extend([1, "
        "2])\n    ys.sort()\n    ys.reverse()\n    last = ys.pop()\n"
        "    return ys, last, len(ys), ys[1:3], ys[-1], 5 in ys, sum(ys), max(ys), min(ys), [1] * 3, ys + [9], "
        "ys.index(7), ys.count(2), sorted(ys)\n",
        "[1, 2, 3]",
    ),
    "dicts": (
        'def f(d: Dict[str, int]):\n    d["z"] = 3\n    total = 0\n    for k in d:\n        total += d[k]\n    for k, '
        'v in d.items():\n        total += v + len(k)\n    e = {k: v * 2 for k, v in d.items()}\n'
        '    return total, list(d.keys()), list(d.values()), d.get("a", 9), d.get("q", 9), "a" in d, len(d), e, '
        'd.pop("z")\n',
        '{"a": 1, "b": 2}',
    ),
    "text": (
        'def f(s: str, n: int):\n    t = f"{s}-{n}!"\n    u = "{} and {}".format(n, s)\n    return t, u, s.upper(), '
        's.replace("a", "b"), s[1:], s[0], len(s), s.split("a"), ",".join(["x", "y"]), s == "abca", s.startswith("a"), '
        's + "q", "%d %s" % (n, s), s.find("c"), s.strip(), int("12"), str(n), float("1.5"), "b" in s\n',
        '"abca", 3',
    ),
    "tuples": (("def f(x: Tensor) -> Tuple[Tensor, Tuple[int, str]]:\n    a, (b, c) = x, (1, 'q')\n    p = (a, (b, "
               "c))\n    first, *rest = (1, 2, 3)\n    return p[0] + rest[1], p[1]\n"), X),
    "indexing": (
        ("def f(x: Tensor, i: int, idx: Tensor):\n    y = x.clone()\n    y[0] = 1\n    y[:, 1] = 2.5\n    y[1, 2] += "
        "4\n    y[idx] = 7.0\n    return y, x[i], x[:, 1:], x[..., 0], x[None], x[0, -1], x[idx], x[[1, 0]], x[x > "
        "0], x[:, ::2], x[..., None], x[1:, None, :2]\n"),
        f"{X}, 1, torch.tensor([1])",
    ),
    "tensor_methods": (
        "def f(x: Tensor):\n    v, i = x.max(dim=1)\n    s = x.shape\n    return x.view(3, 2), x.sum(dim=-1, "
        "keepdim=True), x.mean(), v, i, s[0], x.size(1), x.t(), x.permute(1, 0), x.float().dtype == torch.float32, "
        "x.dim(), "
        "x.numel(), x.unsqueeze(0).squeeze(0), x.std(), x.topk(2).values, x.clamp(min=0), x.reshape(-1), x.expand(2, "
        "2, 3), x.to(torch.int64), torch.cat([x, x], dim=1), torch.stack([x, x]), x.argmax(dim=0), x.transpose(0, 1)\n",
        X,
    ),
    "in_place": (("def f(x: Tensor):\n    y = x.clone()\n    y += 1\n    y *= 2\n    y.relu_()\n    y.add_(x, "
                 "alpha=2)\n    return y\n"), X),
    "making": (
        ("def f(n: int):\n    return torch.zeros(n, 2), torch.ones([n]), torch.arange(n), torch.full((2,), 3.5), "
        "torch.tensor([1, 2]), torch.tensor([[1.0]]), torch.eye(n), torch.zeros(2, dtype=torch.int64), "
        "torch.linspace(0, 1, 3), torch.tensor(3)\n"),
        "3",
    ),
    "math": (("def f(a: float, n: int):\n    return math.sqrt(a), math.floor(a), math.ceil(a), math.log(a), math.pi, "
             "math.exp(a), abs(-n), round(a), int(a), float(n), bool(n), max(a, 2.0), min(n, 3), math.inf, divmod(n, "
             "3)\n"), "2.5, 7"),
    "ternary_and_logic": (("def f(a: int, b: Optional[int]):\n    x = 1 if a > 2 else 5\n    y = b if b is not None "
                          "else -1\n    return x, y, a > 1 and (b is not None and b > 2), a > 100 or b is None, 1 < a "
                          "< 10\n"), "3, None", "3, 4"),
    "enumerate_and_zip": (("def f(xs: List[int], ys: List[float]):\n    t = 0.0\n    for i, (x, y) in "
                          "enumerate(zip(xs, ys)):\n        t += i * x * y\n    for i, x in enumerate(xs, 1):\n       "
                          " t += i\n    for i in range(1, 7, 2):\n        t += i\n    return t\n"),
                          "[1, 2, 3], [0.5, 1.5]"),
    "union_and_isinstance": (("def f(x: Union[int, str, List[int]]):\n    if isinstance(x, int):\n        return x + "
                             "1\n    elif isinstance(x, str):\n        return len(x)\n    else:\n        return "
                             "sum(x)\n"), "3", "'abc'", "[1, 2]"),
    "functions_call_functions": (("def g(x: Tensor, k: int = 3) -> Tensor:\n    return x * k\n\ndef h(x):\n    # type: "
                                 "(Tensor) -> Tensor\n    return g(x) + g(x, k=2)\n\ndef f(x: Tensor):\n    return "
                                 "h(x)\n"), X),
    "named_tuple_and_enum": (
        ("class P(NamedTuple):\n    x: Tensor\n    n: int = 4\n\nclass C(Enum):\n    RED = 1\n    BLUE = 2\n\ndef f(x: "
        "Tensor, k: int):\n    p = P(x, k)\n    q = P(x)\n    c = C.RED if k > 2 else C.BLUE\n    return p.x + p.n + "
        "q.n, c.value, c.name, c == C.RED\n"),
        f"{X}, 3",
    ),
    "script_class": (
        "@torch.jit.script\nclass Counter:\n    def __init__(self, start: int):\n        self.n = start\n        "
        "self.seen: List[int] = []\n\n    def add(self, k: int) -> int:\n        self.n += k\n        "
        "self.seen.append(k)\n        return self.n\n\n"
        "def f(k: int):\n    c = Counter(10)\n    c.add(k)\n    return c.add(k), c.seen\n",
        "3",
    ),
    "no_grad": ("def f(x: Tensor):\n    with torch.no_grad():\n        y = x * 2\n    return y\n",
        "torch.ones(2, requires_grad=True)"),
    "fork_and_wait": (("def g(x: Tensor, k: int):\n    return x + k\n\ndef f(x: Tensor):\n    a = torch.jit.fork(g, x, "
                      "1)\n    b = torch.jit.fork(g, x, k=2)\n    return torch.jit.wait(a) * torch.jit.wait(b)\n"), X),
    "is_scripting": (("def f(x: Tensor):\n    if torch.jit.is_scripting():\n        return x + 1\n    return "
                     "print_it(x)\n"), X),
    "annotate": (("def f(n: int):\n    xs = torch.jit.annotate(List[int], [])\n    ys: List[Tensor] = []\n    d: "
                 "Dict[str, int] = {}\n    z = torch.jit.annotate(List[float], [])\n    for i in range(n):\n        "
                 "xs.append(i)\n    z.append(1.5)\n    return xs, ys, d, z\n"), "3"),
    "functional": (("def f(x: Tensor):\n    return F.relu(x), F.softmax(x, dim=1), F.gelu(x), F.linear(x, "
                   "torch.ones(2, 3)), F.dropout(x, 0.5, False), F.layer_norm(x, [3]), F.mse_loss(x, x + 1), F.pad(x, "
                   "[1, 1]), F.one_hot(torch.tensor([0, 2])), F.normalize(x, dim=1), F.cross_entropy(x, "
                   "torch.tensor([0, 1])), F.silu(x), F.log_softmax(x, 1), F.leaky_relu(x, 0.2), F.elu(x)\n"), X),
    "any": ("def f(x: Any):\n    if isinstance(x, int):\n        return x + 1\n    return -1\n", "3", "'a'"),
    "unpack_shape": ("def f(x: Tensor):\n    a, b = x.shape\n    c, d = x.unbind(0)\n    return a * b, c + d\n", X),
    "delete_and_assert": (("def f(d: Dict[str, int], n: int):\n    assert n > 0, 'positive'\n    del d['a']\n    "
                          "return d\n"), "{'a': 1, 'b': 2}, 1"),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_function_gives_what_pytorch_gives(name, tmp_path):
    source, *calls = PROGRAMS[name]
    for call in calls:
        results = []
        for library in (torch, cresset):
            module = load(library, source, tmp_path)
            scripted = library.jit.script(module.f)
            args = eval(f"({call},)", {"torch": library})  # the calls of the table above
            results.append(plain(scripted(*args)))
        assert close(*results), (call, results)


MODULES = {
    "submodules": (
        "class M(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.layers = "
        "nn.ModuleList([nn.Linear(3, 3) for _ in range(2)])\n        self.named = nn.ModuleDict({'a': nn.Tanh(), 'b': "
        "nn.ReLU()})\n"
        "        self.seq = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Dropout(0.5))\n        self.scale = 2.0\n    "
        "    self.register_buffer('shift', torch.ones(1))\n        self.none = None\n\n"
        "    def forward(self, x: Tensor) -> Tensor:\n        for i, layer in enumerate(self.layers):\n            x "
        "= layer(x) * (i + 1)\n        for name, module in self.named.items():\n            x = module(x)\n        if "
        "self.none is None:\n            x = x * self.scale\n"
        "        if self.training:\n            x = x + 100\n        return self.seq(self.helper(x)) + self.shift + "
        "len(self.layers)\n\n    def helper(self, x: Tensor) -> Tensor:\n        return self.layers[0](x)\n"
    ),
    "state": (
        "class M(nn.Module):\n    count: int\n\n    def __init__(self):\n        super().__init__()\n        "
        "self.count = 0\n        self.names = torch.jit.annotate(List[str], ['a'])\n        "
        "self.register_buffer('total', torch.zeros(3))\n\n"
        "    def forward(self, x: Tensor):\n        self.count += 2\n        self.names.append('x')\n        "
        "self.total += x.sum(0)\n        self.total = self.total * 2\n        return self.total, self.count, "
        "self.names\n"
    ),
    "constants": (
        "class M(nn.Module):\n    __constants__ = ['k']\n    final: torch.jit.Final[bool]\n\n    def "
        "__init__(self):\n        super().__init__()\n        self.k, self.final = 3, True\n\n    def forward(self, "
        "x: Tensor):\n"
        "        if self.final:\n            return x * self.k\n        else:\n            return 'never compiled', "
        "undefined_name\n"
    ),
    "ignored_and_unused": (
        "class M(nn.Module):\n    def forward(self, x: Tensor) -> Tensor:\n        if x.sum() > 1e9:\n            "
        "return self.never(x)\n        return self.outside(x, 2) + 1\n\n    @torch.jit.ignore\n    def outside(self, "
        "x: Tensor, k: int) -> Tensor:\n"
        "        return torch.tensor(x.tolist()) * k\n\n    @torch.jit.unused\n    def never(self, x: Tensor) -> "
        "Tensor:\n        return eval('x')\n"
    ),
    "properties_and_static": (
        "class M(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.fc = nn.Linear(3, "
        "3)\n\n    @property\n    def width(self) -> int:\n        return self.fc.weight.size(0)\n\n    "
        "@staticmethod\n    def twice(x: Tensor) -> Tensor:\n        return x * 2\n\n"
        "    def forward(self, x: Tensor):\n        return self.twice(self.fc(x)) * self.width\n"
    ),
    "lstm": (
        "class M(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.rnn = nn.LSTM(3, 4, "
        "batch_first=True)\n\n    def forward(self, x: Tensor, state: Optional[Tuple[Tensor, Tensor]] = None):\n      "
        "  y, (h, c) = self.rnn(x.unsqueeze(0), state)\n        return y, h, c\n"
    ),
    "inheritance": (
        "class Base(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.fc = nn.Linear(3, "
        "3)\n\n    def forward(self, x: Tensor) -> Tensor:\n        return self.head(self.fc(x))\n\n    def "
        "head(self, x: Tensor) -> Tensor:\n        return x\n\n"
        "class M(Base):\n    def head(self, x: Tensor) -> Tensor:\n        return torch.relu(x) + 1\n"
    ),
    "function_attribute": (
        "class M(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.act = F.relu\n        "
        "self.other = torch.sigmoid\n\n    def forward(self, x: Tensor) -> Tensor:\n        return self.act(x) + "
        "self.other(x)\n"
    ),
    "hooks": (
        "def before(self, input: Tuple[Tensor]) -> Tuple[Tensor]:\n    return (input[0] + 1,)\n\ndef behind(self, "
        "input: Tuple[Tensor], output: Tensor) -> Tensor:\n    return output * 10\n\nclass M(nn.Module):\n    def "
        "__init__(self):\n        super().__init__()\n        self.fc = nn.Linear(3, 3)\n"
        "        self.fc.register_forward_pre_hook(before)\n        self.fc.register_forward_hook(behind)\n\n    def "
        "forward(self, x: Tensor) -> Tensor:\n        return self.fc(x)\n"
    ),
    "interface": (
        "@torch.jit.interface\nclass Layer(nn.Module):\n    def forward(self, input: Tensor) -> Tensor:\n        "
        "pass\n\nclass M(nn.Module):\n    inner: Layer\n\n    def __init__(self):\n        super().__init__()\n       "
        " self.inner = nn.Linear(3, 2)\n\n    def forward(self, x: Tensor) -> Tensor:\n        return "
        "self.inner.forward(x)\n"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", MODULES)
@pytest.mark.parametrize("training", [True, False])
def test_a_module_gives_what_pytorch_gives(name, training, tmp_path):
    results, state = [], None
    for library in (torch, cresset):
        model = load(library, MODULES[name], tmp_path).M()
        if state is None:
            state = {key: value.tolist() for key, value in model.state_dict().items()}
        model.load_state_dict({key: library.tensor(value) for key, value in state.items()})
        scripted = library.jit.script(model)
        scripted.train(training)
        library.manual_seed(0)
        results.append(plain([scripted(library.arange(6.0).reshape(2, 3) - 2) for _ in range(2)]))
    assert close(*results), results


REFUSED = {
    "python_module": "def f(x: Tensor):\n    import random\n    return x + random.random()\n",
    "generator": "def f(x: Tensor):\n    yield x\n",
    "lambda": "def f(x: Tensor):\n    g = lambda y: y\n    return g(x)\n",
    "try": "def f(x: Tensor):\n    try:\n        return x\n    except ValueError:\n        return x\n",
    "undefined": "def f(x: Tensor):\n    return y\n",
    "star_args": "def f(*args):\n    return args\n",
    "keyword_args": "def f(x: Tensor, **kwargs):\n    return x\n",
    "class_inside": "def f(x: Tensor):\n    class A:\n        pass\n    return x\n",
    "wrong_type": "def f(x: int, s: str):\n    return x + s\n",
    "wrong_annotation": "def f(x: int) -> str:\n    return x\n",
    "unknown_method": "def f(x: Tensor):\n    return x.no_such_method()\n",
    "not_in_all_branches": "def f(x: int):\n    if x > 2:\n        y = 1\n    return y\n",
    "branch_types": "def f(x: int):\n    y = 1\n    if x > 2:\n        y = 'a'\n    return y\n",
    "loop_types": "def f(x: int):\n    y = None\n    for i in range(x):\n        y = i\n    return y\n",
    "returns": "def f(x: int):\n    if x > 2:\n        return 1\n    return 'a'\n",
    "optional_use": "def f(x: Optional[Tensor]):\n    return x + 1\n",
    "global_number": "K = 3\ndef f(x: Tensor):\n    return x + K\n",
    "break_outside": "def f(x: Tensor):\n    x.append(1)\n    return x\n",
    "missing_argument": "def g(x: Tensor, k: int):\n    return x\ndef f(x: Tensor):\n    return g(x)\n",
    "recursion": "def f(x: int):\n    return f(x - 1)\n",
    "set": "def f(x: int):\n    return {x, 2}\n",
    "bad_unpack": "def f(x: Tensor):\n    a, b = (1, 2, 3)\n    return a\n",
    "async": "async def f(x: Tensor):\n    return x\n",
    "unknown_operator": "def f(x: Tensor):\n    return torch.add(x, 'a')\n",
    "delete_attribute": "def f(x: Tensor):\n    del x.foo\n    return x\n",
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_pytorch_refuses_is_refused_with_the_same_class(name, tmp_path):
    errors = []
    for library in (torch, cresset):
        module = load(library, REFUSED[name], tmp_path)
        with pytest.raises(Exception) as caught:
            library.jit.script(module.f)
        errors.append(caught.value)
    theirs, ours = errors
    classes = (RuntimeError, torch.jit.frontend.NotSupportedError)
    mine = (RuntimeError, cresset.jit.frontend.NotSupportedError)
    expected = [isinstance(theirs, one) for one in classes]
    assert [isinstance(ours, one) for one in mine] == expected, (type(theirs), theirs, type(ours), ours)
