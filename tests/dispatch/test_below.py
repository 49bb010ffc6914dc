"""A class with __torch_dispatch__ that leaves an operator to Tensor: it runs on the memory of the tensors."""

import cresset


class Telling(cresset.Tensor):
    told = []

    @staticmethod
    def __new__(cls, data):
        return cresset.Tensor._make_subclass(cls, data, data.requires_grad)

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        cls.told.append(str(func))
        result = super().__torch_dispatch__(func, types, list(args), kwargs)
        assert not result.requires_grad or result is args[0]
        return result


def test_the_operator_runs_on_plain_memory():
    Telling.told.clear()
    x = Telling(cresset.tensor([1.0, 2.0]))
    total = x + x
    assert type(total) is cresset.Tensor and total.tolist() == [2.0, 4.0]
    assert Telling.told == ["aten.add.Tensor"]


def test_a_write_reaches_the_memory_and_gives_the_tensor_back():
    data = cresset.zeros(2)
    x = Telling(data)
    assert x.add_(1) is x and data.tolist() == [1.0, 1.0]


def test_what_was_left_is_not_recorded_twice():
    x = Telling(cresset.tensor([3.0], requires_grad=True))
    (x * x).sum().backward()
    assert x.grad.tolist() == [6.0]


def test_lists_of_tensors_are_taken():
    assert cresset.cat([Telling(cresset.ones(1)), cresset.zeros(1)]).tolist() == [1.0, 0.0]
