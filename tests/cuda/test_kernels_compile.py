"""Every kernel file compiles for the cards we know, with the macros its host code gives it, and the usual ones quickly.
Needs the package nvidia-cuda-nvrtc."""

import re
import time
from pathlib import Path

import nvrtc
import pytest

import cresset
from cresset.graph.traced_functions import Traced, Writer

# file: the macros of each kernel in it, as its KernelFamily and a typical launch give them.
KERNELS = {
    "attention_backward_keys.cuh": [
        "T=dtype_f16 WIDTH=64 WARP_TILES=1 TILE=64 MASK=0 MASK_TYPE=dtype_b8 CAUSAL=1 T_IS_FLOAT=0",
        "T=dtype_bf16 WIDTH=128 WARP_TILES=1 TILE=32 MASK=1 MASK_TYPE=dtype_b8 CAUSAL=0 T_IS_FLOAT=0",
        "T=dtype_f32 WIDTH=64 WARP_TILES=1 TILE=32 MASK=2 MASK_TYPE=dtype_f32 CAUSAL=1 T_IS_FLOAT=1"],
    "attention_backward_queries.cuh": [
        "T=dtype_bf16 WIDTH=64 WARP_TILES=1 TILE=64 MASK=0 MASK_TYPE=dtype_b8 CAUSAL=1 T_IS_FLOAT=0",
        "T=dtype_f16 WIDTH=96 WARP_TILES=1 TILE=32 MASK=2 MASK_TYPE=dtype_f32 CAUSAL=0 T_IS_FLOAT=0",
        "T=dtype_f32 WIDTH=64 WARP_TILES=1 TILE=32 MASK=2 MASK_TYPE=dtype_f32 CAUSAL=1 T_IS_FLOAT=1"],
    "attention_decode.cuh": [f"ENTRY={entry} T=dtype_{t} WIDTH={width} ROWS={rows} PART={part} MASK={mask} MASK_TYPE=dtype_b8 CAUSAL={1 - mask}" for entry in (0, 1) for t, width, rows, part, mask in (("bf16", 128, 1, 64, 1), ("f16", 16, 8, 128, 0))],  # noqa: E501
    "attention_forward.cuh": [
        "T=dtype_bf16 WIDTH=128 WARP_TILES=2 TILE=64 MASK=0 MASK_TYPE=dtype_b8 CAUSAL=1 T_IS_FLOAT=0",
        "T=dtype_f16 WIDTH=32 WARP_TILES=1 TILE=64 MASK=2 MASK_TYPE=dtype_f16 CAUSAL=0 T_IS_FLOAT=0",
        "T=dtype_f32 WIDTH=64 WARP_TILES=1 TILE=32 MASK=2 MASK_TYPE=dtype_f32 CAUSAL=1 T_IS_FLOAT=1",
        "T=dtype_f32 WIDTH=64 WARP_TILES=2 TILE=32 MASK=0 MASK_TYPE=dtype_b8 CAUSAL=0 T_IS_FLOAT=1"],
    "attention_rows.cuh": [f"JOIN={join} T=dtype_{t} MASK={mask}" for join, t, mask in ((0, "bf16", 1), (1, "f16", 0))],
    "attention_plain.cuh": [f"ENTRY={entry} T=dtype_{t} ITEMS=3 MASK={mask} MASK_TYPE=dtype_b8 CAUSAL=1" for entry in range(3) for t, mask in (("f32", 0), ("f64", 1))]  # noqa: E501
        + [f"ENTRY=3 T=dtype_{t} ITEMS={items} MASK=0 MASK_TYPE=dtype_b8 CAUSAL=0" for t, items in (("f64", 1), ("f32", 4), ("bf16", 8))],  # noqa: E501
    "compact.cuh": ["COUNT", "SUM", "PLACES RANK=1 BIG=0", "PLACES RANK=8 BIG=1", "TAKE WORD=4", "TAKE WORD=1",
        "PUT WORD=2", "RANKS INCLUDING=1", "COORDINATES", "TAKE_RUNS T=dtype_i64", "TAKE_RUNS T=dtype_bf16"],
    "creation.cuh": [
        "RANGE T=dtype_i64", "RANGE T=dtype_bf16", "SPACE T=dtype_f32 EXPONENTS=0", "SPACE T=dtype_c64 EXPONENTS=0",
        "SPACE T=dtype_f16 EXPONENTS=1", "TRIANGLE T=dtype_i64 UPPER=0 SMALL=1",
        "TRIANGLE T=dtype_i32 UPPER=1 SMALL=0", "PAIRS T=dtype_f32 POLAR=1 VECTOR=4",
        "PAIRS T=dtype_f64 POLAR=1 VECTOR=1", "PAIRS T=dtype_f16 POLAR=0 VECTOR=8",
    ],
    "attention_flex.cuh": [
        f"ENTRY={entry} T=dtype_{t} WIDTH={width} WARP_TILES={warp_tiles} TILE={tile} T_IS_FLOAT={t == 'f32':d} "
        "SCORED=0 BLOCKED=0 ALIGNED=1 WARPGROUP=0"
        for entry, t, width, warp_tiles, tile in ((0, "bf16", 128, 2, 64), (1, "f16", 64, 1, 64), (2, "f32", 32, 1, 32))
    ],
    "grid.cuh": [f"{kernel} T=dtype_{t} DIMS={dims} TAPS={taps}" for kernel in ("READ", "GRID_GRADIENT", "KEYS", "RUNS", "INPUT_GRADIENT") for t, dims, taps in (("f32", 2, 4), ("bf16", 3, 2), ("f64", 2, 1))],  # noqa: E501
    "indexing.cuh": ["BAGS T=dtype_f32 VECTOR=4", "BAGS T=dtype_bf16 VECTOR=1", "ELEMENTS LISTS=2 WORD=4", "ELEMENTS LISTS=3 WORD=16", "OFFSETS LISTS=2 RANK=1", "OFFSETS LISTS=8 RANK=3", "REPEAT T=dtype_i64"],  # noqa: E501
    "indexed_walk_extremes.cuh": [
        f"T=dtype_{t} HOW={how} STEP={step} RANK=1 BIG=0 INDEX=dtype_i64"
        for t, how, step in (("f32", 2, 0), ("f32", 2, 1), ("bf16", 3, 0), ("f16", 3, 1))
    ],
    "indexed_walk.cuh": [
        "MOVE WORD=16 RANK=2 BIG=0 INDEX=dtype_i64 WRITE=0 NEIGHBORS=0",
        "MOVE WORD=1 RANK=8 BIG=1 INDEX=dtype_i32 WRITE=1 NEIGHBORS=0",
        "MOVE WORD=4 RANK=2 BIG=0 INDEX=dtype_i64 WRITE=0 NEIGHBORS=1",
        "MOVE WORD=2 RANK=3 BIG=1 INDEX=dtype_i32 WRITE=0 NEIGHBORS=1",
        "SERIAL T=dtype_f32 HOW=0 RANK=1 BIG=0 INDEX=dtype_i64", "SERIAL T=dtype_b8 HOW=2 RANK=3 BIG=0 INDEX=dtype_i32",
        "STAGED T=dtype_f32 HOW=0 RANK=1 BIG=0 INDEX=dtype_i64 WARPS=4 COLUMNS=0",
        "STAGED T=dtype_bf16 HOW=2 RANK=3 BIG=0 INDEX=dtype_i32 WARPS=8 COLUMNS=1",
        "STAGED T=dtype_c128 HOW=1 RANK=2 BIG=1 INDEX=dtype_i64 WARPS=1 COLUMNS=0",
        "KEYS KEY=dtype_u32 WHOLE=0 RANK=1 INDEX=dtype_i64", "KEYS KEY=dtype_u64 WHOLE=1 RANK=2 INDEX=dtype_i32",
        "SORTED T=dtype_f32 HOW=0 RANK=1 KEY=dtype_u32 INDEX=int64_t",
        "SORTED T=dtype_c128 HOW=1 RANK=2 KEY=dtype_u64 INDEX=int64_t",
        "SLICES T=dtype_bf16 HOW=0 RANK=1 BIG=0 VECTOR=8 FRESH=1 INDEX=int64_t",
        "SLICES T=dtype_i8 HOW=3 RANK=2 BIG=0 VECTOR=1 FRESH=0 INDEX=int64_t",
        "SLICES T=dtype_c64 HOW=1 RANK=1 BIG=0 VECTOR=2 FRESH=0 INDEX=int64_t",
        "CROSSING T=dtype_f32 HOW=0 RANK=1 BIG=0 VECTOR=4 FRESH=1 INDEX=int64_t",
        "FEW T=dtype_f32 HOW=0 RANK=1 BIG=0 VECTOR=4 FRESH=0 INDEX=dtype_i64",
        "FEW T=dtype_bf16 HOW=3 RANK=3 BIG=0 VECTOR=1 FRESH=0 INDEX=dtype_i32",
        "RUNS RANK=1 INDEX=int64_t", "GATHER T=dtype_f32 HOW=0 RANK=1 BIG=0 INDEX=int64_t",
        "GATHER T=dtype_bf16 HOW=3 RANK=3 BIG=0 INDEX=int64_t",
    ],
    "indexed_walk_sums.cuh": [
        f"STEP={step} RANK={step % 4 + 1} BIG=0 INDEX=dtype_i64 ITEMS={items}" for step in range(7) for items in (16, 4)
    ],
    "join.cuh": ["WORD=16 BIG=0", "WORD=2 BIG=1"],
    "linalg.cuh": ["ADDRESSES", "ROW_ORDER", "WIDEN", "CHECK", "EXCHANGE WORD=4", "EXCHANGE WORD=16"],
    "linalg_small.cuh": [
        *(f"SOLVE T=dtype_{t} ROWS={rows}" for t in ("f32", "c128") for rows in (1, 4)),
        *(f"{kernel} T=dtype_{t} ROWS=2" for kernel in ("FACTOR", "FORM", "LEAST") for t in ("f32", "f64", "c64")),
    ],
    "matmul_small.cuh": [
        "T=dtype_f32 A_ALONG_K=1 B_ALONG_K=0 CHUNK=128",
        "T=dtype_f32 A_ALONG_K=0 B_ALONG_K=1 CHUNK=32",
    ],
    "matmul.cuh": ["T=dtype_bf16 ROWS=2", "T=dtype_f32 ROWS=1", "HASH=1"],
    "scatter.cuh": ["T=dtype_f32", "T=dtype_i32", "T=dtype_c64"],
    "normalization_channels.cuh": [
        (f"KERNEL={kernel} ELEMENT=dtype_{t} PARAMETER=dtype_{p} STATISTIC=dtype_{p} RUNNING=dtype_f32 VECTOR={vector} "
        f"INSIDE={inside}")
        for kernel in range(5) for t, p, vector, inside in (("bf16", "f32", 8, kernel % 2),)
    ],
    "loss.cuh": [
        f"KERNEL={kernel} ELEMENT=dtype_{t} PARAMETER=dtype_f32 THREADS={threads} VECTOR={vector} PER=1"
        for kernel in range(8) for t, threads, vector in (("bf16", 512, 8),)
    ],
    "normalization.cuh": [
        (f"KERNEL={kernel} ELEMENT=dtype_{t} PARAMETER=dtype_{p} STATISTIC=dtype_{p} CENTERED={centered} "
        f"THREADS={threads} VECTOR={vector} PER={per}")
        for kernel in range(6) for t, p, centered, threads, vector,
        per in (("bf16", "f32", kernel % 2, 128 >> kernel, 8, 4),)
    ],
    "pooling.cuh": [
        "WHOLE_MEAN T=dtype_bf16 ADAPTIVE=0 LAST=0 BIG=0 VECTOR=1",
        "WINDOW_MEAN T=dtype_f32 ADAPTIVE=1 LAST=0 BIG=0 VECTOR=1",
        "FORWARD_MAX T=dtype_f32 ADAPTIVE=0 LAST=0 BIG=0 VECTOR=4 WIDE=3",
        "FORWARD_MEAN T=dtype_bf16 ADAPTIVE=0 LAST=0 BIG=0 VECTOR=4 WIDE=2",
        *((f"{kernel} T=dtype_{t} ADAPTIVE={adaptive} LAST={last} BIG=0 WIDE=0 "
        f"VECTOR={(16 // {'i64': 8, 'f32': 4, 'c64': 8}.get(t, 2)) if last else 1}")
        for kernel, t in (("FORWARD_MAX", "f32"), ("FORWARD_MAX", "i64"), ("FORWARD_MEAN", "bf16"),
            ("FORWARD_MEAN", "c64"),
                          ("GRADIENT_MAX", "f16"), ("GRADIENT_MEAN", "f32"))
        for adaptive, last in ((0, 0), (1, 1))),
        "GRADIENT_MAX T=dtype_bf16 ADAPTIVE=0 LAST=0 BIG=0 VECTOR=4",
        "GRADIENT_MEAN T=dtype_f32 ADAPTIVE=1 LAST=0 BIG=0 VECTOR=4",
        "GRADIENT_MEAN T=dtype_c64 ADAPTIVE=0 LAST=0 BIG=1 VECTOR=2",
    ],
    "radix_sort.cuh": [
        f"{kernel} KEY=dtype_{key} FIRST={first} BY_ROW={by_row} LEAVES_OUT={leaves_out}"
        for kernel in ("COUNT", "SUM", "MOVE") for key in ("u32", "u64")
        for first, by_row, leaves_out in ((1, 0, 0), (0, 0, 0), (0, 1, 0), (0, 0, 1), (0, 1, 1))
    ] + ["FEW KEY=dtype_u32 ITEMS=16", "FEW KEY=dtype_u64 ITEMS=8", "FEW KEY=dtype_u32 ITEMS=1"],
    "random.cuh": [
        *(f"ELEMENT=dtype_{t} KIND={kind}" for kind in range(6) for t in ("f32", "f64", "bf16")),
        *(f"ELEMENT=dtype_{t} KIND={kind}" for kind in (6, 7, 8) for t in ("i64", "b8", "f16")),
        "ELEMENT=dtype_f32 PROBABILITY=dtype_f64", "ELEMENT=dtype_bf16 DROPOUT", "ELEMENT=dtype_f64 DROPOUT",
        "ELEMENT=dtype_f16 DROPOUT_BACKWARD", "ELEMENT=dtype_i64 PERMUTATION", "ELEMENT=dtype_f32 PERMUTATION_OF_FEW",
    ],
    "rearrange.cuh": ["WORD=4 VECTOR=4 UPPER=0 BIG=0", "WORD=16 VECTOR=1 UPPER=1 BIG=1"],
    "padding.cuh": [
        *(f"MAKE WORD={word} MODE={mode} BIG={mode == 1:d}" for mode, word in enumerate((16, 1, 4, 8))),
        *(f"BACK T=dtype_{t} MODE={mode} BIG={mode == 2:d}" for mode, t in enumerate(("f32", "bf16", "c64"), 1)),
    ],
    "resampling.cuh": [f"{way} T=dtype_{t} TAPS={taps}" for way in ("MAKE", "BACK") for t, taps in (("f32", 2), ("bf16", 4), ("f64", 1), ("f16", 0))] + ["TOTALS T=dtype_f32 TAPS=0"],  # noqa: E501
    "recurrence.cuh": [f"KERNEL={kernel} CELL={cell} ELEMENT=dtype_{t}" for kernel in range(3) for cell,
        t in ((0, "f16"), (1, "f32"), (2, "f64"), (3, "bf16"))],
    "reduction.cuh": [
        *((f"KERNEL={kernel} OPERATION={operation} ELEMENT=dtype_f32 "
          f"COMPUTED=dtype_{'b8' if 4 <= operation <= 6 else 'f32'} RESULT=dtype_f32 VECTOR=4 CONTIGUOUS=0 BIG=0")
          for operation in range(25) for kernel in (operation % 3,)),
        *((f"KERNEL={kernel} OPERATION={operation} ELEMENT=dtype_{t} COMPUTED=dtype_{c} RESULT=dtype_{t} "
          f"VECTOR={vector} CONTIGUOUS=1 BIG=1")
          for kernel, operation, t, c, vector in ((0, 0, "bf16", "f32", 8), (1, 2, "c64", "c64", 2),
              (0, 3, "c128", "c128", 1), (1, 11, "u8", "i64", 4))),
    ],
    "scan.cuh": [
        f"KERNEL={kernel} OPERATION={operation} ELEMENT=dtype_{t} COMPUTED=dtype_{c} RESULT=dtype_{t} ALIGNED=1"
        for kernel, operation, t, c in ((0, 0, "bf16", "f32"), (1, 1, "i32", "i64"), (0, 1, "c64", "c64"),
            (1, 2, "f64", "f64"), (0, 3, "f16", "f32"), (1, 4, "i64", "i64"), (2, 0, "f32", "f32"),
            (2, 1, "c128", "c128"), (2, 3, "u8", "u8"))
    ] + ["KERNEL=2 OPERATION=0 ELEMENT=dtype_b8 COMPUTED=dtype_i64 RESULT=dtype_i64 ALIGNED=1"],
    "softmax.cuh": [
        f"KERNEL={kernel} ELEMENT=dtype_{t} RESULT=dtype_{r} LOG={log} THREADS={threads} VECTOR={vector} PER={per}"
        for kernel in range(6) for t, r, log, threads, vector,
        per in (("bf16", "f32", kernel % 2, 128 >> kernel, 4, 4),)
    ],
    "random_sampling.cuh": [
        f"ELEMENT=dtype_{t} RESULT=dtype_f64 {kernel}"
        for t in ("f32", "f64")
        for kernel in ("CHOOSE", "KEYS", "CUMULATE", "PICK", "POISSON", "GAMMA", "BINOMIAL", "SHARES", "GAMMA_GRADIENT",
                       "DIRICHLET_GRADIENT")
    ],
    "scaling.cuh": [""],
    "compare.cuh": ["T=dtype_f32 R=dtype_i64", "T=dtype_i8 R=dtype_i32"],
    "extremes.cuh": ["T=dtype_i64", "T=dtype_bf16"],
    "histogram.cuh": ["COUNT SHARED=1", "COUNT SHARED=0", "INTERVALS T=dtype_f16 SHARED=1",
        "INTERVALS T=dtype_f64 SHARED=0"],
    "sorting.cuh": [
        *(f"ROWS T=dtype_{t} ITEMS={items} CHOSEN={chosen}" for t, items,
            chosen in (("f32", 1, 0), ("f32", 16, 0), ("f64", 16, 0), ("i64", 8, 1), ("bf16", 4, 1))),
        "KEYS T=dtype_f16", "KEYS T=dtype_u64", "TAKE T=dtype_b8", "TAKE T=dtype_f16", "TAKE T=dtype_f64",
        "ONE T=dtype_f32 ITEMS=16",
        "ONE T=dtype_i64 ITEMS=0", "ONE T=dtype_bf16 ITEMS=4", "SELECT T=dtype_f32", "SELECT T=dtype_i64",
        "MIDDLE T=dtype_bf16",
        "MODE T=dtype_f32", "STARTS T=dtype_f32 PLAIN=0", "STARTS T=dtype_f16 PLAIN=1", "GROUPS T=dtype_i8",
        "COLUMN T=dtype_f32",
        "SLICE_STARTS T=dtype_bf16",
    ],
    "update_eight_bit.cuh": ["T=dtype_f32 G=dtype_f32 VECTOR=4", "T=dtype_bf16 G=dtype_f16 VECTOR=1"],
    "transpose.cuh": ["SINGLE WORD=4 RANK=1", "SINGLE WORD=16 RANK=8", "PAIRS RANK=1", "PAIRS RANK=8"],
}  # fmt: skip


