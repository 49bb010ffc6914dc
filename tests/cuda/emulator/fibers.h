// Fibers: stacks of their own between which one thread of the host changes. For x86-64.
#pragma once

namespace emulator {

struct Fiber;
// Runs `work(data)` on a fiber of the pool until it returns or suspends itself. Not from within a fiber.
void start_fiber(void (*work)(void*), void* data);
// Goes on with a suspended fiber until it returns or suspends itself again.
void resume_fiber(Fiber* fiber);
// From within a fiber: back to who started or resumed it.
void suspend_fiber();
// From within a fiber, or a signal handler that interrupted one: back, never to be resumed. Call forget_fibers then.
[[noreturn]] void leave_fiber();
// Fibers that were left or are still suspended return to the pool with nothing of their stacks kept.
void forget_fibers();
Fiber* current_fiber();  // null outside
// Is the address in the page below a fiber's stack?
bool is_stack_overflow(const void* address);

}  // namespace emulator
