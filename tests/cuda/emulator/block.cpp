#include "block.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>

#include "faults.h"
#include "fibers.h"

namespace emulator {
namespace {

constexpr unsigned lanes = 32;
constexpr uint64_t nobodys_value = ~uint64_t(0);  // nan, -1: what a shuffle from a lane that is not there gives

enum class State : char { unstarted, running, at_barrier, in_warp, ended };

// What one thread of the block does, and what it brought to where it waits.
struct Thread {
  State state = State::unstarted;
  Fiber* fiber = nullptr;
  const char* file = nullptr;
  int line = 0;
  bool predicate = false;
  EmulatedWarpOperation operation{};
  unsigned mask = 0, source = 0;
  uint64_t value = 0, result = 0;
};

class Block {
 public:
  explicit Block(const Grid& grid)
      : grid_(grid), count_(grid.block_size.x * grid.block_size.y * grid.block_size.z), threads_(count_) {
    const char* order = std::getenv("CRESSET_EMULATOR_ORDER");
    backward_ = order && std::strcmp(order, "backward") == 0;
  }
  bool is_backward() const { return backward_; }

  // Runs the block that the module's blockIdx says.
  Status run();

  unsigned barrier(bool predicate, const char* file, int line);
  uint64_t warp(EmulatedWarpOperation operation, unsigned mask, uint64_t value, unsigned source, const char* file,
                int line);
  [[noreturn]] void fail(Status status, const std::string& why);
  EmulatedRange find_range(Address address, size_t bytes, bool writes);
  std::string place() const;

 private:
  static void run_threads(void* block);  // what a fiber does
  Thread& current() { return threads_[current_]; }
  void become(unsigned thread);
  void wait();
  void complete_warp(unsigned thread);
  void finish_warp(unsigned warp, unsigned group, const Thread& any);
  void wake(unsigned thread);
  std::string describe_waiting() const;

