"""Private layout: images that lie channel-innermost in memory and must not look it.

A convolution keeps its result so (Note [Private layout] in native/tensor/private_layout.h). Every test here takes such
a tensor and a plain one with the same values and demands the same bits, strides and errors from both.
"""

import pickle
import threading
import warnings

import pytest

import cresset
from cresset import _native, nn
from cresset.nn import functional as F

pytestmark = pytest.mark.cpu_only("the blocked layout of its convolutions")


def private(seed=0, shape=(2, 32, 12, 12), channels=24):
    """A fresh tensor in private layout; the same one for the same arguments."""
    cresset.manual_seed(seed)
    image, weight = cresset.randn(*shape), cresset.randn(channels, shape[1], 3, 3)
    y = F.conv2d(image, weight, padding=1)
    assert _native.has_private_layout(y)
    return y


def plain(*args, **kwargs):
    y = private(*args, **kwargs)
    y.data_ptr()
    assert not _native.has_private_layout(y)
    return y


def same(a, b):
    """The same bits, and the same look."""
    if isinstance(a, cresset.Tensor):
        return (
            isinstance(b, cresset.Tensor)
            and a.shape == b.shape
            and a.dtype == b.dtype
            and a.stride() == b.stride()
            and a.storage_offset() == b.storage_offset()
            and a.contiguous().view(-1).view(cresset.uint8).equal(b.contiguous().view(-1).view(cresset.uint8))
        )
    if isinstance(a, (tuple, list)):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b))
    return a == b or (a != a and b != b)


def test_looks_contiguous():
    y = private()
    assert y.shape == (2, 24, 12, 12) and y.stride() == (24 * 144, 144, 12, 1)
    assert y.is_contiguous() and not y.is_contiguous(memory_format=cresset.channels_last)
    assert y.storage_offset() == 0 and y.contiguous() is y
    assert _native.has_private_layout(y)  # nobody has looked at the memory yet


def test_values_are_those_of_a_plain_convolution():
    cresset.manual_seed(3)
    image, weight = cresset.randn(2, 32, 12, 12), cresset.randn(24, 32, 3, 3)
    padded = F.pad(image, (1, 1, 1, 1))
    y = F.conv2d(image, weight, padding=1)
    for o, i, j in [(0, 0, 0), (5, 3, 11), (23, 11, 11), (11, 6, 2)]:
        by_hand = (padded[0, :, i : i + 3, j : j + 3].double() * weight[o].double()).sum()
        assert abs(y[0, o, i, j].double() - by_hand) < 1e-4


LOOKS = {
    "tolist": lambda y: y.tolist(),
    "repr": repr,
    "numpy": lambda y: y.numpy().tobytes() if cresset_numpy() else None,
    "memoryview": lambda y: bytes(memoryview(y)) if hasattr(y, "__buffer__") else None,
    "storage": lambda y: list(y.untyped_storage().tolist()) if hasattr(y.untyped_storage(), "tolist") else None,
    "view": lambda y: y.view(2, -1)[:, 100:300].clone(),
    "slice": lambda y: y[:, 3:7, ::2].clone(),
    "transpose": lambda y: y.transpose(1, 3).contiguous(),
    "as_strided": lambda y: y.as_strided((5, 7), (31, 3), 11).clone(),
    "view_dtype": lambda y: y.view(cresset.int32),
    "data": lambda y: y.data.clone(),
    "item": lambda y: y[1, 20, 3, 4].item(),
    "iterate": lambda y: [row.clone() for row in y[0]],
    "dlpack": lambda y: cresset.from_dlpack(y),
    "pickle": lambda y: pickle.loads(pickle.dumps(y)),
    "to": lambda y: [y.to(cresset.bfloat16), y.double(), y.to(cresset.float32)],
    "deepcopy": lambda y: __import__("copy").deepcopy(y),
    "channels_last": lambda y: y.to(memory_format=cresset.channels_last),
    "equal": lambda y: y.equal(plain()),
    "share_memory": lambda y: y.share_memory_() if hasattr(y, "share_memory_") else None,
    "set_data": lambda y: with_data(y),
}


def cresset_numpy():
    try:
        import numpy  # noqa: F401
    except ImportError:
        return False
    return True


def with_data(y):
    other = cresset.zeros(1)
    other.data = y
    return other


@pytest.mark.parametrize("look", LOOKS)
def test_every_way_to_look_sees_plain_memory(look):
    assert same(LOOKS[look](private()), LOOKS[look](plain()))


def test_views_made_before_looking_share_the_memory():
    y = private()
    view, detached, flat = y[:, 2], y.detach(), y.view(-1)
    flat.mul_(2)
    expected = plain() * 2
    assert same(y, expected) and same(detached, expected) and same(view.clone(), expected[:, 2].clone())