TABLE = "LISTS={} NUMBERS=3 SINGLES={} CAPACITY={} BLOCK=256 VECTOR=4 UNROLL=2 COMPUTE=float SINGLE=dtype_f32"


@pytest.mark.parametrize("architecture", ["sm_80", "sm_90", "sm_100"])
@pytest.mark.parametrize("extra", ["", "SKIPS UNSCALES"])
def test_kernels_for_many_tensors_compile(extra, architecture):
    if nvrtc.library() is None:
        pytest.skip("needs nvidia-cuda-nvrtc")
    table = '#include "many_table.cuh"\n'
    update = """
        struct Constants { float rate; };
        __device__ void prepare(Constants& constants, const double* numbers) { constants.rate = numbers[0]; }
        __device__ void update(const Constants& constants, float& x, const float& grad) { x -= constants.rate * grad; }
        __device__ void advance(const double* numbers, double* singles) { singles[0] = numbers[2] + 1; }
        #define EACH_TENSOR(X) X(0, dtype_bf16, true, true) X(1, dtype_f32, true, true)
        #define UPDATE update(constants, x0, x1)
        #include "many.cuh"
    """
    for singles, capacity in ((0, 60), (1, 60), (1, 800)):
        options = [f"-D{word}" for word in f"{TABLE.format(2, singles, capacity)} {extra}".split()]
        nvrtc.compile(table + update, architecture, options)
    for order in (0, 1, 2):
        options = [f"-D{word}" for word in f"{TABLE.format(1, 0, 60)} ORDER={order} ELEMENT=dtype_f16".split()]
        nvrtc.compile(table + '#include "many_norm.cuh"\n', architecture, options)


