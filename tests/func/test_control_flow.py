"""Control flow as functions. `tests/export` has what becomes of it in a graph."""

import pytest

import cresset
from cresset.func.control_flow import associative_scan, cond, map, scan


def test_map_stacks_what_the_function_gives_for_every_row():
    xs = {"a": cresset.arange(6.0).reshape(3, 2), "b": cresset.ones(3)}
    total, parts = map(lambda x, scale: (x["a"].sum() + x["b"], [x["a"] * scale]), xs, 10)
    assert total.tolist() == [2.0, 6.0, 10.0]
    assert parts[0].tolist() == [[0.0, 10.0], [20.0, 30.0], [40.0, 50.0]]


def test_map_has_gradients_by_the_rows_and_by_what_is_added():
    xs, scale = cresset.tensor([1.0, 2.0], requires_grad=True), cresset.tensor(3.0, requires_grad=True)
    map(lambda x, scale: x * x * scale, xs, scale).sum().backward()
    assert xs.grad.tolist() == [6.0, 12.0]
    assert scale.grad.item() == 5.0


def test_map_takes_a_function_that_decides_by_the_elements():
    def sign(x):
        return cond(x > 0, lambda x: cresset.ones_like(x), lambda x: -cresset.ones_like(x), (x,))

    assert map(sign, cresset.tensor([3.0, -2.0])).tolist() == [1.0, -1.0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((3, cresset.ones(2)), "expected a function"),
        ((lambda x: x, 3), "can only consist of tensors"),
        ((lambda x: x, cresset.tensor(1.0)), "have a first dimension"),
        ((lambda x: x, (cresset.ones(2), cresset.ones(3))), "must be consistent"),
        ((lambda x: x, cresset.ones(0, 2)), "cannot be 0"),
        ((lambda x: 3, cresset.ones(2)), "the same tree of tensors"),
    ],
)
def test_map_says_what_is_wrong(arguments, message):
    with pytest.raises(RuntimeError, match=message):
        map(*arguments)


def test_a_scan_carries_along_a_dimension_from_either_end():
    x = cresset.arange(6.0).view(3, 2)

    def step(carry, y):
        return carry + y, carry * y

    carry, results = scan(step, cresset.zeros(2), x)
    assert carry.tolist() == [6.0, 9.0] and results.tolist() == [[0.0, 0.0], [0.0, 3.0], [8.0, 20.0]]
    carry, results = scan(step, cresset.zeros(2), x, reverse=True)
    assert carry.tolist() == [6.0, 9.0] and results.tolist() == [[0.0, 8.0], [8.0, 15.0], [0.0, 0.0]]
    assert scan(step, cresset.zeros(3), x, dim=1)[0].tolist() == [1.0, 5.0, 9.0]
    with pytest.raises(RuntimeError, match="All init leaves must be a Tensor but got 3"):
        scan(step, 3, x)
    with pytest.raises(RuntimeError, match="same metadata"):
        scan(lambda carry, y: (carry.sum(), y), cresset.zeros(2), x)


def test_an_associative_scan_combines_all_slices_so_far():
    x = cresset.arange(6.0).view(3, 2)
    assert associative_scan(lambda a, b: a + b, x, 0).tolist() == x.cumsum(0).tolist()
    found = associative_scan(lambda a, b: a * b + 1, x, 1, reverse=True, combine_mode="generic")
    assert found.tolist() == [[1.0, 1.0], [7.0, 3.0], [21.0, 5.0]]
    y = cresset.ones(3, requires_grad=True)
    associative_scan(lambda a, b: a * b, y, 0).sum().backward()
    assert y.grad.tolist() == [3.0, 2.0, 1.0]
    with pytest.raises(IndexError):
        associative_scan(lambda a, b: a + b, x, 5)


def test_control_flow_is_found_where_pytorch_keeps_it():
    from cresset._higher_order_ops.while_loop import while_loop

    from cresset._higher_order_ops import scan as by_name

    assert by_name is scan and while_loop is cresset.while_loop


def test_foreach_map_takes_lists_apart_and_repeats_the_rest():
    from cresset._higher_order_ops.foreach_map import foreach_map

    xs, ys = [cresset.ones(2), cresset.zeros(1)], (cresset.tensor(2.0), cresset.tensor(3.0))
    found = cresset.compile(lambda: foreach_map(cresset.add, xs, ys, alpha=10))()
    assert [x.tolist() for x in found] == [[21.0, 21.0], [30.0]]
    assert [x.tolist() for x in foreach_map(lambda x, by: x * by, xs, 4)] == [[4.0, 4.0], [0.0]]
    assert foreach_map(cresset.neg, cresset.tensor(2.0)).item() == -2
    with pytest.raises(ValueError, match="foreach_map: the lists have different lengths: 1, 2"):
        foreach_map(cresset.add, xs, ys[:1])
