"""What layers are made of: normalization, convolution, pooling, resampling, attention, recurrence."""

from .cases import FILTERED, IMAGES, ROWS, SMALLER_IMAGES, VOLUMES, WIDE, B, H, N, U, X, case, of_library, sizes

# ---- normalization

for name in ("softmax", "log_softmax"):
    case(f"{name} rows", ROWS, N, of_library(name, -1))
    case(f"{name} half rows", ROWS, H, of_library(name, -1))
    case(f"{name} columns", ROWS, N, of_library(name, 0))
    case(f"{name} wide", WIDE, N, of_library(name, -1))
    case(
        f"{name} short",
        sizes([(64, 10), (65536, 10), (1 << 21, 16)], [(64, 10), (4096, 10), (1 << 18, 16)]),
        N,
        of_library(name, -1),
    )
case("softmax channels", IMAGES, N, of_library("softmax", 1))
for kind, letter in (("", N), (" half", H)):
    case(
        f"layer_norm{kind}",
        ROWS,
        lambda n, m, a=letter: (a(n, m), a(m), a(m)),
        lambda t, x, w, b: t.F.layer_norm(x, w.shape, w, b),
    )
    case(f"rms_norm{kind}", ROWS, lambda n, m, a=letter: (a(n, m), a(m)), lambda t, x, w: t.F.rms_norm(x, w.shape, w))
    case(
        f"group_norm{kind}",
        IMAGES,
        lambda n, c, h, w, a=letter: (a(n, c, h, w), a(c), a(c)),
        lambda t, x, w, b: t.F.group_norm(x, 4, w, b),
    )
    case(f"instance_norm{kind}", IMAGES, letter, of_library("instance_norm"))
case(
    "batch_norm",
    IMAGES,
    lambda n, c, h, w: (N(n, c, h, w), N(c), N(c)),
    lambda t, x, w, b: t.F.batch_norm(x, None, None, w, b, True),
)
case(
    "batch_norm half",
    IMAGES,
    lambda n, c, h, w: (H(n, c, h, w), N(c), N(c)),
    lambda t, x, w, b: t.F.batch_norm(x, None, None, w, b, True),
)
case(
    "batch_norm rows",
    ROWS,
    lambda n, m: (N(n, m), N(m), N(m)),
    lambda t, x, w, b: t.F.batch_norm(x, None, None, w, b, True),
)
case("local_response_norm", IMAGES, N, of_library("local_response_norm", 5))
case("normalize", ROWS, N, of_library("normalize"))

# ---- convolution and pooling

for kind, letter in (("", N), (" half", H)):
    case(
        f"conv2d{kind}", FILTERED,
        lambda n, c, s, a=letter: (a(n, c, s, s), a(c, c, 3, 3)),
        lambda t, x, w: t.F.conv2d(x, w, padding=1),
    )  # fmt: skip
    case(
        f"conv2d channels_last{kind}", FILTERED,
        lambda n, c, s, a=letter: (a(n, s, s, c), a(c, 3, 3, c)),
        lambda t, x, w: t.F.conv2d(x.permute(0, 3, 1, 2), w.permute(0, 3, 1, 2), padding=1),
    )  # fmt: skip
case(
    "conv2d depthwise",
    FILTERED,
    lambda n, c, s: (N(n, c, s, s), N(c, 1, 3, 3)),
    lambda t, x, w: t.F.conv2d(x, w, padding=1, groups=w.shape[0]),
)
case(
    "conv2d strided",
    FILTERED,
    lambda n, c, s: (N(n, c, s, s), N(c, c, 3, 3)),
    lambda t, x, w: t.F.conv2d(x, w, stride=2, padding=1),
)
case(
    "conv1d",
    sizes([(2, 8, 64), (16, 64, 1024), (32, 128, 16384)], [(2, 8, 64), (4, 32, 512), (8, 64, 4096)]),
    lambda n, c, s: (N(n, c, s), N(c, c, 3)),
    lambda t, x, w: t.F.conv1d(x, w, padding=1),
)
case(
    "conv3d",
    sizes([(1, 4, 8), (2, 16, 16), (4, 32, 32)], [(1, 4, 8), (2, 8, 12), (2, 32, 24)]),
    lambda n, c, s: (N(n, c, s, s, s), N(c, c, 3, 3, 3)),
    lambda t, x, w: t.F.conv3d(x, w, padding=1),
)
case(
    "conv_transpose2d",
    sizes([(2, 8, 8), (16, 64, 16), (32, 64, 56)], [(1, 8, 8), (4, 16, 16), (4, 64, 28)]),
    lambda n, c, s: (N(n, c, s, s), N(c, c, 4, 4)),
    lambda t, x, w: t.F.conv_transpose2d(x, w, stride=2, padding=1),
)
for kind, letter in (("", N), (" half", H)):
    case(f"max_pool2d{kind}", IMAGES, letter, of_library("max_pool2d", 2))
    case(f"avg_pool2d{kind}", IMAGES, letter, of_library("avg_pool2d", 2))
