"""Calls that write memory which they also read: refused as in PyTorch, or computed as if all lay apart."""

import pytest

import cresset as torch

REFUSED = "single memory location"
PLACES = torch.tensor([[0, 1, 2], [2, 1, 0], [1, 1, 1]])
BACKWARDS = torch.tensor([2, 1, 0])

# Calls with out= that are computed whatever `out` shares with `x`.
COMPUTED = {
    "sum": lambda x, out: torch.sum(x, 0, out=out),
    "mean": lambda x, out: torch.mean(x, 0, out=out),
    "prod": lambda x, out: torch.prod(x, 1, out=out),
    "amax": lambda x, out: torch.amax(x, 0, out=out),
    "std": lambda x, out: torch.std(x, 0, out=out),
    "logsumexp": lambda x, out: torch.logsumexp(x, 0, out=out),
    "median": lambda x, out: torch.median(x, 0, out=(out, torch.empty(0, dtype=torch.long)))[0],
    "mm": lambda x, out: torch.mm(x, x, out=out),
    "mm with a number of rows to spare": lambda x, out: torch.mm(x[:2], x, out=out),
    "mv": lambda x, out: torch.mv(x, x[0], out=out),
    "bmm": lambda x, out: torch.bmm(x[None], x[None], out=out),
    "matmul": lambda x, out: torch.matmul(x, x, out=out),
    "outer": lambda x, out: torch.outer(x[0], x[1], out=out),
    "kron": lambda x, out: torch.kron(x, x, out=out),
    "tril": lambda x, out: torch.tril(x, out=out),
    "softmax": lambda x, out: torch.softmax(x, 0, out=out),
    "cummax": lambda x, out: torch.cummax(x, 0, out=(out, torch.empty(0, dtype=torch.long)))[0],
    "histc": lambda x, out: torch.histc(x, 4, 0, 20, out=out),
    "diff": lambda x, out: torch.diff(x, out=out),
}
# Calls that refuse an `out` which overlaps `x`, be it `x` itself or a part of it.
APART = {
    "cat": lambda x, out: torch.cat([x, x], 0, out=out),
    "stack": lambda x, out: torch.stack([x, x], 0, out=out),
    "hstack": lambda x, out: torch.hstack([x, x], out=out),
    "gather": lambda x, out: torch.gather(x, 0, PLACES, out=out),
    "take": lambda x, out: torch.take(x, PLACES, out=out),
    "index_select": lambda x, out: torch.index_select(x, 0, BACKWARDS, out=out),
    "masked_select": lambda x, out: torch.masked_select(x, x > 3, out=out),
    "topk": lambda x, out: torch.topk(x, 2, 0, out=(out, torch.empty(0, dtype=torch.long))),
    "kthvalue": lambda x, out: torch.kthvalue(x, 2, 0, out=(out, torch.empty(0, dtype=torch.long))),
    "max": lambda x, out: torch.max(x, 0, out=(out, torch.empty(0, dtype=torch.long))),
}
# Calls that may write to `x` itself, but not to a part of it or in another order.
WHOLE = {
    "neg": lambda x, out: torch.neg(x, out=out),
    "add": lambda x, out: torch.add(x, 1, out=out),
    "where": lambda x, out: torch.where(x > 3, x, 2 * x, out=out),
    "cumsum": lambda x, out: torch.cumsum(x, 0, out=out),
    "addmm": lambda x, out: torch.addmm(x, x.clone(), x.clone(), out=out),
    "scatter": lambda x, out: torch.scatter(x, 0, PLACES, 7.0, out=out),
    "index_add": lambda x, out: torch.index_add(x, 0, BACKWARDS, x.clone(), out=out),
    "sort": lambda x, out: torch.sort(x, 0, descending=True, out=(out, torch.empty(0, dtype=torch.long)))[0],
}
# Targets, given the memory of 16 numbers whose first nine are `x`, and `x`.
OUTS = {
    "itself": lambda memory, x: x,
    "a view of all": lambda memory, x: x.view(3, 3),
    "its transpose": lambda memory, x: x.t(),
    "one element further": lambda memory, x: memory[1:10].view(3, 3),
    "its first row": lambda memory, x: x[0],
    "nothing at its start": lambda memory, x: memory[:0],
    "nothing inside": lambda memory, x: memory[3:3],
    "its last element": lambda memory, x: memory[8:9],
    "nothing at the end of the memory": lambda memory, x: memory[16:],
    "rows with gaps": lambda memory, x: memory.as_strided((3, 3), (4, 1), 1),
    "its memory without its history": lambda memory, x: x.data,
}


