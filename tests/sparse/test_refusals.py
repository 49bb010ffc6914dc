"""Nobody reads elements that a sparse, nested or quantized tensor does not have."""

import gc

import pytest

import cresset

DENSE = cresset.ones(3, 3)


def tensors():
    yield cresset.eye(3).to_sparse()
    yield cresset.eye(3).to_sparse_csr()
    yield cresset.nested.nested_tensor([cresset.ones(2), cresset.ones(3)], layout=cresset.jagged)
    yield cresset.quantize_per_tensor(DENSE, 1.0, 0, cresset.qint8)


def assign(index, value):
    DENSE.clone()[index] = value


@pytest.mark.parametrize(
    "read",
    [
        memoryview,
        lambda t: DENSE[t],
        lambda t: assign(0, t),
        lambda t: setattr(DENSE.clone(), "data", t),
        lambda t: t.as_subclass(cresset.Tensor),
        lambda t: cresset.add(DENSE, DENSE, out=t),
        lambda t: t.numpy(),
        lambda t: memoryview(t) if t.is_quantized else t.data_ptr(),  # integers have an address
        lambda t: cresset.from_dlpack(t),
        lambda t: cresset._native.tolist(t),
        lambda t: DENSE.clone().pow_(t),
    ],
)
@pytest.mark.parametrize("tensor", list(tensors()), ids=["coo", "csr", "nested", "quantized"])
def test_reading_memory_is_refused(read, tensor):
    with pytest.raises((RuntimeError, TypeError, BufferError, IndexError)):
        read(tensor)


def test_a_copy_by_tensor_is_a_copy_of_the_parts():
    s = cresset.eye(2).to_sparse()
    with pytest.warns(UserWarning, match="copy construct"):
        other = cresset.tensor(s)
    assert other.is_sparse and other.to_dense().tolist() == [[1.0, 0.0], [0.0, 1.0]]


def test_calls_are_interpreted_even_where_subclasses_are_disabled():
    s = cresset.eye(2).to_sparse()
    with cresset.overrides.DisableTorchFunctionSubclass():
        assert (s + s).to_dense().tolist() == [[2.0, 0.0], [0.0, 2.0]]


def test_the_object_of_a_gradient_survives_being_dropped_again_and_again():
    w = cresset.ones(3, 1, requires_grad=True)
    w.grad = cresset.eye(3)[:, :1].to_sparse()
    for _ in range(3):
        gc.collect()
        assert w.grad.is_sparse and w.grad._nnz() == 1


class TestArgumentsThatOnlyStridedTensorsHave:
    def matrix(self):
        return cresset.eye(2).to_sparse()

    @pytest.mark.parametrize("call", [
        lambda x, f: x.clone(memory_format=f), lambda x, f: x.cpu(memory_format=f),
        lambda x, f: x.resize_as_(x, memory_format=f),
    ])  # fmt: skip
    def test_a_memory_format_is_refused(self, call):
        call(self.matrix(), cresset.preserve_format)
        with pytest.raises(RuntimeError, match="memory format"):
            call(self.matrix(), cresset.channels_last)

    @pytest.mark.parametrize("function", [cresset.zeros_like, cresset.empty_like])
    def test_one_like_a_sparse_tensor_has_no_memory_format_unless_it_is_strided(self, function):
        for wanted in (cresset.preserve_format, cresset.contiguous_format):
            with pytest.raises(RuntimeError, match="memory format option is only supported by strided"):
                function(self.matrix(), memory_format=wanted)
            assert function(self.matrix(), layout=cresset.strided, memory_format=wanted).layout == cresset.strided

    def test_gradients_of_what_is_not_specified_are_refused(self):
        x = self.matrix().requires_grad_()
        assert x.to_dense(masked_grad=True).requires_grad
        with pytest.raises(NotImplementedError, match="masked_grad=False"):
            x.to_dense(masked_grad=False)
        with pytest.raises(NotImplementedError, match="masked_grad=False"):
            cresset.eye(2).to_sparse_csr().requires_grad_().to_dense(masked_grad=False)
        assert self.matrix().to_dense(masked_grad=False).sum().item() == 2

    def test_a_dimension_is_not_kept_without_one(self):
        with pytest.raises(TypeError, match="keepdim"):
            cresset.any(self.matrix(), keepdim=True)


def test_a_dense_sum_is_not_written_to_a_sparse_tensor():
    sparse = cresset.sparse_coo_tensor(cresset.tensor([[0]]), cresset.ones(1), (2,))
    for change in (sparse.add_, sparse.sub_):
        with pytest.raises(RuntimeError, match="is dense, and cannot be written to a sparse one"):
            change(cresset.ones(2))
    assert sparse.to_dense().tolist() == [1.0, 0.0]
