"""Choices by weight and samples of distributions on CUDA: where their probability lies, and that a seed gives them
again.
"""

import math

import pytest

import cresset


def seeded(seed=123):
    return cresset.Generator("cuda").manual_seed(seed)


def shares(chosen, categories):
    return [(chosen == i).double().mean().item() for i in range(categories)]


class TestMultinomial:
    @pytest.mark.parametrize("dtype", [cresset.float32, cresset.float64, cresset.float16, cresset.bfloat16], ids=str)
    def test_one_choice_of_each_row(self, dtype, cuda):
        weights = cresset.tensor([[1.0, 0.0, 2.0, 1.0, 0.0]] * 2000, dtype=dtype).to(cuda)
        chosen = cresset.multinomial(weights, 1, generator=seeded()).cpu()
        assert chosen.shape == (2000, 1)
        assert shares(chosen, 5) == pytest.approx([0.25, 0, 0.5, 0.25, 0], abs=0.05)

    @pytest.mark.parametrize("dtype", [cresset.float32, cresset.float64, cresset.bfloat16], ids=str)
    def test_with_replacement(self, dtype, cuda):
        weights = cresset.tensor([[0.0, 1.0, 0.0, 3.0, 0.0], [2.0, 0.0, 0.0, 0.0, 2.0]], dtype=dtype).to(cuda)
        chosen = cresset.multinomial(weights, 2000, replacement=True, generator=seeded()).cpu()
        assert shares(chosen[0], 5) == pytest.approx([0, 0.25, 0, 0.75, 0], abs=0.05)
        assert shares(chosen[1], 5) == pytest.approx([0.5, 0, 0, 0, 0.5], abs=0.05)

    def test_many_categories_with_replacement(self, cuda):
        weights = cresset.zeros(1000)
        weights[[3, 500, 999]] = 1.0
        chosen = cresset.multinomial(weights.to(cuda), 900, replacement=True, generator=seeded()).cpu()
        assert set(chosen.tolist()) == {3, 500, 999}

    def test_without_replacement_no_category_comes_twice(self, cuda):
        weights = cresset.tensor([[1.0, 2.0, 0.0, 4.0]] * 500).to(cuda)
        chosen = cresset.multinomial(weights, 3, generator=seeded()).cpu()
        assert all(sorted(row) == [0, 1, 3] for row in chosen.tolist())
        assert shares(chosen[:, 0], 4) == pytest.approx([1 / 7, 2 / 7, 0, 4 / 7], abs=0.07)

    def test_a_vector_and_a_seed(self, cuda):
        weights = cresset.rand(37, device=cuda)
        first, second = (
            cresset.multinomial(weights, 5, replacement=True, generator=seeded()).tolist() for _ in range(2)
        )
        assert first == second
        assert cresset.multinomial(weights.double(), 1, generator=seeded()).shape == (1,)


@pytest.mark.parametrize("dtype", [cresset.float32, cresset.float64], ids=str)
class TestDistributions:
    @pytest.mark.parametrize("rate", [0.0, 0.5, 4.0, 30.0])
    def test_poisson(self, dtype, rate, cuda):
        drawn = cresset.poisson(cresset.full((3000,), rate, dtype=dtype, device=cuda), seeded()).cpu().double()
        assert (drawn == drawn.floor()).all()
        assert drawn.mean().item() == pytest.approx(rate, abs=0.1 + 0.01 * rate)
        assert drawn.var().item() == pytest.approx(rate, abs=0.15 * rate)

    @pytest.mark.parametrize("shape", [0.3, 1.0, 7.0])
    def test_gamma(self, dtype, shape, cuda):
        shapes = cresset.full((3000,), shape, dtype=dtype, device=cuda)
        drawn = cresset._standard_gamma(shapes, generator=seeded()).cpu().double()
        assert drawn.min().item() > 0
        assert drawn.mean().item() == pytest.approx(shape, rel=0.1)
        assert drawn.var().item() == pytest.approx(shape, rel=0.25)

    @pytest.mark.parametrize(("trials", "probability"), [(5.0, 0.2), (100.0, 0.7), (40.0, 0.5)])
    def test_binomial(self, dtype, trials, probability, cuda):
        drawn = cresset.binomial(
            cresset.full((3000,), trials, dtype=dtype, device=cuda),
            cresset.tensor(probability, dtype=dtype, device=cuda),
            seeded(),
        )
        drawn = drawn.cpu().double()
        assert drawn.mean().item() == pytest.approx(trials * probability, rel=0.03)
        assert drawn.var().item() == pytest.approx(trials * probability * (1 - probability), rel=0.15)

    def test_dirichlet(self, dtype, cuda):
        drawn = cresset._sample_dirichlet(
            cresset.tensor([[1.0, 2.0, 5.0]] * 1000, dtype=dtype).to(cuda), seeded()
        ).cpu()
        cresset.testing.assert_close(drawn.sum(1), cresset.ones(1000, dtype=dtype))
        assert drawn.mean(0).tolist() == pytest.approx([0.125, 0.25, 0.625], abs=0.02)

    def test_gradients_of_samples_are_those_of_the_cpu(self, dtype, cuda):
        shapes = cresset.tensor([0.3, 1.0, 2.5, 50.0, 2e5], dtype=dtype)
        samples = cresset.tensor([0.2, 3.0, 2.0, 51.0, 2e5], dtype=dtype)
        expected = cresset._standard_gamma_grad(shapes, samples)
        cresset.testing.assert_close(cresset._standard_gamma_grad(shapes.to(cuda), samples.to(cuda)).cpu(), expected)
        arguments = [cresset.tensor(v, dtype=dtype) for v in ([0.1, 0.5, 0.9], [1.0, 3.0, 0.5], [4.0, 5.0, 6.0])]
        expected = cresset._dirichlet_grad(*arguments)
        cresset.testing.assert_close(cresset._dirichlet_grad(*[a.to(cuda) for a in arguments]).cpu(), expected)


class TestEdges:
    def test_what_is_no_parameter_gives_nan(self, cuda):
        bad = cresset.tensor([-1.0, math.nan]).to(cuda)
        assert cresset.poisson(bad).isnan().all()
        assert cresset._standard_gamma(bad).isnan().all()
        assert (
            cresset.binomial(cresset.full((2,), math.nan, device=cuda), cresset.full((2,), 0.5, device=cuda))
            .isnan()
            .all()
        )

    def test_nothing(self, cuda):
        for function in (cresset.poisson, cresset._standard_gamma, cresset._sample_dirichlet):
            assert function(cresset.ones(0, 3, device=cuda)).shape == (0, 3)

    def test_elements_have_streams_of_their_own(self, cuda):
        drawn = cresset.poisson(cresset.full((50,), 1000.0, device=cuda), seeded()).tolist()
        assert len(set(drawn)) > 30
        assert cresset.poisson(cresset.full((10,), 1000.0, device=cuda), seeded()).tolist() == drawn[:10]

    def test_distributions_draw_on_the_device(self, cuda):
        shape = cresset.full((4,), 2.0, device=cuda, requires_grad=True)
        sample = cresset.distributions.Gamma(shape, cresset.ones(4, device=cuda)).rsample()
        assert sample.is_cuda
        sample.sum().backward()
        assert shape.grad.isfinite().all()
        assert cresset.distributions.Categorical(cresset.ones(3, device=cuda)).sample((5,)).is_cuda
