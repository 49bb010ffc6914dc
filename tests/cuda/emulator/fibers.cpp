#include "fibers.h"

#include <sys/mman.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#ifndef __x86_64__
#error "the emulator changes stacks with x86-64 instructions"
#endif

// Keeps what a called function has to keep, notes the stack, takes the other one, and returns on it.
extern "C" void emulator_change_stack(void** old_stack, void* new_stack);
asm(R"(
.text
.type emulator_change_stack, @function
.hidden emulator_change_stack
.globl emulator_change_stack
emulator_change_stack:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size emulator_change_stack, .-emulator_change_stack
)");

namespace emulator {

struct Fiber {
  char* memory;  // a page that cannot be touched, then the stack
  void* stack = nullptr;
  void (*work)(void*) = nullptr;
  void* data = nullptr;
  bool busy = false;
};

namespace {

constexpr size_t guard = 4096, stack_size = 256 << 10;

// Only the thread that holds the emulator's lock is here.
std::vector<Fiber*> idle, every;
Fiber* the_fiber = nullptr;
void* outside = nullptr;

[[noreturn]] void live() {
  for (;;) {
    the_fiber->work(the_fiber->data);
    the_fiber->busy = false;
    suspend_fiber();
  }
}

// The stack as `emulator_change_stack` leaves one: six registers, where to return to, and nobody to return to from
// there.
void prepare(Fiber* fiber) {
  auto* top = reinterpret_cast<void**>(fiber->memory + guard + stack_size);
  top[-1] = nullptr;
  top[-2] = reinterpret_cast<void*>(&live);
  for (int i = 3; i <= 8; ++i) top[-i] = nullptr;
  fiber->stack = top - 8;
  fiber->busy = false;
}

Fiber* make() {
  void* memory =
      mmap(nullptr, guard + stack_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED || mprotect(memory, guard, PROT_NONE) != 0) {
    std::perror("emulated CUDA: no memory for a fiber");
    std::abort();
  }
  auto* fiber = new Fiber{static_cast<char*>(memory)};
  prepare(fiber);
  every.push_back(fiber);
  return fiber;
}

}  // namespace

Fiber* current_fiber() { return the_fiber; }

void resume_fiber(Fiber* fiber) {
  the_fiber = fiber;
  emulator_change_stack(&outside, fiber->stack);
  the_fiber = nullptr;
  if (!fiber->busy) idle.push_back(fiber);
}

void start_fiber(void (*work)(void*), void* data) {
  Fiber* fiber = idle.empty() ? make() : idle.back();
  if (!idle.empty()) idle.pop_back();
  fiber->work = work, fiber->data = data, fiber->busy = true;
  resume_fiber(fiber);
}

void suspend_fiber() { emulator_change_stack(&the_fiber->stack, outside); }

void leave_fiber() {
  void* lost;
  emulator_change_stack(&lost, outside);
  __builtin_unreachable();
}

void forget_fibers() {
  idle = every;
  for (Fiber* fiber : every) prepare(fiber);
}

bool is_stack_overflow(const void* address) {
  for (const Fiber* fiber : every)
    if (address >= fiber->memory && address < fiber->memory + guard) return true;
  return false;
}

}  // namespace emulator
