"""Sorting, selecting and distinct elements on a CUDA device: stable, nan last, as on the CPU."""

import math

import pytest
from agreeing import agree, agree_with_gradients

import cresset as torch

nan = math.nan
DTYPES = [
    torch.float32,
    torch.float64,
    torch.float16,
    torch.bfloat16,
    torch.int64,
    torch.int32,
    torch.int8,
    torch.uint8,
    torch.bool,
]


def table(*shape, dtype=torch.float32):
    torch.manual_seed(len(shape))
    x = (torch.randn(*shape) * 5).to(dtype)
    if x.is_floating_point():
        x.view(-1)[:3] = torch.tensor([-0.0, 0.0, nan], dtype=dtype)
    return x


def distinct(rows, length, dtype=torch.float32):
    torch.manual_seed(length)
    return (torch.stack([torch.randperm(length) for _ in range(rows)]) - length // 2).to(dtype)


class TestSorting:
    @pytest.mark.parametrize("dtype", DTYPES)
    def test_rows(self, dtype):
        for shape, dim in (((5,), 0), ((3, 300), 1), ((4, 7), 0), ((2, 3, 40), 1)):
            agree(
                lambda x, d=dim: [*x.sort(d, stable=True), *x.sort(d, descending=True, stable=True)],
                table(*shape, dtype=dtype),
            )

    def test_long_rows(self):
        x = table(2, 5000)
        agree(
            lambda x: [
                *x.sort(stable=True),
                *x.sort(descending=True, stable=True),
                x.t().argsort(0, stable=True),
                *x[0].long().sort(stable=True),
            ],
            x,
        )
        agree(lambda x: x.sort(stable=True), table(2, 1500).double())

    def test_edges(self):
        agree(lambda x: [*x.sort(), *x[0, 0].sort(), *x[:0].sort(), *x[:, :1].sort()], table(3, 4).nan_to_num())
        agree_with_gradients(lambda x: x.sort(1).values, distinct(3, 20))


class TestSelecting:
    @pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.float64])
    def test_topk(self, dtype):
        x = distinct(3, 600, dtype)
        for k in (1, 5, 300, 600):
            agree(lambda x, k=k: [*x.topk(k), *x.topk(k, largest=False)], x)
        agree(lambda x: x.t().topk(3, dim=0), x)

    def test_topk_of_few_long_rows_and_of_equal_elements(self):
        agree(lambda x: x.topk(9), distinct(1, 20000))
        agree(lambda x: x.topk(2500), distinct(2, 3000))
        agree(lambda x: x.topk(4).values, torch.tensor([[1.0, nan, 3.0, 3.0, 2.0, 3.0]]))
        assert torch.tensor([2.0, 7.0, 7.0, 7.0], device="cuda").topk(2).indices.tolist() == [1, 2]
        agree_with_gradients(lambda x: x.topk(5).values, distinct(3, 40))

    def test_one_of_each_row(self):
        agree(
            lambda x: [*x.kthvalue(7), *x.median(1), *x.median(0), x.median(), *x.kthvalue(1, 0, keepdim=True)],
            distinct(3, 60),
        )
        rows = torch.tensor([[1.0, nan, 3.0, 3.0, 2.0, 3.0], [4, 5, 6, 7, 8, 9], [nan] * 6])
        agree(lambda x: [x.median(1).values, x.nanmedian(1).values, x.nanmedian(), x.median(), x.mode(1).values], rows)


class TestDistinct:
    @pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.int8, torch.float16])
    def test_elements(self, dtype):
        x = table(20, 30, dtype=dtype) if not dtype.is_floating_point else table(20, 30).round().to(dtype)
        agree(lambda x: [x.unique(), *x.unique(return_inverse=True, return_counts=True)], x)
        agree(lambda x: x.unique_consecutive(return_inverse=True, return_counts=True), x.long().sort().values.to(dtype))
        agree(lambda x: x.unique_consecutive(), x.long().sort().values.to(dtype))

    def test_slices(self):
        torch.manual_seed(1)
        x = torch.randint(0, 3, (12, 2, 3))
        for dtype in (torch.int64, torch.float32, torch.bool):
            agree(
                lambda x: [
                    x.unique(dim=0),
                    *x.unique(dim=0, return_inverse=True, return_counts=True),
                    *x.unique(dim=2, return_inverse=True),
                ],
                x.to(dtype),
            )
            agree(
                lambda x: x.unique_consecutive(dim=0, return_inverse=True, return_counts=True),
                x.to(dtype).repeat_interleave(2, 0),
            )

    def test_nothing(self):
        agree(lambda x: x.unique(return_inverse=True, return_counts=True), torch.empty(0))


