// Memory faults and divisions by zero of a kernel become errors of the launch instead of the end of the process.
#pragma once
#include <signal.h>

#include <string>

#include "emulator.h"

namespace emulator {

// While it lives, a fault of this thread within a fiber calls `report`, which must not return.
class FaultWatch {
 public:
  using Report = void (*)(Status status, const std::string& what);
  explicit FaultWatch(Report report);
  ~FaultWatch();
  FaultWatch(const FaultWatch&) = delete;
  static void handle(int signal, siginfo_t* info, void* context);

 private:
  Report report_;
  struct sigaction before_[3];
  stack_t stack_before_;
};

}  // namespace emulator
