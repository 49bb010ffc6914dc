#include "cuda/cufft.h"

#include <algorithm>
#include <list>
#include <mutex>
#include <unordered_map>

#include "base/error.h"
#include "cuda/device.h"
#include "cuda/library.h"
#include "cuda/workspace.h"

namespace cresset::cuda {
namespace {

using FftStatus = int;
using PlanHandle = int;

// Numbers of cuFFT's interface.
constexpr FftStatus kDone = 0;
constexpr int kForward = -1, kInverse = 1;
enum DataType : int { kR32F = 0, kR64F = 1, kR16F = 2, kC32F = 4, kC64F = 5, kC16F = 6 };

#define CRESSET_CUFFT_FUNCTIONS(X)                                                                                     \
  X(cufftCreate, (PlanHandle * plan))                                                                                  \
  X(cufftDestroy, (PlanHandle plan))                                                                                   \
  X(cufftSetAutoAllocation, (PlanHandle plan, int on))                                                                 \
  X(cufftXtMakePlanMany, (PlanHandle plan, int rank, long long* sizes, long long* from_sizes, long long from_step,     \
                          long long from_batch_step, int from_type, long long* to_sizes, long long to_step,            \
                          long long to_batch_step, int to_type, long long batch, size_t* workspace, int compute_type)) \
  X(cufftSetWorkArea, (PlanHandle plan, void* workspace))                                                              \
  X(cufftSetStream, (PlanHandle plan, StreamHandle stream))                                                            \
  X(cufftXtExec, (PlanHandle plan, void* from, void* to, int direction))

struct Cufft {
#define CRESSET_MEMBER(name, parameters) FftStatus(*name) parameters = nullptr;
  CRESSET_CUFFT_FUNCTIONS(CRESSET_MEMBER)
#undef CRESSET_MEMBER
  std::string problem;
};

const Cufft& library() {
  static const Cufft* const the = [] {
    const Library file{"libcufft.so.12", "libcufft.so.11", "libcufft.so"};
    auto* f = new Cufft;
    if (!file.found()) {
      f->problem = file.problem();
      return f;
    }
#define CRESSET_FIND(name, parameters) f->name = reinterpret_cast<decltype(f->name)>(file.symbol(#name));
    CRESSET_CUFFT_FUNCTIONS(CRESSET_FIND)
#undef CRESSET_FIND
    return f;
  }();
  return *the;
}

const char* name_of_status(FftStatus status) {
  switch (status) {
    case 1: return "CUFFT_INVALID_PLAN";
    case 2: return "CUFFT_ALLOC_FAILED";
    case 3: return "CUFFT_INVALID_TYPE";
    case 4: return "CUFFT_INVALID_VALUE";
    case 5: return "CUFFT_INTERNAL_ERROR";
    case 6: return "CUFFT_EXEC_FAILED";
    case 7: return "CUFFT_SETUP_FAILED";
    case 8: return "CUFFT_INVALID_SIZE";
    case 9: return "CUFFT_UNALIGNED_DATA";
    case 11: return "CUFFT_INVALID_DEVICE";
    case 13: return "CUFFT_NO_WORKSPACE";
    case 14: return "CUFFT_NOT_IMPLEMENTED";
    case 16: return "CUFFT_NOT_SUPPORTED";
    default: return "an unknown status";
  }
}
void check_done(FftStatus status, const char* what) {
  check(status == kDone, "cuFFT error: ", name_of_status(status), " (", status, ") when calling `", what, "`");
}
#define CRESSET_CUFFT(call) check_done(library().call, #call)

struct SizesHash {
  size_t operator()(const FourierSizes& s) const {
    uint64_t h = 0;
    for (const int64_t v : {static_cast<int64_t>(s.kind), s.dtype, s.rank, s.sizes[0], s.sizes[1], s.sizes[2], s.batch,
                            s.step, s.batch_step})
      h = (h ^ static_cast<uint64_t>(v)) * 0x9e3779b97f4a7c15u, h ^= h >> 29;
    return h;
  }
};

struct Plan {
  FourierSizes sizes;
  PlanHandle handle;
  size_t workspace;
};

Plan make_plan(const FourierSizes& s) {
  Plan plan{s, 0, 0};
  const auto dtype = static_cast<Dtype>(s.dtype);
  const DataType complex = dtype == Dtype::c128  ? kC64F
                           : dtype == Dtype::c64 ? kC32F
                                                 : kC16F,
                 real = dtype == Dtype::c128  ? kR64F
                        : dtype == Dtype::c64 ? kR32F
                                              : kR16F;
  if (dtype == Dtype::c32)
    for (int64_t d = 0; d < s.rank; ++d)
      check((s.sizes[d] & (s.sizes[d] - 1)) == 0,
            "fft: cuFFT only supports dimensions whose sizes are powers of two when computing in half precision, but "
            "got a signal size of ",
            s.sizes[d]);
  long long sizes[3] = {s.sizes[0], s.sizes[1], s.sizes[2]};
  long long* const embedding = s.step ? sizes : nullptr;  // null: everything is dense, and steps are not read
  const long long step = std::max<int64_t>(s.step, 1), batch_step = std::max<int64_t>(s.batch_step, 1);
  CRESSET_CUFFT(cufftCreate(&plan.handle));
  FftStatus status = library().cufftSetAutoAllocation(plan.handle, 0);
  if (status == kDone)
    status = library().cufftXtMakePlanMany(plan.handle, static_cast<int>(s.rank), sizes, embedding, step, batch_step,
                                           s.kind == FourierSizes::from_real ? real : complex, embedding, step,
                                           batch_step, s.kind == FourierSizes::to_real ? real : complex, s.batch,
                                           &plan.workspace, complex);
  if (status != kDone) library().cufftDestroy(plan.handle);
  check(status == kDone, "cuFFT error: ", name_of_status(status), " (", status, ") for a transform of rank ", s.rank,
        ", sizes ", s.sizes[0], ", ", s.sizes[1], ", ", s.sizes[2], ", batch ", s.batch);
  return plan;
}

// The plans of one device, the one used last in front.
class Plans {
 public:
  std::mutex lock;

