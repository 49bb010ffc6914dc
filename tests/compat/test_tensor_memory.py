"""Storages, views, strides, versions, conversions, sizes, limits of dtypes, devices and the meta device: the same in
PyTorch.

One program a line; `agree` (conftest.py) runs it in both libraries.
"""

import pytest

pytest.importorskip("torch")

PROGRAMS = r"""
torch.zeros(2, 3).T.stride()
torch.empty(2, 3, 4, 5, memory_format=torch.channels_last).stride()
torch.zeros(2, 3, 4, 5).to(memory_format=torch.channels_last).is_contiguous(memory_format=torch.channels_last)
torch.zeros(2, 3, 4, 5).contiguous(memory_format=torch.channels_last).stride()
torch.zeros(2, 3, 4, 5).to(memory_format=torch.channels_last).clone().stride()
torch.zeros(2, 3, 4, 5).to(memory_format=torch.channels_last).clone(memory_format=torch.contiguous_format).stride()
torch.zeros(2, 3, 4, 5, 6).to(memory_format=torch.channels_last_3d).stride()
torch.zeros_like(torch.zeros(2, 3, 4, 5).to(memory_format=torch.channels_last)).stride()
(torch.zeros(2, 3, 4, 5).to(memory_format=torch.channels_last) + 1).stride()
torch.arange(12).as_strided((3, 2), (4, 1), 1)
torch.arange(12).as_strided((3, 2), (4, 1), 20)
torch.arange(12).as_strided((3, 2), (-4, 1))
t = torch.arange(12.0); t.as_strided_((2, 2), (1, 2)); t
t = torch.zeros(3); v = t._version; t.add_(1); t[0] = 2; t[1:].mul_(2); t._version - v
t = torch.zeros(3); t.data.add_(1); [t._version, t.tolist()]
t = torch.zeros(3); s = t.detach(); s.add_(1); [t._version, s._version, t.tolist()]
t = torch.zeros(3); u = torch.ones(2, 2); t.set_(u); [t, t.data_ptr() == u.data_ptr()]
t = torch.zeros(3); t.set_(); t
t = torch.zeros(3); u = torch.arange(6.0); t.set_(u.untyped_storage(), 1, (2, 2), (2, 1)); t
t = torch.zeros(3); u = torch.arange(6.0); t.set_(u.storage(), 1, (2, 2), (2, 1)); t
t = torch.zeros(3); u = torch.arange(6.0); t.set_(source=u.untyped_storage(), storage_offset=1, size=(2, 2), stride=(2, 1)); t
t = torch.zeros(3); t.set_(torch.zeros(2, dtype=torch.int64)); t
t = torch.zeros(3); t.data = torch.ones(2); t
t = torch.zeros(3, requires_grad=True); t.data = torch.ones(2); t
t = torch.zeros(3, requires_grad=True); t.data = torch.ones(2, dtype=torch.int32); t
t = torch.zeros(3); t.data = torch.ones(2, dtype=torch.int32); t
torch.zeros(3).to(torch.float64)
torch.zeros(3).to('cpu')
torch.zeros(3).to('cpu', torch.float16)
torch.zeros(3).to(torch.device('cpu'), torch.int32, non_blocking=True, copy=True)
torch.zeros(3).to(dtype=torch.int8)
torch.zeros(3).to(device='cpu', dtype=torch.int8)
torch.zeros(3).to(torch.ones(2, dtype=torch.int8))
t = torch.zeros(3); [t.to('cpu') is t, t.to(torch.float32) is t, t.to(torch.float32, copy=True) is t, t.to(t) is t, t.float() is t]
torch.zeros(3).to('meta')
torch.zeros(3, device='meta').to('cpu')
torch.zeros(3).to('nope')
torch.zeros(3).to(3)
torch.zeros(3).to()
torch.zeros(3).to(None)
torch.zeros(3).to(torch.float64, torch.float32)
torch.zeros(3).to(dtype='float32')
torch.zeros(3).type()
torch.zeros(3, dtype=torch.bfloat16).type()
torch.zeros(3).type(torch.int64)
torch.zeros(3).type('torch.LongTensor')
torch.zeros(3).type(torch.DoubleTensor)
torch.zeros(3).type('nope')
torch.zeros(3).share_memory_().is_shared()
torch.zeros(3).is_shared()
torch.zeros(3).is_pinned()
torch.Size([1, 2, 3])
repr(torch.Size([1, 2, 3]))
torch.Size([1, 2, 3]).numel()
torch.Size([1, 2, 3])[1:]
type(torch.Size([1, 2, 3])[1:])
type(torch.Size([1, 2]) + torch.Size([2]))
type(torch.Size([1, 2]) + (2,))
type(torch.Size([1, 2]) * 2)
torch.Size([1, 2]) == (1, 2)
torch.Size((2.5,))
torch.Size([torch.tensor(3)])
torch.Size(torch.tensor([3, 4]))
torch.Size([1, 2]).count(1)
hash(torch.Size([1, 2])) == hash((1, 2))
import pickle; pickle.loads(pickle.dumps(torch.Size([1, 2])))
import copy; type(copy.deepcopy(torch.Size([1, 2])))
torch.finfo(torch.float32)
torch.finfo(torch.float64)
torch.finfo(torch.float16)
torch.finfo(torch.bfloat16)
torch.finfo(torch.float8_e4m3fn)
torch.finfo(torch.float8_e5m2)
torch.finfo(torch.complex64)
torch.finfo()
torch.finfo(torch.int8)
torch.iinfo(torch.int8)
torch.iinfo(torch.int64)
torch.iinfo(torch.uint8)
torch.iinfo(torch.uint16)
torch.iinfo(torch.uint64)
torch.iinfo(torch.bool)
torch.iinfo(torch.float32)
[torch.finfo(torch.float32).max, torch.finfo(torch.float32).eps, torch.finfo(torch.float32).tiny, torch.finfo(torch.float32).smallest_normal, torch.finfo(torch.float32).resolution, torch.finfo(torch.float32).bits, torch.finfo(torch.float32).dtype]
torch.finfo(torch.float32) == torch.finfo(torch.float32)
torch.device('cpu')
repr(torch.device('cuda:1'))
str(torch.device('cuda:1'))
[torch.device('cuda', 1).index, torch.device('cuda').index, torch.device('cpu').type, torch.device(type='cuda', index=2).index]
torch.device('cuda:1') == torch.device('cuda', 1)
torch.device('cpu') == 'cpu'
torch.device('cuda') == torch.device('cuda:0')
hash(torch.device('cpu')) == hash(torch.device('cpu'))
torch.device('nope')
torch.device('cuda:-1')
torch.device('cuda:x')
torch.device('cpu:0')
torch.device(torch.device('cpu'))
torch.device('meta')
import pickle; pickle.loads(pickle.dumps(torch.device('cuda:1')))
import copy; copy.deepcopy(torch.device('cuda:1'))
torch.set_default_device('meta'); r = [torch.zeros(2).device, torch.tensor(1.0).device, torch.get_default_device()]; torch.set_default_device(None); r + [torch.zeros(2).device]
torch.set_default_device('meta'); r = torch.rand(2).device; torch.set_default_device('cpu'); s = torch.rand(2).device; torch.set_default_device(None); [r, s]
torch.zeros(3, device='meta') + 1
(torch.zeros(3, device='meta') + torch.zeros(2, 3, device='meta')).shape
torch.zeros(3, device='meta') @ torch.zeros(3, device='meta')
torch.zeros(3, device='meta') + torch.zeros(3)
torch.zeros(3, device='meta').item()
torch.zeros(3, device='meta').tolist()
torch.zeros(3, device='meta').numpy()
bool(torch.zeros(1, device='meta'))
repr(torch.zeros(3, device='meta'))
torch.zeros(3, device='meta').sum()
torch.zeros(3, device='meta').data_ptr()
torch.empty_like(torch.zeros(3, device='meta'), device='cpu').shape
torch.zeros(3, device='meta')[1]
torch.zeros(3, 4, device='meta')[:, 1:3]
torch.zeros(3, 4, device='meta')[torch.tensor([0, 1], device='meta')]
t = torch.zeros(3, 4, device='meta'); t[0] = 1; t
t = torch.zeros(3, 4, device='meta'); t.add_(1); t
t = torch.zeros(10); [t.untyped_storage().nbytes(), t[3:].untyped_storage().nbytes(), t[3:].storage_offset(), len(t.storage()), t.untyped_storage().size()]
t = torch.arange(4.0); t.untyped_storage().resize_(32); t.untyped_storage().nbytes()
t = torch.arange(4.0); t.untyped_storage().resize_(0); t.shape
t = torch.arange(4); t.untyped_storage().tolist()[:9]
torch.arange(4).storage().tolist()
torch.UntypedStorage(8).nbytes()
t = torch.arange(4.0); a = t[1:]; a.untyped_storage().data_ptr() == t.untyped_storage().data_ptr()
t = torch.zeros(2, 3); t.resize_(3, 4).shape
t = torch.arange(6.0); t.resize_(2, 2)
t = torch.arange(6.0); t.resize_as_(torch.zeros(3, 2))
t = torch.arange(6.0).view(2, 3); t.resize_(2, 2, memory_format=torch.contiguous_format)
torch.arange(6)[1:].view(5).storage_offset()
torch.arange(6).view(torch.int32)
torch.arange(6).view(torch.float64).dtype
torch.arange(6).view(2, -1)
torch.arange(6).view(4, -1)
torch.arange(6).view(-1, -1)
torch.arange(6).view(size=(2, 3))
torch.arange(6).view(dtype=torch.int16).shape
torch.zeros(2, 3).T.view(6)
torch.zeros(2, 3).view((3, 2))
torch.zeros(0, 3).view(-1)
torch.zeros(0, 3).view(-1, 0)
torch.zeros(0, 3).view(0, -1)
torch.arange(6.0).reshape(2, 3).requires_grad_().detach_().requires_grad
t = torch.arange(3.0); u = torch.zeros(2, 3); u.copy_(t); u
t = torch.arange(3.0); u = torch.zeros(2, 3, dtype=torch.int8); u.copy_(t, non_blocking=True); u
torch.zeros(3).copy_(torch.zeros(2))
torch.zeros(3).copy_(1)
torch.zeros(1).expand(3).copy_(torch.arange(3.0))
torch.zeros(1).expand(3).add_(1)
torch.zeros(3).is_set_to(torch.zeros(3))
t = torch.zeros(3); t.is_set_to(t.view(3))
torch.zeros(3).is_same_size(torch.zeros(3))
[torch.zeros(3).nbytes, torch.zeros(3).itemsize, torch.zeros(3).element_size(), torch.zeros(3).ndim, torch.zeros(3).nelement(), torch.zeros(3).dim_order()]
torch.float32.to_complex()
[torch.float32.itemsize, torch.float32.is_floating_point, torch.complex64.is_complex, torch.uint8.is_signed, torch.complex64.to_real(), torch.float16.to_complex()]
torch.is_tensor(torch.zeros(2))
torch.is_storage(torch.zeros(2).storage())
torch.is_floating_point(torch.zeros(2))
torch.is_complex(torch.zeros(2))
torch.is_nonzero(torch.tensor([1]))
torch.is_nonzero(torch.tensor([1, 2]))
torch.numel(torch.zeros(2, 3))
torch.is_conj(torch.zeros(2))
torch.is_inference(torch.zeros(2))
torch.zeros(2, dtype=torch.complex64).resolve_conj()
torch.zeros(2).is_neg()
torch.typename(torch.zeros(2))
torch.zeros(2).layout
torch.strided
torch.sparse_coo
torch.contiguous_format
torch.preserve_format
torch.get_device(torch.zeros(2))
torch.zeros(2).get_device()
""".strip().splitlines()  # noqa: E501


@pytest.mark.parametrize("program", PROGRAMS)
def test_memory(program, agree):
    agree(program)
