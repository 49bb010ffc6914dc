"""The core in a few seconds: one check of each part. Also what runs under the sanitizers, so it needs neither NumPy nor
a compiler.
"""

import copy
import gc
import math
import pickle

import pytest

import cresset as torch


def test_creation():
    assert torch.tensor([[1, 2], [3, 4]]).tolist() == [[1, 2], [3, 4]]
    assert torch.zeros(2).tolist() == [0, 0] and torch.full((2,), 3.5).tolist() == [3.5, 3.5]
    assert torch.arange(2, 8, 2).tolist() == [2, 4, 6] and torch.linspace(0, 1, 3).tolist() == [0, 0.5, 1]
    assert torch.eye(2).tolist() == [[1, 0], [0, 1]]


@pytest.mark.parametrize(
    "dtype",
    [
        torch.float64,
        torch.float16,
        torch.bfloat16,
        torch.int8,
        torch.uint8,
        torch.int64,
        torch.uint64,
        torch.complex64,
        torch.bool,
    ],
    ids=str,
)
def test_arithmetic_in_every_kind_of_dtype(dtype):
    t = torch.ones(5, dtype=dtype)
    assert (t * t).to(torch.int64).tolist() == [1] * 5 and (t + t).dtype == dtype


def test_promotion_and_broadcasting():
    result = torch.ones(2, 1, dtype=torch.int32) + torch.tensor([0.5, 1.5])
    assert result.dtype == torch.float32 and result.tolist() == [[1.5, 2.5], [1.5, 2.5]]


def test_pointwise_functions():
    x = torch.tensor([0.0, 1.0])
    assert torch.exp(x).tolist() == pytest.approx([1, math.e]) and torch.tanh(x).tolist() == pytest.approx(
        [0, math.tanh(1)]
    )
    assert torch.where(x > 0, x, -1).tolist() == [-1, 1] and x.clamp(min=0.5).tolist() == [0.5, 1]


def test_large_pointwise():
    x = torch.ones(100_003)
    assert (x + x).sum().item() == 200_006 and x[::3].mul(2).sum().item() == 2 * len(x[::3])


def test_reductions():
    t = torch.arange(6.0).reshape(2, 3)
    assert t.sum().item() == 15 and t.mean(0).tolist() == [1.5, 2.5, 3.5] and t.max(1).indices.tolist() == [2, 2]
    assert (
        t.std().item() == pytest.approx(1.8708287)
        and t.cumsum(1).tolist() == [[0, 1, 3], [3, 7, 12]]
        and t.softmax(1).sum().item() == pytest.approx(2)
    )


def test_products():
    a, b = torch.arange(6.0).reshape(2, 3), torch.ones(3, 2)
    assert (a @ b).tolist() == [[3, 3], [12, 12]] and torch.einsum("ij,jk->ki", a, b).tolist() == [[3, 12], [3, 12]]
    assert torch.ones(65, 33).mm(torch.ones(33, 17)).sum().item() == 65 * 33 * 17


def test_views_share_memory():
    t = torch.zeros(2, 3)
    t.T[2, 0] = 1
    t[1].add_(2)
    assert t.tolist() == [[0, 0, 1], [2, 2, 2]]


def test_shapes():
    t = torch.arange(6)
    assert t.view(2, 3).permute(1, 0).reshape(-1).tolist() == [0, 3, 1, 4, 2, 5]
    assert (
        torch.cat([t[:2], t[4:]]).tolist() == [0, 1, 4, 5]
        and [len(p) for p in t.split(4)] == [4, 2]
        and t.flip(0).tolist() == [5, 4, 3, 2, 1, 0]
    )


def test_indexing():
    t = torch.arange(12).reshape(3, 4)
    assert (
        t[1:, ::2].tolist() == [[4, 6], [8, 10]]
        and t[[0, 2], [1, 3]].tolist() == [1, 11]
        and t[t > 9].tolist() == [10, 11]
    )
    t[t % 2 == 0] = 0
    t[:, 1] = torch.tensor([7, 8, 9])
    assert t.tolist() == [[0, 7, 0, 3], [0, 8, 0, 7], [0, 9, 0, 11]]


def test_gather_scatter_sort():
    t = torch.tensor([[3, 1, 2]])
    assert t.sort().indices.tolist() == [[1, 2, 0]] and t.gather(1, torch.tensor([[2, 0]])).tolist() == [[2, 3]]
    assert torch.zeros(3).scatter_add(0, torch.tensor([0, 0, 2]), torch.ones(3)).tolist() == [2, 0, 1] and t.topk(
        2
    ).values.tolist() == [[3, 2]]


def test_backward():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    ((x * x).exp().log() * 3).sum().backward()
    assert x.grad.tolist() == pytest.approx([6, 12])


def test_backward_of_products_indices_and_reductions():
    w = torch.ones(3, 2, requires_grad=True)
    y = (torch.arange(6.0).reshape(2, 3) @ w)[:, [0, 0]].max(0).values.sum()
    y.backward()
    assert w.grad.tolist() == [[6, 0], [8, 0], [10, 0]]


