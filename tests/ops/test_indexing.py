"""Reading through indices and masks."""

import pytest

import cresset
from cresset.autograd import gradcheck, gradgradcheck

X = cresset.arange(12).reshape(3, 4)


def index(*values):
    return cresset.tensor(values)


def test_an_index_takes_rows_and_negative_ones_count_from_the_end():
    assert X[index(2, 0, -1)].tolist() == [[8, 9, 10, 11], [0, 1, 2, 3], [8, 9, 10, 11]]


def test_indices_broadcast_together():
    assert X[cresset.tensor([[0], [2]]), index(1, 3)].tolist() == [[1, 3], [9, 11]]


def test_the_indices_dimensions_stand_in_place_if_adjacent_and_in_front_if_not():
    x = cresset.zeros(2, 3, 4, 5)
    i = cresset.zeros(7, dtype=cresset.int64)
    assert x[:, i, i].shape == (2, 7, 5)
    assert x[:, i, :, i].shape == (7, 2, 4)
    assert x[i, :, :, i].shape == (7, 3, 4)


def test_masks_take_the_elements_where_they_hold():
    assert X[X % 2 == 0].tolist() == [0, 2, 4, 6, 8, 10]
    assert X[cresset.tensor([True, False, True])].tolist() == [[0, 1, 2, 3], [8, 9, 10, 11]]
    assert X[:, cresset.tensor([True, False, False, True])].tolist() == [[0, 3], [4, 7], [8, 11]]
    assert X[cresset.tensor([True, False, True]), index(1, 3)].tolist() == [1, 11]


@pytest.mark.parametrize("layout", [lambda x: x, lambda x: x.t().contiguous().t(), lambda x: x.repeat(1, 2)[:, :4]])
def test_every_layout_reads_the_same(layout):
    x = layout(X)
    assert x[index(2, 1)].tolist() == [[8, 9, 10, 11], [4, 5, 6, 7]]
    assert x[:, index(3, 0)].tolist() == [[3, 0], [7, 4], [11, 8]]
    assert x[x > 8].tolist() == [9, 10, 11]
    assert x.gather(1, cresset.tensor([[3], [0], [1]])).tolist() == [[3], [4], [9]]
    assert x.index_select(0, index(1, 1)).tolist() == [[4, 5, 6, 7], [4, 5, 6, 7]]
    assert x.take(index(4, -1)).tolist() == [4, 11]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: X[index(5)], IndexError, "index 5 is out of bounds for dimension 0 with size 3"),
        (lambda: X[:, index(-5)], IndexError, "index -5 is out of bounds for dimension 1 with size 4"),
        (
            lambda: X[index(0, 1), index(0, 1, 2)],
            IndexError,
            r"could not be broadcast together with shapes \[2\], \[3\]",
        ),
        (lambda: X[cresset.tensor([1.0])], IndexError, "must be long, int, byte or bool tensors"),
        (lambda: X[cresset.tensor([True, False])], IndexError, r"The shape of the mask \[2\] at index 0"),
        (lambda: X.index_select(0, index(3)), IndexError, "index out of range in self"),
        (lambda: X.gather(0, cresset.tensor([[3]])), RuntimeError, "index 3 is out of bounds for dimension 0"),
        (lambda: X.gather(0, cresset.tensor([[0.0]])), RuntimeError, "Expected dtype int32/int64 for index"),
        (lambda: X.gather(0, index(0)), RuntimeError, "same number of dimensions"),
        (lambda: X.take(index(12)), IndexError, "out of range"),
        (lambda: X.masked_select(X), RuntimeError, "expected BoolTensor for mask"),
        (lambda: cresset.embedding(X.float(), index(3)), IndexError, "index out of range in self"),
        (lambda: cresset.embedding(X[0].float(), index(0)), RuntimeError, "'weight' must be 2-D"),
    ],
)
def test_a_wrong_index_is_an_error_that_says_so(call, error, message, refused):
    with refused(error, message):
        call()


