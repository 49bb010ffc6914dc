"""Draws arguments for a public function from the names of its parameters.

A call has one *scene*: a base shape, a dtype and a dimension that its arguments share, so that most calls make sense.
    Structured
operations (convolution, pooling, losses, …) have a recipe that sets the scene. A small part of all arguments is then
spoilt on purpose. Everything is made with PyTorch; `calls.py` moves it over.
"""

import torch

FLOATS = [torch.float32, torch.float32, torch.float64, torch.float16, torch.bfloat16]
INTEGERS = [torch.int64, torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8]
COMPLEX = [torch.complex64, torch.complex128]
SPECIAL = [float("nan"), float("inf"), float("-inf"), 0.0, -0.0, 1e30, -1e-30]


class Scene:
    """What the arguments of one call have in common."""

    def __init__(self, rng):
        self.rng = rng
        self.shape = self.some_shape()
        kind = rng.random()
        self.dtype = rng.choice(
            FLOATS if kind < 0.7 else INTEGERS if kind < 0.85 else [torch.bool] if kind < 0.9 else COMPLEX
        )
        self.dim = rng.randrange(-len(self.shape), len(self.shape)) if self.shape else 0
        self.special = rng.random() < 0.1
        self.fixed = {}  # parameters that the recipe decides

    def some_shape(self):
        rank = self.rng.choice([0, 1, 1, 2, 2, 2, 3, 3, 4])
        return tuple(
            self.rng.choice([0, 1, 1, 2, 3, 3, 4, 5]) if self.rng.random() < 0.3 else self.rng.choice([2, 3, 4])
            for _ in range(rank)
        )

    # ---- tensors

    def tensor(self, shape=None, dtype=None, low=None, high=None):
        """Of the scene's shape and dtype unless said otherwise, with strides that are often not the plain ones."""
        shape = self.shape if shape is None else shape
        dtype = self.dtype if dtype is None else dtype
        rng = self.rng
        generator = torch.Generator().manual_seed(rng.randrange(1 << 30))
        style = rng.random()
        wanted, narrow = list(shape), None
        if style < 0.15 and len(shape) >= 2:
            wanted[-1], wanted[-2] = wanted[-2], wanted[-1]
        elif style < 0.25 and shape:
            narrow = rng.randrange(len(shape))
            wanted[narrow] = wanted[narrow] * 2 + 1
        if dtype == torch.bool:
            made = torch.rand(wanted, generator=generator) < 0.5
        elif low is not None or not (dtype.is_floating_point or dtype.is_complex):
            low, high = (-5 if dtype.is_signed else 0, 6) if low is None else (low, max(high, low + 1))
            made = torch.randint(low, high, wanted, generator=generator).to(dtype)
        else:
            made = (
                torch.randn(wanted, generator=generator, dtype=torch.complex64 if dtype.is_complex else torch.float32)
                * 2
            ).to(dtype)
            if self.special and made.numel() and not dtype.is_complex:
                for _ in range(2):
                    made.view(-1)[rng.randrange(made.numel())] = rng.choice(SPECIAL)
        if style < 0.15 and len(shape) >= 2:
            made = made.transpose(-1, -2)
        elif narrow is not None:
            made = made.narrow(narrow, 1, shape[narrow] * 2)[
                tuple(slice(None, None, 2) if d == narrow else slice(None) for d in range(len(shape)))
            ]
        elif style < 0.3 and shape and rng.random() < 0.5:
            made = made[tuple(slice(0, 1) if d == 0 and shape[0] else slice(None) for d in range(len(shape)))].expand(
                shape
            )
        return made

    def partner(self):
        """A second operand: mostly the same shape, sometimes one that broadcasts, now and then of another dtype."""
        shape = list(self.shape)
        for d in range(len(shape)):
            if self.rng.random() < 0.15:
                shape[d] = 1
        if shape and self.rng.random() < 0.15:
            shape = shape[1:]
        return self.tensor(
            shape, self.rng.choice([*FLOATS, *INTEGERS, torch.bool]) if self.rng.random() < 0.15 else None
        )

    def number(self):
        return self.rng.choice([0, 1, 2, 3, -1, 0.5, -1.5, 2.0, 1e-3, True])

    def size(self, dim=None):
        dim = self.dim if dim is None else dim
        return self.shape[dim % len(self.shape)] if self.shape else 1

    def indices(self, shape=None):
        """Positions along the scene's dimension, of the input's rank."""
        if shape is None:
            shape = list(self.shape)
            if shape:
                shape[self.dim % len(shape)] = self.rng.choice([0, 1, 2, self.size()])
        return self.tensor(shape, torch.int64, 0, max(self.size(), 1))

    def matrix(self, square=False, dtype=None):
        rows = self.rng.choice([0, 1, 2, 3, 4, 5]) if self.rng.random() < 0.3 else self.rng.choice([2, 3, 4])
        columns = rows if square else self.rng.choice([1, 2, 3, 4])
        return self.tensor((*self.rng.choice([(), (), (2,), (2, 1), (0,)]), rows, columns), dtype)

    def pick(self, *values):
        return self.rng.choice(values)