  const Grid& grid_;
  unsigned count_, started_ = 0, ended_ = 0, at_barrier_ = 0, in_warp_ = 0, current_ = 0;
  std::vector<Thread> threads_;
  std::deque<unsigned> ready_;
  bool backward_ = false;
  Status failure_ = CUDA_SUCCESS;
};

Block* the_block = nullptr;

std::string text_of(EmulatedIndex i) {
  char text[64];
  std::snprintf(text, sizeof text, "(%u, %u, %u)", i.x, i.y, i.z);
  return text;
}

std::string Block::place() const {
  return std::string("kernel ") + grid_.kernel->name + ", block " + text_of(*grid_.module->block) + ", thread " +
         text_of(*grid_.module->thread);
}

void Block::become(unsigned thread) {
  current_ = thread;
  const EmulatedIndex size = grid_.block_size;
  *grid_.module->thread = {thread % size.x, thread / size.x % size.y, thread / size.x / size.y};
}

void Block::run_threads(void* self) {
  auto& block = *static_cast<Block*>(self);
  while (block.started_ < block.count_) {
    const unsigned next = block.started_++;
    const unsigned thread = block.backward_ ? block.count_ - 1 - next : next;
    block.become(thread);
    block.threads_[thread].state = State::running;
    block.threads_[thread].fiber = current_fiber();
    block.grid_.kernel->run(block.grid_.parameters);
    block.threads_[thread].state = State::ended;
    ++block.ended_;
    // The others of the warp need not wait for this lane any longer.
    const unsigned first = thread / lanes * lanes;
    for (unsigned t = first; block.in_warp_ && t < first + lanes && t < block.count_; ++t)
      if (block.threads_[t].state == State::in_warp) block.complete_warp(t);
  }
}

// Gives the host's thread to others until somebody wakes this thread.
void Block::wait() {
  const unsigned me = current_;
  suspend_fiber();
  become(me);
}

void Block::wake(unsigned thread) {
  threads_[thread].state = State::running;
  if (thread != current_) ready_.push_back(thread);  // the one that runs goes on by itself
}

Status Block::run() {
  started_ = ended_ = at_barrier_ = in_warp_ = 0;
  ready_.clear();
  for (Thread& t : threads_) t.state = State::unstarted;
  failure_ = CUDA_SUCCESS;
  the_block = this;
  while (failure_ == CUDA_SUCCESS) {
    if (!ready_.empty()) {
      const unsigned thread = ready_.front();
      ready_.pop_front();
      resume_fiber(threads_[thread].fiber);
    } else if (started_ < count_) {
      start_fiber(run_threads, this);
    } else {
      break;
    }
  }
  if (failure_ == CUDA_SUCCESS && ended_ < count_) {
    complain("kernel %s, block %s: its threads wait for each other for ever: %s", grid_.kernel->name,
             text_of(*grid_.module->block).c_str(), describe_waiting().c_str());
    failure_ = CUDA_ERROR_LAUNCH_FAILED;
  }
  the_block = nullptr;
  if (failure_ != CUDA_SUCCESS) forget_fibers();
  return failure_;
}

unsigned Block::barrier(bool predicate, const char* file, int line) {
  Thread& me = current();
  me.file = file, me.line = line, me.predicate = predicate;
  me.state = State::at_barrier;
  if (++at_barrier_ < count_) {
    wait();
    return unsigned(current().result);
  }
  at_barrier_ = 0;
  unsigned yes = 0;
  for (const Thread& t : threads_) {
    yes += t.predicate;
    if (t.line != line || std::strcmp(t.file, file) != 0)
      fail(CUDA_ERROR_LAUNCH_FAILED, "the threads of the block meet at different barriers: " + describe_waiting());
  }
  for (unsigned t = 0; t < count_; ++t) {
    threads_[t].result = yes;
    wake(t);
  }
  return yes;
}

uint64_t Block::warp(EmulatedWarpOperation operation, unsigned mask, uint64_t value, unsigned source, const char* file,
                     int line) {
  Thread& me = current();
  if (!(mask >> (current_ % lanes) & 1)) {
    char text[200];
    std::snprintf(text, sizeof text,
                  "lane %u calls a function of the warp with mask 0x%08x, in which it is not (%s:%d)", current_ % lanes,
                  mask, file, line);
    fail(CUDA_ERROR_LAUNCH_FAILED, text);
  }
  me.operation = operation, me.mask = mask, me.value = value, me.source = source, me.file = file, me.line = line;
  me.state = State::in_warp;
  ++in_warp_;
  const unsigned thread = current_;
  complete_warp(thread);
  if (threads_[thread].state == State::in_warp) wait();
  return threads_[thread].result;
}

// Wakes the lanes that this one waits for if they have all come. Lanes that have ended, or never were, are not waited
// for.
void Block::complete_warp(unsigned thread) {
  const Thread& me = threads_[thread];
  const unsigned first = thread / lanes * lanes;
  unsigned group = 0;
  for (unsigned lane = 0; lane < lanes && first + lane < count_; ++lane) {
    const Thread& other = threads_[first + lane];
    if (!(me.mask >> lane & 1) || other.state == State::ended) continue;
    if (other.state != State::in_warp || other.mask != me.mask || other.operation != me.operation) return;
    group |= 1u << lane;
  }
  finish_warp(first, group, me);
}

void Block::finish_warp(unsigned first, unsigned group, const Thread& any) {
  const EmulatedWarpOperation operation = any.operation;
  const auto each = [&](auto action) {
    for (unsigned lane = 0; lane < lanes; ++lane)
      if (group >> lane & 1) action(lane, threads_[first + lane]);
  };
  unsigned ballot = 0, sum = 0, least = ~0u, most = 0, conjunction = ~0u, disjunction = 0, parity = 0;
  int signed_least = 0x7fffffff, signed_most = -0x7fffffff - 1;
  bool equal = true;
  each([&](unsigned lane, Thread& t) {
    const auto value = unsigned(t.value);
    const int as_signed = int(value);
    ballot |= unsigned(t.value != 0) << lane;
    equal = equal && t.value == any.value;
    sum += value, conjunction &= value, disjunction |= value, parity ^= value;
    least = value < least ? value : least, most = value > most ? value : most;
    signed_least = as_signed < signed_least ? as_signed : signed_least;
    signed_most = as_signed > signed_most ? as_signed : signed_most;
  });
  each([&](unsigned, Thread& t) {
    switch (operation) {
      case kWarpSync: t.result = 0; break;
      case kWarpShuffle:
        t.result = group >> (t.source % lanes) & 1 ? threads_[first + t.source % lanes].value : nobodys_value;
        break;
      case kWarpBallot: t.result = ballot; break;
      case kWarpAll: t.result = ballot == group; break;
      case kWarpMatchAny:
        t.result = 0;
        each([&](unsigned lane, const Thread& other) { t.result |= uint64_t(other.value == t.value) << lane; });
        break;
      case kWarpMatchAll: t.result = equal ? group : 0; break;
      case kWarpAddition: t.result = sum; break;
      case kWarpMinimum: t.result = least; break;
      case kWarpMaximum: t.result = most; break;
      case kWarpSignedMinimum: t.result = unsigned(signed_least); break;
      case kWarpSignedMaximum: t.result = unsigned(signed_most); break;
      case kWarpAnd: t.result = conjunction; break;
      case kWarpOr: t.result = disjunction; break;
      case kWarpXor: t.result = parity; break;
    }
  });
  each([&](unsigned lane, Thread&) {
    --in_warp_;
    wake(first + lane);
  });
}

std::string Block::describe_waiting() const {
  std::map<std::string, unsigned> places;
  for (const Thread& t : threads_) {
    if (t.state == State::ended || !t.file) {
      ++places["have ended"];
      continue;
    }
    char text[300];
    if (t.state == State::in_warp)
      std::snprintf(text, sizeof text, "wait for the lanes 0x%08x of their warp at %s:%d", t.mask, t.file, t.line);
    else
      std::snprintf(text, sizeof text, "wait in __syncthreads at %s:%d", t.file, t.line);
    ++places[text];
  }
  std::string all;
  for (const auto& [place, threads] : places) all += (all.empty() ? "" : ", ") + std::to_string(threads) + " " + place;
  return all;
}

// An allocation of the device, the block's shared memory, or the kernel's own data.
EmulatedRange Block::find_range(Address address, size_t bytes, bool writes) {
  const EmulatedModule& module = *grid_.module;
  const Address shared = reinterpret_cast<Address>(module.dynamic_shared), behind = shared + module.dynamic_shared_size;
  const Address image_end = grid_.image.begin + grid_.image.bytes;
  const EmulatedRange own[] = {grid_.static_shared,
                               {shared, grid_.shared_bytes},
                               {grid_.image.begin, shared - grid_.image.begin},
                               {behind, image_end - behind}};
  for (const EmulatedRange& range : own)
    if (address - range.begin < range.bytes && bytes <= range.bytes - (address - range.begin)) return range;
  const char* what = writes ? "writes" : "reads";
  if (address - shared < module.dynamic_shared_size)
    fail(CUDA_ERROR_ILLEGAL_ADDRESS, std::string(what) + " at byte " + std::to_string(address - shared) + " of its " +
                                         std::to_string(grid_.shared_bytes) + " bytes of dynamic shared memory");
  if (!device_may_use(place().c_str(), writes ? "a write" : "a read", grid_.device, address, bytes)) {
    failure_ = CUDA_ERROR_ILLEGAL_ADDRESS;
    leave_fiber();
  }
  const Allocation* a = find_allocation(address);
  return {a->begin, a->size};
}

void Block::fail(Status status, const std::string& why) {
  complain("%s: %s", place().c_str(), why.c_str());
  failure_ = status;
  leave_fiber();
}

}  // namespace

EmulatedHost host_functions() {
  return {
      [](bool predicate, const char* file, int line) { return the_block->barrier(predicate, file, line); },
      [](EmulatedWarpOperation operation, unsigned mask, unsigned long long value, unsigned source, const char* file,
         int line) -> unsigned long long { return the_block->warp(operation, mask, value, source, file, line); },
      [](const char* what, const char* file, int line) {
        the_block->fail(CUDA_ERROR_LAUNCH_FAILED, std::string(what) + " at " + file + ":" + std::to_string(line));
      },
      [](unsigned long address, unsigned long bytes, bool writes) {
        return the_block->find_range(address, bytes, writes);
      },
      [](unsigned long address, unsigned long bytes, bool writes) {
        the_block->fail(CUDA_ERROR_MISALIGNED_ADDRESS, std::string(writes ? "writes " : "reads ") +
                                                           std::to_string(bytes) +
                                                           " bytes that are not at a multiple of " +
                                                           std::to_string(bytes) + ": " + describe_address(address));
      },
  };
}

Status run_grid(const Grid& grid) {
  const EmulatedModule& module = *grid.module;
  *module.grid_size = grid.size, *module.block_size = grid.block_size;
  std::fill_n(module.recent, module.recent_count, EmulatedRange{});
  FaultWatch watch([](Status status, const std::string& what) { the_block->fail(status, what); });
  Block block(grid);
  const uint64_t blocks = uint64_t(grid.size.x) * grid.size.y * grid.size.z;
  for (uint64_t i = 0; i < blocks; ++i) {
    const uint64_t b = block.is_backward() ? blocks - 1 - i : i;
    *module.block = {unsigned(b % grid.size.x), unsigned(b / grid.size.x % grid.size.y),
                     unsigned(b / grid.size.x / grid.size.y)};
    std::memset(reinterpret_cast<void*>(grid.static_shared.begin), 0xff, grid.static_shared.bytes);
    std::memset(module.dynamic_shared, 0xff, grid.shared_bytes);
    if (Status status = block.run()) return status;
  }
  return CUDA_SUCCESS;
}

}  // namespace emulator