@pytest.mark.parametrize("given", [1, None, cresset.tensor(True)], ids=str)
def test_nonzero_is_told_the_form_by_a_bool(given):
    with pytest.raises(TypeError, match="'as_tuple' must be bool"):
        cresset.tensor([1, 0]).nonzero(as_tuple=given)


def test_nonzero_gives_coordinates_by_row_or_by_dimension():
    x = cresset.tensor([[0, 1], [0, 0], [2, 3]])
    assert x.nonzero().tolist() == [[0, 1], [2, 0], [2, 1]]
    rows, columns = x.nonzero(as_tuple=True)
    assert (rows.tolist(), columns.tolist()) == ([0, 2, 2], [1, 0, 1])
    assert cresset.tensor(5).nonzero().shape == (1, 0)
    assert cresset.nonzero(cresset.tensor([0.0, float("nan")])).tolist() == [[1]]


def test_masks_longer_than_a_chunk_keep_their_order():
    x = cresset.arange(50_000)
    assert x[x % 7 == 3].equal(cresset.arange(3, 50_000, 7))
    assert (x % 7 == 3).nonzero().squeeze(1).equal(cresset.arange(3, 50_000, 7))


@pytest.mark.cpu_only("threads")
def test_results_do_not_depend_on_the_number_of_threads():
    generator = cresset.Generator(cresset.get_default_device()).manual_seed(0)
    x = cresset.rand(5000, 40, generator=generator)
    i = cresset.randint(0, 5000, (20_000,), generator=generator)
    results = []
    for threads in (1, 2):
        before = cresset.get_num_threads()
        cresset.set_num_threads(threads)
        results.append((x[i], cresset.zeros(5000, 40).index_add(0, i, x[i]), x[x > 0.5], x.sort(0).values))
        cresset.set_num_threads(before)
    for one, two in zip(*results, strict=True):
        assert one.equal(two)


def test_repeat_interleave_repeats_each_element_its_own_number_of_times():
    assert cresset.repeat_interleave(index(7, 8, 9), index(2, 0, 1)).tolist() == [7, 7, 9]
    assert cresset.repeat_interleave(index(2, 0, 1)).tolist() == [0, 0, 2]
    with pytest.raises(RuntimeError, match="negative"):
        cresset.repeat_interleave(index(-1))


def test_embedding_leaves_out_the_padding_row_and_scales_by_frequency():
    weight = cresset.ones(3, 2, requires_grad=True)
    cresset.embedding(weight, index(0, 2, 2), padding_idx=0).sum().backward()
    assert weight.grad.tolist() == [[0.0, 0.0], [0.0, 0.0], [2.0, 2.0]]
    weight.grad = None
    cresset.embedding(weight, index(0, 2, 2), scale_grad_by_freq=True).sum().backward()
    assert weight.grad.tolist() == [[1.0, 1.0], [0.0, 0.0], [1.0, 1.0]]


MASK = cresset.tensor([True, False, True, True])
READERS = {
    "rows": lambda x: x[index(0, 2, 2)],
    "two indices": lambda x: x[cresset.tensor([[0], [2]]), index(1, 1)],
    "mask": lambda x: x[:, MASK],
    "index_select": lambda x: x.index_select(1, index(0, 0, 3)),
    "gather": lambda x: x.gather(1, cresset.tensor([[0, 0], [3, 1]])),
    "take": lambda x: x.take(index(0, -1, 0)),
    "masked_select": lambda x: x.masked_select(MASK),
    "embedding": lambda x: cresset.embedding(x, index(0, 2, 2)),
    "repeat_interleave": lambda x: x.repeat_interleave(index(1, 0, 2), 0),
}