@pytest.mark.parametrize("architecture", ["sm_80", "sm_90", "sm_100"])
@pytest.mark.parametrize("file", KERNELS)
def test_kernels_compile_for_every_card(file, architecture):
    if nvrtc.library() is None:
        pytest.skip("needs nvidia-cuda-nvrtc")
    for macros in KERNELS[file]:
        nvrtc.compile(f'#include "{file}"\n', architecture, [f"-D{macro}" for macro in macros.split()])


def test_kernels_of_attention_with_functions_compile():
    """With functions that read tensors, forward and backward."""
    if nvrtc.library() is None:
        pytest.skip("needs nvidia-cuda-nvrtc")
    writer, places = Writer({}), ("b", "h", "q", "kv")
    table = cresset.zeros(4, 5, 5, dtype=cresset.float16)
    score = Traced(lambda s, b, h, q, kv: 20 * cresset.tanh(s / 20) + table[h, q, kv] * 0.5, ("score", *places))
    mask = Traced(lambda b, h, q, kv: (q >= kv) & ((q - kv).abs() < 9), places)
    functions = [
        writer.function(score, "flex_score", "float"),
        writer.gradient(score, "flex_slope"),
        writer.function(mask, "flex_mask", "bool"),
    ]
    text = "".join([writer.beginning(), *functions, '#include "attention_flex.cuh"\n'])
    for entry, aligned in ((0, 1), (1, 0), (2, 1)):
        macros = f"ENTRY={entry} T=dtype_bf16 WIDTH=64 WARP_TILES=1 TILE=64 T_IS_FLOAT=0 SCORED=1 BLOCKED=1"
        options = [f"-D{macro}" for macro in f"{macros} ALIGNED={aligned}".split()]
        nvrtc.compile(text, "sm_90", ["--fmad=true", "-DWARPGROUP=0", *options])
        nvrtc.compile(text, "sm_90a", ["--fmad=true", "-DWARPGROUP=1", *options])