def test_in_place_on_a_view_changes_the_base():
    y, expected = private(), plain()
    for t in (y, expected):
        t[:, 3].zero_()
        t[0, :, 5:7] += 1
        t.relu_()
    assert same(y, expected)


def test_in_place_pointwise_stays_private_and_counts_versions():
    y = private()
    alias, version = y.detach(), y._version
    y.relu_().mul_(3)
    assert _native.has_private_layout(y) and y._version == version + 2
    expected = plain().relu_().mul_(3)
    assert same(alias, expected) and same(y, expected)


def test_mixed_with_plain_broadcast_and_visible_channels_last():
    others = [
        plain(1),
        plain(1)[:, :1].clone(),
        plain(1)[:, :, :1, :1].clone(),
        plain(1)[0, 0].clone(),
        plain(1).to(memory_format=cresset.channels_last),
        plain(1).transpose(2, 3),
        cresset.tensor(2.0),
        private(1),
        private()[:, 0:1],
        cresset.randn(3, 1, 24, 12, 12),
        cresset.ones(1).expand(2, 24, 12, 12),
    ]
    for other in others:
        copy = other.clone() if other.numel() == other.untyped_storage().nbytes() // 4 else other
        assert same(private() + other, plain() + copy)
        assert same(other * private(), copy * plain())
        assert same(cresset.where(other > 0, private(), other), cresset.where(copy > 0, plain(), copy))


def test_an_operand_that_is_a_part_of_another():
    y, z = private(), plain()
    assert same(y * y[:, :1], z * z[:, :1])
    y, z = private(), plain()
    assert same(y - y.view(2, 24, 144).view(2, 24, 12, 12), z - z)
    y, z = private(), plain()
    y.add_(y[:, :1].clone()), z.add_(z[:, :1].clone())
    assert same(y, z)


def test_out_arguments():
    result = cresset.empty(2, 24, 12, 12)
    cresset.add(private(), 1, out=result)
    assert same(result, plain() + 1)
    y = private()
    cresset.mul(plain(1), 2, out=y)
    assert same(y, plain(1) * 2)
    y = private()
    cresset.relu(y, out=y) if "out" in (cresset.relu.__doc__ or "") else y.relu_()
    assert same(y, plain().relu())


# ---------------------------------------------------------------- the whole registry

NUMBERS = {"int": 1, "int?": None, "float": 0.5, "float?": None, "bool": False, "bool?": None, "Scalar": 0.5}
SKIP = {"_fused_dropout", "native_dropout", "set_", "resize_", "resize_as_"}


def arguments_of(parameters, first, make):
    """Some value for every parameter without a default: `make` for the tensor at `first`, plain ones elsewhere."""
    values, tensors = [], 0
    for text in parameters:
        kind, _, name = text.partition(" ")
        if "=" in name:
            break
        if kind in ("Tensor", "Operand", "Tensor?"):
            values.append(make() if tensors == first else plain(1))
            tensors += 1
        elif kind.startswith("Tensor"):
            values.append([make(), plain(1)] if tensors == first else [plain(1), plain(2)])
            tensors += 1
        elif kind.startswith("int["):
            values.append((1,))
        elif kind in NUMBERS:
            values.append(NUMBERS[kind])
        else:
            return None
    return values if tensors > first else None