@pytest.mark.parametrize("name", READERS)
def test_readers_differentiate_twice(name):
    x = cresset.randn(3, 4, dtype=cresset.float64, requires_grad=True)
    assert gradcheck(READERS[name], [x])
    assert gradgradcheck(READERS[name], [x])


def test_the_shape_of_an_index_is_known_without_data():
    x = cresset.empty(3, 4, device="meta")
    assert x[cresset.zeros(5, dtype=cresset.int64, device="meta")].shape == (5, 4)
    with pytest.raises(NotImplementedError, match="depends on the elements"):
        x.nonzero()


class TestGatheringWithASparseGradient:
    def test_there_is_a_value_for_each_index(self):
        x = cresset.arange(6.0).reshape(2, 3).requires_grad_()
        picked = cresset.gather(x, 1, cresset.tensor([[0, 0], [2, 1]]), sparse_grad=True)
        (picked * cresset.tensor([[1.0, 2.0], [3.0, 4.0]])).sum().backward()
        assert x.grad.layout is cresset.sparse_coo and x.grad._nnz() == 4
        assert x.grad.to_dense().tolist() == [[3.0, 0.0, 0.0], [0.0, 4.0, 3.0]]

    def test_a_number_alone_has_one(self):
        x = cresset.tensor(2.0, requires_grad=True)
        cresset.gather(x, 0, cresset.tensor(0), sparse_grad=True).backward()
        assert x.grad.layout is cresset.sparse_coo and x.grad.to_dense().item() == 1.0

    def test_a_number_picks_one_of_a_vector(self):
        x = cresset.ones(3, requires_grad=True)
        cresset.gather(x, 0, cresset.tensor(2), sparse_grad=True).backward()
        assert x.grad.layout is cresset.sparse_coo and x.grad.to_dense().tolist() == [0.0, 0.0, 1.0]


def test_the_places_of_index_select_are_looked_at_when_nothing_is_read():
    for shape, place in (((0, 2), 2), ((0, 2), -1)):
        with pytest.raises(RuntimeError, match="INDICES element is out of DATA bounds"):
            cresset.index_select(cresset.zeros(shape), 1, cresset.tensor([place]))
    with pytest.raises(RuntimeError, match="self indexing axis dim should be positive"):
        cresset.index_select(cresset.zeros(3, 0), 1, cresset.tensor([0]))
    assert cresset.index_select(cresset.zeros(0, 2), 1, cresset.tensor([1, 0, 1])).shape == (0, 3)


def test_sums_of_whole_numbers_wrap_round():
    top = cresset.tensor([2**31 - 1], dtype=cresset.int32)
    assert cresset.index_add(top, 0, cresset.tensor([0]), top).tolist() == [-2]
    assert cresset.scatter_reduce(top, 0, cresset.tensor([0]), top, "prod").tolist() == [1]


@pytest.mark.parametrize("width", [3, 4, 16, 64])  # rows of 12 bytes to whole lines of the cache
def test_many_rows_of_a_large_matrix(width):
    count = 20_000  # the matrix is larger than the cache that is near; rows of 64 give a result that is streamed
    matrix = cresset.arange(count * width, dtype=cresset.float32).view(count, width)
    index = cresset.arange(2 * count).mul(7919) % count
    index[::3] -= count  # counted from the end
    expected = index.remainder(count)[:, None] * width + cresset.arange(width)
    assert cresset.equal(matrix[index], expected.float())
    assert cresset.equal(matrix.index_select(0, index.remainder(count)), expected.float())


@pytest.mark.parametrize("wrong", [20_000, -20_001, 1 << 62])
@pytest.mark.parametrize("position", [0, 5, 39_999])
def test_a_wrong_index_among_many_rows_is_named(wrong, position):
    matrix, index = cresset.zeros(20_000, 16), cresset.zeros(40_000, dtype=cresset.int64)
    index[position] = wrong
    with pytest.raises(IndexError, match=f"index {wrong} is out of bounds for dimension 0 with size 20000"):
        matrix[index]
