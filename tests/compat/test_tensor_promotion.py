"""Which dtype a computation has, and what conversions do to values: the same in PyTorch.

One program a line; `agree` (conftest.py) runs it in both libraries.
"""

import pytest

pytest.importorskip("torch")

PROGRAMS = r"""
[str(torch.promote_types(getattr(torch, a), getattr(torch, b))) for a in 'float64 float32 float16 bfloat16 complex64 complex128 complex32 int8 int16 int32 int64 uint8 bool'.split() for b in 'float64 float32 float16 bfloat16 complex64 complex128 complex32 int8 int16 int32 int64 uint8 bool'.split()]
[torch.can_cast(getattr(torch, a), getattr(torch, b)) for a in 'float64 float32 float16 bfloat16 complex64 complex128 complex32 int8 int16 int32 int64 uint8 bool'.split() for b in 'float64 float32 float16 bfloat16 complex64 complex128 complex32 int8 int16 int32 int64 uint8 bool'.split()]
[str(torch.result_type(torch.ones(s, dtype=getattr(torch, a)), v)) for a in 'float64 float32 float16 bfloat16 complex64 int8 int64 uint8 bool'.split() for v in (True, 1, 1.5, 1j) for s in ((), (2,))]
[str(torch.result_type(torch.ones(s, dtype=getattr(torch, a)), torch.ones(z, dtype=getattr(torch, b)))) for a in 'float64 float32 float16 bfloat16 complex64 int8 int64 uint8 bool'.split() for b in 'float64 float32 float16 bfloat16 complex64 int8 int64 uint8 bool'.split() for s in ((), (2,)) for z in ((), (2,))]
[str((torch.ones(s, dtype=getattr(torch, a)) + torch.ones(z, dtype=getattr(torch, b))).dtype) for a in 'float64 float32 float16 bfloat16 complex64 int8 int64 uint8 bool'.split() for b in 'float64 float32 float16 bfloat16 complex64 int8 int64 uint8 bool'.split() for s in ((), (2,)) for z in ((), (2,))]
[str((torch.ones(s, dtype=getattr(torch, a)) * v).dtype) for a in 'float64 float32 float16 bfloat16 complex64 int8 int64 uint8 bool'.split() for v in (True, 1, 1.5, 1j) for s in ((), (2,))]
torch.promote_types(torch.uint16, torch.int16)
torch.promote_types(torch.uint64, torch.float32)
torch.promote_types(torch.uint32, torch.uint32)
torch.promote_types(torch.float8_e4m3fn, torch.float32)
torch.promote_types(torch.float8_e4m3fn, torch.float8_e4m3fn)
torch.ones(2, dtype=torch.float8_e4m3fn).to(torch.float32)
torch.tensor([300.5, -1.7, 10000000000.0]).to(torch.int32)
torch.tensor([3.7, -1.7]).to(torch.uint8)
torch.tensor([3.7, -1.7]).to(torch.int8)
torch.tensor([0.0, 0.5, float('nan')]).to(torch.bool)
torch.tensor([1 + 2j]).to(torch.float32)
torch.tensor([1.5, 65519.0, 65520.0]).to(torch.float16)
torch.tensor([1.00390625, 3.3]).to(torch.bfloat16)
torch.tensor([448.0, 480.0, 0.001, -0.3]).to(torch.float8_e4m3fn).float()
torch.tensor([57344.0, 70000.0, 1e-06, -0.3]).to(torch.float8_e5m2).float()
torch.tensor([448.0, 480.0, 0.001, -0.3]).to(torch.float8_e4m3fnuz).float()
torch.tensor([2 ** 40]).to(torch.int32)
torch.tensor([2 ** 31]).to(torch.int16)
torch.tensor([-1]).to(torch.uint64)
""".strip().splitlines()  # noqa: E501


@pytest.mark.parametrize("program", PROGRAMS)
def test_promotion(program, agree):
    agree(program)
