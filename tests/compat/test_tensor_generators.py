"""Seeds, states and streams of random numbers: the same numbers as PyTorch's CPU generator gives.

One program a line; `agree` (conftest.py) runs it in both libraries.
"""

import pytest

pytest.importorskip("torch")

PROGRAMS = r"""
torch.manual_seed(3); torch.rand(5)
torch.manual_seed(3); torch.rand(3, 7, dtype=torch.float64)
torch.manual_seed(3); torch.randint(0, 100, (9,))
torch.manual_seed(3); torch.randint(-5, 2 ** 40, (9,))
torch.manual_seed(3); torch.randperm(11)
torch.manual_seed(3); torch.zeros(20).uniform_(-1, 3)
torch.manual_seed(3); torch.zeros(20).bernoulli_(0.3)
torch.manual_seed(3); torch.bernoulli(torch.full((9,), 0.4))
torch.manual_seed(3); torch.zeros(20).exponential_()
torch.manual_seed(3); torch.multinomial(torch.tensor([0.1, 0.2, 0.7]), 9, replacement=True)
torch.manual_seed(3); torch.multinomial(torch.tensor([0.1, 0.2, 0.7]), 2)
torch.manual_seed(3); a = torch.rand(3); s = torch.get_rng_state(); b = torch.rand(3); torch.set_rng_state(s); [a, b, torch.rand(3)]
g = torch.Generator(); g.manual_seed(7); torch.rand(3, generator=g)
g = torch.Generator().manual_seed(7); [g.initial_seed(), torch.rand(3, generator=g)]
g = torch.Generator().manual_seed(7); h = g.clone_state(); [torch.rand(2, generator=g), torch.rand(2, generator=h)]
g = torch.Generator().manual_seed(7); s = g.get_state(); a = torch.rand(2, generator=g); g.set_state(s); [a, torch.rand(2, generator=g), s.dtype, s.shape]
torch.manual_seed(5); torch.initial_seed()
torch.manual_seed(5).initial_seed()
torch.default_generator.device
type(torch.seed())
import pickle; g = torch.Generator().manual_seed(7); h = pickle.loads(pickle.dumps(g)); torch.rand(2, generator=h)
import copy; g = torch.Generator().manual_seed(7); h = copy.deepcopy(g); torch.rand(2, generator=h)
torch.manual_seed(2 ** 64 - 1); torch.rand(2)
torch.manual_seed(-1); torch.rand(2)
torch.manual_seed(True); torch.rand(2)
torch.manual_seed(np.int64(5)); torch.rand(2)
""".strip().splitlines()  # noqa: E501


@pytest.mark.parametrize("program", PROGRAMS)
def test_generators(program, agree):
    agree(program)
