#include "cuda/fault.h"

#include <atomic>
#include <mutex>
#include <string>
#include <vector>

#include "base/error.h"
#include "cuda/device.h"

namespace cresset::cuda {
namespace {

struct Board {
  std::once_flag made;
  std::atomic<Fault*> fault = nullptr;
  Address address = 0;
};
Board* boards() {
  static auto* all = new Board[kMaxDevices];
  return all;
}

struct Names {
  std::mutex lock;
  std::vector<std::string> all;
};
Names& names() {
  static auto* the = new Names;
  return *the;
}

}  // namespace

Address fault_place(int device) {
  Board& board = boards()[device];
  std::call_once(board.made, [&] {
    enter(device);
    void* p = nullptr;
    CRESSET_DRIVER(cuMemHostAlloc(&p, sizeof(Fault), kHostPortable | kHostMapped));
    CRESSET_DRIVER(cuMemHostGetDevicePointer_v2(&board.address, p, 0));
    board.fault = new (p) Fault;
  });
  return board.address;
}

int operation_number(const char* name) {
  std::lock_guard guard(names().lock);
  auto& all = names().all;
  for (size_t i = 0; i < all.size(); ++i)
    if (all[i] == name) return static_cast<int>(i);
  all.push_back(name);
  return static_cast<int>(all.size()) - 1;
}

void raise_faults(int device) {
  auto* fault = static_cast<volatile Fault*>(boards()[device].fault.load(std::memory_order_acquire));
  if (!fault || fault->state != 2) return;
  const Fault met{2, fault->operation, fault->value, fault->position, fault->bound};
  fault->state = 0;
  std::string name;
  {
    std::lock_guard guard(names().lock);
    name = names().all[static_cast<size_t>(met.operation)];
  }
  fail(ErrorKind::index, name, ": index ", met.value, " is out of bounds for size ", met.bound, ", at position ",
       met.position, " of the index (found on cuda:", device, "; the call was an earlier one)");
}

}  // namespace cresset::cuda
