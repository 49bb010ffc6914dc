"""Small calls of layers and their functions that both libraries answer, or refuse, alike. Each row is a program of one
expression, and the words that both refusals have in common."""

import pytest

import cresset

torch = pytest.importorskip("torch")


def _empty(lib):
    return lib.zeros(0, dtype=lib.int64)


def _ctc(lib, inputs=(5, 5), targets=(2, 2), dtype="int64"):
    scores = lib.zeros(5, 2, 4).log_softmax(2)
    labels = lib.tensor([1, 2, 3, 1])
    lengths = [lib.tensor(n, dtype=getattr(lib, dtype)) for n in (inputs, targets)]
    return lib.nn.functional.ctc_loss(scores, labels, *lengths)


def _shuffled(lib, name, factor):
    x = lib.arange(2 * 4 * 4 * 4.0).view(2, 4, 4, 4).contiguous(memory_format=lib.channels_last)
    return getattr(lib.nn.functional, name)(x, factor)


def _drawn(lib, layer, format):
    made = layer(2, 3, 2)
    lib.manual_seed(3)
    made.reset_parameters()
    first = made.weight.detach().clone()
    made.to(memory_format=format)
    lib.manual_seed(3)
    made.reset_parameters()
    return first.equal(made.weight)


def _running(lib):
    layer = lib.nn.InstanceNorm2d(2, track_running_stats=True)
    layer(lib.arange(16.0, dtype=lib.float64).view(1, 2, 2, 4))
    return layer.running_mean


def _image_of(lib, sizes, format=None):
    x = lib.arange(1.0, 1 + sizes[0] * sizes[1] * sizes[2] * sizes[3]).view(sizes).sin()
    return x if format is None else x.contiguous(memory_format=getattr(lib, format))


