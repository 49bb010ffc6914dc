"""Tensors and the rest of Python: NumPy, DLPack, pickle, copy, numbers, iteration, formatting: the same in PyTorch.

One program a line; `agree` (conftest.py) runs it in both libraries.
"""

import pytest

pytest.importorskip("torch")

PROGRAMS = r"""
torch.tensor([1, 2]).numpy()
torch.tensor([1.0, 2]).numpy()
torch.tensor([1.0, 2], requires_grad=True).numpy()
torch.tensor([1.0, 2], requires_grad=True).numpy(force=True)
torch.tensor([1.0], dtype=torch.bfloat16).numpy()
torch.tensor([1j]).numpy()
torch.tensor(3).numpy()
torch.zeros(2, 0).numpy()
t = torch.arange(3.0); a = t.numpy(); a[0] = 9; t
np.asarray(torch.arange(3))
np.array(torch.arange(3), dtype=np.float32)
np.asarray(torch.arange(6).view(2, 3).T)
np.add(torch.arange(3).numpy(), 1)
np.sin(torch.zeros(2))
torch.arange(3) + np.arange(3)
np.arange(3) + torch.arange(3)
np.float32(2) * torch.arange(3)
np.float64(2) * torch.arange(3.0)
torch.arange(3.0) * np.float64(2)
torch.arange(3) * np.int64(2)
torch.arange(3) == np.arange(3)
memoryview(torch.arange(3).numpy()).tolist()
np.from_dlpack(torch.arange(3))
torch.from_dlpack(np.arange(3))
torch.from_dlpack(torch.arange(3))
torch.utils.dlpack.from_dlpack(torch.utils.dlpack.to_dlpack(torch.arange(3)))
torch.to_dlpack(torch.arange(3)) is not None
c = torch.arange(3).__dlpack__(); torch.from_dlpack(c); torch.from_dlpack(c)
torch.arange(3).__dlpack_device__()[1]
torch.arange(3.0, requires_grad=True).__dlpack__()
repr(torch.arange(3).__dlpack__(max_version=(1, 0)))[:37]
repr(torch.arange(3).__dlpack__(max_version=(2, 1)))[:37]
repr(torch.arange(3).__dlpack__(max_version=(0, 8)))[:27]
torch.from_dlpack(torch.arange(3).__dlpack__(max_version=(1, 0)))
c = torch.arange(3).__dlpack__(max_version=(1, 0)); torch.from_dlpack(c); torch.from_dlpack(c)
torch.arange(3).__dlpack__(stream=object())
torch.arange(3).__dlpack__(stream=0)
torch.arange(3).__dlpack__(stream=-1) is not None
torch.ones(2).to_sparse().__dlpack__()
a = np.arange(3); a.flags.writeable = False; torch.from_dlpack(a)
torch.tensor(type("Wraps", (), {"__dlpack__": lambda self, **k: torch.ones(2).__dlpack__(**k), "__dlpack_device__": lambda self: (1, 0)})())
torch.Storage(np.int16(3)).size(), torch.FloatStorage(np.int64(2)).size()
import pickle; pickle.loads(pickle.dumps(torch.arange(3)))
import pickle; pickle.loads(pickle.dumps(torch.arange(6).view(2, 3).T))
import pickle; pickle.loads(pickle.dumps(torch.ones(2, requires_grad=True)))
import pickle; a = torch.zeros(3); b = a[1:]; x, y = pickle.loads(pickle.dumps((a, b))); x.data_ptr() == y.data_ptr() or y.untyped_storage().data_ptr() == x.untyped_storage().data_ptr()
import pickle; pickle.loads(pickle.dumps(torch.float32))
import pickle; pickle.loads(pickle.dumps(torch.strided))
import pickle; pickle.loads(pickle.dumps(torch.channels_last))
import pickle; pickle.loads(pickle.dumps(torch.tensor([1.0], dtype=torch.bfloat16)))
import pickle; pickle.loads(pickle.dumps(torch.zeros(0, 2)))
import pickle; pickle.loads(pickle.dumps(torch.ones(2) * torch.ones(2, requires_grad=True)))
import pickle; t = torch.ones(2); t.foo = 3; pickle.loads(pickle.dumps(t)).foo
import copy; copy.copy(torch.arange(3))
import copy; t = torch.arange(3); copy.copy(t).data_ptr() == t.data_ptr()
import copy; t = torch.arange(3); copy.deepcopy(t).data_ptr() == t.data_ptr()
import copy; a = torch.zeros(3); b = a[1:]; x, y = copy.deepcopy((a, b)); x[1] = 5; y
import copy; copy.deepcopy(torch.ones(2, requires_grad=True))
import copy; copy.deepcopy(torch.ones(2, requires_grad=True) * 2)
import copy; t = torch.ones(2, requires_grad=True); t.grad = torch.ones(2); copy.deepcopy(t).grad
import copy; t = torch.ones(2); t.foo = [1]; copy.deepcopy(t).foo
import copy; copy.deepcopy(torch.float32) is torch.float32
import copy; copy.copy(torch.float32) is torch.float32
import copy; copy.deepcopy(torch.zeros(2, device='meta'))
import weakref; t = torch.zeros(2); r = weakref.ref(t); x = r() is t; del t; [x, r() is None]
import weakref; t = torch.zeros(2, requires_grad=True); y = t * 2; r = weakref.ref(t); del t; r() is None
t = torch.zeros(2); {t: 1}[t]
len(torch.zeros(3, 2))
len(torch.tensor(1))
list(torch.arange(3))
[x.tolist() for x in torch.arange(4).view(2, 2)]
iter(torch.tensor(1))
a, b = torch.arange(2); a
3 in torch.arange(4)
'a' in torch.arange(4)
torch.tensor(1) in torch.arange(4)
list(reversed(torch.arange(3)))
bool(torch.tensor([1]))
bool(torch.tensor([]))
bool(torch.tensor([1, 2]))
int(torch.tensor(2.7))
int(torch.tensor([3]))
int(torch.tensor([3, 4]))
int(torch.tensor(float('nan')))
int(torch.tensor(float('inf')))
int(torch.tensor(1 + 2j))
int(torch.tensor(1 + 0j))
float(torch.tensor(2))
float(torch.tensor(True))
float(torch.tensor(1j))
complex(torch.tensor(2.0))
torch.tensor(2).__index__()
torch.tensor([2]).__index__()
torch.tensor(2.0).__index__()
torch.tensor(True).__index__()
[1, 2, 3][torch.tensor(1)]
'abc'[torch.tensor(1):]
range(torch.tensor(3))
torch.tensor(2 ** 63, dtype=torch.uint64).item()
torch.tensor(2 ** 64 - 1, dtype=torch.uint64).item()
torch.tensor([1, 2]).item()
torch.tensor([]).item()
torch.tensor(1.5).item()
torch.tensor(1.5, dtype=torch.bfloat16).item()
torch.tensor(1.5, dtype=torch.float8_e4m3fn).item()
torch.tensor(True).item()
round(torch.tensor(1.5))
round(torch.tensor(1.2345), 2)
abs(torch.tensor(-1))
-torch.tensor([True])
+torch.tensor([1])
~torch.tensor([True])
~torch.tensor([1])
~torch.tensor([1.0])
divmod(torch.tensor(5), torch.tensor(2))
import math; math.floor(torch.tensor(1.5))
import math; math.sqrt(torch.tensor(4))
f'{torch.tensor(1.5):.3f}'
f'{torch.tensor([1.5])}'
'%d' % torch.tensor(3)
'%.2f' % torch.tensor(3)
torch.tensor([1, 2]) == [1, 2]
torch.tensor([1, 2]) == None
torch.tensor([1, 2]) != None
torch.tensor([1, 2]) == 'a'
torch.tensor([1, 2]) < 'a'
torch.tensor([1, 2]) + 'a'
torch.tensor([1, 2]) + [1, 2]
torch.tensor([1, 2]) + None
[1] + torch.tensor([1])
None + torch.tensor([1])
torch.tensor([1, 2]).foo
torch.zeros(2).shape = 3
t = torch.zeros(2); t.foo = 1; t.foo
del torch.zeros(2)[0]
torch.arange(3).tolist()
torch.tensor(3).tolist()
torch.zeros(2, 0).tolist()
torch.tensor([1.5], dtype=torch.float16).tolist()
torch.arange(3).apply_(lambda x: x * 2)
torch.arange(3).map_(torch.arange(3), lambda x, y: x + y)
isinstance(torch.zeros(2), torch.Tensor)
torch.Tensor.__name__
torch.Tensor.__module__
torch.zeros(1).__class__.__name__
torch.arange(4).view(2, 2).T.data_ptr() != 0
torch.empty(0).data_ptr()
""".strip().splitlines()  # noqa: E501


@pytest.mark.parametrize("program", PROGRAMS)
def test_interop(program, agree):
    agree(program)
