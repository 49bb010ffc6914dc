// Memory for the time of a launch: the next work of the stream may have it afterwards.
#pragma once
#include "cuda/memory.h"

namespace cresset::cuda {

class Workspace {
 public:
  Workspace(int device, size_t bytes)
      : device_(device), memory_(bytes ? allocate(device, static_cast<int64_t>(bytes)) : Memory{}) {}
  ~Workspace() {
    if (memory_.data) cuda::free(device_, memory_.block);
  }
  Workspace(const Workspace&) = delete;
  char* data() const { return memory_.data; }

 private:
  int device_;
  Memory memory_;
};

}  // namespace cresset::cuda
