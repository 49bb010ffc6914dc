#include "cuda/nccl.h"

#include <array>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "cuda/device.h"
#include "cuda/library.h"

namespace cresset::cuda {
namespace {

// Numbers and shapes of NCCL's interface.
using NcclStatus = int;
using CommHandle = void*;
constexpr NcclStatus kDone = 0, kInProgress = 7;
constexpr int kBytes = 1;  // ncclUint8
enum Operation : int { kSum = 0, kProduct = 1, kMaximum = 2, kMinimum = 3 };
struct UniqueId {
  char words[128];
};
enum Kind : int {
  kBarrier,
  kBroadcast,
  kAllReduce,
  kReduce,
  kAllGather,
  kGather,
  kScatter,
  kReduceScatter,
  kAllToAll,
  kSend,
  kReceive
};

#define CRESSET_NCCL_FUNCTIONS(X)                                                                                  \
  X(ncclGetVersion, (int* version))                                                                                \
  X(ncclGetUniqueId, (UniqueId * id))                                                                              \
  X(ncclCommInitRank, (CommHandle * comm, int size, UniqueId id, int rank))                                        \
  X(ncclCommDestroy, (CommHandle comm))                                                                            \
  X(ncclCommAbort, (CommHandle comm))                                                                              \
  X(ncclCommGetAsyncError, (CommHandle comm, NcclStatus * status))                                                 \
  X(ncclGroupStart, ())                                                                                            \
  X(ncclGroupEnd, ())                                                                                              \
  X(ncclAllReduce,                                                                                                 \
    (const void* from, void* to, size_t count, int dtype, int op, CommHandle comm, StreamHandle stream))           \
  X(ncclReduce,                                                                                                    \
    (const void* from, void* to, size_t count, int dtype, int op, int root, CommHandle comm, StreamHandle stream)) \
  X(ncclBroadcast,                                                                                                 \
    (const void* from, void* to, size_t count, int dtype, int root, CommHandle comm, StreamHandle stream))         \
  X(ncclAllGather, (const void* from, void* to, size_t count, int dtype, CommHandle comm, StreamHandle stream))    \
  X(ncclReduceScatter,                                                                                             \
    (const void* from, void* to, size_t count, int dtype, int op, CommHandle comm, StreamHandle stream))           \
  X(ncclSend, (const void* from, size_t count, int dtype, int peer, CommHandle comm, StreamHandle stream))         \
  X(ncclRecv, (void* to, size_t count, int dtype, int peer, CommHandle comm, StreamHandle stream))

struct Nccl {
#define CRESSET_MEMBER(name, parameters) NcclStatus(*name) parameters = nullptr;
  CRESSET_NCCL_FUNCTIONS(CRESSET_MEMBER)
#undef CRESSET_MEMBER
  const char* (*ncclGetErrorString)(NcclStatus) = nullptr;
  const char* (*ncclGetLastError)(CommHandle) = nullptr;
  std::string problem;
};

const Nccl& library() {
  static const Nccl* const the = [] {
    const Library file{"libnccl.so.2", "libnccl.so"};
    auto* f = new Nccl;
    if (!file.found()) {
      f->problem = file.problem();
      return f;
    }
#define CRESSET_FIND(name, parameters) f->name = reinterpret_cast<decltype(f->name)>(file.symbol(#name));
    CRESSET_NCCL_FUNCTIONS(CRESSET_FIND)
#undef CRESSET_FIND
    f->ncclGetErrorString = reinterpret_cast<decltype(f->ncclGetErrorString)>(file.symbol("ncclGetErrorString"));
    f->ncclGetLastError = reinterpret_cast<decltype(f->ncclGetLastError)>(file.find("ncclGetLastError"));
    return f;
  }();
  return *the;
}

const Nccl& nccl() {
  const Nccl& f = library();
  check(f.problem.empty(), "NCCL is not here: ", f.problem);
  return f;
}

void check_nccl(NcclStatus status, const char* what, CommHandle comm = nullptr) {
  if (status == kDone || status == kInProgress) return;
  const Nccl& f = nccl();
  const char* more = f.ncclGetLastError ? f.ncclGetLastError(comm) : "";
  fail(what, ": NCCL says ", f.ncclGetErrorString(status), more && *more ? ", " : "", more ? more : "");
}

// NCCL's number of a dtype that can be added up, and how many of its elements one of ours is.
std::pair<int, int> number_of(Dtype d) {
  switch (d) {
    case Dtype::i8: return {0, 1};
    case Dtype::u8:
    case Dtype::b8: return {1, 1};
    case Dtype::i32: return {2, 1};
    case Dtype::u32: return {3, 1};
    case Dtype::i64: return {4, 1};
    case Dtype::u64: return {5, 1};
    case Dtype::f16: return {6, 1};
    case Dtype::f32: return {7, 1};
    case Dtype::f64: return {8, 1};
    case Dtype::bf16: return {9, 1};
    case Dtype::c64: return {7, 2};
    case Dtype::c128: return {8, 2};
    default: fail("NCCL does not reduce tensors of ", d, "; on the CPU they can be");
  }
}

int operation_of(int reduction, Dtype d) {
  check(reduction < 4, "NCCL does not reduce by bits; on the CPU that can be done");
  if (d == Dtype::b8) return reduction == 0 || reduction == 3 ? kMaximum : kMinimum;  // or, and
  return std::array<int, 4>{kSum, kProduct, kMinimum, kMaximum}[reduction];
}

}  // namespace

std::string nccl_problem() { return library().problem; }

int nccl_version() {
  int version = 0;
  check_nccl(nccl().ncclGetVersion(&version), "nccl_version");
  return version;
}

std::string nccl_unique_id() {
  UniqueId id;
  check_nccl(nccl().ncclGetUniqueId(&id), "nccl_unique_id");
  return {id.words, sizeof id.words};
}

void nccl_group_start() { check_nccl(nccl().ncclGroupStart(), "nccl_group_start"); }
void nccl_group_end() { check_nccl(nccl().ncclGroupEnd(), "nccl_group_end"); }

Communicator::Communicator(const std::string& id, int rank, int size, int device)
    : rank_(rank), size_(size), device_(device) {
  UniqueId words;
  check(id.size() == sizeof words.words, "NCCL: an id has ", sizeof words.words, " bytes, not ", id.size());
  std::memcpy(words.words, id.data(), sizeof words.words);
  enter(device_);
  check_nccl(nccl().ncclCommInitRank(&handle_, size_, words, rank_), "init_process_group");
}

Communicator::~Communicator() {
  if (handle_) nccl().ncclCommDestroy(handle_);
}

void Communicator::begin(const NcclPlan& plan, StreamHandle stream) {
  check(handle_, "NCCL: this communicator was aborted");
  enter(device_);
  const Nccl& f = nccl();
  const int64_t size = size_of(plan.dtype), bytes = plan.count * size;
  const char* from = static_cast<const char*>(plan.from);
  char* to = static_cast<char*>(plan.to);
  const auto all = [&](NcclStatus status) { check_nccl(status, "NCCL", handle_); };
  // Each rank's share travels by itself; all begin together.
  const auto shares = [&](bool sends, bool receives, auto sent, auto received) {
    all(f.ncclGroupStart());
    for (int peer = 0; peer < size_; ++peer) {
      if (sends) sent(peer);
      if (receives) received(peer);
    }
    all(f.ncclGroupEnd());
  };
  switch (plan.kind) {
    case kBroadcast: return all(f.ncclBroadcast(from, to, bytes, kBytes, plan.root, handle_, stream));
    case kAllGather: return all(f.ncclAllGather(from, to, bytes, kBytes, handle_, stream));
    case kSend: return all(f.ncclSend(from, bytes, kBytes, plan.root, handle_, stream));
    case kReceive: return all(f.ncclRecv(to, bytes, kBytes, plan.root, handle_, stream));
    case kBarrier:
    case kAllReduce:
    case kReduce:
    case kReduceScatter: {
      const auto [dtype, parts] = number_of(plan.dtype);
      const int op = operation_of(plan.reduction, plan.dtype);
      const size_t count = plan.count * parts;
      if (plan.kind == kReduce) return all(f.ncclReduce(from, to, count, dtype, op, plan.root, handle_, stream));
      if (plan.kind == kReduceScatter) return all(f.ncclReduceScatter(from, to, count, dtype, op, handle_, stream));
      return all(f.ncclAllReduce(from, to, count, dtype, op, handle_, stream));
    }
    case kGather:
      return shares(
          true, rank_ == plan.root,
          [&](int peer) {
            if (peer == plan.root) all(f.ncclSend(from, bytes, kBytes, peer, handle_, stream));
          },
          [&](int peer) { all(f.ncclRecv(to + peer * bytes, bytes, kBytes, peer, handle_, stream)); });
    case kScatter:
      return shares(
          rank_ == plan.root, true,
          [&](int peer) { all(f.ncclSend(from + peer * bytes, bytes, kBytes, peer, handle_, stream)); },
          [&](int peer) {
            if (peer == plan.root) all(f.ncclRecv(to, bytes, kBytes, peer, handle_, stream));
          });
    case kAllToAll: {
      std::vector<int64_t> at_from(size_ + 1), at_to(size_ + 1);
      for (int peer = 0; peer < size_; ++peer) {
        at_from[peer + 1] = at_from[peer] + plan.sent[peer] * size;
        at_to[peer + 1] = at_to[peer] + plan.received[peer] * size;
      }
      return shares(
          true, true,
          [&](int peer) {
            all(f.ncclSend(from + at_from[peer], plan.sent[peer] * size, kBytes, peer, handle_, stream));
          },
          [&](int peer) {
            all(f.ncclRecv(to + at_to[peer], plan.received[peer] * size, kBytes, peer, handle_, stream));
          });
    }
    default: fail("NCCL: no exchange has the number ", plan.kind);
  }
}

std::string Communicator::error() const {
  if (!handle_) return "aborted";
  NcclStatus status = kDone;
  nccl().ncclCommGetAsyncError(handle_, &status);
  return status == kDone || status == kInProgress ? "" : nccl().ncclGetErrorString(status);
}

void Communicator::abort() {
  if (void* handle = std::exchange(handle_, nullptr)) {
    enter(device_);
    nccl().ncclCommAbort(handle);
  }
}

}  // namespace cresset::cuda
