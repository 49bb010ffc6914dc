#include "dispatch/profile_memory.h"

#include <mutex>
#include <unordered_map>

#include "base/fork_lock.h"
#include "tensor/memory_watch.h"
#include "tensor/requires_grad.h"
#include "tensor/storage.h"

namespace cresset {

std::atomic<bool> profiling_memory = false;

namespace {

ForkLock& lock = *new ForkLock;
bool keeps = false, adds_up = false;
auto& allocations = *new std::vector<ProfileAllocation>;
auto& alive = *new std::unordered_map<uint64_t, size_t>;  // by address: its place in `allocations`

struct Held {
  int32_t stack;
  int64_t bytes;
};
auto& held = *new std::unordered_map<uint64_t, Held>;  // by address, with sums
auto& holders = *new std::unordered_map<int32_t, ProfileHolder>;
struct Side {
  int64_t held = 0, peak = 0;
  bool rises = false;  // the peak is now: who holds what is copied when something is freed
};
Side sides[2];

thread_local ProfileBytes of_thread;

int side_of(Device device) { return device.is_cpu() ? 0 : 1; }

void copy_peak(int side) {
  for (auto& [stack, holder] : holders) holder.sides[side].at_peak = holder.sides[side].held;
  sides[side].rises = false;
}

void add_up(const ProfileAllocation& a) {
  const int k = side_of(a.device);
  ProfileHolder::Side& mine = holders[a.place.stack].sides[k];
  ++mine.allocations;
  mine.allocated += a.bytes;
  mine.held += a.bytes;
  if (mine.held > mine.most) mine.most = mine.held;
  held[a.address] = {a.place.stack, a.bytes};
  sides[k].held += a.bytes;
  if (sides[k].held > sides[k].peak) sides[k].peak = sides[k].held, sides[k].rises = true;
}

void take_off(uint64_t address, Device device) {
  const auto found = held.find(address);
  if (found == held.end()) return;  // from before
  const int k = side_of(device);
  if (sides[k].rises) copy_peak(k);
  holders[found->second.stack].sides[k].held -= found->second.bytes;
  sides[k].held -= found->second.bytes;
  held.erase(found);
}

// Memory that was there before is noted when it is first met.
ProfileAllocation& known(uint64_t address, int64_t bytes, Device device) {
  const auto [found, is_new] = alive.try_emplace(address, allocations.size());
  if (is_new) {
    allocations.push_back({});
    ProfileAllocation& a = allocations.back();
    a.address = address, a.bytes = bytes, a.device = device;
  }
  return allocations[found->second];
}

void on_allocation(const void* data, int64_t bytes, Device device) {
  (device.is_cpu() ? of_thread.host : of_thread.device) += bytes;
  ProfileAllocation a;
  a.place = profile_place();
  if (a.place.event < 0 && a.place.stack < 0 && profile_stack) a.place.stack = profile_stack();
  a.address = reinterpret_cast<uint64_t>(data), a.bytes = bytes, a.device = device, a.start = profile_now();
  const std::scoped_lock guard(lock);
  if (!profiling_memory) return;
  if (adds_up) add_up(a);
  if (!keeps) return;
  alive[a.address] = allocations.size();
  allocations.push_back(a);
}

void on_free(const void* data, int64_t bytes, Device device) {
  (device.is_cpu() ? of_thread.host : of_thread.device) -= bytes;
  const auto address = reinterpret_cast<uint64_t>(data);
  const std::scoped_lock guard(lock);
  if (!profiling_memory) return;
  if (adds_up) take_off(address, device);
  if (!keeps) return;
  known(address, bytes, device).end = profile_now();
  alive.erase(address);
}

}  // namespace

void watch_profile_memory(bool on, bool keep, bool sum) {
  const std::scoped_lock guard(lock);
  if (!keep) {
    allocations.clear();
    allocations.shrink_to_fit();
    alive.clear();
  }
  if (!sum) {
    held.clear();
    holders.clear();
    sides[0] = sides[1] = {};
  }
  keeps = keep, adds_up = sum;
  profiling_memory = on;
  watch_memory(on ? on_allocation : nullptr, on ? on_free : nullptr);
}

std::vector<ProfileAllocation> profile_allocations() {
  const std::scoped_lock guard(lock);
  return allocations;
}

ProfileHolders profile_holders() {
  const std::scoped_lock guard(lock);
  ProfileHolders all;
  for (int k = 0; k < 2; ++k) {
    if (sides[k].rises) copy_peak(k);
    all.peaks[k] = sides[k].peak;
  }
  for (const auto& [stack, holder] : holders) {
    all.holders.push_back(holder);
    all.holders.back().stack = stack;
  }
  return all;
}

ProfileBytes profile_bytes() { return of_thread; }

void note_memory_use(const Tensor& t, MemoryUse use) {
  if (!t.defined() || !t->storage || !t->storage->data || t->storage->bytes <= 0) return;
  const Storage& s = *t->storage;
  const std::scoped_lock guard(lock);
  if (!profiling_memory || !keeps) return;
  known(reinterpret_cast<uint64_t>(s.data), s.bytes, s.device).uses |= static_cast<uint8_t>(use);
}

void note_recorded(const Call& c) {
  for (const Tensor& t : c.outputs) note_memory_use(t, MemoryUse::activation);
  for (int i = 0; i < static_cast<int>(c.op.signature.parameters.size()); ++i) {
    if (c.args[i].kind == Kind::tensor && !requires_grad(c.tensor(i))) note_memory_use(c.tensor(i), MemoryUse::input);
    if (c.args[i].kind != Kind::tensors) continue;
    for (const Tensor& t : c.tensors(i))
      if (t.defined() && !requires_grad(t)) note_memory_use(t, MemoryUse::input);
  }
}

}  // namespace cresset