@pytest.mark.parametrize("dtype", ["float32", "float16", "int64", "uint8"])
@pytest.mark.parametrize("length", [5, 1000, 4096, 5000])
def test_medians_and_places_of_rows_are_those_of_sorted_rows(dtype, length):
    generator = torch.Generator().manual_seed(3)
    x = torch.randint(0, 50, (40, length), generator=generator).to(getattr(torch, dtype))
    agree(lambda x: x.median(1), x)
    place, in_order = length // 3, x.sort(1, stable=True)
    found = x.cuda().kthvalue(place + 1, 1)
    assert all(torch.equal(f.cpu(), e[:, place]) for f, e in zip(found, in_order, strict=True))
    if x.is_floating_point():
        x[3, length // 2] = float("nan")
        agree(lambda x: x.median(1), x)
        agree(lambda x: x.nanmedian(1), x)


def test_sorted_zeros_keep_their_signs_and_nan_their_bits():
    x = torch.tensor([0.0, -0.0, 1.0, -0.0, 0.0, -1.0] * 3000)
    values, indices = x.cuda().sort()
    assert torch.equal(values.cpu().signbit(), x[indices.cpu()].signbit())
    agree(lambda x: x.sort(descending=True, stable=True), torch.cat([x, torch.tensor([float("nan")])]))


@pytest.mark.parametrize("shape", [(3, 70001), (200000,)])
def test_the_largest_of_long_rows_are_found_in_pieces(shape):
    x = torch.randint(0, 2000, shape, generator=torch.Generator().manual_seed(5)).float()
    for largest in (True, False):
        values, indices = x.cuda().topk(37, largest=largest)
        expected = x.sort(-1, descending=largest, stable=True)
        assert torch.equal(values.cpu(), expected[0][..., :37]) and torch.equal(indices.cpu(), expected[1][..., :37])


@pytest.mark.parametrize("most", [3, 1 << 40])
def test_many_tiles_are_sorted_and_runs_found_in_them(most):
    x = torch.randint(-most, most, (70_001,), generator=torch.Generator().manual_seed(7))
    agree(lambda x: [*x.sort(stable=True), *x.int().sort(descending=True, stable=True), x.unique_consecutive()], x)


def test_rows_of_four_thousand_are_sorted_by_a_block():
    x = torch.randint(0, 900, (7, 3001), generator=torch.Generator().manual_seed(6)).float()
    agree(lambda x: x.sort(1, stable=True), x)


def test_runs_of_many_tiles():
    numbers = torch.randint(0, 3, (1_300_007,), generator=torch.Generator().manual_seed(1))
    for x in (numbers, numbers.bool(), numbers.sort().values, numbers.bfloat16(), numbers.int(), numbers[:4096]):
        assert torch.equal(x.cuda().unique_consecutive().cpu(), x.unique_consecutive())


@pytest.mark.parametrize("n", [3, 300, 4096, 9000])
@pytest.mark.parametrize("descending", [False, True])
def test_digits_that_all_keys_share(n, descending):
    few = torch.arange(n) % 3
    for x in (few, few << 40, (few << 40) + (few << 8), few * 0 - 7, few * 0 + 2**63 - 1, few.double() / 3):
        for found, expected in zip(
            x.cuda().sort(descending=descending, stable=True), x.sort(descending=descending, stable=True), strict=True
        ):
            assert found.cpu().equal(expected)
    x = few.float() * 0 + 1
    x[n // 2] = nan
    found, places = x.cuda().sort()
    assert found.cpu()[-1].isnan() and places.cpu().tolist() == [*range(n // 2), *range(n // 2 + 1, n), n // 2]
