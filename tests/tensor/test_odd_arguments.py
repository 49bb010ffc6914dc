"""No call, however odd, ends the process: thousands of random calls in a process of its own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import cresset

SCRIPT = Path(__file__).with_name("odd_calls.py")


@pytest.mark.parametrize("seed", range(3))
def test_odd_calls_give_a_result_or_an_exception(seed, tmp_path):
    log = tmp_path / "calls.log"
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"}
    ended = subprocess.run(
        [sys.executable, "-X", "faulthandler", str(SCRIPT), str(seed), "3000", str(log)],
        capture_output=True,
        text=True,
        timeout=250,
        env=environment,
    )
    last = log.read_text().splitlines()[-1] if log.exists() else "the start"
    assert ended.returncode == 0, f"ended with {ended.returncode} at {last}\n{ended.stderr[-1500:]}"
    assert ended.stdout.startswith("3000 calls")


class TestArgumentsThatAreRead:
    """Each was once taken and ignored."""

    @pytest.mark.parametrize("make", [
        lambda layout: cresset.hann_window(4, layout=layout), lambda layout: cresset.kaiser_window(4, layout=layout),
        lambda layout: cresset.fft.fftfreq(4, layout=layout), lambda layout: cresset.fft.rfftfreq(4, layout=layout),
        lambda layout: cresset.empty_permuted((2, 3), (1, 0), layout=layout),
        lambda layout: cresset.ones(1).new_tensor([1.0], layout=layout),
        lambda layout: cresset.ops.aten._to_copy(cresset.ones(2), layout=layout),
    ])  # fmt: skip
    def test_a_layout_is_strided_or_refused(self, make):
        assert make(cresset.strided).layout is cresset.strided
        with pytest.raises(RuntimeError, match="layout"):
            make(cresset.sparse_coo)

    def test_there_are_no_named_tensors(self):
        """PyTorch has none since 2.13."""
        with pytest.raises(TypeError, match="unexpected keyword argument 'names'"):
            cresset.tensor([1.0], names=("N",))
        assert not hasattr(cresset.ones(1), "names")

    def test_type_takes_no_other_keywords(self):
        with pytest.raises(TypeError, match="unexpected keyword argument 'bad'"):
            cresset.ones(1).type(cresset.float64, bad=1)

    def test_an_order_of_dimensions_that_is_not_the_only_one_is_told(self):
        x = cresset.empty(2, 3, 5, 7)
        assert x.dim_order(ambiguity_check=True) == (0, 1, 2, 3)
        one = cresset.empty(1, 3, 1, 1)
        assert one.dim_order() == (0, 1, 2, 3)
        with pytest.raises(RuntimeError, match="does not have unique dim order"):
            one.dim_order(ambiguity_check=True)
        assert cresset.empty(1, 2, 3, 4).dim_order(
            ambiguity_check=[cresset.contiguous_format, cresset.channels_last]
        ) == (0, 1, 2, 3)
        with pytest.raises(RuntimeError, match="cannot map to exact one"):
            one.dim_order(ambiguity_check=[cresset.contiguous_format, cresset.channels_last])
        for bad in ("x", ["x"], None):
            with pytest.raises(TypeError, match="ambiguity_check"):
                x.dim_order(ambiguity_check=bad)

    def test_memory_is_pinned_for_cuda_alone(self):
        with pytest.raises(RuntimeError, match="not for 'cpu'"):
            cresset.ones(1).pin_memory("cpu")

    def test_volatile_is_warned_about(self):
        with pytest.warns(UserWarning, match="volatile was removed"):
            cresset.autograd.Variable(cresset.ones(1), volatile=True)

    def test_the_cache_of_device_memory_cannot_be_left_out(self):
        with pytest.raises(NotImplementedError, match="always comes from the cache"):
            cresset.cuda.memory.caching_allocator_enable(False)
        cresset.cuda.memory.caching_allocator_enable(True)


NATIVE = """
import sys
import cresset
from cresset import _native

TAKES_AN_ADDRESS = ("storage_use_count",)
odd = [None, 0, -1, 2**70, 1.5, "x", b"x", (), (1, 2), [1], {}, object(), cresset.float32, cresset.strided]
for name in dir(_native):
    function = getattr(_native, name)
    if name.startswith(("_", "set_")) or name in TAKES_AN_ADDRESS or not callable(function):
        continue
    for value in odd:
        print(name, repr(value), file=sys.stderr, flush=True)
        try:
            function(value)
        except Exception:
            pass
print("all")
"""


def test_no_native_function_takes_something_else_for_a_tensor():
    done = subprocess.run([sys.executable, "-c", NATIVE], capture_output=True, text=True, timeout=250)
    assert done.returncode == 0 and done.stdout.endswith("all\n"), done.stderr.splitlines()[-1]


@pytest.mark.parametrize(
    "call",
    [
        lambda: cresset._native.set_tangent(cresset.ones(2), cresset.float32, 0),
        lambda: cresset.autograd.forward_ad.laid_out(cresset.Size([2]), cresset.strided),
        lambda: cresset._native.depends_only_on(cresset.ones(2), (3,)),
    ],
)
def test_nor_do_those_of_several_arguments(call):
    with pytest.raises(TypeError):
        call()
