// How operators enter the registry: each topic's file ends with them, and the files of a folder are all that has to be
// known.
//
//   REGISTER(scan) {
//     r.add("cumsum(Tensor input, int dim) -> Tensor", infer_cumsum, run_cumsum);
//   }
//
// A device's file of the same topic ends with REGISTER_KERNELS(scan), where kernels are given to operators that are
// there.
#pragma once
#include "dispatch/call.h"

namespace cresset {

// What one file adds. Made before the module is initialized; they find each other by a list.
struct Topic {
  enum Stage { operators, kernels };
  const char* name;
  Stage stage;
  void (*add)(Registry&);
  const Topic* next;
  Topic(const char* name, Stage stage, void (*add)(Registry&));
};

// The formulas first, then the operators of all topics by the names of the topics, then the devices' kernels. Once,
// when the module loads.
void register_operators();

}  // namespace cresset

#define CRESSET_REGISTER(topic, stage)                                                        \
  static void add_to_registry(::cresset::Registry& r);                                        \
  static const ::cresset::Topic this_topic(#topic, ::cresset::Topic::stage, add_to_registry); \
  static void add_to_registry([[maybe_unused]] ::cresset::Registry& r)
#define REGISTER(topic) CRESSET_REGISTER(topic, operators)
#define REGISTER_KERNELS(topic) CRESSET_REGISTER(topic, kernels)