  const Plan& find(const FourierSizes& sizes) {
    if (const auto known = places_.find(sizes); known != places_.end()) {
      order_.splice(order_.begin(), order_, known->second);
      return order_.front();
    }
    order_.push_front(make_plan(sizes));
    places_[sizes] = order_.begin();
    shrink(std::max<int64_t>(most_, 1));  // the one that is about to be used stays
    return order_.front();
  }
  int64_t count() const { return static_cast<int64_t>(order_.size()); }
  int64_t most() const { return most_; }
  void set_most(int64_t most) { most_ = most, shrink(most); }
  void shrink(int64_t most) {
    while (count() > most) {
      library().cufftDestroy(order_.back().handle);
      places_.erase(order_.back().sizes);
      order_.pop_back();
    }
  }

 private:
  int64_t most_ = 4096;
  std::list<Plan> order_;
  std::unordered_map<FourierSizes, std::list<Plan>::iterator, SizesHash> places_;
};
Plans& plans(int device) {
  static auto* all = new Plans[kMaxDevices];
  check_device(device);
  return all[device];
}

}  // namespace

const std::string& cufft_problem() { return library().problem; }

void transform(int device, const FourierSizes& sizes, void* from, void* to, bool forward) {
  Plans& all = plans(device);
  std::lock_guard guard(all.lock);
  enter(device);  // plans belong to the context in which they are made
  const Plan& plan = all.find(sizes);
  const Workspace workspace(device, plan.workspace);
  CRESSET_CUFFT(cufftSetWorkArea(plan.handle, workspace.data()));
  CRESSET_CUFFT(cufftSetStream(plan.handle, enter(device)));
  finish_launches();
  CRESSET_CUFFT(cufftXtExec(plan.handle, from, to, forward ? kForward : kInverse));
}

int64_t count_fourier_plans(int device) {
  std::lock_guard guard(plans(device).lock);
  return plans(device).count();
}
int64_t most_fourier_plans(int device) {
  std::lock_guard guard(plans(device).lock);
  return plans(device).most();
}
void set_most_fourier_plans(int device, int64_t most) {
  check(most >= 0, "cufft_plan_cache: max_size must be non-negative, got ", most);
  std::lock_guard guard(plans(device).lock);
  enter(device);
  plans(device).set_most(most);
}
void forget_fourier_plans(int device) {
  std::lock_guard guard(plans(device).lock);
  enter(device);
  plans(device).shrink(0);
}

}  // namespace cresset::cuda