def test_second_derivative():
    x = torch.tensor(2.0, requires_grad=True)
    (first,) = torch.autograd.grad(x**3, x, create_graph=True)
    assert torch.autograd.grad(first, x)[0].item() == 12


def test_views_and_in_place_keep_history():
    x = torch.ones(3, requires_grad=True)
    y = x * 2
    y[0] = 5
    y[1:].mul_(3)
    y.sum().backward()
    assert x.grad.tolist() == [0, 6, 6]


def test_a_changed_saved_tensor_is_noticed():
    x = torch.ones(2, requires_grad=True)
    y = x.exp()
    z = y * y
    y.add_(1)
    with pytest.raises(RuntimeError, match="in place|inplace"):
        z.sum().backward()


def test_hooks_and_a_python_function():
    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return 2 * x

        @staticmethod
        def backward(ctx, grad):
            assert ctx.saved_tensors[0].tolist() == [1]
            return 2 * grad

    x = torch.ones(1, requires_grad=True)
    x.register_hook(lambda grad: grad * 10)
    Double.apply(x).backward()
    assert x.grad.tolist() == [20]


def test_no_grad_and_detach():
    x = torch.ones(1, requires_grad=True)
    with torch.no_grad():
        assert not (x * 2).requires_grad
    assert not x.detach().requires_grad and (x * 2).requires_grad


def test_a_deep_graph_is_walked_and_freed():
    x = torch.ones(1, requires_grad=True)
    y = x
    for _ in range(20_000):
        y = y + 1
    y.backward()
    assert x.grad.tolist() == [1]
    del y


def test_random_numbers():
    torch.manual_seed(0)
    first = (
        torch.rand(3),
        torch.randn(40),
        torch.randint(10, (4,)),
        torch.randperm(6),
        torch.bernoulli(torch.full((5,), 0.5)),
    )
    torch.manual_seed(0)
    again = (
        torch.rand(3),
        torch.randn(40),
        torch.randint(10, (4,)),
        torch.randperm(6),
        torch.bernoulli(torch.full((5,), 0.5)),
    )
    assert all(a.equal(b) for a, b in zip(first, again, strict=True))


def test_errors_leave_everything_as_it_was():
    t = torch.arange(3.0)
    for bad, kind in [
        (lambda: t.add_(torch.ones(4)), RuntimeError),
        (lambda: t[9], IndexError),
        (lambda: t.add(1, nope=2), TypeError),
        (lambda: torch.empty(2**62), RuntimeError),
        (lambda: torch.zeros(10**14), RuntimeError),
    ]:
        with pytest.raises(kind):
            bad()
    assert t.tolist() == [0, 1, 2]


def test_copies_and_pickles():
    t = torch.arange(6).reshape(2, 3).T
    assert copy.deepcopy(t).equal(t) and pickle.loads(pickle.dumps(t)).stride() == t.stride()


def test_buffers_and_dlpack():
    t = torch.arange(4, dtype=torch.int32)
    memoryview(t)[1] = 9
    torch.from_dlpack(t)[0] = 5
    assert t.tolist() == [5, 9, 2, 3] and torch.frombuffer(bytearray(4), dtype=torch.int16).tolist() == [0, 0]


def test_subclasses_and_attributes_survive():
    class Mine(torch.Tensor):
        pass

    t = torch.ones(2, requires_grad=True)
    t.note = "here"
    y = t.as_subclass(Mine) * 2
    assert type(y) is Mine
    y.sum().backward()
    assert t.grad.tolist() == [2, 2] and t.note == "here"


def test_storage_and_versions():
    t = torch.zeros(4)
    t.set_(torch.arange(8.0).untyped_storage(), 2, (2, 2), (2, 1))
    t.add_(1)
    assert t.tolist() == [[3, 4], [5, 6]] and t._version == 1 and t.untyped_storage().nbytes() == 32


def test_meta_tensors():
    t = torch.zeros(2, 3, device="meta")
    assert (t.T @ t).shape == (3, 3) and t.sum(1).device.type == "meta"


def test_cycles_are_collected():
    for _ in range(3):
        t = torch.ones(1000, requires_grad=True)
        t.loop = [t]
        y = t * 2
        y.register_hook(lambda grad, y=y: grad)
    del t, y
    assert gc.collect() >= 0


def test_printing():
    assert repr(torch.tensor([1.0, 2.5])) == "tensor([1.0000, 2.5000])"
    assert repr(torch.ones(1, requires_grad=True) * 1).endswith("grad_fn=<MulBackward0>)")


@pytest.mark.parametrize("threads", [1, 3])
def test_results_do_not_depend_on_the_number_of_threads(threads):
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        torch.manual_seed(1)
        x = torch.randn(200_000)
        assert x.sum().item() == Once.total(x) and x.sort().values[0].item() == x.min().item()
    finally:
        torch.set_num_threads(before)


class Once:
    first = None

    @classmethod
    def total(cls, x):
        """The sum that the first run saw."""
        cls.first = x.sum().item() if cls.first is None else cls.first
        return cls.first