def by_name():
    """For each parameter name, what to draw for it in a scene."""
    same = lambda s: s.tensor()  # noqa: E731
    partner = lambda s: s.partner()  # noqa: E731
    number = lambda s: s.number()  # noqa: E731
    flag = lambda s: s.pick(True, False)  # noqa: E731
    dim = lambda s: s.dim if s.rng.random() < 0.9 else s.pick(0, -1, 1, 5)  # noqa: E731
    small = lambda s: s.pick(0, 1, 2, 3, -1)  # noqa: E731
    positive = lambda s: s.pick(1, 2, 3)  # noqa: E731
    dims = lambda s: s.pick((s.dim,), s.dim, tuple(range(len(s.shape))), (-1, 0) if len(s.shape) > 1 else (0,), ())  # noqa: E731
    sizes = lambda s: s.pick(s.shape, (-1,), (*s.shape, 1), (2, -1), s.some_shape(), (0, 3))  # noqa: E731
    tensors = lambda s: [s.tensor() for _ in range(s.pick(1, 2, 2, 3))]  # noqa: E731
    square = lambda s: s.matrix(square=True)  # noqa: E731
    any_matrix = lambda s: s.matrix()  # noqa: E731
    floating = lambda s: s.pick(0.0, 0.5, 1.0, 2.0, 1e-5, -1.0)  # noqa: E731
    dtype = lambda s: s.pick(
        torch.float32,
        torch.float64,
        torch.int64,
        torch.bool,
        torch.complex64,
        torch.float16,
        torch.bfloat16,
        torch.uint8,
        torch.int32,
    )  # noqa: E731
    table = {
        same: "input self x tensor condition_like input1 x1 end_tensor elements real imag abs angle",
        partner: (
            "other input2 x2 y tensor1 tensor2 max_tensor source_like target exponent values_like weight_like "
            "anchor positive negative mean_like element test_element test_elements"
        ),
        number: "value alpha beta fill_value min max start_number lambd negative_slope threshold_like scalar threshold",
        flag: "keepdim descending stable sorted unbiased largest right out_int32 return_inverse return_counts "
        "hermitian full_matrices upper left unitriangular transpose some compute_uv eigenvectors "
        "inplace periodic center onesided normalized return_complex align_corners ceil_mode count_include_pad "
        "log_target full equal_nan as_tuple with_replacement accumulate training train increasing "
        "check_errors pivot get_infos assume_unique invert swap log_input include_last_offset",
        dim: "dim dim0 axis axis0 dim1 axis1 dim2 start_dim end_dim",
        small: "offset diagonal start end step shifts k n correction n_mels length q_index blank",
        positive: (
            "repeats chunks sections split_size kernel_size_like num_samples r groups hop_length upscale_factor "
            "downscale_factor niter edge_order"
        ),
        dims: "dims source destination",
        sizes: "size sizes shape output_size_like repeat",
        tensors: "tensors matrices",
        square: "A L",
        any_matrix: "B mat mat2 C",
        floating: "p eps margin tau rcond atol rtol std mean momentum norm_type delta ord dropout_p lower_bound",
        dtype: "dtype",
    }
    drawn = {name: draw for draw, names in table.items() for name in names.split()}
    drawn |= {
        "index": lambda s: s.indices() if s.rng.random() < 0.7 else s.indices((s.pick(0, 1, 3),)),
        "indices": lambda s: s.indices() if s.rng.random() < 0.7 else s.indices((s.pick(0, 1, 3),)),
        "src": same,
        "source": lambda s: s.tensor(),
        "mask": lambda s: (
            s.tensor(dtype=torch.bool) if s.rng.random() < 0.7 else s.tensor((1,) * len(s.shape), torch.bool)
        ),
        "condition": lambda s: s.tensor(dtype=torch.bool),
        "vec": lambda s: s.tensor((s.size(-1),)),
        "vec1": lambda s: s.tensor((s.size(0),)),
        "vec2": lambda s: s.tensor((s.size(-1),)),
        "batch1": lambda s: s.tensor((2, 3, 4)),
        "batch2": lambda s: s.tensor((2, 4, 3)),
        "q": lambda s: s.pick(
            0.5, 0.0, 1.0, torch.tensor([0.25, 0.75], dtype=s.dtype if s.dtype.is_floating_point else torch.float32)
        ),
        "reduce": lambda s: s.pick("sum", "prod", "mean", "amax", "amin"),
        "reduction": lambda s: s.pick("none", "mean", "sum"),
        "norm": lambda s: s.pick(None, "ortho", "forward", "backward"),
        "interpolation": lambda s: s.pick("linear", "lower", "higher", "midpoint", "nearest"),
        "rounding_mode": lambda s: s.pick(None, "trunc", "floor"),
        "indexing": lambda s: s.pick("ij", "xy"),
        "approximate": lambda s: s.pick("none", "tanh"),
        "side": lambda s: s.pick("left", "right"),
        "decimals": lambda s: s.pick(0, 1, -1, 3),
        "p": lambda s: s.pick(0, 1, 2, 0.5, 3.0, float("inf")),
        "ord": lambda s: s.pick(None, 2, 1, float("inf"), -1, "fro", "nuc", 0, 3),
        "bins": lambda s: s.pick(1, 4, 10),
        "minlength": lambda s: s.pick(0, 3, 10),
        "dims": dims,
        "unfold_size": positive,
        "UPLO": lambda s: s.pick("L", "U"),
        "mode": lambda s: s.pick("reduced", "complete", "r"),
        "equation": lambda s: s.pick("ij,jk->ik", "i,i->", "ij->ji", "...ij,...jk->...ik", "ii->i", "ij->"),
        "layout": lambda s: torch.strided,
        "device": lambda s: s.pick("cpu", "meta", None),
        "memory_format": lambda s: s.pick(torch.contiguous_format, torch.preserve_format, torch.channels_last),
        "boundaries": lambda s: s.tensor((4,)).sort()[0] if not s.dtype.is_complex else s.tensor((4,)),
        "sorted_sequence": lambda s: s.tensor().sort()[0] if not s.dtype.is_complex else s.tensor(),
        "window_length": lambda s: s.pick(0, 1, 5, 8),
        "steps": lambda s: s.pick(0, 1, 5),
        "n": lambda s: s.pick(None, 1, 2, 3, 4),
        "s": lambda s: s.pick(None, (2,), (3, 2)),
        "num_classes": lambda s: s.pick(-1, 6, 10),
        "normalized_shape": lambda s: s.shape[-1:] or (1,),
        "indices_or_sections": lambda s: s.pick(1, 2, (1,), (1, 2)),
        "split_sizes": lambda s: s.pick((s.size(),), (1, s.size() - 1) if s.size() else (0,), 1),
        "split_size_or_sections": lambda s: s.pick(1, 2, (s.size(),)),
        "pad": lambda s: tuple(s.pick(0, 1, 1, -1, 2) for _ in range(2 * s.pick(1, 1, 2))),
        "generator": lambda s: None,
        "out": lambda s: None,
        "requires_grad": lambda s: False,
        "pin_memory": lambda s: False,
    }
    return drawn


