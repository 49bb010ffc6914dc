"""The emulated libcuda, libnvrtc and libcublasLt by ctypes: what tests of the emulator need to drive them."""

import array
import ctypes
import functools
from ctypes import byref, c_char_p, c_float, c_int, c_int64, c_size_t, c_uint, c_uint64, c_void_p

from emulator import build

SUCCESS, INVALID_VALUE, OUT_OF_MEMORY, ILLEGAL_ADDRESS, LAUNCH_FAILED = 0, 1, 2, 700, 719


class CudaError(RuntimeError):
    def __init__(self, call, status):
        super().__init__(f"{call} gave {status}")
        self.status = status


class Emulator:
    """One process's emulated GPU, with device 0's context set."""

    def __init__(self, folder):
        self.cuda = ctypes.CDLL(str(folder / "libcuda.so.1"))
        self.nvrtc = ctypes.CDLL(str(folder / "libnvrtc.so"))
        self.blas = ctypes.CDLL(str(folder / "libcublasLt.so"))
        self.call("cuInit", 0)
        self.context = c_void_p()
        self.call("cuDevicePrimaryCtxRetain", byref(self.context), 0)
        self.call("cuCtxSetCurrent", self.context)

    def call(self, name, *arguments):
        """Calls a function of the driver; an error is raised."""
        if status := getattr(self.cuda, name)(*arguments):
            raise CudaError(name, status)

    def alloc(self, size):
        address = c_uint64()
        self.call("cuMemAlloc_v2", byref(address), c_size_t(size))
        return address

    def upload(self, kind, values):
        """The values on the device; `kind` is a letter of Python's array module."""
        data = array.array(kind, values)
        address = self.alloc(data.itemsize * len(data))
        self.call("cuMemcpyHtoDAsync_v2", address, *self.buffer(data), None)
        return address

    def download(self, kind, address, count):
        data = array.array(kind, [0] * count)
        pointer, size = self.buffer(data)
        self.call("cuMemcpyDtoHAsync_v2", pointer, address, size, None)
        return data.tolist()

    @staticmethod
    def buffer(data):
        address, count = data.buffer_info()
        return c_void_p(address), c_size_t(count * data.itemsize)

    def compile(self, source, *options, headers=()):
        """The image of a program, or a SyntaxError with the compiler's words."""
        program = c_void_p()
        texts = (c_char_p * len(headers))(*(text.encode() for _, text in headers))
        names = (c_char_p * len(headers))(*(name.encode() for name, _ in headers))
        self.nvrtc.nvrtcCreateProgram(byref(program), source.encode(), b"test.cu", len(headers), texts, names)
        words = [o.encode() for o in ("--gpu-architecture=sm_90", "--std=c++20", *options)]
        result = self.nvrtc.nvrtcCompileProgram(program, len(words), (c_char_p * len(words))(*words))
        size = c_size_t()
        self.nvrtc.nvrtcGetProgramLogSize(program, byref(size))
        log = ctypes.create_string_buffer(size.value)
        self.nvrtc.nvrtcGetProgramLog(program, log)
        if result:
            raise SyntaxError(f"NVRTC gave {result}: {log.value.decode()}")
        self.nvrtc.nvrtcGetCUBINSize(program, byref(size))
        image = ctypes.create_string_buffer(size.value)
        self.nvrtc.nvrtcGetCUBIN(program, image)
        self.nvrtc.nvrtcDestroyProgram(byref(program))
        return image

    def function(self, source, name, *options, **more):
        module, function = c_void_p(), c_void_p()
        self.call("cuModuleLoadData", byref(module), self.compile(source, *options, **more))
        self.call("cuModuleGetFunction", byref(function), module, name.encode())
        return function

    def launch(self, function, grid, block, *arguments, shared=0, stream=None):
        """Arguments are ctypes values; Python ints are taken as int64, floats as float."""
        values = [c_int64(a) if isinstance(a, int) else c_float(a) if isinstance(a, float) else a for a in arguments]
        pointers = (c_void_p * len(values))(*(ctypes.addressof(v) for v in values))
        sizes = [c_uint(n) for dims in (grid, block) for n in (*dims, 1, 1)[:3]]
        self.call("cuLaunchKernel", function, *sizes, c_uint(shared), stream, pointers, None)

    def new(self, name, *arguments):
        """The handle that a function like cuEventCreate gives."""
        handle = c_void_p()
        self.call(name, byref(handle), *arguments)
        return handle

    def multiply(
        self,
        a,
        b,
        d,
        *,
        compute=68,
        scale=0,
        transposes=(0, 0),
        alpha=1.0,
        beta=0.0,
        epilogue=1,
        bias=None,
        scalar=c_float,
    ):
        """cublasLtMatmul. a, b, d are (address, type, rows, columns[, batches, stride]), columns lying one after
        another; C is D.
        """

        def do(name, *arguments):
            if status := getattr(self.blas, f"cublasLt{name}")(*arguments):
                raise CudaError(name, status)

        def made(name, *arguments):
            handle = c_void_p()
            do(name, byref(handle), *arguments)
            return handle

        def put(what, handle, attribute, value):
            do(f"{what}SetAttribute", handle, attribute, byref(value), c_size_t(ctypes.sizeof(value)))

        def layout(address, kind, rows, columns, batches=1, stride=0):
            handle = made("MatrixLayoutCreate", c_int(kind), c_uint64(rows), c_uint64(columns), c_int64(rows))
            put("MatrixLayout", handle, 5, c_int(batches))
            put("MatrixLayout", handle, 6, c_int64(stride))
            return handle

        handle, product = made("Create"), made("MatmulDescCreate", compute, scale)
        put("MatmulDesc", product, 3, c_int(transposes[0]))
        put("MatmulDesc", product, 4, c_int(transposes[1]))
        put("MatmulDesc", product, 7, c_uint(epilogue))
        if bias is not None:
            put("MatmulDesc", product, 8, bias)
        layouts = [layout(*m) for m in (a, b, d)]
        preference, found, result = made("MatmulPreferenceCreate"), c_int(), (ctypes.c_char * 96)()
        do("MatmulAlgoGetHeuristic", handle, product, *layouts, layouts[2], preference, 1, result, byref(found))
        assert found.value == 1
        factors = [byref(scalar(alpha)), byref(scalar(beta))]
        do(
            "Matmul",
            handle,
            product,
            factors[0],
            a[0],
            layouts[0],
            b[0],
            layouts[1],
            factors[1],
            d[0],
            layouts[2],
            d[0],
            layouts[2],
            result,
            None,
            c_size_t(0),
            None,
        )
        for matrix in layouts:
            do("MatrixLayoutDestroy", matrix)
        do("MatmulPreferenceDestroy", preference)
        do("MatmulDescDestroy", product)
        do("Destroy", handle)


@functools.cache
def emulator():
    return Emulator(build.build())
