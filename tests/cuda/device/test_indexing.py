"""Reading and writing through indices and masks on a CUDA device: what the CPU gives, and faults for bad indices."""

import pytest
from agreeing import agree, agree_with_gradients

import cresset as torch
from cresset.nn import functional as F

DTYPES = [
    torch.float32,
    torch.float64,
    torch.float16,
    torch.bfloat16,
    torch.int64,
    torch.int8,
    torch.bool,
    torch.complex128,
]


def table(*shape, dtype=torch.float32):
    torch.manual_seed(len(shape))
    return (torch.randn(*shape) * 4).to(dtype)


def numbers(bound, *shape):
    torch.manual_seed(bound)
    return torch.randint(0, bound, shape)


class TestReading:
    @pytest.mark.parametrize("dtype", DTYPES)
    def test_lists_of_rows_and_columns(self, dtype):
        x, i = table(7, 12, dtype=dtype), numbers(7, 5)
        agree(
            lambda x, i: [
                x[i],
                x[:, i],
                x.t()[:, i],
                x[i - 7],
                x[i.int()],
                x[i, i + 2],
                x[i.reshape(5, 1), i],
                x[..., i, None],
            ],
            x,
            i,
        )
        agree(
            lambda x, i: [
                x.index_select(0, i),
                x.index_select(1, i),
                x[1:, ::3].index_select(1, i % 3),
                torch.take(x, i * 9 - 20),
            ],
            x,
            i,
        )

    @pytest.mark.parametrize("dtype", [torch.float32, torch.uint8, torch.complex128])
    def test_a_list_for_each_dimension(self, dtype):
        x, i, j = table(7, 12, dtype=dtype), numbers(7, 31, 67), numbers(12, 31, 67) - 12
        agree(lambda x, i, j: [x[i, j], x.t()[j, i], x[::2][i % 4, j], x[i[1:, 0], j[:-1, 3]]], x, i, j)
        agree(lambda x, i, j: [x[i.flatten()[1:], j.flatten()[1:]], x[i[:0], j[:0]]], x, i, j)
        agree(lambda x, i: x.reshape(7, 3, 4)[i, i % 3, i % 4], x, i)

    def test_a_bad_index_in_one_of_several_lists_is_named(self):
        i = torch.zeros(9, dtype=torch.int64)
        with pytest.raises(IndexError, match="12"):
            table(7, 12).cuda()[i.cuda(), i.index_fill(0, torch.tensor([5]), 12).cuda()].cpu()

    def test_gather(self):
        x = table(5, 6, 3)
        for dim in range(3):
            agree_with_gradients(lambda x, i, dim=dim: x.gather(dim, i), x, numbers(3, 5, 6, 3))
        agree(
            lambda x, i: [x.gather(0, i), x.gather(0, i.int()), x[0, 0, 0].gather(0, i[0, 0, 0])],
            x,
            numbers(1, 2, 4, 3),
        )

    def test_masks(self):
        x = table(7, 12)
        agree(
            lambda x: [
                x[x > 0],
                x[x[:, 0] > 0],
                x[:, x[0] > 0],
                x.masked_select(x[0] > 0),
                (x > 0).nonzero(),
                (x > 99).nonzero(),
                x[0, 0].nonzero(),
            ],
            x,
        )
        agree(lambda x: torch.nonzero(x.t() > 0, as_tuple=True), x)
        agree(lambda x: [(x > 0).nonzero(), x[x > 0.5]], table(9000))

    def test_nothing(self):
        x, none = table(4, 3), torch.empty(0, dtype=torch.int64)
        agree(
            lambda x, i: [
                x[i],
                x.index_select(1, i),
                x.gather(0, i.reshape(0, 3)),
                x[:0].nonzero(),
                x[x > 99],
                torch.take(x, i),
            ],
            x,
            none,
        )

    def test_indices_on_the_host_travel(self):
        x, i = table(4, 3).cuda(), torch.tensor([2, 0])
        assert torch.equal(x[i].cpu(), x.cpu()[i]) and torch.equal(x[x.cpu() > 0].cpu(), x.cpu()[x.cpu() > 0])


