// The functions with series and loops: gamma, zeta and Bessel functions, orthogonal polynomials. One copy of them
// serves the CPU and CUDA: native/base/special_math.h and polynomials.h.
#pragma once
#include "math.cuh"
#include "polynomials.h"
#include "special_math.h"
