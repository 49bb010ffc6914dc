"""Masked tensors beside PyTorch's: the same programs give the same elements, masks, gradients and texts."""

import warnings

import pytest

import cresset

torch = pytest.importorskip("torch")


def programs(lib):
    from_numbers, mask = (
        lib.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]),
        lib.tensor([[True, False, True], [False, True, True]]),
    )
    make, adopt = lib.masked.masked_tensor, lib.masked.as_masked_tensor

    def gradient(run):
        x = make(from_numbers, mask, requires_grad=True)
        run(x).sum().backward()
        return x.grad

    x = make(from_numbers, mask)
    return {
        "text": lambda: repr(x),
        "text of sparse": lambda: repr(x.to_sparse()),
        "text of bools": lambda: repr(x > 2),
        "text 3-d": lambda: repr(make(from_numbers.view(1, 2, 3), mask.view(1, 2, 3))),
        "sum": lambda: x.sum(1),
        "mean": lambda: x.mean(),
        "amax keepdim": lambda: x.amax(0, keepdim=True),
        "argmax": lambda: x.argmax(1),
        "prod": lambda: x.prod(0),
        "norm": lambda: lib.masked.norm(x, 2, 0),
        "softmax": lambda: lib.softmax(x, 1),
        "with numbers": lambda: (x + 1) * 2 - x / 4,
        "with a plain tensor": lambda: x * from_numbers,
        "two masks": lambda: x + make(from_numbers, ~mask),
        "where": lambda: lib.where(mask, x, make(from_numbers * 10, ~mask)),
        "view": lambda: x.view(3, 2).transpose(0, 1)[0],
        "sparse sum": lambda: x.to_sparse_csr().sum(),
        "sparse sine": lambda: x.to_sparse().sin().to_dense(),
        "gradient of mean": lambda: gradient(lambda x: x.mean(0)),
        "gradient of exp": lambda: gradient(lambda x: x.exp()),
        "gradient of amax": lambda: gradient(lambda x: x.amax()),
        "gradient of product": lambda: gradient(lambda x: x * from_numbers),
        "not a tensor": lambda: make(1, mask),
        "other sizes": lambda: make(from_numbers, mask[0]),
        "numbers as a mask": lambda: make(from_numbers, from_numbers),
        "adopted": lambda: adopt(from_numbers, mask).sum(),
        "max": lambda: x.max(),
    }


OURS, THEIRS = programs(cresset), None
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    THEIRS = programs(torch)


def plain(value):
    if isinstance(value, (cresset.masked.MaskedTensor, torch.masked.MaskedTensor)):
        if value.is_sparse:
            value = value.to_dense()
        mask = value.get_mask()
        return tuple(value.shape), str(value.dtype), mask.tolist(), value.get_data().masked_fill(~mask, 0).tolist()
    return value.tolist() if hasattr(value, "tolist") else value


def outcome(program):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return plain(program())
        except Exception as error:
            return type(error).__name__


@pytest.mark.parametrize("name", list(OURS))
def test_the_same_as_pytorch(name):
    ours, theirs = outcome(OURS[name]), outcome(THEIRS[name])
    if isinstance(theirs, tuple):
        assert ours[:3] == theirs[:3]
        assert cresset.allclose(cresset.tensor(ours[3]), cresset.tensor(theirs[3]))
    else:
        assert ours == theirs
