// A CUDA program's text, preprocessed, into C++ that g++ compiles.
#pragma once
#include <string>

namespace emulator {

// `__shared__` variables become thread_local ones (blocks run one after another on one thread), `extern __shared__`
// arrays pointers to the launch's buffer, and behind the text comes a description of each `extern "C" __global__`
// function, which the driver looks for.
std::string rewrite(const std::string& preprocessed);

}  // namespace emulator