class TestEmbedding:
    @pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
    @pytest.mark.parametrize("width", [24, 7])
    def test_rows_and_their_gradient(self, dtype, width):
        agree_with_gradients(
            lambda w, i: F.embedding(i, w), table(40, width, dtype=dtype), numbers(40, 9, 11), tolerance=1e-5
        )

    def test_options(self):
        w, i = table(12, 8), numbers(12, 50)
        agree_with_gradients(lambda w, i: F.embedding(i, w, padding_idx=3), w, i, tolerance=1e-6)
        agree_with_gradients(lambda w, i: F.embedding(i, w, scale_grad_by_freq=True), w, i, tolerance=1e-5)
        agree_with_gradients(lambda w, i: F.embedding(i.int(), w), w, i, tolerance=1e-6)

    def test_one_row_named_often(self):
        agree_with_gradients(
            lambda w, i: F.embedding(i, w),
            table(3, 5),
            torch.cat([numbers(3, 20), torch.full((500,), 1)]),
            tolerance=1e-4,
        )

    def test_gives_the_same_bits_every_time(self):
        w, i = table(9, 33).cuda().requires_grad_(), numbers(9, 700).cuda()
        grad = table(700, 33).cuda()
        first, second = (torch.autograd.grad(F.embedding(i, w), w, grad)[0].cpu() for _ in range(2))
        assert torch.equal(first, second)


