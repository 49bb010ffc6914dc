"""The emulated GPU answers like one: memory, kernels, barriers, graphs, errors, products of matrices."""

import ctypes
import math
import os
import signal
import subprocess
import sys
import threading
import time
from ctypes import byref, c_float, c_int, c_size_t, c_uint, c_uint64, c_void_p
from pathlib import Path

import emulated
import pytest
from emulated import ILLEGAL_ADDRESS, INVALID_VALUE, LAUNCH_FAILED, OUT_OF_MEMORY, CudaError
from emulator import build

if os.path.exists("/dev/nvidiactl"):
    pytest.skip("a GPU is here; the emulator would hide it from the other tests", allow_module_level=True)
if why := build.problem():
    pytest.skip(why, allow_module_level=True)


@pytest.fixture(scope="module")
def gpu():
    return emulated.emulator()


def refused(status, function, *arguments, **more):
    """Calls the function, which must fail with this status."""
    with pytest.raises(CudaError) as error:
        function(*arguments, **more)
    assert error.value.status == status


ADD = """
extern "C" __global__ void add(const float* a, const float* b, float* sum, long long n) {
  long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) sum[i] = a[i] + b[i];
}
"""

BLOCK_SUM = """
template <class T> __device__ __forceinline__ T warp_sum(T x) {
  for (int lanes = 16; lanes > 0; lanes /= 2) x += __shfl_xor_sync(0xffffffffu, x, lanes);
  return x;
}
extern "C" __global__ void __launch_bounds__(THREADS) block_sum(const float* x, float* sums, int n) {
  __shared__ float of_warps[THREADS / 32];
  float sum = 0;
  for (int i = blockIdx.x * THREADS + threadIdx.x; i < n; i += gridDim.x * THREADS) sum += x[i];
  sum = warp_sum(sum);
  if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x < 32) {
    sum = warp_sum(threadIdx.x < THREADS / 32 ? of_warps[threadIdx.x] : 0.0f);
    if (threadIdx.x == 0) sums[blockIdx.x] = sum;
  }
}
"""


class TestMemory:
    def test_what_is_copied_to_the_device_comes_back(self, gpu):
        there = gpu.upload("f", [1.0, 2.0, 3.0])
        assert gpu.download("f", there, 3) == [1.0, 2.0, 3.0]
        gpu.call("cuMemFree_v2", there)

    def test_fills_write_whole_words(self, gpu):
        there = gpu.upload("i", [0] * 4)
        gpu.call("cuMemsetD32Async", there, c_uint(7), c_size_t(3), None)
        assert gpu.download("i", there, 4) == [7, 7, 7, 0]

    def test_free_memory_goes_down_and_up(self, gpu):
        def free():
            left, total = c_size_t(), c_size_t()
            gpu.call("cuMemGetInfo_v2", byref(left), byref(total))
            return left.value

        before = free()
        there = gpu.alloc(1 << 20)
        assert free() == before - (1 << 20)
        gpu.call("cuMemFree_v2", there)
        assert free() == before

    def test_more_than_the_device_has_is_out_of_memory(self, gpu):
        total = c_size_t()
        gpu.call("cuDeviceTotalMem_v2", byref(total), 0)
        refused(OUT_OF_MEMORY, gpu.alloc, total.value + 1)

    def test_a_copy_past_the_end_is_refused_with_the_reason(self, gpu, capfd):
        there = gpu.upload("f", [1.0])
        refused(INVALID_VALUE, gpu.download, "f", there, 2)
        assert "the source of 8 bytes" in capfd.readouterr().err

    def test_freed_memory_cannot_be_copied_from(self, gpu):
        there = gpu.upload("f", [1.0])
        gpu.call("cuMemFree_v2", there)
        refused(INVALID_VALUE, gpu.download, "f", there, 1)
        refused(INVALID_VALUE, gpu.call, "cuMemFree_v2", there)

    def test_pinned_memory_is_the_devices_too(self, gpu):
        pinned, seen, kind = c_void_p(), c_uint64(), c_uint()
        gpu.call("cuMemHostAlloc", byref(pinned), c_size_t(12), 2)
        gpu.call("cuMemHostGetDevicePointer_v2", byref(seen), pinned, 0)
        gpu.call("cuPointerGetAttribute", byref(kind), 2, seen)
        a = gpu.upload("f", [1.0, 2.0, 3.0])
        gpu.launch(gpu.function(ADD, "add"), (1,), (32,), a, a, seen, 3)
        assert kind.value == 1
        assert list((c_float * 3).from_address(pinned.value)) == [2.0, 4.0, 6.0]
        gpu.call("cuMemFreeHost", pinned)


