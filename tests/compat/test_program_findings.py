"""What random programs (fuzz/programs.py) once found, made as short as it can be: each runs the same on both libraries,
step by step.
"""

import sys
import warnings
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
sys.path.insert(0, str(Path(__file__).with_name("fuzz")))
import lockstep  # noqa: E402
import programs  # noqa: E402

import cresset  # noqa: E402

PROGRAMS = {
    "nonzero gives its coordinates dimension by dimension": ["v0 = t.ones((4, 4, 2))", "v1 = t.nonzero(v0)",
        "v2 = t.argwhere(v0 > 0)"],
    "nothing that is not zero": ["v0 = t.zeros((4, 3))", "v1 = t.nonzero(v0)", "v2 = t.nonzero(t.tensor(1.0))"],
    "what is marked as dirty counts as written": ["v0 = values((3,), 'float32')", "v1 = DoubledInPlace.apply(v0)",
        "v2 = DoubledInPlace.apply(v0 * 1)"],
    "a scattered copy has the strides of its input": [
        "v0 = values((2, 4), 'float16', 2)[..., ::2]",
        "v1 = t.select_scatter(v0, v0[0], 0, 0)",
        "v2 = t.slice_scatter(v0, v0[:1], 0, 0, 1)",
        "v3 = t.diagonal_scatter(v0, t.zeros(2, dtype=v0.dtype))",
        "v4 = t.slice_scatter(t.ones(4).expand(2, 4), t.zeros(1, 4), 0, 0, 1)",
    ],
    "copies of views are contiguous": [
        "v0 = values((3, 3), 'float32', 2)",
        "v1 = t.as_strided_copy(v0, (2, 2), (1, 3), 0)",
        "v2 = t.permute_copy(v0, (1, 0))",
        "v3 = t.transpose_copy(v0, 0, 1)",
        "v4 = t.t_copy(v0)",
    ],
    "contiguous_format undoes channels_last only": [
        "v0 = values((2, 4), 'float32', 5).transpose(-1, -2)",
        "v1 = v0.to(memory_format=t.contiguous_format)",
        "v2 = values((2, 3, 2, 2), 'float32').to(memory_format=t.channels_last)",
        "v3 = v2.to(memory_format=t.contiguous_format)",
    ],
    "integers among halves keep the order of their dimensions": [
        "v0 = values((2, 2), 'int16', 1).transpose(-1, -2)",
        "v1 = values((2,), 'float16', 2)",
        "v2 = v0 - v1",
        "v3 = t.ones(1, 2, dtype=t.bfloat16) / t.ones(2, 6, dtype=t.int64).t()",
    ],
    "derivatives of a single number": [
        "v0 = t.tensor(2.0)",
        "v1 = t.func.jacrev(lambda x: x * x)(v0)",
        "v2 = t.func.jacfwd(lambda x: x * x)(v0)",
        "v3 = t.func.hessian(lambda x: x * x * x)(v0)",
    ],
    "Tensor of a tensor is a view of it, with its dtype and history": [
        "v0 = values((2,), 'int8')",
        "v1 = t.Tensor(v0)",
        "v2 = values((4, 3), 'float32').requires_grad_()",
        "v3 = t.Tensor(v2)",
        "v3.sum().backward()",
    ],
    "a truth value as alpha is for truth values": ["v0 = values((2, 4), 'float32')", "v1 = t.add(v0, v0, alpha=True)",
        "v2 = t.sub(v0, 1, alpha=True)", "v0.add_(1, alpha=True)"],
    "nearer ends are numbers of one dtype that is not an integer": [
        "v0 = values((2, 2), 'int64')",
        "v1 = t.lerp(v0, v0, 0.5)",
        "v2 = values((2,), 'float64')",
        "v3 = t.lerp(v2, values((2,), 'float32'), 0.5)",
        "v4 = t.heaviside(v2, values((2,), 'float32'))",
        "v5 = values((2,), 'bool')",
        "v5.lerp_(v5, 0.5)",
    ],
    "complex numbers have no absolute value in place": ["v0 = values((2,), 'complex64')", "v0.abs_()", "v1 = v0.abs()"],
    "bfloat16 pairs are no complex numbers": ["v0 = values((3, 2), 'bfloat16')", "v1 = t.view_as_complex(v0)",
        "v2 = t.view_as_complex(values((3, 2), 'float16'))"],
    "truth values whose bytes were shown are made contiguous": ["v0 = values((2, 3), 'bool', 2)",
        "v1 = v0.as_strided((3, 2), (1, 1), 2)", "say(v1.untyped_storage().nbytes())", "v2 = v1.contiguous()",
        "v3 = v0.t().contiguous()", "v4 = v0.t().type_as(v0)"],
    "ravel copies what is not contiguous": ["v0 = values((3, 3), 'float64', 1)", "v1 = v0[:, 2:].ravel()",
        "v2 = v0.ravel()", "v3 = t.ravel(t.tensor(1.0))"],
    "set_ and as_strided_ count, the source of set_ does not": ["v0 = values((4,), 'float32')",
        "v1 = values((4,), 'float32', 2)", "v2 = v0.detach()", "v0.set_(v1)", "say(v1._version, v2._version)",
        "v2.as_strided_((2,), (2,))"],
    "a leaf keeps its memory": ["v0 = values((4,), 'float32').requires_grad_()", "v0.set_(t.zeros(2))",
        "v0.set_(t.zeros(2).untyped_storage())", "with t.no_grad(): v0.set_(t.zeros(2))"],
    "sizes that stay keep their strides": ["v0 = t.empty_strided((2, 3), (1, 2)).fill_(1)",
        "v0.set_(v0.untyped_storage(), 0, (2, 3))"],
    "what dropout gave may be changed in place": ["v0 = values((4, 2), 'float32').requires_grad_()",
        "v1 = F.dropout(v0, 0.5)", "v1 += 1", "v1.mul_(2)", "v1.sum().backward()",
        "v2 = t.native_dropout(v0, 0.5, True)[0]", "v2.add_(1)", "v2.sum().backward()"],
    "a group of one value": ["v0 = t.ones(1, 2, 1)", "v1 = F.group_norm(v0, 2)", "v2 = F.group_norm(v0, 1)"],
    "no dimension to unflatten": ["v0 = t.tensor(1.0)", "v1 = v0.unflatten(-1, (1, 1))"],
    "no rows to embed": ["v0 = t.ones(0, 3)", "v1 = F.embedding(t.tensor([0]), v0)",
        "v2 = F.embedding(t.tensor([], dtype=t.int64), v0)"],
    "only leaves are told to require a gradient": ["v0 = t.ones(2, requires_grad=True)", "v1 = v0 * 2",
        "v1.requires_grad = True", "v1.requires_grad_()"],
    "tensors that have the common shape are not expanded": ["v0 = t.ones(2, 3, requires_grad=True)",
        "v1, v2 = t.broadcast_tensors(v0, t.ones(3))", "say(v1 is v0)"],
    "the extremes of all elements, said with None": ["v0 = values((2, 3), 'float32').requires_grad_()",
        "v1 = v0.amin(None)", "v2 = v0.amax(dim=None)", "(v1 + v2).backward()"],
    "recorded results change their own sizes": [
        "v0 = values((2, 3), 'float32').requires_grad_()",
        "v1 = v0 * 2",
        "v1.unsqueeze_(0)",
        "v1.transpose_(0, 2)",
        "v2 = v1[1:]",
        "v1.squeeze_()",
        "v1.mul_(3)",
        "(v1 * values((3, 2), 'float32', 3)).sum().backward()",
    ],
    "and so do views of them": ["v0 = values((2, 3), 'float32').requires_grad_()", "v1 = (v0 * 2)[:1]", "v1.t_()",
        "v1.mul_(3)", "(v1 * values((3, 1), 'float32')).sum().backward()"],
    "but not leaves": ["v0 = values((2, 3), 'float32').requires_grad_()", "v0.t_()", "v1 = v0[:1]", "v1.squeeze_()",
        "with t.no_grad(): v0.t_()"],
    "a retained gradient is that of the sizes before": ["v0 = values((2, 3), 'float32').requires_grad_()",
        "v1 = v0 * 2", "v1.retain_grad()", "v1.t_()", "v1.sum().backward()"],
    "a result is a number of its own dtype before it is written to another": [
        "v0 = values((2, 3), 'uint8', 1)",
        "v1 = t.zeros(2, 3)",
        "t.sub(v0, 5, out=v1)",
        "t.exp(v0.to(t.float16), out=v1)",
        "t.sigmoid(t.tensor([-6, 3]), out=v1)",
    ],
    "what is not a number of the same sort is refused by normalizations": [
        "v0 = F.layer_norm(values((2, 4), 'float64'), (4,), t.ones(4))",
        "v1 = F.group_norm(values((2, 4, 2), 'float16'), 2, t.ones(4), t.ones(4, dtype=t.float16))",
        "v2 = F.batch_norm(values((2, 4), 'bfloat16'), t.ones(4), t.ones(4, dtype=t.bfloat16))",
        "v3 = F.layer_norm(values((2, 4), 'float16'), (4,), t.ones(4))",
    ],
    "whole numbers are not divided by addcdiv": ["v0 = t.addcdiv(t.ones(2), t.tensor([1, 2]), t.tensor([True, True]))",
        "v1 = t.addcdiv(t.ones(2), t.tensor([1, 2]), t.ones(2))"],
    "True alone is all of a tensor": ["v0 = t.zeros(2, 3)", "v0[True] = t.ones(3, dtype=t.float16)", "v0[True] = v0",
        "v0[False] = 3", "v0[True, 0] = t.ones(3, dtype=t.float16)"],
    "one number through a mask after a slice": ["v0 = t.zeros(2, 2, dtype=t.float64)",
        "v0[:, t.tensor([True, False])] = t.tensor(1.0)", "v0[:, t.tensor([0])] = t.tensor(1.0)"],
    "what is written over itself": ["v0 = t.ones(1).expand(3)", "v0[:] = v0", "v0.copy_(v0)", "v1 = t.zeros(1, 0)",
        "v1[v1 != v1] = v1"],
    "storages of other sizes are not copied": ["v0 = t.zeros((), dtype=t.float16)",
        "v0.untyped_storage().copy_(t.ones((), dtype=t.int8).untyped_storage())"],
    "what was pickled can be resized": ["v0 = through_pickle(t.ones(2, 3))", "grown(v0, lambda: v0.resize_((4, 4)))",
        "v1 = through_pickle(t.ones(3, 0))", "say(v1.untyped_storage().tolist())"],
    "the number of elements that are not zero has no gradient": ["v0 = t.tensor([1.0, 0.0]).requires_grad_()",
        "t.linalg.vector_norm(v0, 0).backward()", "t.cdist(v0.view(2, 1), t.ones(1, 1), p=0).sum().backward()"],
    "next numbers of halves have the gradient of those they come from": [
        "v0 = t.tensor([1.0, 65504.0], dtype=t.float16).requires_grad_()",
        "v1 = t.nextafter(v0, t.tensor([0.0, inf], dtype=t.float16))",
        "v1.sum().backward()",
    ],
    "what is read through indices lies in the order of what it is read from": [
        "v0 = values((4, 3, 2), 'float32').transpose(-1, -2)",
        "v1 = v0[t.tensor([1, 0])]",
        "v2 = v0[t.tensor([[1, 0]]), :, t.tensor([[0], [2]])]",
        "v3 = v0[:, t.tensor([True, False])]",
        "v4 = values((4, 4), 'int8', 4).transpose(-1, -2)[None, t.tensor([[-2], [-2]])]",
    ],
    "numpy of a parameter": ["v0 = t.ones(2).requires_grad_()", "n1 = v0.numpy()", "with t.no_grad(): n2 = v0.numpy()",
        "with t.no_grad(): n3 = np.asarray(v0)"],
    "the mean of one number": ["v0 = t.tensor([2.0]).requires_grad_()", "v1 = t.std_mean(v0, 0)[1]", "v1.backward()"],
    "what has no next number towards itself passes no gradient on": ["v0 = t.tensor([0.0, 1.0, 2.0]).requires_grad_()",
        "v1 = t.nextafter(v0, t.tensor([0.0, 2.0, 2.0]))", "v1.sum().backward()", "v2 = t.nextafter(v0, v0)",
        "v2.pow(2).sum().backward()"],
    "a tensor of an array lies as the array does": ["v0 = values((2, 4), 'float32', 4)", "n1 = v0.T.numpy()",
        "v2 = t.tensor(n1)", "v3 = t.tensor(v0[:, ::2].numpy())", "v4 = t.tensor(n1, dtype=t.float64)"],
    "a single pixel with channels last is a copy": ["v0 = values((1, 3, 1, 1), 'float32', 1)",
        "v1 = v0.to(memory_format=t.channels_last)", "v2 = v1.to(memory_format=t.channels_last)",
        "v3 = values((2, 3, 4, 4), 'float32').to(memory_format=t.channels_last)[:, :, ::2]",
        "v4 = v3.to(memory_format=t.channels_last)", "v5 = v3.to(memory_format=t.contiguous_format)"],
    "who is skipped has a say in the format": [
        "v0 = values((3, 2, 4, 2), 'float16', 3).clone(memory_format=t.channels_last)",
        "v1 = t.cat([v0, t.tensor([]).half(), v0], -3)", "v2 = t.cat([v0, v0], -3)",
        "v3 = t.cat([v0, values((3, 2, 4, 2), 'float16', 3)], 1)",
    ],
    "what is rolled with channels last": ["v0 = values((4, 2, 3, 5), 'float32').clone(memory_format=t.channels_last)",
        "v1 = t.roll(v0, -1, -2)", "v2 = t.roll(v0, 0, 1)", "v3 = t.roll(v0, (1, 2), (0, 3))", "v4 = t.roll(v0, 3)",
        "v5 = t.roll(v0[:, :1], 1, 2)"],
    "memory of a tensor of inference mode": ["with t.inference_mode(): v0 = t.ones(2) * 2", "v1 = t.zeros(3)",
        "v1.set_(v0)"],
    "truth values of other bytes stay where a call is refused": ["v0 = t.zeros((), dtype=t.bool)",
        "v1 = t.empty(0, dtype=t.int8).set_(v0.untyped_storage())", "v1.fill_(2)", "F.relu(v0, inplace=True)",
        "v0.erf_()"],
    "places that are read into shared elements": ["v0 = t.ones(2, dtype=t.bool)", "v1 = v0.expand((2, 2))",
        "t.index_select(t.ones(2, dtype=t.bool), -1, t.tensor([0]), out=v1)"],
    "what is shuffled is a copy, also where all stays in its place": ["v0 = values((3, 4, 1, 1), 'float32')",
        "v1 = F.pixel_shuffle(v0, 2)", "v2 = values((2, 4, 2, 2), 'float32')", "v3 = F.pixel_shuffle(v2, 1)",
        "v4 = F.pixel_unshuffle(v2, 1)", "v5 = F.channel_shuffle(v2, 1)", "v3.zero_()"],
    "the data of truth values": ["v0 = t.ones(2, 3) < 2", "v1 = v0.data", "say(v0.is_set_to(v1))"],
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_program_runs_as_in_pytorch(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        difference, ran = programs.replay(lockstep.Lockstep([torch, cresset]), PROGRAMS[name])
    assert difference is None, f"{ran[-1]}: {difference}"
    assert ran == PROGRAMS[name]