class TestWriting:
    def test_scatter(self):
        x, src = table(7, 12), table(3, 12)
        index = torch.stack([torch.randperm(7)[:3] for _ in range(12)], 1)
        agree(
            lambda x, i, s: [x.scatter(0, i, s), x.scatter(0, i, 2.5), x.clone().scatter_(0, i.int(), s)], x, index, src
        )
        agree(
            lambda x, i, s: [x.scatter(0, i, s, reduce="add"), x.scatter(0, i, 2.0, reduce="multiply")],
            x,
            index,
            src,
            tolerance=1e-6,
        )

    @pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.int64, torch.bool, torch.complex64])
    def test_scatter_add_in_order(self, dtype):
        agree(
            lambda x, i, s: x.scatter_add(0, i, s),
            table(5, 12, dtype=dtype),
            numbers(5, 9, 12),
            table(9, 12, dtype=dtype),
        )

    @pytest.mark.parametrize("bound", [3, 50, 4000])
    def test_scatter_add_of_a_long_list(self, bound):
        agree(lambda x, i, s: x.scatter_add(0, i, s), table(bound), numbers(bound, 2500), table(2500), tolerance=1e-3)
        agree(
            lambda x, i, s: x.scatter_add(1, i, s),
            table(2, bound).half(),
            numbers(bound, 2, 300),
            table(2, 300).half(),
            tolerance=2e-2,
        )

    @pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int16, torch.complex64, torch.bool])
    @pytest.mark.parametrize("shape", [(40, 90), (3, 9, 70)])
    def test_scatter_add_to_many_lanes_gives_the_bits_of_the_cpu(self, shape, dtype):
        """Elements of a lane that meet are added in their order, however many there are."""
        x, source = table(*shape, dtype=dtype), table(*shape, dtype=dtype)
        for dim in range(len(shape)):
            for bound in (2, shape[dim]):
                agree(lambda x, i, s, dim=dim: x.scatter_add(dim, i, s), x, numbers(bound, *shape), source)
        turned = x.movedim(0, -1)
        agree(
            lambda x, i, s: x.movedim(0, -1).scatter_add(-1, i.int(), s.movedim(0, -1)),
            x,
            numbers(turned.shape[-1], *turned.shape),
            source,
        )

    def test_a_bad_index_among_many_lanes_is_named(self):
        index = numbers(70, 40, 70)
        index[17, 33] = 70
        with pytest.raises(IndexError, match="out of bounds"):
            table(40, 70).cuda().scatter_add(1, index.cuda(), table(40, 70).cuda()).cpu()

    @pytest.mark.parametrize("reduce", ["sum", "prod", "amax", "amin"])
    def test_reductions_of_many_lanes(self, reduce):
        agree(
            lambda x, i, s: [x.scatter_reduce(d, i % x.shape[d], s, reduce) for d in (0, 1)],
            table(64, 70),
            numbers(64, 64, 70),
            table(64, 70),
        )

    @pytest.mark.parametrize("reduce", ["sum", "prod", "mean", "amax", "amin"])
    def test_scatter_reduce(self, reduce):
        index = numbers(4, 6, 5)
        for include_self in (True, False):
            for dtype in (torch.float32, torch.int64, torch.bfloat16):
                agree(
                    lambda x, i, s, k=include_self: x.scatter_reduce(0, i, s, reduce, include_self=k),
                    table(4, 5, dtype=dtype),
                    index,
                    table(6, 5, dtype=dtype),
                    tolerance=1e-2 if dtype == torch.bfloat16 else 1e-6,
                )

    def test_slices(self):
        x, i, s = table(7, 12), numbers(7, 40), table(40, 12)
        agree(
            lambda x, i, s: [
                x.index_add(0, i, s),
                x.index_add(0, i, s, alpha=2),
                x.t().contiguous().index_add(1, i, s.t()),
            ],
            x,
            i,
            s,
            tolerance=1e-5,
        )
        agree(lambda x, i, s: x.index_add(0, i, s), x.bfloat16(), i, s.bfloat16(), tolerance=5e-2)
        agree(
            lambda x, i, s: [x.index_reduce(0, i, s, "amax"), x.index_reduce(0, i, s, "mean", include_self=False)],
            x,
            i,
            s,
            tolerance=1e-5,
        )
        agree(
            lambda x, s: [
                x.index_copy(0, torch.tensor([4, 1, 6], device=x.device), s[:3]),
                x.index_fill(1, torch.tensor([0, -1], device=x.device), 3.0),
            ],
            x,
            s,
        )

    def test_assignment_by_indices(self):
        def program(x, rows, values):
            a, b, c, d = (x.clone() for _ in range(4))
            a[rows] = values[:, :12]
            b[rows, rows] = values[:, 0]
            c[:, rows] = 5.0
            d.index_put_((rows,), values[:, :12], accumulate=True)
            return [a, b, c, d]

        agree(program, table(7, 12), torch.tensor([4, 0, 6]), table(3, 20))
        many = numbers(7, 90), numbers(12, 90)
        agree(
            lambda x, i, j, v: x.index_put((i, j), v, accumulate=True), table(7, 12), *many, table(90), tolerance=1e-5
        )
        agree(
            lambda x, i, j, v: x.index_put((i, j), v, accumulate=True),
            table(7, 12),
            many[0].repeat(30),
            many[1].repeat(30),
            table(2700),
            tolerance=1e-3,
        )

    def test_assignment_by_masks(self):
        def program(x):
            a, b, c = (x.clone() for _ in range(3))
            a[x > 0] = 5.0
            b[x[:, 0] > 0] = torch.arange(12.0, device=x.device)
            c[:, x[0] > 0] = 1.0
            return [
                a,
                b,
                c,
                x.masked_fill(x > 0, -1),
                x.masked_fill(x[0] > 0, torch.tensor(2.0)),
                x.masked_scatter(x > 0, -x),
            ]

        agree(program, table(7, 12))

    def test_put(self):
        x = table(7, 12)
        agree(lambda x, i, v: x.put(i, v), x, torch.randperm(84)[:9] - 84, table(9))
        agree(lambda x, i, v: x.put(i, v, accumulate=True), x, numbers(84, 9), table(9), tolerance=1e-6)

    def test_gradients(self):
        i = numbers(5, 4)
        agree_with_gradients(lambda x, i: x[i], table(5, 6), i, tolerance=1e-6)
        agree_with_gradients(lambda x, i: x[i, i], table(5, 6), i, tolerance=1e-6)
        agree_with_gradients(lambda x, v, i: x.index_put((i,), v), table(5, 6), table(2, 6), torch.tensor([3, 1]))
        agree_with_gradients(lambda x: x.masked_fill(x > 0, 0), table(5, 6))