def numbers():
    memory = torch.tensor([3.0, 1.0, 4.0, 1.5, 5.0, 9.0, 2.0, 6.0, 5.5, 3.5, 8.0, 9.5, 7.0, 9.25, 3.25, 2.5])
    return memory, memory[:9].view(3, 3)


@pytest.mark.filterwarnings("ignore:An output with one or more elements was resized")
class TestOutThatSharesMemoryWithAnInput:
    @pytest.mark.parametrize("out", OUTS)
    @pytest.mark.parametrize("call", COMPUTED)
    def test_is_computed_as_if_it_lay_apart(self, call, out):
        expected = COMPUTED[call](numbers()[1], torch.empty(0))
        memory, x = numbers()
        assert COMPUTED[call](x, OUTS[out](memory, x)).tolist() == expected.tolist()

    @pytest.mark.parametrize(
        "out", ["itself", "a view of all", "its transpose", "one element further", "its first row", "its last element"]
    )
    @pytest.mark.parametrize("call", APART)
    def test_is_refused_where_elements_would_be_read_after_they_are_written(self, call, out):
        memory, x = numbers()
        target = OUTS[out](memory, x)
        shape = target.shape
        with pytest.raises(RuntimeError, match=REFUSED):
            APART[call](x, target)
        assert memory.tolist() == numbers()[0].tolist() and target.shape == shape

    @pytest.mark.parametrize("call", WHOLE)
    def test_may_be_the_input_itself_and_no_part_of_it_where_elements_are_computed_one_by_one(self, call):
        expected = WHOLE[call](numbers()[1], torch.empty(0)).tolist()
        for out in (
            "itself",
            "a view of all",
            "nothing at its start",
            "nothing inside",
            "rows with gaps",
            "nothing at the end of the memory",
        ):
            memory, x = numbers()
            assert WHOLE[call](x, OUTS[out](memory, x)).tolist() == expected
        for out in ("its transpose", "one element further", "its last element"):
            memory, x = numbers()
            with pytest.raises(RuntimeError, match=REFUSED):
                WHOLE[call](x, OUTS[out](memory, x))

    @pytest.mark.parametrize("name", ["add", "lerp", "where", "addcmul"])
    def test_gets_no_other_shape_where_elements_are_computed_one_by_one(self, name):
        x, other = torch.tensor([1.0, 1.5]), torch.full((2, 2), 2.0)
        arguments = {
            "add": (x, other),
            "lerp": (x, other, 0.5),
            "where": (other > 0, x, x),
            "addcmul": (x, other, other),
        }
        with pytest.raises(RuntimeError, match=r"output with shape \[2\] doesn't match the broadcast shape \[2, 2\]"):
            getattr(torch, name)(*arguments[name], out=x)
        assert x.tolist() == [1.0, 1.5]

    def test_arrays_of_numpy_that_overlap_are_seen_to_overlap(self):
        np = pytest.importorskip("numpy")
        array = np.arange(6.0, dtype="float32")
        x, out = torch.from_numpy(array[:4]), torch.from_numpy(array[1:5])
        with pytest.raises(RuntimeError, match=REFUSED):
            torch.cat([x[:2], x[2:]], out=out)
        assert torch.mm(x.view(2, 2), x.view(2, 2), out=out.view(2, 2)).tolist() == [[2.0, 3.0], [6.0, 11.0]]

    def test_one_tensor_for_two_results_holds_the_last(self):
        x = torch.tensor([[3.0, 1.0], [2.0, 5.0]])
        out = torch.empty(0)
        low, high = torch.aminmax(x, dim=0, out=(out, out))
        assert low is high is out and out.tolist() == [3.0, 5.0]
        q = torch.empty(0)
        torch.linalg.qr(x, out=(q, q))
        assert q.shape == (2, 2) and torch.allclose(q, torch.linalg.qr(x)[1])


