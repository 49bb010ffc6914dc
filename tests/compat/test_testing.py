"""`testing` accepts, rejects, says and makes what PyTorch's does."""

import itertools

import pytest

import cresset

torch = pytest.importorskip("torch")
numpy = pytest.importorskip("numpy")


def outcome(program, lib):
    """'passes', or the exception's class and, for an AssertionError, its words."""
    try:
        program(lib)
        return "passes"
    except AssertionError as error:
        return "AssertionError", str(error)
    except Exception as error:
        return type(error).__name__


VALUES = {
    "floats": lambda t: t.tensor([1.0, 2.0, 3.0]),
    "other floats": lambda t: t.tensor([1.0, 2.5, 3.0]),
    "close floats": lambda t: t.tensor([1.0, 2.000001, 3.0]),
    "doubles": lambda t: t.tensor([1.0, 2.0, 3.0], dtype=t.float64),
    "halves": lambda t: t.tensor([1.0, 2.1, 3.0], dtype=t.float16),
    "brains": lambda t: t.tensor([1.0, 2.1, 3.0], dtype=t.bfloat16),
    "column": lambda t: t.tensor([[1.0], [2.0], [3.0]]),
    "square": lambda t: t.tensor([[1, 2], [3, 4]]),
    "other square": lambda t: t.tensor([[1, 2], [3, 5]]),
    "turned square": lambda t: t.tensor([[1, 3], [2, 4]]).t(),
    "bytes": lambda t: t.tensor([0, 1, 200], dtype=t.uint8),
    "other bytes": lambda t: t.tensor([0, 1, 2], dtype=t.uint8),
    "booleans": lambda t: t.tensor([True, False]),
    "other booleans": lambda t: t.tensor([True, True]),
    "complex": lambda t: t.tensor([1j, 2.0]),
    "other complex": lambda t: t.tensor([2j, 2.0]),
    "nan": lambda t: t.tensor([float("nan"), 1.0]),
    "inf": lambda t: t.tensor([float("inf"), 1.0]),
    "minus inf": lambda t: t.tensor([float("-inf"), 1.0]),
    "empty": lambda t: t.empty(0),
    "meta": lambda t: t.empty(3, device="meta"),
    "0-d": lambda t: t.tensor(1.0),
    "other 0-d": lambda t: t.tensor(2.0),
    "0-d boolean": lambda t: t.tensor(True),
    "0-d false": lambda t: t.tensor(False),
    "parameter": lambda t: t.nn.Parameter(t.tensor(1.0)),
    "array": lambda t: numpy.array([1.0, 2.0, 3.0]),
    "other array": lambda t: numpy.array([1.0, 2.0, 4.0]),
    "scalar of numpy": lambda t: numpy.float32(1),
    "1": lambda t: 1,
    "2": lambda t: 2,
    "1.0": lambda t: 1.0,
    "0.0": lambda t: 0.0,
    "nan number": lambda t: float("nan"),
    "1j": lambda t: 1j,
    "True": lambda t: True,
    "False": lambda t: False,
    "None": lambda t: None,
    "text": lambda t: "a",
    "list": lambda t: [1.0, t.tensor([1.0])],
    "other list": lambda t: [1.0, t.tensor([2.0])],
    "tuple": lambda t: (1.0, t.tensor([1.0])),
    "short list": lambda t: [1.0],
    "mapping": lambda t: {"a": [1.0, 2.0], "b": t.tensor(1)},
    "other mapping": lambda t: {"a": [1.0, 3.0], "b": t.tensor(1)},
    "mapping of others": lambda t: {"a": 1, "c": 2},
    "nested": lambda t: [[{"x": t.tensor([1, 2])}]],
    "other nested": lambda t: [[{"x": t.tensor([1, 3])}]],
}
OPTIONS = [
    {}, {"rtol": 0, "atol": 0.6}, {"rtol": 0.5, "atol": 0}, {"rtol": 0, "atol": 0}, {"equal_nan": True},
    {"check_dtype": False}, {"check_stride": True},
    {"check_device": False}, {"allow_subclasses": False}, {"msg": "own words"},
    {"msg": lambda words: "before\n" + words}, {"rtol": 1.0},
]  # fmt: skip


@pytest.mark.parametrize("options", range(len(OPTIONS)))
def test_assert_close(options):
    options = OPTIONS[options]
    for one, other in itertools.product(VALUES, VALUES):
        if {one, other} & {"True", "False"} and {one, other} & {
            "1",
            "2",
            "1.0",
            "0.0",
            "1j",
            "nan number",
            "scalar of numpy",
        }:
            continue  # PyTorch stumbles over a bool beside a number
        ours, theirs = (
            outcome(lambda lib: lib.testing.assert_close(VALUES[one](lib), VALUES[other](lib), **options), lib)  # noqa: B023
            for lib in (cresset, torch)
        )
        assert ours == theirs, (one, other)