class TestFaults:
    """A kernel cannot raise: the error comes when the host next waits."""

    @pytest.mark.parametrize(
        "program",
        [
            lambda x: x.index_select(0, torch.tensor([7], device="cuda")),
            lambda x: x[torch.tensor([0, -8], device="cuda")],
            lambda x: x.gather(1, torch.full((1, 1), 12, device="cuda")),
            lambda x: x.scatter_add(0, torch.full((1, 1), -1, device="cuda"), x),
            lambda x: F.embedding(torch.tensor([7], device="cuda"), x),
        ],
    )
    def test_a_bad_index_is_an_index_error(self, program):
        program(table(7, 12).cuda())
        with pytest.raises(IndexError, match="out of bounds"):
            torch.cuda.synchronize()

    def test_the_device_stays_usable(self):
        x = table(3, 2).cuda()
        x[torch.tensor([3], device="cuda")] = 1.0
        with pytest.raises(IndexError):
            x.cpu()
        assert torch.equal(x.cpu(), table(3, 2))

    def test_memory_of_another_device_is_refused(self):
        with pytest.raises(RuntimeError, match="same device"):
            table(3, 2).cuda().gather(0, torch.zeros(1, 1, dtype=torch.int64))
        with pytest.raises(RuntimeError, match="same device"):
            torch.cat([table(3).cuda(), table(3)])


@pytest.mark.parametrize("count", [3, 257, 1024, 1500])
@pytest.mark.parametrize("places", [1, 50, 3000])
def test_slices_that_meet_are_combined_in_their_order(count, places):
    index = numbers(places, count)
    start, source = table(places, 12), table(count, 12)
    for i in (index, index.int()):
        found = start.cuda().index_add(0, i.cuda(), source.cuda())
        expected = start.clone()
        for row, place in zip(source, index.tolist(), strict=True):
            expected[place] += row
        assert (found.cpu() - expected).abs().max() <= 1e-6 * count * 4
        if count <= 1024:
            assert torch.equal(found.cpu(), expected)


@pytest.mark.parametrize("bins, count", [(7, 5000), (3000, 5000), (40, 40000), (9000, 40000)])
def test_sums_through_an_index_are_as_exact_as_floats_and_the_same_on_every_run(bins, count):
    generator = torch.Generator().manual_seed(4)
    index = torch.randint(0, bins, (count,), generator=generator)
    # Of every magnitude, and of both signs, so that much cancels.
    source = torch.randn(count, generator=generator) * 10.0 ** torch.randint(-30, 30, (count,), generator=generator)
    start = torch.randn(bins, generator=generator)
    runs = [start.cuda().scatter_add(0, index.cuda(), source.cuda()) for _ in range(3)]
    assert all(torch.equal(runs[0], run) for run in runs[1:])
    exact = start.double().scatter_add(0, index, source.double())
    sizes = start.double().abs().scatter_add(0, index, source.double().abs())
    assert ((runs[0].cpu().double() - exact).abs() <= sizes * 2.0**-22).all()
    assert torch.equal(start.cuda().index_add(0, index.cuda(), source.cuda()), runs[0])


@pytest.mark.parametrize("bins, count", [(3, 6000), (3, 40000), (9000, 40000)])
def test_infinities_and_nan_are_summed_as_floats_are(bins, count):
    index = (torch.arange(count) % 3).long()
    source = torch.ones(count)
    source[0], source[3], source[1], source[2] = float("inf"), float("-inf"), float("-inf"), float("nan")
    agree(lambda x, i, s: x.scatter_add(0, i, s), torch.zeros(bins), index, source)


