// Memory: a registry of what was allocated, pinned or registered, against which every address is checked.
//
// Device memory lies in a part of the address space of its own, is never given the same address twice, and has
// untouchable pages behind each allocation, so that a kernel that reads or writes where it should not meets a fault.
// Fresh memory is full of ones (nan, -1).
#include <sys/mman.h>

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "emulator.h"

namespace emulator {
namespace {

constexpr size_t page = 4096, alignment = 512, gap = 64 << 10, filled_up_to = 64 << 20;

std::map<Address, Allocation>& allocations() {
  static auto* the = new std::map<Address, Allocation>;
  return *the;
}

size_t rounded(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }

bool is_protected() {
  static const bool wanted = [] {
    const char* text = std::getenv("CRESSET_EMULATOR_PROTECT");
    return text && *text && *text != '0';
  }();
  return wanted;
}

void protect(const Allocation& a, int rights) {
  if (a.kind == Kind::device && mprotect(a.mapping, a.mapped, rights) != 0) std::perror("emulated CUDA: mprotect");
}

int accesses = 0;

// The registered range that overlaps these bytes, if there is one.
const Allocation* overlapping(Address address, size_t bytes) {
  auto next = allocations().lower_bound(address + (bytes ? bytes : 1));
  if (next == allocations().begin()) return nullptr;
  const Allocation& a = std::prev(next)->second;
  return a.end() > address ? &a : nullptr;
}

}  // namespace

Access::Access() {
  if (is_protected() && accesses++ == 0)
    for (const auto& [begin, a] : allocations()) protect(a, PROT_READ | PROT_WRITE);
}
Access::~Access() {
  if (is_protected() && --accesses == 0)
    for (const auto& [begin, a] : allocations()) protect(a, PROT_NONE);
}

const Allocation* find_allocation(Address address, bool or_end) {
  auto next = allocations().upper_bound(address);
  if (next == allocations().begin()) return nullptr;
  const Allocation& a = std::prev(next)->second;
  return address < a.end() || (or_end && address == a.end()) ? &a : nullptr;
}

std::string describe_address(Address address) {
  const char* kinds[] = {"device", "pinned", "registered"};
  char text[240];
  auto next = allocations().upper_bound(address);
  if (next != allocations().begin()) {
    const Allocation& a = std::prev(next)->second;
    const size_t offset = address - a.begin;
    if (offset < a.size + (1 << 20)) {
      const bool inside = offset < a.size;
      std::snprintf(text, sizeof text, "0x%" PRIx64 ", %zu bytes %s of the %s allocation of %zu bytes at 0x%" PRIx64,
                    address, inside ? offset : offset - a.size, inside ? "behind the begin" : "behind the end",
                    kinds[int(a.kind)], a.size, a.begin);
      return text;
    }
  }
  if (next != allocations().end() && next->first - address < (1 << 20)) {
    std::snprintf(text, sizeof text, "0x%" PRIx64 ", %zu bytes before the allocation of %zu bytes at 0x%" PRIx64,
                  address, size_t(next->first - address), next->second.size, next->first);
    return text;
  }
  std::snprintf(text, sizeof text, "0x%" PRIx64 ", which is in no allocation", address);
  return text;
}

bool device_may_use(const char* who, const char* what, Device* device, Address address, size_t bytes) {
  if (bytes == 0) return true;
  const Allocation* a = find_allocation(address);
  if (!a || bytes > a->end() - address) {
    complain("%s: %s of %zu bytes at %s", who, what, bytes, describe_address(address).c_str());
    return false;
  }
  if (a->kind == Kind::device && device && a->device != device && !device->peers.count(a->device->ordinal)) {
    complain("%s: %s is on device %d, which device %d may not use (cuCtxEnablePeerAccess)", who, what,
             a->device->ordinal, device->ordinal);
    return false;
  }
  return true;
}

bool host_may_use(const char* who, const char* what, const void* address, size_t bytes) {
  if (bytes == 0) return true;
  const Allocation* a = overlapping(reinterpret_cast<Address>(address), bytes);
  if (address && (!a || a->kind != Kind::device)) return true;
  complain("%s: %s of %zu bytes should be the host's; it is at %s", who, what, bytes,
           describe_address(reinterpret_cast<Address>(address)).c_str());
  return false;
}

}  // namespace emulator

using namespace emulator;

EMULATOR_API Status cuMemGetInfo_v2(size_t* free, size_t* total) {
  EMULATOR_ENTER_CONTEXT();
  *total = current()->total, *free = current()->total - current()->used;
  return CUDA_SUCCESS;
}