class TestKernels:
    @pytest.mark.parametrize("block", [1, 7, 64, 1024])
    def test_a_sum_of_vectors(self, gpu, block):
        n = 1000
        a, b, total = gpu.upload("f", range(n)), gpu.upload("f", [0.5] * n), gpu.alloc(4 * n)
        gpu.launch(gpu.function(ADD, "add"), (-(-n // block),), (block,), a, b, total, n)
        assert gpu.download("f", total, n) == [i + 0.5 for i in range(n)]

    @pytest.mark.parametrize("threads", [32, 96, 256])
    def test_a_sum_over_blocks_with_shuffles_and_shared_memory(self, gpu, threads):
        n = 1000
        x, sums = gpu.upload("f", range(n)), gpu.alloc(12)
        gpu.launch(gpu.function(BLOCK_SUM, "block_sum", f"-DTHREADS={threads}"), (3,), (threads,), x, sums, c_int(n))
        assert sum(gpu.download("f", sums, 3)) == n * (n - 1) / 2

    def test_the_indices_of_all_threads_in_three_dimensions(self, gpu):
        source = """extern "C" __global__ void where(int* out) {
          int block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
          int thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
          out[block * 24 + thread] += block * 24 + thread;
        }"""
        out = gpu.upload("i", [0] * 24 * 6)
        gpu.launch(gpu.function(source, "where"), (1, 2, 3), (4, 3, 2), out)
        assert gpu.download("i", out, 24 * 6) == list(range(24 * 6))

    def test_dynamic_shared_memory_reverses_a_block(self, gpu):
        source = """extern "C" __global__ void reverse(int* x) {
          extern __shared__ __align__(16) int kept[];
          __shared__ alignas(16) int unused[4];
          kept[threadIdx.x] = x[threadIdx.x];
          __syncthreads();
          x[threadIdx.x] = kept[blockDim.x - 1 - threadIdx.x];
        }"""
        function, x = gpu.function(source, "reverse"), gpu.upload("i", range(64))
        gpu.launch(function, (1,), (64,), x, shared=256)
        assert gpu.download("i", x, 64) == list(range(63, -1, -1))
        refused(INVALID_VALUE, gpu.launch, function, (1,), (64,), x, shared=100 << 10)
        gpu.call("cuFuncSetAttribute", function, 8, 100 << 10)
        gpu.launch(function, (1,), (64,), x, shared=100 << 10)
        assert gpu.download("i", x, 64) == list(range(64))

    def test_functions_of_the_warp(self, gpu):
        source = """extern "C" __global__ void votes(unsigned* out) {
          unsigned lane = threadIdx.x;
          unsigned r[] = {__ballot_sync(~0u, lane < 4), (unsigned)__any_sync(~0u, lane == 9), (unsigned)__all_sync(~0u, lane < 31),
                          __shfl_up_sync(~0u, lane, 3u), __shfl_down_sync(~0u, lane, 3u), __shfl_sync(~0u, lane, 5, 8),
                          __match_any_sync(~0u, lane % 2), __reduce_add_sync(~0u, lane)};
          __syncwarp();
          for (int i = 0; i < 8; ++i) out[lane * 8 + i] = r[i];
        }"""  # noqa: E501
        out = gpu.alloc(32 * 8 * 4)
        gpu.launch(gpu.function(source, "votes"), (1,), (32,), out)
        rows = gpu.download("I", out, 32 * 8)
        assert rows[:8] == [15, 1, 0, 0, 3, 5, 0x55555555, 496]
        assert rows[31 * 8 :] == [15, 1, 0, 28, 31, 29, 0xAAAAAAAA, 496]

    def test_atomics_count_every_thread(self, gpu):
        source = """extern "C" __global__ void count(int* all, unsigned* most, double* sum) {
          atomicAdd(all, 1);
          atomicMax(most, blockIdx.x * 10 + threadIdx.x);
          atomicAdd(sum, 0.5);
        }"""
        places = gpu.upload("i", [0]), gpu.upload("I", [0]), gpu.upload("d", [0.0])
        gpu.launch(gpu.function(source, "count"), (4,), (8,), *places)
        assert [gpu.download(kind, place, 1)[0] for kind, place in zip("iId", places)] == [32, 37, 16.0]

    def test_headers_and_macros_reach_the_program(self, gpu):
        source = (
            '#include "scale.cuh"\nextern "C" __global__ void scale(T* x) { x[threadIdx.x] = '
            "by_factor(x[threadIdx.x]); }"
        )
        header = "__device__ __forceinline__ T by_factor(T x) { return x * FACTOR; }"
        x = gpu.upload("d", [1.0, 2.0])
        function = gpu.function(
            source, "scale", "-DT=double", "--define-macro=FACTOR=3", headers=[("scale.cuh", header)]
        )
        gpu.launch(function, (1,), (2,), x)
        assert gpu.download("d", x, 2) == [3.0, 6.0]

    def test_mathematical_functions(self, gpu):
        source = """extern "C" __global__ void values(double* out) {
          double x = 0.3;
          double all[] = {rsqrt(x), erfinv(x), erfcinv(x), erfcx(x), cyl_bessel_i0(x), sinpi(x), cospi(1.0), normcdfinv(0.5), exp10(2.0),
                          (double)rsqrtf(4.0f), (double)exp(1.0f), (double)__popc(255u), (double)__clz(1), (double)__ffs(8)};
          for (double value : all) *out++ = value;
        }"""  # noqa: E501
        out = gpu.alloc(14 * 8)
        gpu.launch(gpu.function(source, "values"), (1,), (1,), out)
        found = gpu.download("d", out, 14)
        expected = [
            0.3**-0.5, 0.27246271472675435, 0.73286907795921685, math.exp(0.09) * math.erfc(0.3), 1.0226268793515969,
            math.sin(0.3 * math.pi), -1.0, 0.0, 100.0,
            0.5, 2.7182817459106445, 8.0, 31.0, 4.0,
        ]  # fmt: skip
        assert found == pytest.approx(expected, rel=1e-14, abs=1e-15)

    def test_a_program_with_an_error_gives_the_compilers_words(self, gpu):
        with pytest.raises(SyntaxError, match=r"NVRTC gave 6: (.|\n)*test.cu:2:.*unknown_name"):
            gpu.compile('extern "C" __global__ void k() {\n  unknown_name = 1;\n}')
        with pytest.raises(SyntaxError, match="NVRTC gave 5: .*--no-such-option"):
            gpu.compile(ADD, "--no-such-option")

    def test_threads_of_the_host_take_turns(self, gpu):
        n = 300
        places = [gpu.upload("f", [0.0] * n) for _ in range(4)]
        ones, function = gpu.upload("f", [1.0] * n), gpu.function(ADD, "add")

        def work(place):
            gpu.call("cuCtxSetCurrent", gpu.context)
            for _ in range(50):
                gpu.launch(function, (3,), (128,), place, ones, place, n)

        threads = [threading.Thread(target=work, args=(place,)) for place in places]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert all(gpu.download("f", place, n) == [50.0] * n for place in places)


class TestFaults:
    """What would be a fault or a hang on a GPU is an error of the launch, said on stderr; the process lives on."""

    def test_an_address_of_the_host_as_parameter(self, gpu, capfd):
        mine = (c_float * 4)()
        there = gpu.alloc(16)
        refused(
            ILLEGAL_ADDRESS,
            gpu.launch,
            gpu.function(ADD, "add"),
            (1,),
            (4,),
            there,
            c_void_p(ctypes.addressof(mine)),
            there,
            4,
        )
        assert "add: the address in parameter 1" in capfd.readouterr().err

    def test_a_write_far_past_the_end(self, gpu, capfd):
        source = 'extern "C" __global__ void far(float* x) { if (threadIdx.x == 3) x[100000] = 1; }'
        refused(ILLEGAL_ADDRESS, gpu.launch, gpu.function(source, "far"), (1,), (4,), gpu.alloc(4096))
        said = capfd.readouterr().err
        assert "thread (3, 0, 0): a write of 4 bytes at" in said
        assert "behind the end of the device allocation of 4096 bytes" in said

    def test_an_address_of_the_host_inside_a_struct(self, gpu, capfd):
        class Plan(ctypes.Structure):
            _fields_ = [("count", ctypes.c_int64), ("place", c_void_p)]

        mine, source = (
            (c_float * 4)(1, 2, 3, 4),
            (
                'struct Plan { long count; float* x; };\nextern "C" __global__ void twice(const Plan p) { '
                "p.x[threadIdx.x] *= 2; }"
            ),
        )
        refused(ILLEGAL_ADDRESS, gpu.launch, gpu.function(source, "twice"), (1,), (4,), Plan(4, ctypes.addressof(mine)))
        assert "which is in no allocation" in capfd.readouterr().err
        assert list(mine) == [1, 2, 3, 4]

    def test_a_vector_at_an_odd_place(self, gpu, capfd):
        source = (
            'extern "C" __global__ void odd(float* x) { float4 v = *(float4*)(x + 1); x[0] = v.x + v.y + v.z + v.w; }'
        )
        refused(716, gpu.launch, gpu.function(source, "odd"), (1,), (1,), gpu.alloc(64))
        assert "reads 16 bytes that are not at a multiple of 16" in capfd.readouterr().err

    def test_a_write_past_the_dynamic_shared_memory(self, gpu, capfd):
        source = 'extern "C" __global__ void past() { extern __shared__ float kept[]; kept[threadIdx.x] = 1; }'
        refused(ILLEGAL_ADDRESS, gpu.launch, gpu.function(source, "past"), (1,), (5,), shared=16)
        assert "thread (4, 0, 0): writes at byte 16 of its 16 bytes" in capfd.readouterr().err

    def test_a_barrier_that_not_all_threads_reach(self, gpu, capfd):
        source = 'extern "C" __global__ void half() {\n  if (threadIdx.x < 16) __syncthreads();\n}'
        refused(LAUNCH_FAILED, gpu.launch, gpu.function(source, "half"), (1,), (32,))
        said = capfd.readouterr().err
        assert "16 have ended" in said
        assert "16 wait in __syncthreads at test.cu:2" in said
        gpu.launch(
            gpu.function(BLOCK_SUM, "block_sum", "-DTHREADS=32"),
            (1,),
            (32,),
            gpu.upload("f", [1.0]),
            gpu.alloc(4),
            c_int(1),
        )

    def test_different_barriers(self, gpu, capfd):
        source = (
            'extern "C" __global__ void two() {\n  if (threadIdx.x < 16) __syncthreads();\n  else __syncthreads();\n}'
        )
        refused(LAUNCH_FAILED, gpu.launch, gpu.function(source, "two"), (1,), (32,))
        assert "meet at different barriers" in capfd.readouterr().err

    def test_a_lane_that_is_not_in_its_own_mask(self, gpu, capfd):
        source = 'extern "C" __global__ void mask() { __syncwarp(1u); }'
        refused(LAUNCH_FAILED, gpu.launch, gpu.function(source, "mask"), (1,), (32,))
        assert "lane 1 calls a function of the warp with mask 0x00000001" in capfd.readouterr().err

    def test_a_division_by_zero(self, gpu, capfd):
        source = 'extern "C" __global__ void divide(int* x) { x[0] /= x[1]; }'
        refused(LAUNCH_FAILED, gpu.launch, gpu.function(source, "divide"), (1,), (1,), gpu.upload("i", [1, 0]))
        assert "by zero" in capfd.readouterr().err

    def test_endless_recursion(self, gpu, capfd):
        source = (
            'extern "C" __device__ __noinline__ int deep(int n) { volatile int k[64] = {n}; return deep(k[0] + '
            '1) + k[n % 64]; }\nextern "C" __global__ void r(int* x) { *x = deep(0); }'
        )
        refused(LAUNCH_FAILED, gpu.launch, gpu.function(source, "r"), (1,), (1,), gpu.alloc(4))
        assert "of stack" in capfd.readouterr().err

    def test_more_threads_than_the_launch_bounds(self, gpu):
        refused(
            701,
            gpu.launch,
            gpu.function(BLOCK_SUM, "block_sum", "-DTHREADS=32"),
            (1,),
            (64,),
            gpu.alloc(4),
            gpu.alloc(4),
            c_int(1),
        )

    def test_memory_that_nobody_wrote_is_nan(self, gpu):
        source = 'extern "C" __global__ void fresh(float* x) { __shared__ float kept; x[0] = kept; }'
        x = gpu.alloc(8)
        gpu.launch(gpu.function(source, "fresh"), (1,), (1,), x)
        assert all(math.isnan(value) for value in gpu.download("f", x, 2))


class TestStreamsAndGraphs:
    def test_a_captured_graph_runs_when_it_is_launched(self, gpu):
        a, b, total = gpu.upload("f", [1.0, 2.0]), gpu.upload("f", [10.0, 20.0]), gpu.upload("f", [0.0, 0.0])
        function, stream = gpu.function(ADD, "add"), gpu.new("cuStreamCreateWithPriority", 1, 0)
        gpu.call("cuStreamBeginCapture_v2", stream, 1)
        gpu.launch(function, (1,), (2,), a, b, total, 2, stream=stream)
        gpu.launch(function, (1,), (2,), total, total, a, 2, stream=stream)
        graph = c_void_p()
        gpu.call("cuStreamEndCapture", stream, byref(graph))
        assert gpu.download("f", total, 2) == [0.0, 0.0]
        executable = gpu.new("cuGraphInstantiateWithFlags", graph, ctypes.c_ulonglong(0))
        gpu.call("cuGraphDestroy", graph)
        gpu.call("cuGraphLaunch", executable, stream)
        assert gpu.download("f", a, 2) == [22.0, 44.0]
        gpu.call("cuGraphLaunch", executable, stream)
        assert gpu.download("f", a, 2) == [64.0, 128.0]
        gpu.call("cuGraphExecDestroy", executable)

    def test_a_second_stream_joins_a_capture_and_must_be_waited_for(self, gpu):
        first, second = (gpu.new("cuStreamCreateWithPriority", 1, 0) for _ in range(2))
        fork, join, graph = gpu.new("cuEventCreate", 2), gpu.new("cuEventCreate", 2), c_void_p()
        x = gpu.upload("i", [0])
        for waits in (True, False):
            gpu.call("cuStreamBeginCapture_v2", first, 1)
            gpu.call("cuEventRecord", fork, first)
            gpu.call("cuStreamWaitEvent", second, fork, 0)
            gpu.call("cuMemsetD32Async", x, c_uint(5), c_size_t(1), second)
            if waits:
                gpu.call("cuEventRecord", join, second)
                gpu.call("cuStreamWaitEvent", first, join, 0)
                gpu.call("cuStreamEndCapture", first, byref(graph))
                executable = gpu.new("cuGraphInstantiateWithFlags", graph, ctypes.c_ulonglong(0))
                gpu.call("cuGraphLaunch", executable, first)
                assert gpu.download("i", x, 1) == [5]
            else:
                refused(904, gpu.call, "cuStreamEndCapture", first, byref(graph))

    def test_an_allocation_spoils_a_capture_unless_the_thread_is_relaxed(self, gpu):
        stream, graph, mode = gpu.new("cuStreamCreateWithPriority", 1, 0), c_void_p(), c_int(2)
        gpu.call("cuStreamBeginCapture_v2", stream, 0)
        gpu.call("cuThreadExchangeStreamCaptureMode", byref(mode))
        gpu.call("cuMemFree_v2", gpu.alloc(4))
        gpu.call("cuThreadExchangeStreamCaptureMode", byref(mode))
        refused(900, gpu.alloc, 4)
        refused(901, gpu.call, "cuStreamEndCapture", stream, byref(graph))
        gpu.call("cuMemFree_v2", gpu.alloc(4))

    def test_events_carry_the_clock(self, gpu):
        start, end, passed = gpu.new("cuEventCreate", 0), gpu.new("cuEventCreate", 0), c_float()
        gpu.call("cuEventRecord", start, None)
        time.sleep(0.02)
        gpu.call("cuEventRecord", end, None)
        gpu.call("cuEventElapsedTime_v2", byref(passed), start, end)
        assert 20 <= passed.value < 2000

    def test_a_function_of_the_host_runs_in_order(self, gpu):
        seen = []
        function = ctypes.CFUNCTYPE(None, c_void_p)(lambda data: seen.append(data))
        gpu.call("cuLaunchHostFunc", None, function, c_void_p(17))
        assert seen == [17]

    def test_an_error_has_a_name_and_a_text(self, gpu):
        text = ctypes.c_char_p()
        gpu.call("cuGetErrorName", 2, byref(text))
        assert text.value == b"CUDA_ERROR_OUT_OF_MEMORY"
        gpu.call("cuGetErrorString", 700, byref(text))
        assert text.value == b"an illegal memory access was encountered"


class TestProducts:
    """A is [[1, 2], [3, 4], [5, 6]] and B [[1, 0, 2], [0, 1, 3]], stored column after column."""

    A, B, PRODUCT = [1, 3, 5, 2, 4, 6], [1, 0, 0, 1, 2, 3], [1, 3, 5, 2, 4, 6, 8, 18, 28]

    @pytest.mark.parametrize("kind, number, compute, scalar", [("f", 0, 68, c_float), ("d", 1, 70, ctypes.c_double)])
    def test_a_product(self, gpu, kind, number, compute, scalar):
        a, b, d = gpu.upload(kind, self.A), gpu.upload(kind, self.B), gpu.upload(kind, [1] * 9)
        more = {"compute": compute, "scale": number, "scalar": scalar}
        gpu.multiply((a, number, 3, 2), (b, number, 2, 3), (d, number, 3, 3), **more)
        assert gpu.download(kind, d, 9) == self.PRODUCT
        gpu.multiply((a, number, 3, 2), (b, number, 2, 3), (d, number, 3, 3), alpha=2.0, beta=-1.0, **more)
        assert gpu.download(kind, d, 9) == self.PRODUCT

    def test_transposed_factors(self, gpu):
        rows_of_a, rows_of_b, d = (
            gpu.upload("f", [1, 2, 3, 4, 5, 6]),
            gpu.upload("f", [1, 0, 2, 0, 1, 3]),
            gpu.alloc(36),
        )
        gpu.multiply((rows_of_a, 0, 2, 3), (rows_of_b, 0, 3, 2), (d, 0, 3, 3), transposes=(1, 1))
        assert gpu.download("f", d, 9) == self.PRODUCT

    def test_batches(self, gpu):
        a, b, d = gpu.upload("f", [2, 3]), gpu.upload("f", [5, 7]), gpu.alloc(8)
        gpu.multiply((a, 0, 1, 1, 2, 1), (b, 0, 1, 1, 2, 1), (d, 0, 1, 1, 2, 1))
        assert gpu.download("f", d, 2) == [10, 21]

    @pytest.mark.parametrize(
        "number, bits", [(2, {1: 0x3C00, 2: 0x4000, 3: 0x4200}), (14, {1: 0x3F80, 2: 0x4000, 3: 0x4040})]
    )
    def test_halves(self, gpu, number, bits):
        a, b, d = gpu.upload("H", [bits[1], bits[2]]), gpu.upload("H", [bits[1], bits[1]]), gpu.alloc(2)
        gpu.multiply((a, number, 1, 2), (b, number, 2, 1), (d, number, 1, 1))
        assert gpu.download("H", d, 1) == [bits[3]]

    def test_complex_factors_and_their_conjugates(self, gpu):
        a, b, d = gpu.upload("f", [1, 2]), gpu.upload("f", [3, 4]), gpu.alloc(8)
        for transpose, expected in ((0, [-5, 10]), (2, [11, -2])):
            gpu.multiply(
                (a, 4, 1, 1),
                (b, 4, 1, 1),
                (d, 4, 1, 1),
                scale=4,
                transposes=(transpose, 0),
                scalar=lambda x: (c_float * 2)(x, 0),
            )
            assert gpu.download("f", d, 2) == expected

    def test_int8_gives_int32(self, gpu):
        a, b, d = gpu.upload("b", [100] * 16), gpu.upload("b", [100, 100, 100, -100]), gpu.alloc(16)
        gpu.multiply(
            (a, 3, 4, 4),
            (b, 3, 4, 1),
            (d, 10, 4, 1),
            compute=72,
            scale=10,
            transposes=(1, 0),
            alpha=1,
            beta=0,
            scalar=c_int,
        )
        assert gpu.download("i", d, 4) == [20000] * 4

    def test_epilogues(self, gpu):
        a, b, d, bias = gpu.upload("f", [1, -1]), gpu.upload("f", [2]), gpu.alloc(8), gpu.upload("f", [0.5, 1.5])

        def gelu(x):
            return x / 2 * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))

        expected = {
            2: [2, 0],
            4: [2.5, -0.5],
            6: [2.5, 0],
            32: [gelu(2), gelu(-2)],
            36: [gelu(2.5), gelu(-0.5)],
            256: [2, -2],
        }
        for epilogue, values in expected.items():
            gpu.multiply((a, 0, 2, 1), (b, 0, 1, 1), (d, 0, 2, 1), epilogue=epilogue, bias=bias)
            assert gpu.download("f", d, 2) == pytest.approx(values, abs=1e-6), epilogue
        assert gpu.download("f", bias, 2) == [1, -1]  # the last one summed the rows of A

    def test_memory_that_is_too_small_is_refused(self, gpu):
        a, b, d = gpu.upload("f", self.A), gpu.upload("f", self.B), gpu.alloc(32)
        refused(13, gpu.multiply, (a, 0, 3, 2), (b, 0, 2, 3), (d, 0, 3, 3))


def run_alone(program, **environment):
    """Runs a program with an emulator of its own."""
    start = (
        "import sys, ctypes; sys.path.insert(0, sys.argv[1]); import emulated; from ctypes import *; gpu = "
        "emulated.emulator()\n"
    )
    return subprocess.run(
        [sys.executable, "-c", start + program, str(Path(__file__).parent)],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=100,
    )


def test_with_protection_the_host_cannot_read_device_memory():
    program = (
        "there = gpu.upload('f', [1.5]); assert gpu.download('f', there, 1) == [1.5]; print('so far', "
        "flush=True); c_float.from_address(there.value).value"
    )
    plain, guarded = run_alone(program), run_alone(program, CRESSET_EMULATOR_PROTECT="1")
    assert plain.returncode == 0
    assert guarded.returncode == -signal.SIGSEGV
    assert guarded.stdout == "so far\n"


def test_backward_shows_what_depends_on_the_order():
    program = """
race = 'extern "C" __global__ void race(int* x) { __shared__ int kept[64]; kept[threadIdx.x] = 1; /**/ if (threadIdx.x == 63) *x = kept[0]; }'
x = gpu.upload("i", [0])
gpu.launch(gpu.function(race, "race"), (1,), (64,), x)
print(gpu.download("i", x, 1))
gpu.launch(gpu.function(race.replace("/**/", "__syncthreads();"), "race"), (1,), (64,), x)
print(gpu.download("i", x, 1))
where = 'extern "C" __global__ void where(int* x) { *x = blockIdx.x * 100 + threadIdx.x; }'
gpu.launch(gpu.function(where, "where"), (3,), (5,), x)
print(gpu.download("i", x, 1))
"""  # noqa: E501
    assert run_alone(program).stdout.split() == ["[1]", "[1]", "[204]"]
    assert run_alone(program, CRESSET_EMULATOR_ORDER="backward").stdout.split() == ["[-1]", "[1]", "[0]"]


def test_late_work_is_done_when_somebody_waits():
    program = """
source = 'extern "C" __global__ void one(int* x) { *x += 1; }'
function, x, pinned = gpu.function(source, "one"), gpu.upload("i", [5]), c_void_p()
gpu.call("cuMemHostAlloc", byref(pinned), c_size_t(4), 0)
seen, streams, event = c_int.from_address(pinned.value), [gpu.new("cuStreamCreateWithPriority", 1, 0) for _ in range(2)], gpu.new("cuEventCreate", 0)
gpu.call("cuCtxSynchronize")
gpu.launch(function, (1,), (1,), x, stream=streams[0])
gpu.call("cuEventRecord", event, streams[0])
gpu.call("cuMemcpyDtoHAsync_v2", pinned, x, c_size_t(4), streams[1])
gpu.call("cuStreamSynchronize", streams[1])
print(seen.value, gpu.cuda.cuStreamQuery(streams[0]))
gpu.call("cuStreamWaitEvent", streams[1], event, 0)
gpu.call("cuMemcpyDtoHAsync_v2", pinned, x, c_size_t(4), streams[1])
print(seen.value)
gpu.call("cuStreamSynchronize", streams[1])
print(seen.value, gpu.cuda.cuEventQuery(event))
gpu.launch(gpu.function(source.replace("*x", "x[1 << 20]"), "one"), (1,), (1,), x, stream=streams[0])
print(gpu.cuda.cuStreamSynchronize(streams[0]), gpu.cuda.cuStreamSynchronize(streams[0]), gpu.download("i", x, 1))
"""  # noqa: E501
    assert run_alone(program.replace("x[1 << 20]", "*x")).stdout.split() == "6 0 6 6 0 0 0 [7]".split()
    late = run_alone(program, CRESSET_EMULATOR_LATE="1")
    assert late.stdout.split() == "5 600 5 6 0 700 0 [6]".split(), late.stderr


def test_two_devices_have_memory_of_their_own():
    program = """
other, can, size = c_void_p(), c_int(), c_size_t()
gpu.call("cuDeviceTotalMem_v2", byref(size), 1)
assert size.value == 1 << 20
there = gpu.upload("f", [1.0])
function = gpu.function('extern "C" __global__ void one(float* x) { *x += 1; }', "one")
gpu.call("cuDevicePrimaryCtxRetain", byref(other), 1)
gpu.call("cuCtxSetCurrent", other)
away = gpu.upload("f", [5.0])
gpu.call("cuCtxSetCurrent", gpu.context)
try:
    gpu.launch(function, (1,), (1,), away)
except emulated.CudaError as error:
    assert error.status == 700
gpu.call("cuCtxEnablePeerAccess", other, 0)
gpu.launch(function, (1,), (1,), away)
gpu.call("cuMemcpyPeerAsync", there, gpu.context, away, other, c_size_t(4), None)
assert gpu.download("f", there, 1) == [6.0]
"""
    done = run_alone(program, CRESSET_EMULATOR_DEVICES="2", CRESSET_EMULATOR_MEMORY=str(1 << 20))
    assert done.returncode == 0, done.stderr
    assert "is on device 1, which device 0 may not use" in done.stderr
