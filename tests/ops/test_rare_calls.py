"""Rare arguments that random calls have tried: each answers as its definition says."""

import math

import pytest

import cresset
import cresset.nn.functional as F


def test_nothing_has_no_spread_whatever_the_correction():
    assert cresset.var(cresset.ones(0, 2), 0, correction=-1).isnan().tolist() == [True, True]
    assert math.isnan(cresset.std(cresset.ones(0, dtype=cresset.complex64), correction=-1).item())


def test_nansum_to_integers_makes_each_element_whole():
    assert cresset.nansum(cresset.tensor([1.75, math.nan, 1.75, -0.5]), dtype=cresset.int64).item() == 2


def test_the_loss_of_huber_has_the_dtype_of_the_input():
    loss = F.huber_loss(
        cresset.tensor([1.0, 5.0]), cresset.tensor([2.0, 2.0], dtype=cresset.float64), reduction="none", delta=2.0
    )
    assert loss.dtype == cresset.float32
    assert loss.tolist() == [0.5, 4.0]
    with pytest.raises(RuntimeError, match="can't be cast"):
        F.huber_loss(cresset.tensor([1]), cresset.tensor([2.0]))


def test_a_grid_of_no_dimension_has_one_empty_cell():
    counts, edges = cresset.histogramdd(cresset.ones(4, 0), 2)
    assert (counts.item(), edges) == (0.0, ())


def test_the_dimension_of_trapezoids_counts_from_the_front():
    y = cresset.tensor([[1.0, 2.0]])
    x = cresset.tensor([[[0.0, 0.0], [1.0, 2.0], [3.0, 6.0]]])
    assert cresset.cumulative_trapezoid(y, x).tolist() == [[[1.5, 3.0], [4.5, 9.0]]]


def test_dropout_without_training_takes_integers_and_with_it_complex_numbers():
    same, mask = cresset.native_dropout(cresset.tensor([1, 2]), 0.5, False)
    assert (same.tolist(), mask.tolist()) == ([1, 2], [True, True])
    kept, mask = cresset.native_dropout(cresset.full((50,), 1 + 2j), 0.5, True)
    assert kept.tolist() == [(2 + 4j) * bool(keep) for keep in mask.tolist()]
    with pytest.raises(RuntimeError, match="can't be cast"):
        cresset.native_dropout(cresset.tensor([1, 2]), 0.5, True)


def test_a_bool_counts_as_one_in_index_add():
    assert cresset.zeros(3, dtype=cresset.int64).index_add(
        0, cresset.tensor([1]), cresset.tensor([2]), alpha=True
    ).tolist() == [0, 2, 0]


def test_only_the_layers_refuse_a_margin_below_zero():
    same = cresset.ones(1, 2)
    assert cresset.triplet_margin_loss(same, same, same, -1.0).tolist() == [0.0]
    with pytest.raises(ValueError, match="margin must be greater than 0"):
        F.triplet_margin_loss(same, same, same, -1.0)


def test_an_expanded_dimension_stays_in_the_order_of_dimensions():
    assert cresset.ones(1, 4).expand(3, 4).dim_order() == (0, 1)
    assert cresset.ones(4, 3, 2).permute(2, 0, 1).dim_order() == (1, 2, 0)
    assert cresset.ones(2, 3, 4, 5).to(memory_format=cresset.channels_last).dim_order() == (0, 2, 3, 1)


def test_a_window_of_complex_numbers():
    assert cresset.hann_window(4, dtype=cresset.complex64).tolist() == [0, 0.5, 1, 0.5]


@pytest.mark.cpu_only("the device has them in float32")
def test_the_edges_of_bins_are_of_the_elements_precision():
    # The bins go from -1.828125, not -1.83203125, to 0.16796875: the element is below their middle.
    counts = cresset.histc(cresset.tensor(-0.83203125, dtype=cresset.bfloat16)).tolist()
    assert counts.index(1.0) == 49


def test_half_is_true_in_a_sum_of_bools():
    x = cresset.tensor([0.25, -0.25, 0.0])
    assert x.sum(dtype=cresset.bool).item() is True
    assert x[:, None].nansum(1, dtype=cresset.bool).tolist() == [True, True, False]


def test_pooling_by_the_norm_of_infinite_order():
    x = cresset.tensor([[-3.0, 2.0, 1.0, -0.5]])
    assert F.lp_pool1d(x, math.inf, 2).tolist() == [[3.0, 1.0]]
    assert F.lp_pool1d(x, -math.inf, 2).tolist() == [[2.0, 0.5]]


def test_the_older_factorization_takes_singular_matrices():
    assert cresset.lu(cresset.ones(2, 2))[0].tolist() == [[1.0, 1.0], [1.0, 0.0]]
    with pytest.raises(RuntimeError, match="is zero"):
        cresset.linalg.lu_factor(cresset.ones(2, 2))


