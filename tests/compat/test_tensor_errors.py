"""Calls that must fail do so with PyTorch's exception class, and those that look as if they must but need not, work.

One program a line; `agree` (conftest.py) runs it in both libraries.
"""

import pytest

pytest.importorskip("torch")

PROGRAMS = r"""
torch.ones(2) + torch.ones(3)
torch.ones(2, 3) + torch.ones(2)
torch.ones(2) @ torch.ones(3)
torch.ones(2, 3) @ torch.ones(2, 3)
torch.tensor(1.0) @ torch.tensor(1.0)
torch.mm(torch.ones(2), torch.ones(2))
torch.mm(torch.ones(2, 2), torch.ones(3, 2))
torch.bmm(torch.ones(2, 2), torch.ones(2, 2))
torch.ones(2, 2) @ torch.ones(2, 2, dtype=torch.int64)
torch.dot(torch.ones(2), torch.ones(3))
torch.mv(torch.ones(2, 2), torch.ones(3))
torch.addmm(torch.ones(3), torch.ones(2, 2), torch.ones(2, 2))
torch.cat([])
torch.cat([torch.ones(2), torch.ones(2, 2)])
torch.cat([torch.ones(2, 2), torch.ones(2, 3)])
torch.cat([torch.ones(2)], dim=3)
torch.cat(torch.ones(2))
torch.cat([1, 2])
torch.cat()
torch.stack([torch.ones(2), torch.ones(3)])
torch.stack([])
torch.stack([torch.ones(2)], dim=5)
torch.ones(2).view(3)
torch.ones(2).view(-2)
torch.ones(2).view('a')
torch.ones(2).view(2.5)
torch.ones(2).reshape(3)
torch.ones(2).reshape(-1, -1)
torch.ones(2, 3).reshape(4, -1)
torch.ones(2).reshape()
torch.ones(2, 3).transpose(0, 5)
torch.ones(2, 3).transpose(0)
torch.ones(2, 3).transpose('a', 'b')
torch.ones(2, 3).permute(0)
torch.ones(2, 3).permute(0, 0)
torch.ones(2, 3).permute(0, 2)
torch.ones(2, 3, 4).t()
torch.ones(2, 3).expand(3, 3)
torch.ones(2, 3).expand(3)
torch.ones(2, 3).expand(-1, -1, 3)
torch.ones(3).expand(-1, 3)
torch.ones(3).expand(-2, 3)
torch.ones(2, 3).squeeze(5)
torch.ones(2, 3).unsqueeze(5)
torch.ones(2, 3).unsqueeze()
torch.ones(2, 3).narrow(0, 1, 3)
torch.ones(2, 3).narrow(0, -5, 1)
torch.ones(2, 3).narrow(0, 0, -1)
torch.ones(2, 3).narrow(5, 0, 1)
torch.ones(2, 3).select(0, 5)
torch.ones(2, 3).select(5, 0)
torch.tensor(1).select(0, 0)
torch.ones(2, 3).split(0)
torch.ones(2, 3).split(-1)
torch.ones(2, 3).split([1, 2])
torch.ones(2, 3).split(1, 5)
torch.ones(2, 3).chunk(0)
torch.ones(2, 3).unbind(5)
torch.tensor(1).unbind()
torch.ones(2, 3).unfold(0, 5, 1)
torch.ones(2, 3).unfold(0, 1, 0)
torch.ones(2, 3).diagonal(0, 0, 0)
torch.ones(2).diagonal()
torch.ones(2, 3).flatten(1, 0)
torch.ones(2, 3).flatten(5)
torch.ones(6).unflatten(0, (4, -1))
torch.ones(6).unflatten(0, (4, 2))
torch.ones(2, 3).repeat(2)
torch.ones(2, 3).repeat(-1, 1)
torch.ones(2, 3).roll(1, 5)
torch.ones(2, 3).roll((1, 2), 0)
torch.ones(2, 3).flip(5)
torch.ones(2, 3).flip(0, 0)
torch.ones(2, 3).rot90(1, [0])
torch.ones(2, 3).rot90(1, [0, 0])
torch.ones(2, 3).movedim(0, 5)
torch.ones(2, 3)[5]
torch.ones(2, 3)[-3]
torch.ones(2, 3)[0, 0, 0]
torch.ones(2, 3)[..., ..., 0]
torch.ones(2, 3)['a']
torch.ones(2, 3)[1.5]
torch.ones(2, 3)[::-1]
torch.ones(2, 3)[::0]
torch.ones(2, 3)[{}]
torch.ones(2, 3)[object()]
torch.ones(2, 3)[2 ** 70]
torch.ones(2, 3)[-2 ** 70]
torch.ones(2, 3)[:2 ** 70].shape
torch.ones(2, 3)['a':]
torch.ones(2, 3)[1.5:]
torch.ones(2, 3)[torch.ones(2)]
torch.ones(2, 3)[torch.tensor([5])]
torch.ones(2, 3)[torch.tensor([True, False, True])]
torch.ones(2, 3)[[0, 5]]
torch.ones(2, 3)[[0, 1], [0, 1, 2]]
torch.ones(2, 3)[[0.5]]
torch.ones(2, 3)[['a']]
torch.ones(2, 3)[torch.tensor([1j])]
torch.ones(2, 3)[[[0, 1], [0]]]
torch.tensor(1)[0]
torch.tensor(1)[:]
torch.tensor(1)[...]
torch.tensor(1)[None]
torch.tensor(1)[()]
torch.tensor(1)[True]
t = torch.ones(2, 3); t[5] = 1
t = torch.ones(2, 3); t[0] = torch.ones(2); t
t = torch.ones(2, 3); t[0] = 'a'; t
t = torch.ones(2, 3); t[0] = None; t
t = torch.ones(2, 3); t[0] = [1, 2, 3]; t
t = torch.ones(2, 3); t[0] = np.ones(3); t
t = torch.ones(2, 3); t[0] = 1j; t
t = torch.ones(2, 3); t[torch.tensor([0, 1])] = torch.ones(3, 3); t
t = torch.ones(2, 3, dtype=torch.int32); t[0] = 1.7; t
t = torch.ones(2, 3, dtype=torch.int32); t[0] = torch.tensor(1.7); t
t = torch.ones(2, 3, dtype=torch.uint8); t[0] = 300; t
t = torch.ones(2, 3, dtype=torch.uint8); t[0] = -1; t
t = torch.ones(2, 3, dtype=torch.bool); t[0] = 5; t
torch.ones(2, 3).sum(5)
torch.ones(2, 3).sum((0, 0))
torch.ones(2, 3).sum('a')
torch.ones(2, 3).sum(dim=1.5)
torch.ones(2, 3).mean(dim=5)
torch.ones(2, 3, dtype=torch.int64).mean()
torch.ones(0).max()
torch.ones(0, 3).max(0)
torch.ones(0).argmax()
torch.ones(0).mean()
torch.ones(2).softmax()
torch.ones(2).softmax(5)
torch.ones(2, dtype=torch.int64).softmax(0)
torch.ones(2).sort(5)
torch.ones(2).topk(5)
torch.ones(2).kthvalue(0)
torch.ones(2).cumsum()
torch.ones(2).cumsum(5)
torch.ones(2, 3).gather(0, torch.ones(2, 3))
torch.ones(2, 3).gather(0, torch.full((2, 3), 5))
torch.ones(2, 3).gather(5, torch.zeros(2, 3, dtype=torch.int64))
torch.ones(2, 3).index_select(0, torch.tensor([5]))
torch.ones(2, 3).index_select(0, torch.tensor([0.5]))
torch.ones(2, 3).index_select(0, torch.tensor([[0]]))
torch.ones(2, 3).scatter(0, torch.tensor([[5]]), 1.0)
torch.ones(2, 3).scatter(0, torch.tensor([[0]]), torch.ones(1, 1, dtype=torch.int64))
torch.ones(2, 3).masked_fill(torch.ones(2, 3), 0)
torch.ones(2, 3).masked_fill(torch.ones(2, dtype=torch.bool), 0)
torch.ones(2, 3).masked_select(torch.ones(2, 3))
torch.where(torch.ones(2), 1, 2)
torch.where(torch.ones(2, dtype=torch.bool), torch.ones(3), 2)
torch.ones(2, 3).take(torch.tensor([10]))
torch.ones(2, 3).take(torch.tensor([0.5]))
torch.ones(2).item()
torch.add(1)
torch.add()
torch.add(torch.ones(2), torch.ones(2), foo=1)
torch.add(torch.ones(2), torch.ones(2), alpha='a')
torch.add(torch.ones(2, dtype=torch.int64), torch.ones(2, dtype=torch.int64), alpha=1.5)
torch.add(torch.ones(2), 'a')
torch.add('a', torch.ones(2))
torch.add(torch.ones(2), None)
torch.add(torch.ones(2), torch.ones(2), out=torch.ones(2, dtype=torch.int64))
torch.add(torch.ones(2), torch.ones(2), out='a')
torch.add(torch.ones(2), torch.ones(2), out=torch.ones(2, requires_grad=True))
torch.add(torch.ones(2, requires_grad=True), torch.ones(2), out=torch.ones(2))
torch.add(torch.ones(2), torch.ones(2), out=torch.empty(1).expand(2))
torch.ones(2, dtype=torch.int64).add_(1.5)
torch.ones(2).add_(torch.ones(3, 2))
torch.ones(2, dtype=torch.int64).div_(2)
torch.ones(2, dtype=torch.bool).add_(1)
torch.ones(2).add_(1j)
torch.ones(2, dtype=torch.int64).sqrt_()
torch.ones(2, dtype=torch.int64).sqrt()
torch.exp('a')
torch.exp()
torch.exp(1)
torch.exp(torch.ones(2), torch.ones(2))
torch.ones(2).exp(1)
torch.ones(2) & torch.ones(2)
torch.ones(2) << 1
torch.ones(2, dtype=torch.bool) - torch.ones(2, dtype=torch.bool)
1 - torch.ones(2, dtype=torch.bool)
torch.ones(2, dtype=torch.int64) // 0
torch.ones(2, dtype=torch.int64) % 0
torch.ones(2, dtype=torch.int64) ** (-1)
torch.ones(2, dtype=torch.complex64) < 1
torch.ones(2, dtype=torch.complex64).floor()
torch.ones(2, dtype=torch.complex64).max()
torch.ones(2, dtype=torch.complex64) % 2
torch.ones(2, dtype=torch.complex64).float()
torch.floor(torch.ones(2, dtype=torch.bool))
torch.clamp(torch.ones(2))
torch.clamp(torch.ones(2), min='a')
torch.ones(2).clamp(min=2, max=1)
torch.einsum('ij,jk', torch.ones(2, 3), torch.ones(2, 3))
torch.einsum('ij')
torch.einsum('ii->j', torch.ones(2, 2))
torch.zeros(2).backward()
torch.zeros(2, requires_grad=True).backward()
torch.zeros(2, requires_grad=True).add_(1)
(torch.zeros(2, requires_grad=True) * 2).backward(torch.ones(3))
torch.zeros(2, dtype=torch.int64).requires_grad_()
t = torch.zeros(2, dtype=torch.int64); t.requires_grad = True
t = torch.zeros(2); t.requires_grad = 'a'
t = torch.zeros(2, requires_grad=True) * 2; t.requires_grad_(False)
t = torch.zeros(2, requires_grad=True); t.grad = torch.ones(3)
t = torch.zeros(2, requires_grad=True); t.grad = 1
t = torch.zeros(2, requires_grad=True); t.grad = torch.ones(2, dtype=torch.float64)
t = torch.zeros(2, requires_grad=True); t.view(2).add_(1)
t = torch.zeros(2); t.data = 1
t = torch.zeros(2); t.dtype = torch.float64
t = torch.zeros(2); t.is_leaf = True
torch.zeros(2).to('cpu:x')
torch.zeros(2, device='xyz')
torch.zeros(2, device=1.5)
torch.zeros(2, dtype=float)
torch.zeros(2, dtype=int)
torch.zeros(2, dtype='float')
torch.zeros(2, layout=3)
torch.ones(2).sizee
torch.sizee
torch.manual_seed('a')
torch.manual_seed(1.5) is not None
torch.manual_seed(2 ** 65)
torch.manual_seed(-1) is not None
torch.Generator('nope')
torch.Generator(device='cpu').device
torch.rand(2, generator=1)
torch.randint(5, 1, (2,))
torch.randint(0, (2,))
torch.randint(5)
torch.randint(300, (2,), dtype=torch.uint8)
torch.randperm(-1)
torch.randperm(2.5)
torch.multinomial(torch.zeros(3), 1)
torch.multinomial(torch.tensor([-1.0, 2.0]), 1)
torch.multinomial(torch.ones(3), 5)
torch.multinomial(torch.ones(3), 0)
torch.bernoulli(torch.tensor([2.0]))
torch.bernoulli(torch.tensor([1]))
torch.normal(0.0, -1.0, (2,))
torch.zeros(2).normal_(0, -1)
torch.zeros(2).uniform_(1, 0)
torch.zeros(2).exponential_(-1)
torch.zeros(2, dtype=torch.int64).normal_()
torch.zeros(2).random_(5, 1)
torch.rand(-1)
torch.rand(2, dtype=torch.int64)
torch.randn('a')
torch.set_rng_state(torch.zeros(3))
torch.set_rng_state(torch.zeros(3, dtype=torch.uint8))
torch.Generator().set_state(torch.zeros(5056, dtype=torch.uint8))
torch.ones(2).resize_(-1)
torch.ones(2).resize_(2 ** 62)
torch.ones(2).repeat(2 ** 40, 2 ** 40)
torch.ones(1).expand(2 ** 31, 2 ** 31, 2 ** 31)
torch.ones(2 ** 20, 1) + torch.ones(1, 2 ** 25)
torch.arange(0, 1, 1e-18)
torch.eye(2 ** 40)
torch.full((2 ** 50,), 1)
torch.linspace(0, 1, 2 ** 60)
torch.randperm(2 ** 50)
torch.ones(3).repeat_interleave(2 ** 60)
torch.tensor([1] * 3).bincount(minlength=2 ** 60)
torch.zeros(2, 3).as_strided((2 ** 62, 2), (1, 1))
torch.zeros(2, 3).as_strided((2,), (2 ** 62,))
torch.zeros(2, 3).as_strided((2,), (1,), 2 ** 62)
torch.zeros(2, 3).as_strided((2,), (1,), -1)
torch.zeros(2, 3).as_strided((2,), (1, 1))
torch.zeros(0).unfold(0, 0, 1).shape
torch.zeros(3).diag(2 ** 40)
torch.zeros(3).diag_embed(2 ** 40)
torch.tril_indices(2 ** 31, 2 ** 31)
torch.zeros(3).tile(2 ** 62)
torch.zeros(2).view(torch.complex64)
torch.zeros(3).view(torch.complex64)
torch.zeros(3)[1:].view(torch.float64)
torch.zeros(2, 3).mT.view(torch.float64)
torch.zeros(2).view_as(torch.zeros(3))
torch.view_as_complex(torch.zeros(3))
torch.view_as_real(torch.zeros(3))
torch.zeros(2, 3).T.T.T.data_ptr() != 0
torch.can_cast(torch.float32, torch.int32)
torch.can_cast(torch.int32, torch.float16)
torch.promote_types(torch.int32, 'a')
torch.result_type(1, 2)
torch.result_type(torch.ones(1), 1j)
torch.result_type('a', 1)
torch.result_type(torch.ones(1))
""".strip().splitlines()


@pytest.mark.parametrize("program", PROGRAMS)
def test_errors(program, agree):
    agree(program)
