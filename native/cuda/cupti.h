// CUPTI, NVIDIA's profiling library: the few functions and fields that we read. The fields lie at the same places in
// its versions from 12 to 13, whose records grow at the end.
#pragma once
#include <cstdint>
#include <string>

#include "cuda/driver.h"

namespace cresset::cuda {

enum CuptiKind : int {
  kCuptiCopy = 1,
  kCuptiFill = 2,
  kCuptiDriver = 4,
  kCuptiRuntime = 5,
  kCuptiKernel = 10,
  kCuptiCopyBetween = 22,
  kCuptiCorrelation = 39,
};
inline constexpr int kCuptiOurs = 3;  // CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0
inline constexpr Status kCuptiNoMore = 12;

// CUpti_ActivityKernel9 and later, as far as it is read.
struct CuptiKernelRecord {
  int kind;
  uint8_t cache[2];
  uint16_t registers;
  uint32_t cache_executed[2];
  uint64_t start, end, completed;
  uint32_t device, context, stream;
  int32_t grid[3], block[3], static_shared, dynamic_shared;
  uint32_t local[2], correlation;
  int64_t grid_number;
  const char* name;
};
static_assert(sizeof(CuptiKernelRecord) == 112);
// CUpti_ActivityMemcpy5 and later, CUpti_ActivityMemset4 and later.
struct CuptiMemoryRecord {
  int kind;
  uint32_t which;  // of a copy its direction in the lowest byte, of a fill its value
  uint64_t bytes, start, end;
  uint32_t device, context, stream, correlation;
};
static_assert(sizeof(CuptiMemoryRecord) == 48);
struct CuptiCallRecord {
  int kind;
  uint32_t function;
  uint64_t start, end;
  uint32_t process, thread, correlation, status;
};
static_assert(sizeof(CuptiCallRecord) == 40);
struct CuptiCorrelationRecord {
  int kind, external_kind;
  uint64_t external;
  uint32_t correlation, reserved;
};
static_assert(sizeof(CuptiCorrelationRecord) == 24);

struct Cupti {
  Status (*cuptiActivityRegisterCallbacks)(void (*request)(uint8_t** buffer, size_t* size, size_t* most),
                                           void (*complete)(ContextHandle, uint32_t stream, uint8_t* buffer,
                                                            size_t size, size_t valid)) = nullptr;
  Status (*cuptiActivityEnable)(int kind) = nullptr;
  Status (*cuptiActivityDisable)(int kind) = nullptr;
  Status (*cuptiActivityFlushAll)(uint32_t flag) = nullptr;
  Status (*cuptiActivityGetNextRecord)(uint8_t* buffer, size_t valid, const int** record) = nullptr;
  Status (*cuptiActivityPushExternalCorrelationId)(int kind, uint64_t id) = nullptr;
  Status (*cuptiActivityPopExternalCorrelationId)(int kind, uint64_t* last) = nullptr;
  Status (*cuptiGetTimestamp)(uint64_t* nanoseconds) = nullptr;
  Status (*cuptiGetCallbackName)(int domain, uint32_t function, const char** name) = nullptr;
  Status (*cuptiGetResultString)(Status status, const char** text) = nullptr;
  std::string problem;  // why it cannot be used; empty when it can

  Cupti();
  std::string explain(Status status) const;
};
const Cupti& cupti();  // opened when first asked for

}  // namespace cresset::cuda