EMULATOR_API Status cuMemAlloc_v2(Address* address, size_t bytes) {
  EMULATOR_ENTER_CONTEXT();
  if (Status status = refuse_in_capture("cuMemAlloc")) return status;
  if (!address || bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  Device* device = current();
  if (bytes > device->total) return CUDA_ERROR_OUT_OF_MEMORY;
  const size_t size = rounded(bytes, alignment);
  if (size > device->total - device->used) return CUDA_ERROR_OUT_OF_MEMORY;
  static std::map<int, Address> next_place;
  Address& place =
      next_place.try_emplace(device->ordinal, Address(0x200000000000) + (Address(device->ordinal) << 40)).first->second;
  const size_t mapped = rounded(size, page);
  void* mapping = mmap(reinterpret_cast<void*>(place), mapped, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
  if (mapping == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
  place += rounded(mapped + gap, gap);
  // It ends where the page ends: what comes behind is not there.
  Allocation a{reinterpret_cast<Address>(mapping) + mapped - size, bytes, Kind::device, device, mapping, mapped};
  if (size <= filled_up_to) std::memset(mapping, 0xff, mapped);
  if (is_protected() && accesses == 0) protect(a, PROT_NONE);
  device->used += size;
  *address = a.begin;
  allocations().emplace(a.begin, a);
  return CUDA_SUCCESS;
}

EMULATOR_API Status cuMemFree_v2(Address address) {
  EMULATOR_ENTER_CONTEXT();
  if (Status status = refuse_in_capture("cuMemFree")) return status;
  if (!address) return CUDA_SUCCESS;
  auto found = allocations().find(address);
  if (found == allocations().end() || found->second.kind != Kind::device) {
    complain("cuMemFree: not the begin of device memory: %s", describe_address(address).c_str());
    return CUDA_ERROR_INVALID_VALUE;
  }
  const Allocation a = found->second;
  const Status late = finish(a.device);  // freeing waits for the device
  munmap(a.mapping, a.mapped);
  a.device->used -= rounded(a.size, alignment);
  allocations().erase(found);
  return late;
}

EMULATOR_API Status cuMemHostAlloc(void** p, size_t bytes, unsigned flags) {
  EMULATOR_ENTER_CONTEXT();
  if (Status status = refuse_in_capture("cuMemHostAlloc")) return status;
  if (!p || bytes == 0 || flags > 7) return CUDA_ERROR_INVALID_VALUE;
  const size_t mapped = rounded(bytes, page);
  void* mapping = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapping == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
  const auto begin = reinterpret_cast<Address>(mapping);
  allocations()[begin] = Allocation{begin, bytes, Kind::pinned, current(), mapping, mapped};
  *p = mapping;
  return CUDA_SUCCESS;
}
EMULATOR_API Status cuMemFreeHost(void* p) {
  EMULATOR_ENTER_CONTEXT();
  if (Status status = refuse_in_capture("cuMemFreeHost")) return status;
  auto found = allocations().find(reinterpret_cast<Address>(p));
  if (found == allocations().end() || found->second.kind != Kind::pinned) return CUDA_ERROR_INVALID_VALUE;
  const Status late = finish(found->second.device);
  munmap(found->second.mapping, found->second.mapped);
  allocations().erase(found);
  return late;
}

EMULATOR_API Status cuMemHostRegister_v2(void* p, size_t bytes, unsigned flags) {
  EMULATOR_ENTER_CONTEXT();
  if (!p || bytes == 0 || flags > 15) return CUDA_ERROR_INVALID_VALUE;
  const auto begin = reinterpret_cast<Address>(p);
  if (overlapping(begin, bytes)) return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
  allocations()[begin] = Allocation{begin, bytes, Kind::registered, current()};
  return CUDA_SUCCESS;
}
EMULATOR_API Status cuMemHostUnregister(void* p) {
  EMULATOR_ENTER_CONTEXT();
  auto found = allocations().find(reinterpret_cast<Address>(p));
  if (found == allocations().end() || found->second.kind != Kind::registered)
    return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
  allocations().erase(found);
  return CUDA_SUCCESS;
}
EMULATOR_API Status cuMemHostGetDevicePointer_v2(Address* address, void* p, unsigned flags) {
  EMULATOR_ENTER_CONTEXT();
  const Allocation* a = find_allocation(reinterpret_cast<Address>(p));
  if (flags || !a || a->kind == Kind::device) return CUDA_ERROR_INVALID_VALUE;
  *address = reinterpret_cast<Address>(p);
  return CUDA_SUCCESS;
}

EMULATOR_API Status cuPointerGetAttribute(void* value, int attribute, Address address) {
  EMULATOR_ENTER();
  const Allocation* a = find_allocation(address);
  if (!a) return CUDA_ERROR_INVALID_VALUE;
  const bool on_device = a->kind == Kind::device;
  switch (attribute) {
    case 1: *static_cast<void**>(value) = a->device; return CUDA_SUCCESS;             // context
    case 2: *static_cast<unsigned*>(value) = on_device ? 2 : 1; return CUDA_SUCCESS;  // memory type
    case 3: *static_cast<Address*>(value) = address; return CUDA_SUCCESS;             // device pointer
    case 4:                                                                           // host pointer
      if (on_device) return CUDA_ERROR_INVALID_VALUE;
      *static_cast<Address*>(value) = address;
      return CUDA_SUCCESS;
    case 8: *static_cast<unsigned*>(value) = 0; return CUDA_SUCCESS;  // managed
    case 9: *static_cast<int*>(value) = a->device->ordinal; return CUDA_SUCCESS;
    case 11: *static_cast<Address*>(value) = a->begin; return CUDA_SUCCESS;
    case 12: *static_cast<size_t*>(value) = a->size; return CUDA_SUCCESS;
    case 13: *static_cast<unsigned*>(value) = 1; return CUDA_SUCCESS;  // mapped
    default: return CUDA_ERROR_NOT_SUPPORTED;
  }
}