@pytest.mark.parametrize("bins", [2000, 20000])
def test_untouched_elements_keep_the_sign_of_their_zero(bins):
    target = torch.full((bins,), -0.0)
    index = torch.randint(0, bins // 2, (2 * bins,), generator=torch.Generator().manual_seed(1))
    got = target.cuda().scatter_add(0, index.cuda(), torch.ones(2 * bins, device="cuda")).cpu()
    assert got[bins // 2 :].signbit().all()


def test_columns_that_are_taken_twice_add_up():
    x = torch.randn(70, 33, generator=torch.Generator().manual_seed(2))
    index = torch.randint(0, 33, (90,), generator=torch.Generator().manual_seed(3))
    agree_with_gradients(lambda x: x.index_select(1, index.to(x.device)), x, tolerance=1e-5)
    agree_with_gradients(lambda x: torch.nn.functional.pad(x[None], (3, 4), mode="reflect"), x, tolerance=1e-5)


def test_elements_under_a_mask_are_taken_and_put_in_order():
    generator = torch.Generator().manual_seed(8)
    x = torch.randn(9001, generator=generator)
    for mask in (x > 0, torch.zeros(9001, dtype=torch.bool), torch.ones(9001, dtype=torch.bool), x > 2):
        agree(lambda x, m: x[m], x, mask)
        agree(lambda x, m: x.masked_select(m), x, mask)
        agree(lambda x, m, s: x.masked_scatter(m, s), x, mask, torch.arange(9001.0))
        agree(lambda m: m.nonzero(), mask)


def test_counts_of_few_and_of_many_kinds():
    generator = torch.Generator().manual_seed(9)
    for kinds in (5, 9000):
        agree(lambda x: torch.bincount(x), torch.randint(0, kinds, (30000,), generator=generator))
    for bins in (10, 9000):
        agree(lambda x, bins=bins: torch.histc(x, bins, -2, 2), torch.randn(20000, generator=generator))


def test_rows_of_neighbors_are_gathered():
    for dtype in (torch.float32, torch.float16, torch.float64, torch.int8):
        x, i = table(5, 24, dtype=dtype), numbers(24, 5, 16)
        agree(lambda x, i: [x.gather(1, i), x.gather(1, i.int().long()[:, 1:]), x.take_along_dim(i - 24, 1)], x, i)
    with pytest.raises(IndexError, match="gather"):
        table(5, 24).cuda().gather(1, (numbers(24, 5, 16) + 9).cuda())
        torch.cuda.synchronize()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int16, torch.complex64])
def test_runs_of_equal_indices_are_summed_in_their_order(dtype):
    source = table(12, 300, dtype=dtype)
    runs = torch.cat([torch.zeros(40), torch.arange(60) // 7 + 3, torch.full((200,), 17.0)]).long().expand(12, 300)
    mixed = torch.where(torch.arange(12)[:, None] % 2 == 0, runs, runs.flip(1))
    agree(lambda x, i, s: x.scatter_add(1, i, s), table(12, 80, dtype=dtype), mixed, source)
    agree(lambda x, i, s: x.scatter_add(0, i, s), table(80, 12, dtype=dtype), mixed.t().contiguous(), source.t())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("reduce", ["amax", "amin"])
@pytest.mark.parametrize("bins", [7, 9000])
def test_extremes_of_a_long_list(bins, reduce, dtype):
    values = table(40000, dtype=dtype)
    values[::701] = float("nan")
    values[::997] = float("inf")
    values[::991] = -float("inf")
    for given in (values, -values):
        agree(lambda x, i, s: x.scatter_reduce(0, i, s, reduce), table(bins, dtype=dtype), numbers(bins, 40000), given)
    agree(
        lambda x, i, s: x.scatter_reduce(0, i, s, reduce, include_self=False),
        table(bins, dtype=dtype), numbers(bins, 40000), table(40000, dtype=dtype),
    )  # fmt: skip


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
@pytest.mark.parametrize("width", [8, 5])
@pytest.mark.parametrize("mode", ["sum", "mean"])
def test_bags_of_rows_are_those_of_the_cpu_with_their_gradients(mode, width, dtype):
    tolerance = 2e-2 if dtype is torch.bfloat16 else 1e-6
    agree_with_gradients(
        lambda w, i: torch.nn.functional.embedding_bag(i, w, mode=mode),
        table(11, width, dtype=dtype),
        numbers(11, 70, 7),
        tolerance=tolerance,
    )


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("mode", ["sum", "mean"])
def test_bags_between_offsets_are_those_of_the_cpu_with_their_gradients(mode, last):
    agree_with_gradients(
        lambda w, i, o: torch.nn.functional.embedding_bag(i, w, o, mode=mode, include_last_offset=last),
        table(11, 6),
        numbers(11, 40),
        torch.tensor([0, 3, 3, 17, 30]),
        tolerance=1e-6,
    )


def test_a_row_that_is_not_there_is_named_by_its_bag():
    with pytest.raises(IndexError, match="11"):
        torch.nn.functional.embedding_bag(torch.tensor([[0, 11]]).cuda(), table(11, 4).cuda()).cpu()