@pytest.mark.filterwarnings("ignore")
def test_assert_allclose():
    for one, other in itertools.product(
        ["floats", "other floats", "doubles", "nan", "array", "1.0", "square"], repeat=2
    ):
        ours, theirs = (
            outcome(lambda lib: lib.testing.assert_allclose(VALUES[one](lib), VALUES[other](lib)), lib)  # noqa: B023
            for lib in (cresset, torch)
        )
        assert ours == theirs, (one, other)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "arguments",
    [
        {"shape": (3, 4)},
        {"shape": (3, 4), "low": -1, "high": 1},
        {"shape": (3, 4), "low": 0.5, "high": 3.5, "exclude_zero": True},
        {"shape": (2, 20), "noncontiguous": True},
        {"shape": (), "noncontiguous": True},
        {"shape": (2, 3, 2, 2), "memory_format": "channels_last"},
        {"shape": (2, 3), "requires_grad": True},
        {"shape": (0, 3)},
        {"shape": (5,), "low": 3, "high": 1},
        {"shape": (5,), "low": float("nan")},
        {"shape": (5,), "low": 1, "high": 1},
        {"shape": (5,), "low": float("-inf"), "high": float("inf")},
        {"shape": (5,), "low": 1e30, "high": 1e40},
    ],
)
@pytest.mark.parametrize(
    "dtype",
    "bool uint8 int8 int16 int32 int64 uint16 float16 bfloat16 float32 float64 complex64 complex128 float8_e4m3fn".split(),  # noqa: E501
)
def test_make_tensor(dtype, arguments):
    if arguments.get("exclude_zero") and dtype in ("uint16", "float8_e4m3fn"):
        pytest.skip("PyTorch cannot compare these with zero")

    def made(lib):
        options = dict(arguments)
        if "memory_format" in options:
            options["memory_format"] = getattr(lib, options["memory_format"])
        lib.manual_seed(4)
        tensor = lib.testing.make_tensor(options.pop("shape"), dtype=getattr(lib, dtype), device="cpu", **options)
        plain = tensor.detach().float() if "float8" in dtype else tensor.detach()
        return str(plain.tolist()), tuple(tensor.shape), tensor.stride(), str(tensor.dtype), tensor.requires_grad

    results = []
    for lib in (cresset, torch):
        try:
            results.append(made(lib))
        except Exception as error:
            results.append(type(error).__name__)
    assert results[0] == results[1]


TEXT = "one two\nthree two\nfour  # five\nfour\nsix six"
CHECKS = {
    "in order": lambda f: f.check("one").check("two").check("three").check("four"),
    "out of order": lambda f: f.check("three").check("one"),
    "twice": lambda f: f.check("two").check("two"),
    "three times": lambda f: f.check("two").check("two").check("two"),
    "next": lambda f: f.check("one").check_next("three"),
    "next is too far": lambda f: f.check("one").check_next("four"),
    "next on the same": lambda f: f.check("one").check_next("two"),
    "same": lambda f: f.check("one").check_same("two"),
    "same is too far": lambda f: f.check("one").check_same("three"),
    "not": lambda f: f.check("one").check_not("three").check("two"),
    "not fails": lambda f: f.check("one").check_not("three").check("four"),
    "not at the end": lambda f: f.check("four").check_not("one"),
    "not at the end fails": lambda f: f.check("four").check_not("six"),
    "not at the start": lambda f: f.check_not("two").check("one"),
    "not at the start fails": lambda f: f.check_not("one").check("three"),
    "only not": lambda f: f.check_not("seven"),
    "only not fails": lambda f: f.check_not("six"),
    "count": lambda f: f.check_count("two", 2),
    "count more": lambda f: f.check_count("two", 3),
    "count less": lambda f: f.check_count("two", 1),
    "count exactly": lambda f: f.check_count("two", 2, exactly=True),
    "count exactly fails": lambda f: f.check_count("two", 1, exactly=True),
    "count none": lambda f: f.check_count("seven", 0, exactly=True),
    "count nothing": lambda f: f.check_count("seven", 0),
    "dag": lambda f: f.check_dag("four").check_dag("one"),
    "dag then": lambda f: f.check_dag("three").check_dag("one").check("four"),
    "dag then fails": lambda f: f.check_dag("three").check_dag("four").check("one"),
    "dag missing": lambda f: f.check_dag("three").check_dag("seven"),
    "not before dag": lambda f: f.check_not("one").check_dag("three").check_dag("one"),
    "regex": lambda f: f.check_regex("t[hw]").check_regex(r"f\w+r"),
    "regex fails": lambda f: f.check_regex("x{3}"),
    "nothing": lambda f: f,
}  # fmt: skip


@pytest.mark.parametrize("name", CHECKS)
def test_file_check(name):
    ours, theirs = (
        outcome(lambda lib: CHECKS[name](lib.testing.FileCheck()).run(TEXT), lib) for lib in (cresset, torch)
    )
    assert ours == theirs


@pytest.mark.parametrize(
    "checks",
    [
        "# CHECK: one\n# CHECK-NEXT: three\n# CHECK-NOT: one", "# CHECK-COUNT-2: two", "# CHECK-COUNT-EXACTLY-1: two",
        "# CHECK-COUNT-EXACTLY-2: two", "# CHECK-FOO: two", "# CHECK-SAME: one",
        "# CHECK-DAG: three\n# CHECK-DAG: one", "nothing here", "  # CHECK: seven",
    ],
)  # fmt: skip
def test_file_check_by_comments(checks):
    ours, theirs = (outcome(lambda lib: lib.testing.FileCheck().run(checks, TEXT), lib) for lib in (cresset, torch))
    assert ours == theirs


def test_file_check_highlighted():
    text = "x + y\n~~~~~ here\nz"
    for wanted in ("x + y", "z"):
        ours, theirs = (
            outcome(lambda lib: lib.testing.FileCheck().check_source_highlighted(wanted).run(text), lib)  # noqa: B023
            for lib in (cresset, torch)
        )
        assert ours == theirs
