#include "cuda/cupti.h"

#include "base/error.h"
#include "cuda/library.h"

namespace cresset::cuda {

Cupti::Cupti() {
  const Library library({"libcupti.so.13", "libcupti.so.12", "libcupti.so"});
  if (!library.found()) {
    problem = library.problem();
    return;
  }
#define CRESSET_LOOK_UP(name)                                   \
  name = reinterpret_cast<decltype(name)>(library.find(#name)); \
  if (!name && problem.empty()) problem = "libcupti has no " #name ": it is too old";
  CRESSET_LOOK_UP(cuptiActivityRegisterCallbacks)
  CRESSET_LOOK_UP(cuptiActivityEnable)
  CRESSET_LOOK_UP(cuptiActivityDisable)
  CRESSET_LOOK_UP(cuptiActivityFlushAll)
  CRESSET_LOOK_UP(cuptiActivityGetNextRecord)
  CRESSET_LOOK_UP(cuptiActivityPushExternalCorrelationId)
  CRESSET_LOOK_UP(cuptiActivityPopExternalCorrelationId)
  CRESSET_LOOK_UP(cuptiGetTimestamp)
  CRESSET_LOOK_UP(cuptiGetCallbackName)
  CRESSET_LOOK_UP(cuptiGetResultString)
#undef CRESSET_LOOK_UP
}

std::string Cupti::explain(Status status) const {
  const char* text = nullptr;
  cuptiGetResultString(status, &text);
  return join(text ? text : "CUPTI failed", " (", status, ")");
}

const Cupti& cupti() {
  static const auto* the = new Cupti;
  return *the;
}

}  // namespace cresset::cuda
