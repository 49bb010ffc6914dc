#include "faults.h"

#include <sys/mman.h>
#include <ucontext.h>

#include <cstdint>

#include "fibers.h"

namespace emulator {
namespace {

constexpr int watched[] = {SIGSEGV, SIGBUS, SIGFPE};
FaultWatch* the_watch = nullptr;  // there is one at a time: kernels run under the emulator's lock
thread_local bool watching = false;

}  // namespace

// The handler may use everything: the fault came out of a kernel's own code, which holds nothing of ours.
void FaultWatch::handle(int signal, siginfo_t* info, void* context) {
  if (!watching || !current_fiber()) {  // the fault of somebody else: it happens again, as if we had not been here
    for (int i = 0; i < 3; ++i)
      if (watched[i] == signal) sigaction(signal, &the_watch->before_[i], nullptr);
    return;
  }
  if (signal == SIGFPE)
    the_watch->report_(CUDA_ERROR_LAUNCH_FAILED,
                       "divides an integer by zero (the device goes on with an arbitrary number)");
  if (is_stack_overflow(info->si_addr))
    the_watch->report_(CUDA_ERROR_LAUNCH_FAILED, "needs more than 256 KiB of stack");
  const bool writes = static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_ERR] & 2;
  the_watch->report_(CUDA_ERROR_ILLEGAL_ADDRESS, (writes ? "writes to " : "reads from ") +
                                                     describe_address(reinterpret_cast<Address>(info->si_addr)));
}

FaultWatch::FaultWatch(Report report) : report_(report) {
  constexpr size_t size = 64 << 10;
  static void* memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  stack_t stack = {};
  stack.ss_sp = memory, stack.ss_size = size;
  sigaltstack(&stack, &stack_before_);
  the_watch = this;
  watching = true;
  struct sigaction action = {};
  action.sa_sigaction = handle;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;  // nodefer: the handler is left by a jump
  for (int i = 0; i < 3; ++i) sigaction(watched[i], &action, &before_[i]);
}

FaultWatch::~FaultWatch() {
  for (int i = 0; i < 3; ++i) sigaction(watched[i], &before_[i], nullptr);
  watching = false;
  sigaltstack(&stack_before_, nullptr);
}

}  // namespace emulator
