// The functions with series and loops: gamma, zeta, Bessel and Airy functions, orthogonal polynomials. One copy of them
// serves the CPU and CUDA: native/base/special_math.h.
#pragma once
#include "math.cuh"
#include "special_math.h"