BY_NAME = by_name()

BY_TYPE = {
    "Tensor": lambda s: s.partner(),
    "Tensor?": lambda s: s.pick(None, None, s.partner()),
    "Operand": lambda s: s.pick(s.partner(), s.number()),
    "Scalar": lambda s: s.number(),
    "int": lambda s: s.pick(0, 1, 2, -1),
    "float": lambda s: s.pick(0.0, 0.5, 1.0, 2.0),
    "bool": lambda s: s.pick(True, False),
    "ScalarType": BY_NAME["dtype"],
    "Tensor[]": BY_NAME["tensors"],
    "Tensor?[]": lambda s: [s.indices((2,))],
    "int[]": lambda s: s.pick((s.dim,), (1,), (2,), (0, 1), s.shape),
    "float[]": lambda s: (1.0, 0.5),
    "Device": BY_NAME["device"],
    "MemoryFormat": BY_NAME["memory_format"],
    "Layout": BY_NAME["layout"],
    "str": lambda s: s.pick("mean", "sum", "none"),
    "Generator": lambda s: None,
}


# ---- recipes: what the arguments of a structured operation are to each other


def convolution(scene, rank, transposed=False):
    groups, inputs, outputs = scene.pick((1, 2, 3), (1, 3, 2), (2, 4, 2), (3, 3, 6))
    kernel = tuple(scene.pick(1, 2, 3) for _ in range(rank))
    scene.dtype = scene.pick(torch.float32, torch.float64, torch.bfloat16)
    scene.shape = (*scene.pick((2,), (1,), (), (0,)), inputs, *(scene.pick(3, 4, 5) for _ in range(rank)))
    weight = (inputs, outputs // groups, *kernel) if transposed else (outputs, inputs // groups, *kernel)
    scene.fixed = {
        "weight": scene.tensor(weight), "bias": scene.pick(None, scene.tensor((outputs,))), "groups": groups,
        "stride": scene.pick(1, 2, (1,) * rank),
        "padding": scene.pick(0, 1, (1,) * rank) if transposed else scene.pick(0, 1, "same", "valid", (1,) * rank),
        "dilation": scene.pick(1, 2), "output_padding": scene.pick(0, 0, 1),
    }  # fmt: skip


def pooling(scene, rank):
    scene.dtype = scene.pick(torch.float32, torch.float64, torch.bfloat16)
    scene.shape = (*scene.pick((2,), (1,), ()), 2, *(scene.pick(4, 5, 6) for _ in range(rank)))
    scene.fixed = {
        "kernel_size": scene.pick(1, 2, 3, (2,) * rank), "stride": scene.pick(None, 1, 2),
        "padding": scene.pick(0, 0, 1), "dilation": scene.pick(1, 1, 2),
        "output_size": scene.pick(1, 2, 3, (2,) * rank), "divisor_override": scene.pick(None, None, 2),
        "output_ratio": None, "return_indices": False, "_random_samples": None, "norm_type": scene.pick(1.0, 2.0),
    }  # fmt: skip


def classification(scene):
    scene.dtype = scene.pick(torch.float32, torch.float64)
    batch, classes = scene.pick(1, 3, 4), scene.pick(2, 5)
    rest = scene.pick((), (), (2,), (2, 3))
    scene.shape = (batch, classes, *rest)
    scene.fixed = {
        "target": scene.tensor((batch, *rest), torch.int64, 0,
            classes) if scene.rng.random() < 0.9 else scene.tensor((batch, *rest), torch.int64, -1, classes + 1),
        "weight": scene.pick(None, scene.tensor((classes,)).abs()), "ignore_index": scene.pick(-100, 0),
        "label_smoothing": scene.pick(0.0, 0.1), "size_average": None, "reduce": None, "p": scene.pick(1, 2),
    }  # fmt: skip


def regression(scene):
    scene.dtype = scene.pick(torch.float32, torch.float64, torch.bfloat16)
    scene.fixed = {
        "target": scene.tensor(),
        "size_average": None,
        "reduce": None,
        "weight": None,
        "pos_weight": None,
        "beta": scene.pick(1.0, 0.5),
        "var": scene.tensor().abs() + 0.1,
        "delta": 1.0,
    }


def two_inputs(scene):
    scene.dtype = scene.pick(torch.float32, torch.float64)
    scene.shape = (scene.pick(1, 3), 4)
    sign = scene.tensor(scene.shape[:1], torch.int64, 0, 2) * 2 - 1
    scene.fixed = {"target": sign.to(scene.dtype), "size_average": None, "reduce": None, "p": 2.0, "dim": 1}


def normalization(scene):
    scene.dtype = scene.pick(torch.float32, torch.float64, torch.bfloat16)
    scene.shape = (scene.pick(2, 3), 4, *scene.pick((), (3,), (2, 3)))
    channel = lambda: scene.tensor((4,))  # noqa: E731
    scene.fixed = {
        "running_mean": scene.pick(None, channel()), "weight": scene.pick(None, channel()),
        "bias": scene.pick(None, channel()), "eps": 1e-5, "momentum": 0.1, "num_groups": scene.pick(1, 2, 4), "size": 2,
        "use_input_stats": True, "alpha": 1e-4, "beta": 0.75, "k": 1.0,
    }  # fmt: skip
    scene.fixed["running_var"] = None if scene.fixed["running_mean"] is None else channel().abs() + 0.5
    if scene.fixed["running_mean"] is None:
        scene.fixed["training"] = True


def layer_norm(scene):
    normalization(scene)
    last = scene.shape[-1:]
    scene.fixed |= {
        "normalized_shape": last,
        "weight": scene.pick(None, scene.tensor(last)),
        "bias": scene.pick(None, scene.tensor(last)),
    }


def product(scene):
    scene.dtype = scene.pick(torch.float32, torch.float64, torch.int64, torch.bfloat16, torch.complex64)
    m, k, n = (scene.pick(0, 1, 2, 3, 5) for _ in range(3))
    scene.shape = (*scene.pick((), (), (2,)), m, k)
    scene.fixed = {"other": scene.tensor((*scene.pick((), (2,)), k, n)), "tensor": scene.tensor((k, n))}


def matrices(scene, batch=()):
    scene.dtype = scene.pick(torch.float32, torch.float64, torch.int64, torch.bfloat16, torch.complex64)
    m, k, n = (scene.pick(0, 1, 2, 3, 5) for _ in range(3))
    second = scene.tensor((*batch, k, n))
    scene.shape = (*batch, m, k)
    scene.fixed = {
        "mat2": second,
        "vec": scene.tensor((k,)),
        "weight": scene.tensor((n, k)),
        "bias": scene.pick(None, scene.tensor((n,))),
    }


def added_product(scene, batch=()):
    matrices(scene, batch)
    *_, m, k = scene.shape
    n = scene.fixed["mat2"].shape[-1]
    first = scene.tensor((*batch, m, k))
    scene.shape = scene.pick((*batch, m, n), (1, n), (n,))
    scene.fixed |= {"mat1": first, "batch1": first, "batch2": scene.fixed["mat2"], "mat": first}


def lookup(scene):
    scene.dtype, rows = torch.int64, scene.pick(1, 4, 6)
    scene.shape = scene.pick((3,), (2, 3), (0,), ())
    table = scene.tensor((rows, 3), scene.pick(torch.float32, torch.float64))
    scene.fixed = {
        "input": scene.tensor(low=0, high=rows), "weight": table, "padding_idx": scene.pick(None, None, 0, -1),
        "max_norm": None, "sparse": False, "offsets": None, "mode": scene.pick("sum", "mean", "max"),
        "per_sample_weights": None, "scale_grad_by_freq": False,
    }  # fmt: skip


def resampling(scene):
    scene.dtype = scene.pick(torch.float32, torch.float64)
    rank = scene.pick(1, 2, 2, 3)
    scene.shape = (scene.pick(1, 2), 2, *(scene.pick(2, 3, 4) for _ in range(rank)))
    modes = {
        1: ("nearest", "linear", "nearest-exact", "area"),
        2: ("nearest", "bilinear", "bicubic", "area", "nearest-exact"),
        3: ("nearest", "trilinear", "area"),
    }
    by_size = scene.pick(True, False)
    mode = scene.pick(*modes[rank])
    scene.fixed = {
        "size": tuple(scene.pick(1, 3, 5) for _ in range(rank)) if by_size else None,
        "scale_factor": None if by_size else scene.pick(2.0, 0.5, 1.5), "mode": mode,
        "align_corners": scene.pick(None, True, False) if "linear" in mode or mode == "bicubic" else None,
        "recompute_scale_factor": None, "antialias": mode in ("bilinear", "bicubic") and scene.pick(True, False),
    }  # fmt: skip


def sampling(scene):
    scene.dtype = scene.pick(torch.float32, torch.float64)
    scene.shape = (2, 3, scene.pick(2, 4), scene.pick(3, 5))
    scene.fixed = {
        "grid": scene.tensor((2, 3, 2, 2)) / 2, "mode": scene.pick("bilinear", "nearest", "bicubic"),
        "padding_mode": scene.pick("zeros", "border", "reflection"), "align_corners": scene.pick(True, False),
        "theta": scene.tensor((2, 2, 3)), "size": (2, 3, 4, 5),
    }  # fmt: skip


def padding(scene):
    scene.shape = (scene.pick(1, 2), 3, *(scene.pick(3, 4) for _ in range(scene.pick(1, 2))))
    mode = scene.pick("constant", "constant", "reflect", "replicate", "circular")
    scene.fixed = {
        "mode": mode,
        "value": scene.pick(None, 0, 1.5) if mode == "constant" else None,
        "pad": tuple(scene.pick(0, 1, 2) for _ in range(2 * (len(scene.shape) - 2))),
    }


def attention(scene):
    scene.dtype = scene.pick(torch.float32, torch.float64, torch.bfloat16)
    heads, length, keys, width = scene.pick(1, 2), scene.pick(1, 3, 5), scene.pick(1, 4), scene.pick(2, 8)
    lead = scene.pick((2, heads), (1, heads), (heads,))
    causal = scene.pick(True, False)
    scene.fixed = {
        "query": scene.tensor((*lead, length, width)), "key": scene.tensor((*lead, keys, width)),
        "value": scene.tensor((*lead, keys, width)), "dropout_p": 0.0, "is_causal": causal,
        "attn_mask": None if causal else scene.pick(None, scene.tensor((length, keys), torch.bool),
            scene.tensor((length, keys))), "scale": scene.pick(None, 0.5), "enable_gqa": False,
    }  # fmt: skip


def patches(scene):
    scene.dtype = scene.pick(torch.float32, torch.float64)
    scene.shape = (scene.pick(1, 2), 3, 5, 6)
    scene.fixed = {
        "kernel_size": scene.pick(2, (2, 3)),
        "dilation": 1,
        "padding": scene.pick(0, 1),
        "stride": scene.pick(1, 2),
    }


def unfolding(scene):
    scene.fixed = {"dimension": scene.dim, "size": max(1, scene.size() - 1), "step": scene.pick(1, 2)}


def two_sets(scene):
    scene.dtype = scene.pick(torch.float32, torch.float64)
    width = scene.pick(1, 3)
    scene.fixed = {
        "x1": scene.tensor((scene.pick(0, 2, 3), width)),
        "x2": scene.tensor((scene.pick(1, 4), width)),
        "p": scene.pick(0.0, 1.0, 2.0, 3.5, float("inf")),
        "compute_mode": "use_mm_for_euclid_dist_if_necessary",
    }


def square_system(scene):
    scene.dtype = scene.pick(torch.float64, torch.float32, torch.complex128)
    size = scene.pick(0, 1, 2, 4)
    batch = scene.pick((), (2,))
    matrix = scene.tensor((*batch, size, size)) + 4 * torch.eye(size, dtype=scene.dtype)
    right = scene.tensor((*batch, size, 2))
    scene.special = False
    scene.fixed = {"A": matrix, "B": right, "b": right, "input": right, "input2": matrix}


def positive_definite(scene):
    square_system(scene)
    matrix = scene.fixed["A"]
    scene.fixed["input"] = scene.fixed["A"] = matrix @ matrix.mH


def one_square(scene):
    square_system(scene)
    scene.fixed["input"] = scene.fixed["A"]


RECIPES = {
    **{f"conv{n}d": lambda s, n=n: convolution(s, n) for n in (1, 2, 3)},
    **{f"conv_transpose{n}d": lambda s, n=n: convolution(s, n, transposed=True) for n in (1, 2, 3)},
    **{
        f"{kind}_pool{n}d": lambda s, n=n: pooling(s, n)
        for n in (1, 2, 3)
        for kind in ("max", "avg", "lp", "adaptive_avg", "adaptive_max")
    },
    **dict.fromkeys(["cross_entropy", "nll_loss", "multi_margin_loss"], classification),
    **dict.fromkeys(
        "mse_loss l1_loss smooth_l1_loss huber_loss kl_div soft_margin_loss poisson_nll_loss "
        "gaussian_nll_loss binary_cross_entropy_with_logits multilabel_soft_margin_loss".split(),
        regression,
    ),
    **dict.fromkeys(
        "cosine_embedding_loss margin_ranking_loss hinge_embedding_loss triplet_margin_loss "
        "pairwise_distance cosine_similarity".split(),
        two_inputs,
    ),
    **dict.fromkeys("batch_norm instance_norm group_norm local_response_norm".split(), normalization),
    **dict.fromkeys(["layer_norm", "rms_norm"], layer_norm),
    **dict.fromkeys(["matmul", "__matmul__"], product),
    **dict.fromkeys(["mm", "mv", "linear"], matrices),
    "bmm": lambda s: matrices(s, (2,)),
    **dict.fromkeys(["addmm", "addmv"], added_product),
    "baddbmm": lambda s: added_product(s, (2,)),
    **dict.fromkeys(["embedding", "embedding_bag"], lookup),
    **dict.fromkeys(["interpolate", "upsample"], resampling),
    **dict.fromkeys(["grid_sample", "affine_grid"], sampling),
    "pad": padding,
    "scaled_dot_product_attention": attention,
    "unfold": patches,
    "Tensor.unfold": unfolding,
    "cdist": two_sets,
    **dict.fromkeys("linalg.solve linalg.solve_ex triangular_solve lu_solve linalg.lstsq".split(), square_system),
    **dict.fromkeys(
        "cholesky linalg.cholesky linalg.cholesky_ex linalg.eigvalsh linalg.eigh cholesky_inverse".split(),
        positive_definite,
    ),
    **dict.fromkeys(
        "det logdet slogdet inverse linalg.det linalg.slogdet linalg.inv linalg.inv_ex linalg.matrix_power "
        "linalg.matrix_exp matrix_exp matrix_power linalg.cond pinverse linalg.pinv".split(),
        one_square,
    ),
}

ODD = [
    None, 0, -1, 7, 2**31, -(2**63), 2**63 - 1, 2**70, True, 0.5, float("nan"), float("inf"), 1j, "", "mean", b"x", (),
    [], (0,), (1, 2), [-1, 0], (2, 3, 4), [2**62, 4], [None], {}, slice(None), ...,
    torch.float32, torch.int64, torch.complex64, torch.bool, torch.channels_last,
]  # fmt: skip


def spoil(scene):
    """A value that most likely does not belong where it is put."""
    if scene.rng.random() < 0.6:
        return scene.rng.choice(ODD)
    return Scene(scene.rng).tensor()
