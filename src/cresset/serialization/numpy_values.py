"""Values of NumPy in files: numbers, arrays and their dtypes, made of plain data alone."""

import math
import pickle


class NumpyConstructors:
    """The part of Constructors that makes values of NumPy."""

    def numpy_dtype(self, arguments):
        import numpy

        if not arguments or type(arguments[0]) is not str or len(arguments[0]) > 8:
            raise pickle.UnpicklingError("a NumPy dtype is read from its short name")
        text = arguments[0].lstrip("<=|")
        if text[:1] not in "biufcSU" or not text[1:].isdigit():
            raise pickle.UnpicklingError(
                f"a NumPy dtype {arguments[0]!r} is not read; only numbers, booleans and text are data"
            )
        return numpy.dtype(text)

    def numpy_data(self, dtype, shape, data):
        """Bytes that fit the shape and dtype of an array."""
        import numpy

        if not isinstance(dtype, numpy.dtype):
            raise pickle.UnpicklingError("expected a NumPy dtype")
        self.dimensions(shape)
        data = data.encode("latin1") if isinstance(data, str) else bytes(data)
        if any(n < 0 for n in shape) or math.prod(shape) * dtype.itemsize != len(data):
            raise pickle.UnpicklingError(
                f"a NumPy array of shape {shape} and dtype {dtype} does not have {len(data)} bytes"
            )
        self.budget.spend(2 * len(data))
        return data

    def numpy_scalar(self, arguments):
        import numpy

        dtype, data = self.exactly(arguments, numpy.dtype, (bytes, str))
        return numpy.frombuffer(self.numpy_data(dtype, (), data), dtype)[0]

    def numpy_array(self, arguments):
        import numpy

        if len(arguments) != 3 or getattr(arguments[0], "title", None) != "numpy.ndarray":
            raise pickle.UnpicklingError("only plain NumPy arrays are read")
        return numpy.empty(0, "b")  # BUILD gives it its shape and bytes

    def numpy_frombuffer(self, arguments):
        import numpy

        data, dtype, shape, order = self.exactly(arguments, (bytes, bytearray), numpy.dtype, tuple, str)
        return (
            numpy.frombuffer(self.numpy_data(dtype, shape, data), dtype)
            .reshape(shape, order="F" if order == "F" else "C")
            .copy("K")
        )

    def build_numpy(self, instance, state):
        import numpy

        if isinstance(instance, numpy.dtype):
            if not isinstance(state, tuple) or len(state) < 2 or state[1] not in ("<", "|", "="):
                raise pickle.UnpicklingError("a NumPy dtype is read in little-endian order")
            return
        if type(instance) is not numpy.ndarray or not isinstance(state, tuple) or len(state) != 5:
            raise pickle.UnpicklingError(f"BUILD on a value of type {type(instance).__name__}")
        _version, shape, dtype, fortran, data = self.exactly(state, int, tuple, numpy.dtype, (bool, int), (bytes, str))
        instance.__setstate__((1, shape, dtype, bool(fortran), self.numpy_data(dtype, shape, data)))