case("max_pool2d 3", IMAGES, N, lambda t, x: t.F.max_pool2d(x, 3, 2, 1))
case("avg_pool2d 3", IMAGES, N, lambda t, x: t.F.avg_pool2d(x, 3, 2, 1))
case("max_pool2d channels_last", IMAGES, N, lambda t, x: t.F.max_pool2d(x.permute(0, 3, 1, 2), 2))
case("max_pool1d", ROWS, N, lambda t, x: t.F.max_pool1d(x.unsqueeze(0), 3, 2))
case("avg_pool1d", ROWS, N, lambda t, x: t.F.avg_pool1d(x.unsqueeze(0), 3, 2))
case("max_pool3d", VOLUMES, N, of_library("max_pool3d", 2))
case("avg_pool3d", VOLUMES, N, of_library("avg_pool3d", 2))
case("adaptive_avg_pool2d", IMAGES, N, of_library("adaptive_avg_pool2d", 7))
case("adaptive_avg_pool2d 1", IMAGES, N, of_library("adaptive_avg_pool2d", 1))
case("adaptive_max_pool2d", IMAGES, N, of_library("adaptive_max_pool2d", 7))
case("lp_pool2d", IMAGES, N, lambda t, x: t.F.lp_pool2d(x, 2, 2))
case("max_unpool2d", IMAGES, N, lambda t, x: t.F.max_unpool2d(*t.F.max_pool2d(x, 2, return_indices=True), 2))

# ---- resampling

for mode in ("nearest", "nearest-exact", "bilinear", "bicubic", "area"):
    case(
        f"interpolate {mode}", SMALLER_IMAGES, N, lambda t, x, mode=mode: t.F.interpolate(x, scale_factor=2, mode=mode)
    )
case("interpolate bilinear half", SMALLER_IMAGES, H, lambda t, x: t.F.interpolate(x, scale_factor=2, mode="bilinear"))
case(
    "interpolate bilinear corners",
    SMALLER_IMAGES,
    N,
    lambda t, x: t.F.interpolate(x, scale_factor=2, mode="bilinear", align_corners=True),
)
case("interpolate bilinear down", IMAGES, N, lambda t, x: t.F.interpolate(x, scale_factor=0.5, mode="bilinear"))
case(
    "interpolate antialias",
    IMAGES,
    N,
    lambda t, x: t.F.interpolate(x, scale_factor=0.5, mode="bilinear", antialias=True),
)
case("interpolate linear", ROWS, N, lambda t, x: t.F.interpolate(x.unsqueeze(0), scale_factor=2, mode="linear"))
case("interpolate trilinear", VOLUMES, N, lambda t, x: t.F.interpolate(x, scale_factor=2, mode="trilinear"))
for mode in ("bilinear", "nearest", "bicubic"):
    case(
        f"grid_sample {mode}", SMALLER_IMAGES, lambda n, c, h, w: (N(n, c, h, w), U(n, h, w, 2)),
        lambda t, x, g, mode=mode: t.F.grid_sample(x, g * 2 - 1, mode=mode, align_corners=False),
    )  # fmt: skip
case(
    "grid_sample border",
    SMALLER_IMAGES,
    lambda n, c, h, w: (N(n, c, h, w), N(n, h, w, 2)),
    lambda t, x, g: t.F.grid_sample(x, g, padding_mode="border", align_corners=False),
)
case(
    "grid_sample volumes",
    VOLUMES,
    lambda n, c, d, h, w: (N(n, c, d, h, w), U(n, d, h, w, 3)),
    lambda t, x, g: t.F.grid_sample(x, g, align_corners=False),
)
case(
    "affine_grid",
    sizes([(2, 16), (16, 64), (64, 256)], [(2, 16), (8, 64), (16, 256)]),
    lambda n, s: (N(n, 2, 3), X(s)),
    lambda t, a, s: t.F.affine_grid(a, (a.shape[0], 1, s.shape[0], s.shape[0]), align_corners=False),
)

# ---- attention and recurrence

HEADS = sizes([(2, 4, 64, 32), (4, 8, 512, 64), (4, 16, 2048, 64)], [(1, 4, 16, 16), (2, 4, 128, 64), (2, 8, 512, 64)])
for kind, letter in (("", N), (" half", H)):
    case(
        f"attention{kind}",
        HEADS,
        lambda b, h, s, d, a=letter: (a(b, h, s, d), a(b, h, s, d), a(b, h, s, d)),
        of_library("scaled_dot_product_attention"),
    )
    case(
        f"attention causal{kind}",
        HEADS,
        lambda b, h, s, d, a=letter: (a(b, h, s, d), a(b, h, s, d), a(b, h, s, d)),
        lambda t, *x: t.F.scaled_dot_product_attention(*x, is_causal=True),
    )
    case(
        f"attention mask{kind}", HEADS,
        lambda b, h, s, d, a=letter: (a(b, h, s, d), a(b, h, s, d), a(b, h, s, d), X(s, s)),
        lambda t, q, k, v, m: t.F.scaled_dot_product_attention(q, k, v, attn_mask=m.to(q.dtype)),
    )  # fmt: skip
    case(
        f"attention bools{kind}", HEADS,
        lambda b, h, s, d, a=letter: (a(b, h, s, d), a(b, h, s, d), a(b, h, s, d), B(s, s)),
        lambda t, q, k, v, m: t.F.scaled_dot_product_attention(q, k, v, attn_mask=m),
    )  # fmt: skip
case(
    "attention wide",
    sizes(
        [(2, 4, 64, 128), (4, 8, 512, 128), (4, 16, 2048, 128)], [(1, 4, 16, 128), (2, 4, 128, 128), (2, 4, 512, 128)]
    ),
    lambda b, h, s, d: (H(b, h, s, d), H(b, h, s, d), H(b, h, s, d)),
    of_library("scaled_dot_product_attention"),
)
for layer in ("LSTM", "GRU"):
    case(
        layer.lower(), sizes([(8, 2, 16), (64, 16, 256), (128, 64, 1024)], [(8, 2, 16), (16, 8, 64), (64, 32, 256)]), N,
        lambda t, x, layer=layer: t.module(layer, x.shape[2], x.shape[2])(x)[0],
    )  # fmt: skip
