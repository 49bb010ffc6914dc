"""Generators: seeds, states, forks. The numbers are those of PyTorch's CPU generator."""

import copy
import pickle

import pytest

import cresset as torch


def test_known_numbers():
    torch.manual_seed(0)
    assert [round(x, 4) for x in torch.rand(3).tolist()] == [0.4963, 0.7682, 0.0885]
    torch.manual_seed(0)
    assert [round(x, 3) for x in torch.randn(3).tolist()] == [1.541, -0.293, -2.179]
    torch.manual_seed(0)
    assert torch.randint(0, 10, (5,)).tolist() == [4, 9, 3, 0, 3]
    torch.manual_seed(0)
    assert torch.randperm(5).tolist() == [4, 0, 1, 3, 2]


def test_the_same_seed_gives_the_same_numbers_and_another_gives_others():
    def draw(seed):
        torch.manual_seed(seed)
        return torch.rand(4).tolist() + torch.randn(20).tolist()

    assert draw(1) == draw(1) != draw(2)


def test_a_generator_has_a_stream_of_its_own():
    torch.manual_seed(5)
    expected = torch.rand(2).tolist()
    g = torch.Generator().manual_seed(5)
    torch.manual_seed(9)
    after = torch.rand(1)
    torch.manual_seed(9)
    assert torch.rand(2, generator=g).tolist() == expected and torch.rand(1).equal(after) and g.initial_seed() == 5


def test_states_can_be_kept_copied_and_pickled():
    g = torch.Generator().manual_seed(5)
    torch.rand(3, generator=g)
    state = g.get_state()
    others = [copy.deepcopy(g), pickle.loads(pickle.dumps(g)), g.clone_state()]
    expected = torch.rand(3, generator=g)
    g.set_state(state)
    for other in [g, *others]:
        assert torch.rand(3, generator=other).equal(expected)


def test_the_second_half_of_a_pair_of_normal_numbers_is_part_of_the_state():
    torch.manual_seed(1)
    torch.randn(1)
    state = torch.get_rng_state()
    expected = torch.randn(3)
    torch.set_rng_state(state)
    assert torch.randn(3).equal(expected)


def test_fork_rng_leaves_the_stream_as_it_was():
    torch.manual_seed(3)
    expected = torch.rand(2)
    torch.manual_seed(3)
    with torch.random.fork_rng():
        torch.rand(100)
    assert torch.rand(2).equal(expected)


@pytest.mark.parametrize(
    "state", [torch.zeros(3, dtype=torch.uint8), torch.zeros(5056, dtype=torch.uint8), torch.zeros(5056)]
)
def test_a_state_that_is_none_is_refused(state):
    before = torch.get_rng_state()
    with pytest.raises((RuntimeError, TypeError)):
        torch.set_rng_state(state)
    assert torch.get_rng_state().equal(before)
