"""Dtypes that only hold bits: two numbers of four bits in a byte, integers of less than a byte, bits as such."""

import copy
import io
import pickle

import pytest

import cresset

SMALL = [f"{sign}int{bits}" for sign in ("u", "") for bits in range(1, 8)]
BITS = ["bits1x8", "bits2x4", "bits4x2", "bits8", "bits16"]
NAMES = [*SMALL, *BITS, "float4_e2m1fn_x2"]
BYTES = [0x12, 0x34, 0xFF, 0x70]


def bytes_as(name):
    return cresset.tensor(BYTES, dtype=cresset.uint8).view(getattr(cresset, name))


def bytes_of(tensor):
    return tensor.view(cresset.uint8).tolist()


@pytest.mark.parametrize("name", NAMES)
class TestEveryContainer:
    def test_it_says_what_it_is(self, name):
        dtype = getattr(cresset, name)
        assert str(dtype) == f"torch.{name}"
        assert dtype.itemsize == (2 if name == "bits16" else 1)
        assert dtype.is_floating_point == name.startswith("float")
        assert dtype.is_signed == name.startswith(("int", "float"))
        assert pickle.loads(pickle.dumps(dtype)) is dtype

    def test_bytes_are_seen_as_it_and_back(self, name):
        tensor = bytes_as(name)
        assert tensor.numel() == 4 // tensor.itemsize
        assert bytes_of(tensor) == BYTES

    def test_it_is_copied_moved_and_joined(self, name):
        tensor = bytes_as(name)
        for copied in (tensor.clone(), copy.deepcopy(tensor), cresset.empty_like(tensor).copy_(tensor), tensor.cpu()):
            assert copied.dtype == tensor.dtype
            assert bytes_of(copied) == BYTES
        half = tensor.numel() // 2
        assert bytes_of(cresset.cat([tensor[half:], tensor[:half]])) == BYTES[2:] + BYTES[:2]
        assert bytes_of(tensor.reshape(2, -1).t().contiguous().t().reshape(-1)) == BYTES

    def test_zeros_can_be_made_and_other_numbers_cannot(self, name):
        dtype = getattr(cresset, name)
        assert set(bytes_of(cresset.zeros(4, dtype=dtype))) == {0}
        assert set(bytes_of(bytes_as(name).zero_())) == {0}
        assert cresset.tensor([], dtype=dtype).dtype == dtype
        with pytest.raises(NotImplementedError, match="fill_cpu"):
            cresset.ones(4, dtype=dtype)
        with pytest.raises(RuntimeError, match="takes no numbers"):
            cresset.tensor([1, 2], dtype=dtype)

    def test_it_is_saved_and_loaded(self, name):
        file = io.BytesIO()
        cresset.save({"weight": bytes_as(name)}, file)
        file.seek(0)
        loaded = cresset.load(file)["weight"]
        assert loaded.dtype == getattr(cresset, name)
        assert bytes_of(loaded) == BYTES

    def test_nothing_is_computed_with_it(self, name):
        tensor = bytes_as(name)
        for compute in (
            lambda: tensor + tensor,
            lambda: -tensor,
            lambda: tensor.sum(),
            lambda: tensor.to(cresset.float32),
            lambda: cresset.ones(2).to(tensor.dtype),
            lambda: tensor[0].item(),
        ):
            with pytest.raises(NotImplementedError, match="not implemented for"):
                compute()

    def test_no_other_dtype_holds_both(self, name):
        dtype = getattr(cresset, name)
        assert cresset.promote_types(dtype, dtype) is dtype
        with pytest.raises(RuntimeError, match="Promotion from .* is unsupported"):
            cresset.promote_types(dtype, cresset.float32)
        with pytest.raises(TypeError, match="only floating-point types"):
            cresset.set_default_dtype(dtype)
        with pytest.raises(TypeError, match="requires an integer"):
            cresset.iinfo(dtype)


def test_bytes_are_shown():
    assert repr(bytes_as("uint4")) == "tensor([ 18,  52, 255, 112], dtype=torch.uint4)"
    assert repr(bytes_as("float4_e2m1fn_x2")) == "tensor([ 18.,  52., 255., 112.], dtype=torch.float4_e2m1fn_x2)"
    assert repr(bytes_as("bits16")) == "tensor([13330, 28927], dtype=torch.bits16)"


def test_types_of_tensors_have_pytorchs_names():
    assert bytes_as("uint4").type() == "torch.UInt4Tensor"
    assert bytes_as("int7").type() == "torch.Int7Tensor"
    assert cresset.zeros(1, dtype=cresset.float8_e8m0fnu).type() == "torch.Float8_e8m0fnuTensor"


def test_an_exponent_has_no_sign():
    assert not cresset.float8_e8m0fnu.is_signed


def test_a_float_of_eight_bits_is_no_default():
    with pytest.raises(TypeError, match="only floating-point types"):
        cresset.set_default_dtype(cresset.float8_e4m3fn)
