"""What a case is: the operands of an operator in three sizes, and how it is called.

A case is called with a Library `t`, whose `t.lib` is cresset or torch and `t.F` its nn.functional, and with the
tensors of its specs. Where one operator has several kernels (dimensions, layouts, dtypes) it has several cases; the
first word of a case's name is the operator.
"""

from collections import namedtuple

SIZES = ["small", "medium", "large"]
Case = namedtuple("Case", "name specs call backward")
CASES = []


def spec(kind):
    return lambda *shape, high=None: (kind, shape, high)


N, U, X, H, C, B, D = map(spec, ("normal", "unit", "fixed", "half", "complex", "bool", "definite"))
Y, W = spec("byte"), spec("double")


def index(high, *shape):
    return ("index", shape, high)


def sizes(cuda, cpu):
    """Three sizes of a case for each kind of device; a CPU takes a tenth of a second for what a GPU is filled by."""
    return {"cuda": cuda, "cpu": cpu}


def case(name, sizes, operands, call, backward=True):
    """`operands(*size)` gives the specs of one size."""
    specs = {
        device: [operands(*s) if isinstance(s, tuple) else operands(s) for s in three]
        for device, three in sizes.items()
    }
    CASES.append(Case(name, specs, call, backward))


FLAT = sizes([1 << 12, 1 << 20, 1 << 25], [1 << 10, 1 << 16, 1 << 22])
FEWER = sizes([1 << 12, 1 << 20, 1 << 24], [1 << 10, 1 << 16, 1 << 20])
ROWS = sizes([(64, 64), (1024, 1024), (8192, 4096)], [(32, 32), (256, 256), (4096, 1024)])
WIDE = sizes([(4, 1024), (16, 1 << 16), (32, 1 << 20)], [(1, 1024), (2, 1 << 15), (8, 1 << 19)])
SQUARE = sizes([(64, 64), (512, 512), (4096, 4096)], [(32, 32), (256, 256), (2048, 2048)])
IMAGES = sizes(
    [(2, 8, 16, 16), (16, 64, 32, 32), (64, 64, 112, 112)], [(1, 4, 16, 16), (4, 16, 32, 32), (16, 64, 56, 56)]
)
SMALLER_IMAGES = sizes(
    [(2, 4, 16, 16), (8, 32, 64, 64), (32, 64, 128, 128)], [(1, 4, 16, 16), (4, 16, 32, 32), (8, 32, 64, 64)]
)
VOLUMES = sizes(
    [(1, 4, 8, 8, 8), (4, 16, 16, 16, 16), (8, 32, 32, 64, 64)],
    [(1, 2, 8, 8, 8), (2, 8, 16, 16, 16), (4, 16, 32, 32, 32)],
)
MATRICES = sizes([(4, 8, 8), (64, 32, 32), (1, 1024, 1024)], [(4, 8, 8), (64, 32, 32), (1, 512, 512)])
MEASURED = sizes([(16, 256), (256, 4096), (1024, 16384)], [(8, 128), (64, 1024), (512, 4096)])
BATCHES = sizes([(4, 16), (16, 128), (64, 512)], [(4, 16), (16, 64), (32, 192)])
FILTERED = sizes([(2, 8, 16), (16, 64, 32), (64, 128, 56)], [(1, 8, 12), (4, 16, 32), (8, 64, 56)])
SIGNALS = sizes([(16, 64), (256, 4096), (1024, 16384)], [(16, 64), (64, 1024), (512, 4096)])
HALF_SIGNALS = sizes([(16, 65), (256, 2049), (1024, 8193)], [(16, 33), (64, 513), (512, 2049)])
PLANES = sizes([(4, 16, 16), (16, 128, 128), (64, 512, 512)], [(4, 16, 16), (4, 128, 128), (8, 512, 512)])


def of_library(name, *extra, **named):
    """A call of functional.name, lib.name or lib.special.name, whichever there is."""

    def call(t, *tensors):
        owner = next(o for o in (t.F, t.lib, t.lib.special) if hasattr(o, name))
        return getattr(owner, name)(*tensors, *extra, **named)

    return call


# Operators of the table that have no work of their own on the device (views, shapes, sizes), or that another case calls
# under the name that programs use.
NOT_TIMED = set(
    """alias as_strided chunk detach diagonal expand imag narrow permute real reshape select slice split
    split_with_sizes squeeze t transpose unbind unfold unsafe_chunk unsafe_split unsafe_split_with_sizes
    unsqueeze view view_as_complex view_as_real empty empty_like empty_strided new_empty new_empty_strided
    new_zeros new_ones new_full scalar_tensor resize set contiguous to to_dtype cpu fill zero copy range
    triu_indices native_layer_norm native_batch_norm native_group_norm native_dropout native_dropout_backward
    embedding_dense_backward convolution fft_complex fft_from_real fft_to_real linalg_vector_norm
    nonzero_numpy repeat_positions binomial silu_backward cube normal bernoulli random bfloat16 byte cdouble
    cfloat chalf char int long double float half bool short binary_cross_entropy_elementwise
    binary_cross_entropy_with_logits_elementwise weighted_binary_cross_entropy_with_logits_elementwise
    huber_elementwise kl_div_elementwise l1_elementwise mse_elementwise poisson_nll_elementwise
    polygamma_elementwise prelu_elementwise smooth_l1_elementwise soft_margin_elementwise div_floor div_trunc
    gamma_density gelu_tanh glu_elementwise imaginary_part real_part linalg_cross randint_like trigamma""".split()
)