def _convolved(lib, sizes, out, kernel, groups, of_input, of_weight):
    x = _image_of(lib, sizes, of_input)
    weight = _image_of(lib, (out, sizes[1] // groups, kernel, kernel), of_weight)
    return lib.nn.functional.conv2d(x, weight, groups=groups)


CALLS = {
    "softplus into": lambda lib: lib.nn.functional.softplus(lib.ones(2), out=lib.empty(0)),
    "softshrink into": lambda lib: lib.nn.functional.softshrink(lib.ones(2), out=lib.empty(0)),
    "hardshrink into": lambda lib: lib.nn.functional.hardshrink(lib.ones(2), out=lib.empty(0)),
    "logsigmoid into": lambda lib: lib.nn.functional.logsigmoid(lib.ones(2), out=lib.empty(0)),
    "gelu into": lambda lib: lib.nn.functional.gelu(lib.ones(2), approximate="tanh", out=lib.empty(0)),
    "distances that are no numbers": lambda lib: lib.pdist(lib.tensor([[float("inf"), 1.0], [float("inf"), 2.0]]), 0.0),
    "counted distances": lambda lib: lib.pdist(lib.tensor([[0.0, 1e-30], [3.0, 0.0], [0.0, 0.0]]), 0.0),
    "channels last shuffled": lambda lib: _shuffled(lib, "pixel_shuffle", 2),
    "channels last unshuffled": lambda lib: _shuffled(lib, "pixel_unshuffle", 2),
    "weights in any format": lambda lib: _drawn(lib, lib.nn.Conv2d, lib.channels_last),
    "volumes' weights in any format": lambda lib: _drawn(lib, lib.nn.Conv3d, lib.channels_last_3d),
    "running statistics of another dtype": _running,
    "masked softmax": lambda lib: lib._masked_softmax(lib.zeros(2, 2), lib.tensor([[True, False], [False, False]]), 1),
    "softmax of half precision": lambda lib: lib._softmax(lib.ones(1, 2), 1, False),
    "sum and relu": lambda lib: lib._VF._add_relu(lib.tensor([-1.0, 2.0]), lib.tensor([-1.0, -1.0])),
    "rows by a mask": lambda lib: lib._nested_tensor_from_mask(
        lib.arange(8.0).view(2, 2, 2), lib.tensor([[True, False], [True, True]])
    ).to_padded_tensor(9.0),
    "overlap": lambda lib: [
        lib._debug_has_internal_overlap(t)
        for t in (lib.zeros(3, 3).t(), lib.zeros(1, 3).expand(4, 3), lib.zeros(10).as_strided((2, 5), (1, 2)))
    ],
    "gradient of nearest places": lambda lib: lib.autograd.grad(
        lib.nn.functional.grid_sample(
            lib.ones(1, 1, 2, 2), grid := lib.zeros(1, 1, 1, 2, requires_grad=True), "nearest", align_corners=False
        ).sum(),
        grid,
    )[0],
    "old name by places": lambda lib: lib._grid_sampler_2d_cpu_fallback(
        lib.ones(1, 1, 2, 2), lib.zeros(1, 1, 1, 2), 0, 0, False
    ),
    **{
        f"convolution of {sizes} by {of_weight} from {of_input}": lambda lib, row=row: _convolved(lib, *row)
        for row in [
            ((2, 1, 6, 6), 4, 3, 1, "channels_last", None),
            ((2, 1, 6, 6), 4, 3, 1, None, "channels_last"),
            ((2, 4, 6, 6), 4, 3, 4, None, "channels_last"),
            ((1, 4, 6, 6), 4, 1, 1, None, "channels_last"),
            ((1, 4, 6, 6), 4, 1, 1, None, None),
        ]
        for sizes, _, _, _, of_input, of_weight in [row]
    },
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS.keys())
def test_calls_give_what_pytorchs_give(call):
    mine, theirs = call(cresset), call(torch)
    mine, theirs = (found if isinstance(found, (tuple, list)) else [found] for found in (mine, theirs))
    for a, b in zip(mine, theirs, strict=True):
        if not isinstance(b, torch.Tensor):
            assert a == b
            continue
        assert tuple(a.shape) == tuple(b.shape) and a.stride() == b.stride()
        torch.testing.assert_close(torch.tensor(a.tolist(), dtype=b.dtype), b.detach(), equal_nan=True)


REFUSALS = {
    "one target of many classes": (
        lambda lib: lib.nn.functional.nll_loss(lib.zeros(4), lib.tensor([1, 2])), "1D target must have size 1"),
    "no probabilities": (
        lambda lib: lib.nn.functional.ctc_loss(lib.zeros(0, 0, 4), _empty(lib), _empty(lib), _empty(lib)),
        "log_probs tensor must not be empty"),
    "lengths that are no integers": (lambda lib: _ctc(lib, dtype="float32"), "input_lengths must be integral"),
    "a huge window": (
        lambda lib: lib.nn.functional.avg_pool2d(lib.zeros(1, 1, 4, 4), (2**63 - 1, 2), 1),
        "value cannot be converted to type int"),
    "a huge step": (
        lambda lib: lib.nn.functional.max_pool2d(lib.zeros(1, 1, 4, 4), 2, (1, 2**40)),
        "value cannot be converted to type int"),
    "a huge border": (
        lambda lib: lib.nn.functional.conv1d(lib.zeros(1, 1, 4), lib.zeros(1, 1, 2), padding=2**63 - 5),
        "Given padding=9223372036854775803 at dimension 0 , expected padding to be at most"),
    "no kernel": (
        lambda lib: lib.nn.functional.unfold(lib.zeros(1, 1, 4, 4), (0, 1)), "kernel size should be greater than zero"),
    "a negative border": (
        lambda lib: lib.nn.functional.unfold(lib.zeros(1, 1, 4, 4), 2, padding=-1), "padding should be non-negative"),
    "no place to fold to": (
        lambda lib: lib.nn.functional.fold(lib.zeros(1, 12, 12), (4, 5), 2, dilation=8),
        "calculated shape of the array of sliding blocks as"),
    "a huge kernel": (
        lambda lib: lib.nn.functional.fold(lib.zeros(3, 7), 16, 7318349394477056), "kernel_height overflowed"),
    "images padded as signals": (
        lambda lib: lib.nn.functional.pad(lib.zeros(1, 1, 4, 4), (1, 1), "reflect"),
        "Padding size 2 is not supported for 4D input tensor"),
    "padding of another length": (
        lambda lib: lib._C._nn.replication_pad2d(lib.zeros(2), padding=[]), "padding size is expected to be 4"),
    "groups of none": (
        lambda lib: lib.ops.aten.convolution_backward(
            lib.zeros(1, 1, 2), lib.zeros(1, 1, 3), lib.zeros(1, 1, 2), [1], [1], [0], [1], False, [0], 0, [True] * 3
        ), "expected groups to be greater than 0, but got groups=0"),
    "a grid for another batch": (
        lambda lib: lib.grid_sampler_2d(lib.zeros(2, 1, 2, 2), lib.zeros(1, 1, 1, 2), 0, 0, True), "same batch size"),
    "a grid with too many numbers": (
        lambda lib: lib.nn.functional.grid_sample(lib.zeros(1, 1, 2, 2), lib.zeros(1, 1, 1, 1, 3), align_corners=False),
        "expected grid to have size 2 in last dimension"),
    "weights of another size": (
        lambda lib: lib.gru_cell(lib.zeros(1, 2), lib.zeros(1, 3), lib.zeros(10, 2), lib.zeros(9, 3)), "weight_ih"),
    "a mask with gaps": (
        lambda lib: lib._nested_tensor_from_mask(lib.zeros(1, 2, 1), lib.tensor([[False, True]])), ""),
    "the number in nothing": (lambda lib: lib.ops.aten._local_scalar_dense(lib.zeros(0)), "Empty tensor not supported"),
    "a plain and a nested size": (
        lambda lib: lib.zeros(2).is_same_size(lib.nested.nested_tensor([lib.zeros(2)])),
        "Expected both self and other to be nested tensors"),
    "too many threads to count": (lambda lib: lib.set_num_threads(2**65), ""),
    "signs of quantized numbers": (lambda lib: lib.qint8.is_signed, "not supported for quantized"),
    "a tensor of old as a base": (lambda lib: type("Mine", (lib.FloatTensor,), {}), "is not an acceptable base type"),
    "an event without a device": (lambda lib: lib.cuda.Event(), "Tried to instantiate dummy base class Event"),
    "a setting that is no bool": (
        lambda lib: setattr(lib.utils.deterministic, "fill_uninitialized_memory", 1), "expected a bool, but got int"),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("row", REFUSALS.values(), ids=REFUSALS.keys())
def test_refusals_are_of_pytorchs_class_and_share_its_words(row):
    call, words = row
    if "event" in words.lower() and torch.cuda.is_available():
        pytest.skip("there is a device")
    with pytest.raises(Exception, match=words) as theirs:
        call(torch)
    with pytest.raises(type(theirs.value), match=words):
        call(cresset)