# Kernels that stand with their launches; their first lines say for what they are compiled.
TEXTS = {
    (path.name, number): text
    for path in sorted((Path(__file__).resolve().parents[2] / "native" / "cuda").glob("*.cpp"))
    for number, text in enumerate(re.findall(r'R"cuda\((.*?)\)cuda"', path.read_text(encoding="utf-8"), re.S))
}


@pytest.mark.parametrize("architecture", ["sm_80", "sm_90", "sm_100"])
@pytest.mark.parametrize("place", TEXTS, ids=lambda place: f"{place[0]}-{place[1]}")
def test_kernels_that_stand_with_their_launches_compile_for_every_card(place, architecture):
    first, _, _ = TEXTS[place].partition("\n")
    assert first.startswith("// with "), f"{place[0]}: the first line of a kernel's text says what it is compiled with"
    if nvrtc.library() is None:
        pytest.skip("needs nvidia-cuda-nvrtc")
    for macros in first.removeprefix("// with ").split(", "):
        nvrtc.compile(TEXTS[place], architecture, [f"-D{macro}" for macro in macros.split()])


def test_every_kernel_waits_for_earlier_work_first():
    """All are launched early: Note [Launched early] in native/cuda/launch.cpp."""
    texts = {path.name: path.read_text("utf-8") for path in nvrtc.KERNELS.glob("*.cuh")}
    texts |= {str(place): text for place, text in TEXTS.items()}
    bounds = r"(?:(?:__launch_bounds__\([^()]*\)|BOUNDS)\s*)?"
    kernel = re.compile(r"__global__ void " + bounds + r"(\w+)\([^()]*\) \{(.*?)after_earlier_work\(\);", re.S)
    for name, text in texts.items():
        found = kernel.findall(text)
        assert len(found) == text.count("__global__"), name
        for entry, before in found:  # to ask for memory is allowed, to wait, read or write is not
            assert not before.strip() or "prefetch(" in before, (name, entry)
            assert not re.search(r"__syncthreads|__shfl|load_|copy_|atomic", before), (name, entry)