def outcome(operator, values):
    cresset.manual_seed(5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return operator(*values), None
        except Exception as error:
            return None, (type(error), str(error))


def signatures():
    for name, operator in sorted(_native.operators().items()):
        if name in SKIP or "empty" in name:  # memory that nobody wrote
            continue
        for signature in operator.signatures:
            inside = signature[signature.index("(") + 1 : signature.rindex(") ->")]
            parameters = inside.split(", *")[0].removeprefix("*").split(", ")
            yield name, operator, [p for p in parameters if p]


def test_every_operator_gives_the_same_on_private_tensors():
    ran = set()
    for name, operator, parameters in signatures():
        for position in (0, 1):
            hidden, seen = arguments_of(parameters, position, private), arguments_of(parameters, position, plain)
            if hidden is None:
                continue
            expected, expected_error = outcome(operator, seen)
            again, _ = outcome(operator, arguments_of(parameters, position, plain))
            if not same(expected, again):
                continue  # arguments that make no sense to an operator that does not check them
            result, error = outcome(operator, hidden)
            assert error == expected_error, f"{name}, argument {position}: another error from a private tensor"
            assert same(result, expected), f"{name}, argument {position}: another result from a private tensor"
            for given, kept in zip(hidden, seen):
                assert same(given, kept), f"{name}: another state of an argument"
            if error is None:
                ran.add(name)
    assert len(ran) > 300, f"only {len(ran)} operators could be called"


# ---------------------------------------------------------------- networks


def network():
    cresset.manual_seed(1)
    return nn.Sequential(
        nn.Conv2d(3, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(inplace=True), nn.Conv2d(32, 32, 3, padding=1),
        nn.BatchNorm2d(32), nn.SiLU(), nn.MaxPool2d(2), nn.Dropout2d(0.25), nn.Conv2d(32, 48, 3, padding=1, stride=2),
        nn.AvgPool2d(2), nn.Conv2d(48, 48, 1, groups=2), nn.Hardtanh(), nn.AdaptiveAvgPool2d(2), nn.Flatten(),
        nn.Linear(192, 10),
    )  # fmt: skip


class Looked(nn.Module):
    """A layer whose result somebody looks at, and whose gradient as well."""

    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, x):
        y = self.layer(x)
        y.detach().data_ptr()
        y.register_hook(lambda grad: (grad.data_ptr(), None)[1])
        return y


def trained(model, steps=3):
    cresset.manual_seed(2)
    x, y = cresset.randn(6, 3, 16, 16, requires_grad=True), cresset.randint(0, 10, (6,))
    for _ in range(steps):
        F.cross_entropy(model(x), y).backward()
    return [x.grad, *[p.grad for p in model.parameters()], *[b.clone() for b in model.buffers()]]


def test_training_gives_the_bits_of_plain_memory():
    looked = nn.Sequential(*[Looked(layer) for layer in network()])
    assert all(same(a, b) for a, b in zip(trained(network()), trained(looked)))


@pytest.mark.parametrize(
    "weight, stride, padding, groups",
    [((8, 24, 1, 1), 1, 0, 1), ((4, 24, 3, 3), 1, 1, 1), ((96, 24, 3, 3), 2, 1, 1), ((24, 1, 3, 3), 1, 1, 24)],
)
def test_convolutions_large_and_small(weight, stride, padding, groups):
    """Small ones are our own kernels, large ones the library's: both read private images, and sizes alone decide."""
    cresset.manual_seed(4)
    kernel, results = cresset.randn(*weight), []
    for x in (private(), plain()):
        y = F.conv2d(x, kernel, None, stride, padding, 1, groups)
        steps = (stride, stride), (padding, padding), (1, 1), groups
        results.append(
            [
                y,
                cresset._convolution_input_gradient(y, kernel, x.shape, *steps),
                cresset._convolution_weight_gradient(y, x, weight, *steps),
                cresset._convolution_bias_gradient(y),
            ]
        )
        y.data_ptr()
    assert same(*results)


def test_residual_and_concatenation():
    y, z = private(), plain()
    for t in (y, z):
        t.requires_grad_()
    results = []
    for t in (y, z):
        u = F.relu(t) + t
        v = cresset.cat([u, t], 1)
        (v.mean((2, 3)) ** 2).sum().backward()
        results.append([u, v, t.grad])
    assert same(*results)


def test_halves_are_private_too():
    cresset.manual_seed(0)
    image, weight = cresset.randn(2, 32, 12, 12).bfloat16(), cresset.randn(24, 32, 3, 3).bfloat16()
    y = F.conv2d(image, weight, padding=1)
    assert _native.has_private_layout(y) and y.dtype == cresset.bfloat16
    wide = F.conv2d(image.float(), weight.float(), padding=1)
    assert same(F.max_pool2d(y, 2), F.max_pool2d(wide.bfloat16(), 2))


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_threads_do_not_change_results(threads):
    before = cresset.get_num_threads()
    try:
        cresset.set_num_threads(threads)
        results = trained(network(), 1)
        cresset.set_num_threads(1)
        assert all(same(a, b) for a, b in zip(results, trained(network(), 1)))
    finally:
        cresset.set_num_threads(before)


def test_threads_may_look_while_others_work():
    """One thread makes plain what another is working on as it lies."""
    model = nn.Sequential(nn.BatchNorm2d(64), nn.ReLU(), nn.Conv2d(64, 64, 3, padding=1)).eval()
    cresset.manual_seed(0)
    image, weight = cresset.randn(4, 64, 32, 32), cresset.randn(64, 64, 3, 3)
    with cresset.no_grad():
        expected = model(F.conv2d(image, weight, padding=1))
        for _ in range(5):
            y = F.conv2d(image, weight, padding=1)
            assert _native.has_private_layout(y)
            results = []
            workers = [threading.Thread(target=lambda: results.append(model(y))) for _ in range(2)]
            for worker in workers:
                worker.start()
            y.data_ptr()
            for worker in workers:
                worker.join()
            assert len(results) == 2 and all(same(result, expected) for result in results)
