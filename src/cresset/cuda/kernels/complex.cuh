// Functions of complex numbers. One copy of them serves the CPU and CUDA: native/base/complex_math.h.
#pragma once
#include "math.cuh"

// after math.cuh, which says that a kernel includes it
#include "complex_math.h"