NOTHING = 'extern "C" __global__ void nothing(float* p) { p[threadIdx.x] = 1; }'
SUM_OF_TWO = """#include "math.cuh"
    __device__ __forceinline__ float formula(float x, float y, const Attribute*) { return x + y; }
    #define RESULT dtype_f32
    #define OPERANDS 3
    #define EACH_INPUT(P, N) P(1, dtype_f32) P(2, dtype_f32)
    #define ARGUMENTS(P, N) P(1) P(2)
    #include "pointwise.cuh"
"""


@pytest.mark.parametrize(
    ("source", "macros", "most"),
    [
        (SUM_OF_TWO, "BLOCK=256 UNROLL=2 VECTOR=4", 2.7),
        (
            '#include "reduction.cuh"',
            "KERNEL=0 OPERATION=0 ELEMENT=dtype_f32 COMPUTED=dtype_f32 RESULT=dtype_f32 VECTOR=4 CONTIGUOUS=1 BIG=0",
            5,
        ),
        ('#include "softmax.cuh"', "KERNEL=0 ELEMENT=dtype_f32 RESULT=dtype_f32 LOG=0 THREADS=128 VECTOR=4 PER=4", 5),
    ],
    ids=["pointwise", "reduction", "softmax"],
)
def test_usual_kernels_take_a_few_times_as_long_as_an_empty_one(source, macros, most):
    if nvrtc.library() is None:
        pytest.skip("needs nvidia-cuda-nvrtc")

    def seconds(*program):
        start = time.thread_time()
        nvrtc.compile(*program)
        return time.thread_time() - start

    options = [f"-D{macro}" for macro in macros.split()]
    seconds(NOTHING)  # the compiler's own beginnings
    empty, real = zip(*((seconds(NOTHING), seconds(source, "sm_90", options)) for _ in range(6)), strict=True)
    assert min(real) < most * min(empty)
