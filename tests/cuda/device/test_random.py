"""Random numbers on CUDA: the words that Philox gives, what each distribution makes of them, and whose they are."""

import math
import pickle

import pytest

import cresset

FLOATS = ["float32", "float64", "float16", "bfloat16"]


def philox(seed, block):
    """The four words of a block, by the definition."""
    mask, counter, key = 0xFFFFFFFF, [block & 0xFFFFFFFF, block >> 32, 0, 0], [seed & 0xFFFFFFFF, seed >> 32]
    for _ in range(10):
        first, second = 0xD2511F53 * counter[0], 0xCD9E8D57 * counter[2]
        counter = [second >> 32 ^ counter[1] ^ key[0], second & mask, first >> 32 ^ counter[3] ^ key[1], first & mask]
        key = [(key[0] + 0x9E3779B9) & mask, (key[1] + 0xBB67AE85) & mask]
    return counter


def words(seed, offset, count):
    return [philox(seed, (offset + i) // 4)[(offset + i) % 4] for i in range(count)]


def seeded(seed=123):
    return cresset.Generator("cuda").manual_seed(seed)


class TestWords:
    def test_are_those_that_the_inventors_of_philox_publish(self):
        assert philox(0, 0) == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]

    def test_64_bits_are_two_words(self, cuda):
        drawn = cresset.empty(5, dtype=cresset.int64, device=cuda).random_(-(2**63), None, generator=seeded())
        w = words(123, 0, 10)
        assert [v % 2**64 for v in drawn.tolist()] == [w[2 * i] << 32 | w[2 * i + 1] for i in range(5)]

    @pytest.mark.parametrize("count", [1, 7, 1023, 2050])
    def test_an_element_has_its_own_words_whatever_the_size(self, count, cuda):
        drawn = cresset.rand(count, device=cuda, generator=seeded()).cpu()
        assert drawn.tolist() == [(w >> 8) / 2**24 for w in words(123, 0, count)]
        whole = cresset.randint(1000, (count,), device=cuda, generator=seeded())  # 8 bytes each, 2 a vector
        assert whole.tolist() == [w * 1000 >> 32 for w in words(123, 0, count)]

    def test_the_next_call_goes_on_where_the_last_one_stopped(self, cuda):
        g = seeded()
        cresset.rand(5, device=cuda, generator=g)
        assert g.get_offset() == 8  # rounded up to whole blocks
        assert cresset.rand(3, device=cuda, generator=g).tolist() == [(w >> 8) / 2**24 for w in words(123, 8, 3)]

    def test_unaligned_memory_gets_the_same_numbers(self, cuda):
        memory = cresset.zeros(100, device=cuda)
        memory[1:98].uniform_(generator=seeded())
        assert memory[1:98].tolist() == cresset.rand(97, device=cuda, generator=seeded()).tolist()
        assert memory[:1].tolist() == [0]
        assert memory[98:].tolist() == [0, 0]

    def test_strided_memory_is_filled_in_its_order(self, cuda):
        turned = cresset.zeros(4, 6, device=cuda).t().uniform_(generator=seeded())
        assert turned.t().flatten().tolist() == cresset.rand(24, device=cuda, generator=seeded()).tolist()
        gaps = cresset.zeros(4, 6, device=cuda)
        gaps[:, ::2].normal_(generator=seeded())
        assert gaps[:, ::2].flatten().tolist() == cresset.randn(12, device=cuda, generator=seeded()).tolist()
        assert gaps[:, 1::2].tolist() == [[0, 0, 0]] * 4


@pytest.mark.parametrize("dtype", FLOATS)
class TestEveryFloat:
    def drawn(self, dtype, name, *arguments, count=4096):
        return (
            getattr(cresset.empty(count, dtype=getattr(cresset, dtype), device="cuda"), name)(
                *arguments, generator=seeded()
            )
            .double()
            .cpu()
        )

    def test_uniform(self, dtype, cuda):
        x = self.drawn(dtype, "uniform_", -2, 3)
        assert x.min() >= -2
        assert x.max() < 3
        assert abs(x.mean() - 0.5) < 0.1
        assert abs(x.var() - 25 / 12) < 0.15

    def test_normal(self, dtype, cuda):
        x = self.drawn(dtype, "normal_", 3, 2)
        assert abs(x.mean() - 3) < 0.1
        assert abs(x.std() - 2) < 0.1
        assert abs(((x - 3) / 2).pow(4).mean() - 3) < 0.5
        assert abs((x[::2] - 3).mul(x[1::2] - 3).mean()) < 0.3  # the two of a pair do not depend on each other

    def test_log_normal(self, dtype, cuda):
        x = self.drawn(dtype, "log_normal_", 0.5, 0.25).log()
        assert abs(x.mean() - 0.5) < 0.02
        assert abs(x.std() - 0.25) < 0.02

    def test_exponential(self, dtype, cuda):
        x = self.drawn(dtype, "exponential_", 0.5)
        assert x.min() > 0
        assert abs(x.mean() - 2) < 0.15
        assert abs((x > 2).double().mean() - math.exp(-1)) < 0.03

    def test_cauchy(self, dtype, cuda):
        x = self.drawn(dtype, "cauchy_", 1, 2)
        assert x.isfinite().all() or dtype == "float16"
        assert abs(x.median() - 1) < 0.25
        assert abs(((x - 1).abs() < 2).double().mean() - 0.5) < 0.03

    def test_geometric(self, dtype, cuda):
        x = self.drawn(dtype, "geometric_", 0.25)
        assert x.min() == 1
        assert abs(x.mean() - 4) < 0.25
        assert abs((x == 1).double().mean() - 0.25) < 0.03

    def test_bernoulli(self, dtype, cuda):
        x = self.drawn(dtype, "bernoulli_", 0.3)
        assert set(x.tolist()) == {0, 1}
        assert abs(x.mean() - 0.3) < 0.03
        assert self.drawn(dtype, "bernoulli_", 1.0).all()
        assert not self.drawn(dtype, "bernoulli_", 0.0).any()

    def test_coins_of_their_own_probabilities(self, dtype, cuda):
        p = cresset.tensor([0.0, 1.0, 0.25, 0.75], dtype=getattr(cresset, dtype)).repeat(1000, 1).to(cuda)
        heads = cresset.bernoulli(p, generator=seeded()).cpu().double().mean(0)
        cresset.testing.assert_close(
            heads, cresset.tensor([0.0, 1.0, 0.25, 0.75], dtype=cresset.float64), atol=0.05, rtol=0
        )
        assert cresset.empty(4, device=cuda).bernoulli_(p[0], generator=seeded()).tolist()[:2] == [0, 1]

    def test_dropout_keeps_and_scales(self, dtype, cuda):
        x = cresset.arange(1, 5001).to(cuda, getattr(cresset, dtype)).requires_grad_()
        cresset.manual_seed(1)
        y = cresset.nn.functional.dropout(x, 0.2)
        y.sum().backward()
        x, y, grad = x.detach().cpu(), y.detach().cpu(), x.grad.cpu()
        kept = y != 0
        assert abs(kept.double().mean().item() - 0.8) < 0.03
        rounding = {"bfloat16": 2**-8, "float16": 2**-11}.get(dtype, 1e-6)
        cresset.testing.assert_close(y[kept].double(), 1.25 * x[kept].double(), rtol=rounding, atol=0)
        assert set(grad.double().tolist()) == {0.0, 1.25}
        assert ((grad != 0) == kept).all()


class TestIntegers:
    def test_small_ranges_take_the_upper_half_of_a_product(self, cuda):
        drawn = cresset.randint(-3, 7, (9,), device=cuda, generator=seeded())
        assert drawn.tolist() == [-3 + (w * 10 >> 32) for w in words(123, 0, 9)]

    @pytest.mark.parametrize(
        "dtype", ["uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64", "bool"]
    )
    def test_all_values_and_no_others(self, dtype, cuda):
        dtype = getattr(cresset, dtype)
        high = 2 if dtype == cresset.bool else 5
        drawn = cresset.randint(0, high, (300,), dtype=dtype, device=cuda, generator=seeded())
        assert drawn.dtype == dtype
        assert set(drawn.tolist()) == set(range(high))

    def test_wide_ranges(self, cuda):
        drawn = cresset.randint(-(2**62), 2**62, (2000,), device=cuda, generator=seeded()).cpu().double() / 2**62
        assert abs(drawn.mean().item()) < 0.06
        assert drawn.min().item() < -0.99
        assert drawn.max().item() > 0.99

    def test_ends_that_a_float_cannot_hold_move_inwards(self, cuda):
        with pytest.warns(UserWarning, match="out of bounds"):
            drawn = cresset.empty(2000, dtype=cresset.float16, device=cuda).random_(2049, 2053, generator=seeded())
        assert set(drawn.tolist()) == {2050, 2052}

    def test_without_ends(self, cuda):
        drawn = cresset.empty(2000, dtype=cresset.int8, device=cuda).random_(generator=seeded()).cpu()
        assert (drawn.min().item(), drawn.max().item()) == (0, 127)
        assert (
            cresset.empty(2000, dtype=cresset.bfloat16, device=cuda).random_(generator=seeded()).cpu().max().item()
            == 256
        )


class TestPermutations:
    @pytest.mark.parametrize("n", [0, 1, 2, 33, 1024, 1025, 2048, 5000])
    def test_have_every_number_once(self, n, cuda):
        drawn = cresset.randperm(n, device=cuda, generator=seeded()).tolist()
        assert sorted(drawn) == list(range(n))

    def test_of_three_come_equally_often(self, cuda):
        g, seen = seeded(), {}
        for _ in range(600):
            order = tuple(cresset.randperm(3, device=cuda, generator=g).tolist())
            seen[order] = seen.get(order, 0) + 1
        assert len(seen) == 6
        assert min(seen.values()) > 60

    def test_of_many_send_a_number_anywhere(self, cuda):
        g, n = seeded(), 1500
        places = (
            cresset.stack([cresset.randperm(n, device=cuda, generator=g)[:3].cpu() for _ in range(150)]).double() / n
        )
        assert (places.mean(0) - 0.5).abs().max() < 0.08
        assert (places.var(0) - 1 / 12).abs().max() < 0.025
        one = cresset.randperm(n, device=cuda, generator=g).cpu().double() / n
        assert abs(((one[:-1] - 0.5) * (one[1:] - 0.5)).mean()) < 0.01  # neighbors do not stay neighbors
        assert abs(one.sub(cresset.arange(n) / n).abs().mean() - 1 / 3) < 0.03


class TestNormalOfTensors:
    def test_means_and_deviations(self, cuda):
        mean, std = cresset.arange(3.0).to(cuda), cresset.tensor([0.0, 0.0, 1.0], device=cuda)
        assert cresset.normal(mean, std).tolist()[:2] == [0, 1]
        assert cresset.normal(mean, 0.0).tolist() == [0, 1, 2]
        assert cresset.normal(5.0, std).tolist()[:2] == [5, 5]
        assert cresset.normal(2.0, 0.0, (2,), device=cuda).tolist() == [2, 2]

    def test_complex_numbers_share_their_variance(self, cuda):
        z = cresset.randn(4000, dtype=cresset.complex64, device=cuda, generator=seeded()).cpu()
        assert abs(z.abs().pow(2).mean() - 1) < 0.06


class TestGenerators:
    def test_the_state_is_the_seed_and_the_offset(self, cuda):
        g = seeded(2**40 + 5)
        cresset.rand(6, device=cuda, generator=g)
        state = g.get_state()
        assert state.device.type == "cpu"
        assert bytes(state.tolist()) == (2**40 + 5).to_bytes(8, "little") + (8).to_bytes(8, "little")
        expected = cresset.rand(6, device=cuda, generator=g).tolist()
        for other in (cresset.Generator("cuda"), pickle.loads(pickle.dumps(seeded(7))), g.clone_state()):
            other.set_state(state)
            assert other.device == cresset.device("cuda", 0)
            assert cresset.rand(6, device=cuda, generator=other).tolist() == expected

    def test_wrong_states_are_refused(self, cuda):
        with pytest.raises(RuntimeError, match="wrong size: expected 16 bytes, got 15"):
            seeded().set_state(cresset.zeros(15, dtype=cresset.uint8))
        with pytest.raises(RuntimeError, match="multiple of 4, got 3"):
            seeded().set_offset(3)

    def test_a_generator_of_another_device_is_refused(self, cuda):
        with pytest.raises(RuntimeError, match="Expected a 'cuda' device type for generator but found 'cpu'"):
            cresset.rand(2, device=cuda, generator=cresset.Generator())
        with pytest.raises(RuntimeError, match="Expected a 'cpu' device type for generator but found 'cuda'"):
            cresset.rand(2, generator=seeded())

    def test_manual_seed_starts_all_devices(self, cuda):
        drawn = []
        for start in (cresset.manual_seed, cresset.cuda.manual_seed, cresset.cuda.manual_seed_all):
            start(77)
            assert cresset.cuda.initial_seed() == 77
            drawn.append(cresset.rand(3, device=cuda).tolist())
        assert (
            drawn[0]
            == drawn[1]
            == drawn[2]
            == cresset.rand(3, device=cuda, generator=cresset.cuda.default_generators[0].manual_seed(77)).tolist()
        )

    def test_states_of_devices(self, cuda):
        state, all_states = cresset.cuda.get_rng_state(), cresset.cuda.get_rng_state_all()
        first = cresset.rand(3, device=cuda).tolist()
        cresset.cuda.set_rng_state(state, "cuda:0")
        assert cresset.rand(3, device=cuda).tolist() == first
        cresset.cuda.set_rng_state_all(all_states)
        assert cresset.rand(3, device=cuda).tolist() == first

    def test_fork_keeps_the_streams(self, cuda):
        with cresset.random.fork_rng():
            inside = cresset.rand(3, device=cuda).tolist()
        assert cresset.rand(3, device=cuda).tolist() == inside
        with cresset.random.fork_rng(devices=[]):
            inside = cresset.rand(3, device=cuda).tolist()
        assert cresset.rand(3, device=cuda).tolist() != inside

    def test_a_checkpoint_drops_the_same_elements_again(self, cuda):
        x = cresset.ones(200, device=cuda, requires_grad=True)
        y = cresset.utils.checkpoint.checkpoint(
            lambda x: cresset.nn.functional.dropout(x * x, 0.5), x, use_reentrant=False
        )
        y.sum().backward()
        assert (x.grad == 2 * y).all()

    @pytest.mark.parametrize("randomness", ["same", "different"])
    def test_vmap_draws_on_the_device(self, randomness, cuda):
        drawn = cresset.vmap(lambda x: x + cresset.rand_like(x), randomness=randomness)(
            cresset.zeros(3, 5, device=cuda)
        ).tolist()
        assert (drawn[0] == drawn[1]) == (randomness == "same")

    def test_a_graph_draws_anew_at_each_replay(self, cuda):
        cresset.cuda.manual_seed(5)
        graph, result = cresset.cuda.CUDAGraph(), cresset.zeros(4, device=cuda)
        other = cresset.zeros(4, device=cuda)
        with cresset.cuda.graph(graph):
            result.uniform_()
            other.uniform_()
        drawn = []
        for _ in range(2):
            graph.replay()
            cresset.cuda.synchronize()
            drawn += [result.tolist(), other.tolist()]
        cresset.cuda.manual_seed(5)
        assert drawn == [cresset.rand(4, device=cuda).tolist() for _ in range(4)]


class TestDropout:
    def test_odd_sizes_and_strides(self, cuda):
        cresset.manual_seed(3)
        x = cresset.ones(37, 11, device=cuda).t()
        y, mask = cresset.native_dropout(x, 0.5, True)
        assert y.stride() == x.stride()
        assert (y == 2.0 * mask).all()
        cut = cresset.ones(501, device=cuda)[1:]
        y, mask = cresset.native_dropout(cut, 0.5, True)
        assert (y == 2.0 * mask).all()
        assert abs(mask.double().mean().item() - 0.5) < 0.1

    def test_dropped_nan_shows(self, cuda):
        assert cresset.native_dropout(cresset.full((8,), math.nan, device=cuda), 0.5, True)[0].isnan().all()

    def test_all_or_nothing(self, cuda):
        x = cresset.ones(9, device=cuda)
        assert cresset.native_dropout(x, 1.0, True)[0].tolist() == [0] * 9
        assert cresset.native_dropout(x, 0.0, True)[0].tolist() == [1] * 9
        assert cresset.native_dropout(x, 0.3, False)[0].tolist() == [1] * 9
        assert cresset.native_dropout(cresset.ones(0, device=cuda), 0.3, True)[0].shape == (0,)