def test_one_mean_needs_no_channels_and_no_elements():
    assert F.adaptive_avg_pool2d(cresset.tensor([[1.0, 3.0]]), 1).tolist() == [[2.0]]
    assert F.adaptive_avg_pool1d(cresset.ones(2, 4, 0), 1).isnan().all()
    with pytest.raises(RuntimeError, match="non-zero size"):
        F.adaptive_avg_pool1d(cresset.ones(2, 4, 0), 2)


def test_dropping_all_in_place_multiplies():
    dropped = cresset.dropout_(cresset.tensor([math.inf, 1.0]), 1.0, True)
    assert dropped.isnan().tolist() == [True, False]


def test_one_number_is_a_size_of_a_sparse_tensor():
    assert cresset.sparse_coo_tensor(3).shape == (3,)


def test_a_product_that_does_not_count_leaves_no_nan():
    input, infinite, zero = cresset.ones(1, 1), cresset.tensor([[math.inf]]), cresset.zeros(1, 1)
    assert cresset.addmm(input, infinite, zero, alpha=0, beta=2).item() == 2
    assert math.isnan(cresset.addmm(input, infinite, zero, alpha=1).item())


def test_the_next_half_towards_an_integer():
    assert cresset.nextafter(cresset.tensor([math.inf], dtype=cresset.float16), cresset.tensor([5])).item() == 65504


@pytest.mark.parametrize("dtype", [cresset.float32, cresset.float16], ids=str)
def test_the_next_number_towards_one_without_a_tensor(dtype):
    x = cresset.tensor([1.0, -1.0], dtype=dtype)
    step = cresset.finfo(dtype).eps
    assert cresset.nextafter(x, 2).tolist() == x.nextafter_(2.5).tolist() == [1 + step, -1 + step / 2]


def test_the_margin_of_a_ranking_of_integers_is_a_fraction():
    ranked = F.margin_ranking_loss(cresset.tensor([1, 5]), cresset.tensor([3, 4]), cresset.tensor([1, 1]))
    assert ranked.item() == 1.0


def test_a_number_may_be_a_tensor_of_no_dimension():
    assert cresset.movedim(cresset.ones(2, 3), cresset.tensor(0), 1).shape == (3, 2)
    assert cresset.fft.fftn(cresset.ones(2, 4), cresset.tensor(3)).shape == (2, 3)
    assert cresset.fft.irfftn(cresset.ones(2, 4), 3).shape == (2, 3)
    assert cresset.linalg.matrix_power(cresset.tensor([[2]]), cresset.tensor(5)).item() == 32
    assert cresset.hann_window(cresset.tensor(3)).shape == (3,)


def test_the_stride_of_one_pair_does_not_matter():
    assert cresset.view_as_complex(cresset.arange(4.0).as_strided((1, 2), (1, 1))).tolist() == [1j]
    with pytest.raises(RuntimeError, match="stride divisible by 2"):
        cresset.view_as_complex(cresset.arange(8.0).as_strided((2, 2), (3, 1)))


def test_elu_in_place_takes_two_more_scales():
    x = F.elu_(cresset.tensor([-1.0, 2.0]), 2, 7, 3)
    assert x.tolist() == pytest.approx([14 * math.expm1(-3), 14.0])


def test_huge_integers_make_fractions():
    assert cresset.tensor([1 << 70], dtype=cresset.float32).tolist() == [2.0**70]
    with pytest.raises(ValueError, match="Overflow"):
        cresset.tensor([1 << 70])


def test_what_is_constant_is_normalized_to_zero():
    assert F.instance_norm(cresset.ones(1, 1, 3), eps=0.0).tolist() == [[[0.0, 0.0, 0.0]]]


def test_nan_becomes_zero_unless_said_otherwise():
    x = cresset.tensor([math.nan, math.inf])
    assert cresset.nan_to_num(x, None, posinf=2.0).tolist() == [0.0, 2.0]
    assert x.nan_to_num_(3.0, posinf=2.0).tolist() == [3.0, 2.0]


def test_frequencies_of_nothing():
    assert cresset.fft.fftfreq(0).tolist() == []
    assert cresset.fft.rfftfreq(0).isnan().tolist() == [True]


def test_none_asks_for_no_gradient():
    assert not cresset.zeros(2, requires_grad=None).requires_grad
    assert not cresset.fft.fftfreq(2, requires_grad=None).requires_grad
    assert not cresset.ones(2).new_zeros([2], requires_grad=None).requires_grad


def test_the_report_of_a_solution_is_one_number_a_matrix():
    singular, right = cresset.tensor([[[1.0]], [[0.0]]]), cresset.ones(2, 1, 2, 1)
    assert cresset.linalg.solve_ex(singular, right, left=False).info.tolist() == [0, 1]


@pytest.mark.parametrize("dtype", [cresset.float32, cresset.float16, cresset.bfloat16], ids=str)
def test_nextafter_of_equal_numbers_does_not_depend_on_either(dtype):
    x = cresset.tensor([1.0, 2.0], dtype=dtype, requires_grad=True)
    y = cresset.tensor([2.0, 2.0], dtype=dtype, requires_grad=True)
    cresset.nextafter(x, y).sum().backward()
    assert x.grad.tolist() == [1, 0] and y.grad.tolist() == [0, 0]
