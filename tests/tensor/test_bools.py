"""Bools that are made of other bytes: any byte but zero is true, and stays the byte it is."""

import pytest

import cresset as torch


class TestBytesThatAreBools:
    def bools(self, *bytes_):
        memory = torch.tensor(bytes_, dtype=torch.uint8)
        return memory, memory.view(torch.bool)

    def test_every_byte_but_zero_counts_as_one(self):
        memory, b = self.bools(255, 0, 2, 1, 128, 0, 4, 254)
        assert b.sum().item() == 6 and b.tolist() == [True, False, True, True, True, False, True, True]
        assert (
            b.any()
            and not b.all()
            and b.nonzero().flatten().tolist() == [0, 2, 3, 4, 6, 7]
            and torch.count_nonzero(b) == 6
        )
        assert (b == torch.tensor([True, False, True, True, True, False, True, True])).all()
        assert (~b).tolist() == [False, True, False, False, False, True, False, False]
        assert (
            (b & b.flip(0)).sum().item() == 4 and (b ^ True).sum().item() == 2 and b.to(torch.int64).sum().item() == 6
        )
        assert torch.where(b, 1, 0).sum().item() == 6 and torch.arange(8)[b].tolist() == [0, 2, 3, 4, 6, 7]
        assert (
            b.float().max().item() == 1.0
            and b[0].item() is True
            and bool(b[2])
            and b.unique().tolist() == [False, True]
        )
        assert torch.zeros(8).masked_fill(b, 1.0).sum().item() == 6 and torch.ones(8).masked_select(b).numel() == 6
        assert b.sort().values.tolist() == [False] * 2 + [True] * 6 and b.cumsum(0).tolist() == [1, 1, 2, 3, 4, 4, 5, 6]
        assert torch.tensor([[b, b]][0][0].tolist()).equal(b.clone()) and torch.cat([b, b]).sum().item() == 12
        assert torch.tensor(b.tolist()).sum().item() == 6 and b[::2].sum().item() == 4
        assert memory.tolist() == [255, 0, 2, 1, 128, 0, 4, 254]

    def test_large_ones_too_and_in_any_order(self):
        memory = torch.full((300, 700), 255, dtype=torch.uint8)
        b = memory.view(torch.bool)
        assert (
            b.sum().item() == 210000
            and b.t().sum(0).tolist() == [700] * 300
            and b[:, ::3].float().sum().item() == 300 * 234
        )

    def test_bytes_that_come_later_count_as_well(self):
        b = torch.zeros(4, dtype=torch.bool)
        alias = b.data
        b.view(torch.uint8).fill_(255)
        assert b.sum().item() == alias.sum().item() == 4
        b.untyped_storage()[0] = 0
        assert b.sum().item() == 3
        c = torch.zeros(4, dtype=torch.bool)
        memoryview(c).cast("B")[1] = 7
        assert c.sum().item() == 1

    def test_bytes_of_other_libraries_and_storages(self):
        np = pytest.importorskip("numpy")
        assert torch.from_numpy(np.full(8, 255, dtype="uint8").view(bool)).sum().item() == 8
        assert torch.frombuffer(bytearray([3, 0, 9]), dtype=torch.bool).sum().item() == 2
        wide = torch.frombuffer(bytearray([3]), dtype=torch.bool).expand(2)
        assert wide.copy_(wide) is wide and wide.sum().item() == 2
        storage = torch.tensor([7, 0, 7], dtype=torch.uint8).untyped_storage()
        assert torch.empty(0, dtype=torch.bool).set_(storage, 0, (3,)).sum().item() == 2
        assert (
            torch.empty(1000, dtype=torch.bool).sum().item() <= 1000
            and torch.zeros(1, dtype=torch.bool).resize_(999).sum().item() <= 999
        )

    def test_in_place_operations_write_bools_where_they_write(self):
        memory, b = self.bools(255, 0, 2, 1)
        b.logical_not_()
        assert memory.tolist() == [0, 1, 0, 0]
        memory, b = self.bools(255, 0, 2, 1)
        b[1:2] = True
        b.masked_fill_(torch.tensor([False, False, False, True]), False)
        assert memory.tolist() == [255, 1, 2, 0]

    def test_what_changes_nothing_gives_back_its_argument(self):
        _, b = self.bools(255, 0)
        assert b.contiguous() is b and b.to(torch.bool) is b

    def test_gradients_pass_where_the_condition_holds(self):
        _, b = self.bools(255, 0, 2)
        x = torch.ones(3, requires_grad=True)
        torch.where(b, x * 2, x).sum().backward()
        assert x.grad.tolist() == [2.0, 1.0, 2.0]