class TestTargetsThatSeeAnElementTwice:
    @pytest.mark.parametrize("call", [
        lambda out: torch.add(torch.ones(3, 3), 1, out=out),
        lambda out: torch.mm(torch.ones(3, 3), torch.ones(3, 3), out=out),
        lambda out: torch.cumsum(torch.ones(3, 3), 0, out=out),
        lambda out: torch.cat([torch.ones(3, 3)], out=out),
        lambda out: torch.tril(torch.ones(3, 3), out=out),
        lambda out: torch.gather(torch.ones(3, 3), 0, PLACES, out=out),
        lambda out: out.copy_(torch.ones(3, 3)),
        lambda out: out.fill_(torch.tensor(1.0)),
        lambda out: out.cumsum_(0),
        lambda out: out.addmm_(torch.ones(3, 3), torch.ones(3, 3)),
        lambda out: out.tril_(),
        lambda out: out.scatter_(0, PLACES, 1.0),
        lambda out: out.normal_(),
    ])  # fmt: skip
    def test_are_refused(self, call):
        out = torch.zeros(3, 1).expand(3, 3)
        with pytest.raises(RuntimeError, match=REFUSED):
            call(out)
        assert out.tolist() == [[0.0] * 3] * 3

    @pytest.mark.filterwarnings("ignore:An output with one or more elements was resized")
    def test_are_written_once_they_are_resized(self):
        out = torch.zeros(3, 1).expand(3, 3)
        assert torch.sum(torch.ones(3, 2), 1, out=out).tolist() == [2.0, 2.0, 2.0]


class TestMutationsThatReadWhatTheyWrite:
    MUTATIONS = {
        "copy_": lambda x, source: x.copy_(source),
        "index_put_": lambda x, source: x.index_put_((BACKWARDS,), source),
        "index_add_": lambda x, source: x.index_add_(0, BACKWARDS, source),
        "index_copy_": lambda x, source: x.index_copy_(0, BACKWARDS, source),
        "scatter_": lambda x, source: x.scatter_(0, PLACES, source),
        "scatter_add_": lambda x, source: x.scatter_add_(0, PLACES, source),
        "put_": lambda x, source: x.put_(PLACES, source),
        "add_": lambda x, source: x.add_(source),
    }

    @pytest.mark.parametrize("name", MUTATIONS)
    def test_elements_in_another_order_are_refused(self, name):
        for source in (lambda memory, x: x.t(), lambda memory, x: memory[1:10].view(3, 3)):
            memory, x = numbers()
            with pytest.raises(RuntimeError, match=REFUSED):
                self.MUTATIONS[name](x, source(memory, x))
            assert memory.tolist() == numbers()[0].tolist()

    @pytest.mark.parametrize("name", MUTATIONS)
    def test_elements_that_may_or_may_not_overlap_are_read_first(self, name):
        memory, x = numbers()
        source = memory.as_strided((3, 3), (4, 1), 1)
        expected = self.MUTATIONS[name](x.clone(), source.clone()).tolist()
        assert self.MUTATIONS[name](x, source).tolist() == expected

    def test_copying_a_tensor_to_itself_changes_nothing(self):
        memory, x = numbers()
        assert x.copy_(x.view(3, 3)).tolist() == numbers()[1].tolist()

    def test_one_value_under_a_mask_is_read_first(self):
        x = torch.tensor([1.0, 2.0, 3.0])
        x[x < 3] = x[2]
        assert x.tolist() == [3.0, 3.0, 3.0]
        x = torch.tensor([1.0, 2.0, 3.0])
        assert x.masked_fill_(x > 0, x[1]).tolist() == [2.0, 2.0, 2.0]

    def test_a_row_is_added_to_all_rows_as_it_was(self):
        memory = torch.arange(12.0).view(3, 4)
        x = memory[:, :3]
        assert x.add_(x[:1]).tolist() == [[0.0, 2.0, 4.0], [4.0, 6.0, 8.0], [8.0, 10.0, 12.0]]


def test_shared_memory_is_refused_before_a_dtype_that_has_no_such_operator():
    x = torch.rand(3)
    with pytest.raises(RuntimeError, match=REFUSED):
        x[:-1].bitwise_left_shift_(x[1:])
    with pytest.raises(NotImplementedError, match="not implemented for 'float32'"):
        x.bitwise_left_shift_(x.clone())


def test_a_tensor_is_known_in_sets_by_itself():
    x, y = torch.ones(1), torch.ones(1)
    assert hash(x) == id(x) and len({x, y, x}) == 2
