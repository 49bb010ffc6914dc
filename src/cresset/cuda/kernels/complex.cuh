// Functions of complex numbers. One copy of them serves the CPU and CUDA: native/base/complex_math.h.
#pragma once
#include "complex_math.h"
#include "math.cuh"
