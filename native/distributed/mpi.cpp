#include "distributed/mpi.h"

#include <dlfcn.h>
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <thread>

#include "base/error.h"

namespace cresset::mpi {
namespace {

// The standard ABI: handles are pointers, and those that the standard names are small numbers.
using Handle = void*;
using Count = int64_t;
using Offset = ptrdiff_t;
Handle handle(uintptr_t number) { return reinterpret_cast<Handle>(number); }
struct Status {
  int source, tag, error, other[5];
};

constexpr uintptr_t kWorld = 0x101, kNullRequest = 0x180, kNullComm = 0x100, kReturnErrors = 0x143, kInPlace = 1;
constexpr int kAnySource = -1, kSerialized = 2048;

// Functions of the library, by name.
#define MPI_FUNCTIONS(X)                                                                                             \
  X(Init_thread, (int*, char***, int, int*))                                                                         \
  X(Finalize, ())                                                                                                    \
  X(Comm_rank, (Handle, int*))                                                                                       \
  X(Comm_size, (Handle, int*))                                                                                       \
  X(Comm_group, (Handle, Handle*))                                                                                   \
  X(Comm_dup, (Handle, Handle*))                                                                                     \
  X(Comm_create_group, (Handle, Handle, int, Handle*))                                                               \
  X(Comm_free, (Handle*))                                                                                            \
  X(Comm_set_errhandler, (Handle, Handle))                                                                           \
  X(Group_incl, (Handle, int, const int*, Handle*))                                                                  \
  X(Group_free, (Handle*))                                                                                           \
  X(Error_string, (int, char*, int*))                                                                                \
  X(Test, (Handle*, int*, Status*))                                                                                  \
  X(Op_create_c, (void (*)(void*, void*, Count*, Handle*), int, Handle*))                                            \
  X(Ibarrier, (Handle, Handle*))                                                                                     \
  X(Ibcast_c, (void*, Count, Handle, int, Handle, Handle*))                                                          \
  X(Iallreduce_c, (const void*, void*, Count, Handle, Handle, Handle, Handle*))                                      \
  X(Ireduce_c, (const void*, void*, Count, Handle, Handle, int, Handle, Handle*))                                    \
  X(Iallgather_c, (const void*, Count, Handle, void*, Count, Handle, Handle, Handle*))                               \
  X(Igather_c, (const void*, Count, Handle, void*, Count, Handle, int, Handle, Handle*))                             \
  X(Iscatter_c, (const void*, Count, Handle, void*, Count, Handle, int, Handle, Handle*))                            \
  X(Ireduce_scatter_block_c, (const void*, void*, Count, Handle, Handle, Handle, Handle*))                           \
  X(Ialltoallv_c,                                                                                                    \
    (const void*, const Count*, const Offset*, Handle, void*, const Count*, const Offset*, Handle, Handle, Handle*)) \
  X(Isend_c, (const void*, Count, Handle, int, int, Handle, Handle*))                                                \
  X(Irecv_c, (void*, Count, Handle, int, int, Handle, Handle*))

struct Functions {
#define DECLARE(name, arguments) int(*name) arguments = nullptr;
  MPI_FUNCTIONS(DECLARE)
#undef DECLARE
};

Functions f;
void* library = nullptr;
bool started = false;
// MPI is told that one thread calls it at a time.
std::recursive_mutex turn;
Handle half_reductions[2][4];  // float16 and bfloat16: sum, product, minimum, maximum

void must(int status, const char* what) {
  if (status == 0) return;
  char text[8192] = {};
  int length = 0;
  if (f.Error_string) f.Error_string(status, text, &length);
  fail("distributed: ", what, ": ", text);
}

template <Dtype kDtype, Reduction kReduction>
void combine_halves(void* from, void* into, Count* count, Handle*) {
  combine(kDtype, kReduction, {from}, {into}, into, *count);
}

template <Dtype kDtype>
void create_half_reductions(Handle* to) {
  must(f.Op_create_c(combine_halves<kDtype, Reduction::sum>, 1, to), "MPI_Op_create_c");
  must(f.Op_create_c(combine_halves<kDtype, Reduction::product>, 1, to + 1), "MPI_Op_create_c");
  must(f.Op_create_c(combine_halves<kDtype, Reduction::minimum>, 1, to + 2), "MPI_Op_create_c");
  must(f.Op_create_c(combine_halves<kDtype, Reduction::maximum>, 1, to + 3), "MPI_Op_create_c");
}

Handle type_of(Dtype dtype) {
  switch (dtype) {
    case Dtype::f32: return handle(0x210);
    case Dtype::f64: return handle(0x214);
    case Dtype::c64: return handle(0x212);
    case Dtype::c128: return handle(0x216);
    case Dtype::i8: return handle(0x240);
    case Dtype::u8:
    case Dtype::b8: return handle(0x241);
    case Dtype::i16: return handle(0x248);
    case Dtype::u16:
    case Dtype::f16:
    case Dtype::bf16: return handle(0x249);
    case Dtype::i32: return handle(0x250);
    case Dtype::u32: return handle(0x251);
    case Dtype::i64: return handle(0x258);
    case Dtype::u64: return handle(0x259);
    default: return nullptr;
  }
}

Handle reduction_of(Reduction reduction, Dtype dtype) {
  if (dtype == Dtype::f16 || dtype == Dtype::bf16) {
    const auto place = static_cast<size_t>(reduction);
    return place < 4 ? half_reductions[dtype == Dtype::bf16][place] : nullptr;
  }
  if (dtype == Dtype::b8) {  // of bytes that are 0 or 1
    switch (reduction) {
      case Reduction::sum:
      case Reduction::maximum:
      case Reduction::bits_or: return handle(0x29);
      case Reduction::product:
      case Reduction::minimum:
      case Reduction::bits_and: return handle(0x28);
      case Reduction::bits_xor: return handle(0x2a);
    }
  }
  switch (reduction) {
    case Reduction::sum: return handle(0x21);
    case Reduction::product: return handle(0x24);
    case Reduction::minimum: return handle(0x22);
    case Reduction::maximum: return handle(0x23);
    case Reduction::bits_and: return handle(0x28);
    case Reduction::bits_or: return handle(0x29);
    case Reduction::bits_xor: return handle(0x2a);
  }
  return nullptr;
}

bool reduces(Kind kind) { return kind == Kind::all_reduce || kind == Kind::reduce || kind == Kind::reduce_scatter; }
bool is_for_two(Kind kind) { return kind == Kind::send || kind == Kind::receive; }

// Before anybody has anything else to do: no deadline is needed where the group is being made.
void wait_for(Handle request) {
  for (int finished = 0; !finished; sched_yield()) {
    Status status{};
    must(f.Test(&request, &finished, &status), "MPI_Test");
  }
}

}  // namespace

bool is_open() { return library; }

void open(const std::string& path) {
  const std::lock_guard lock(turn);
  if (library) return;
  // For all to see: MPI opens further libraries that look for its symbols.
  void* opened = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
  check(opened, "distributed: MPI cannot be opened: ", dlerror());
#define FIND(name, arguments)                                               \
  f.name = reinterpret_cast<int(*) arguments>(dlsym(opened, "MPI_" #name)); \
  check(f.name, "distributed: ", path, " has no MPI_" #name "; it must be a library of the MPI 5 standard ABI");
  MPI_FUNCTIONS(FIND)
#undef FIND
  library = opened;
}

void start() {
  const std::lock_guard lock(turn);
  check(library, "distributed: MPI is not open");
  check(!started, "distributed: MPI was started before in this process");
  int provided = 0;
  must(f.Init_thread(nullptr, nullptr, kSerialized, &provided), "MPI_Init_thread");
  started = true;
  must(f.Comm_set_errhandler(handle(kWorld), handle(kReturnErrors)), "MPI_Comm_set_errhandler");
  create_half_reductions<Dtype::f16>(half_reductions[0]);
  create_half_reductions<Dtype::bf16>(half_reductions[1]);
}

void finish() {
  const std::lock_guard lock(turn);
  if (started) must(f.Finalize(), "MPI_Finalize");
  started = false;
}

Channel::Channel(void* checks, void* payload) : checks_(checks), payload_(payload) {
  for (Handle comm : {checks_, payload_})
    must(f.Comm_set_errhandler(comm, handle(kReturnErrors)), "MPI_Comm_set_errhandler");
  must(f.Comm_rank(payload_, &rank_), "MPI_Comm_rank");
  must(f.Comm_size(payload_, &size_), "MPI_Comm_size");
  if (size_ > 1) share_memory();
}

void Channel::share_memory() {
  const char* wanted = std::getenv("CRESSET_SHARED_MEMORY");
  Shared::Address address;
  if (rank_ == 0 && !(wanted && std::strcmp(wanted, "0") == 0)) {
    shared_ = Shared::make(rank_, size_);
    if (shared_) address = shared_->address();
  }
  Handle request{};
  must(f.Ibcast_c(&address, sizeof address / sizeof(int64_t), handle(0x258), 0, payload_, &request), "MPI_Ibcast");
  wait_for(request);
  if (rank_ != 0 && address.process) shared_ = Shared::find(address, rank_, size_);
  int64_t mine = shared_ != nullptr, all = 0;
  must(f.Iallreduce_c(&mine, &all, 1, handle(0x258), handle(0x22), payload_, &request), "MPI_Iallreduce");
  wait_for(request);
  if (!all) shared_ = nullptr;  // they are on several machines, or may not see each other
  if (shared_) shared_->close_file();
}

void Channel::release() {
  const std::lock_guard lock(turn);
  if (abandoned_ || !started || !queue_.empty()) return;
  abandoned_ = true;
  for (Handle* comm : {&checks_, &payload_})
    if (*comm != handle(kWorld)) must(f.Comm_free(comm), "MPI_Comm_free");
}

std::shared_ptr<Channel> Channel::world() {
  const std::lock_guard lock(turn);
  Handle checks = handle(kNullComm);
  must(f.Comm_dup(handle(kWorld), &checks), "MPI_Comm_dup");
  return std::shared_ptr<Channel>(new Channel(checks, handle(kWorld)));
}

std::shared_ptr<Channel> Channel::among(const std::vector<int>& ranks, int tag) const {
  const std::lock_guard lock(turn);
  Handle all{}, some{}, comms[2] = {};
  must(f.Comm_group(payload_, &all), "MPI_Comm_group");
  must(f.Group_incl(all, static_cast<int>(ranks.size()), ranks.data(), &some), "MPI_Group_incl");
  for (int i = 0; i < 2; i++)
    must(f.Comm_create_group(payload_, some, 2 * tag + i, &comms[i]), "MPI_Comm_create_group");
  f.Group_free(&some);
  f.Group_free(&all);
  return std::shared_ptr<Channel>(new Channel(comms[0], comms[1]));
}

std::shared_ptr<Exchange> Channel::begin(Plan plan) {
  check_type(type_of(plan.dtype) != nullptr, "distributed: tensors of ", name_of(plan.dtype), " cannot be exchanged");
  if (reduces(plan.kind))
    check(reduction_of(plan.reduction, plan.dtype) != nullptr, "distributed: Cannot use this reduction with ",
          name_of(plan.dtype));
  auto exchange = std::make_shared<Exchange>();
  exchange->plan_ = std::move(plan);
  if (Plan& p = exchange->plan_; p.kind == Kind::all_reduce) {
    if (p.pieces.empty()) p.pieces = {{p.to, p.count}};
    exchange->sum_ = {{}, p.dtype, p.reduction, p.factor};
    exchange->sum_.set_pieces(std::move(p.pieces));
    exchange->is_shared_ = shared_ && combines(p.dtype, p.reduction);
  }
  const std::lock_guard lock(turn);
  check(!abandoned_, "distributed: the group is broken by an earlier error; destroy it and make it again");
  if (is_for_two(exchange->plan_.kind)) {
    send_payload(*exchange);
  } else if (exchange->call_ = calls_++; !shared_) {
    exchange->mine_[0] = exchange->plan_.fingerprint;
    exchange->mine_[1] = -exchange->plan_.fingerprint;
    must(f.Iallreduce_c(exchange->mine_, exchange->most_, 2, handle(0x258), handle(0x23), checks_, &exchange->request_),
         "MPI_Iallreduce");
  }
  queue_.push_back(exchange);
  advance();
  return exchange;
}

void Channel::send_payload(Exchange& e) {
  const Plan& p = e.plan_;
  const Handle type = type_of(p.dtype), op = reduces(p.kind) ? reduction_of(p.reduction, p.dtype) : nullptr;
  const void* from = p.from == p.to ? handle(kInPlace) : p.from;
  const bool is_root = rank_ == p.root;
  int status = 0;
  e.state_ = State::moving;
  switch (p.kind) {
    case Kind::barrier: e.state_ = State::done; return;  // the fingerprints have met
    case Kind::broadcast: status = f.Ibcast_c(p.to, p.count, type, p.root, payload_, &e.request_); break;
    case Kind::all_reduce: {
      const Piece& piece = e.sum_.pieces[e.piece_];
      scale(p.dtype, piece.at, piece.at, piece.count, p.factor);
      status = f.Iallreduce_c(handle(kInPlace), piece.at, piece.count, type, op, payload_, &e.request_);
      break;
    }
    case Kind::reduce:
      status = f.Ireduce_c(is_root ? from : p.from, is_root ? p.to : nullptr, p.count, type, op, p.root, payload_,
                           &e.request_);
      break;
    case Kind::all_gather:
      status = f.Iallgather_c(p.from, p.count, type, p.to, p.count, type, payload_, &e.request_);
      break;
    case Kind::gather:
      status = f.Igather_c(p.from, p.count, type, p.to, p.count, type, p.root, payload_, &e.request_);
      break;
    case Kind::scatter:
      status = f.Iscatter_c(p.from, p.count, type, p.to, p.count, type, p.root, payload_, &e.request_);
      break;
    case Kind::reduce_scatter:
      status = f.Ireduce_scatter_block_c(p.from, p.to, p.count, type, op, payload_, &e.request_);
      break;
    case Kind::all_to_all: {
      for (int side = 0; side < 2; side++) {
        ptrdiff_t at = 0;
        for (const int64_t n : side ? p.received : p.sent) {
          e.offsets_[side].push_back(at);
          at += n;
        }
      }
      status = f.Ialltoallv_c(p.from, p.sent.data(), e.offsets_[0].data(), type, p.to, p.received.data(),
                              e.offsets_[1].data(), type, payload_, &e.request_);
      break;
    }
    case Kind::send: status = f.Isend_c(p.from, p.count, type, p.root, p.tag, payload_, &e.request_); break;
    case Kind::receive:
      status = f.Irecv_c(p.to, p.count, type, p.root < 0 ? kAnySource : p.root, p.tag, payload_, &e.request_);
      break;
  }
  must(status, "MPI");
}

bool Channel::is_finished(Exchange& e, int& source) {
  int finished = 0;
  Status status{};
  const int code = f.Test(&e.request_, &finished, &status);
  source = status.source;
  if (code == 0) return finished;
  char text[8192] = {};
  int length = 0;
  f.Error_string(code, text, &length);
  e.problem_ = text;
  e.state_ = State::failed;
  return false;
}

void Channel::check_alike(Exchange& e) {
  bool alike = false;
  int source = 0;
  if (shared_) {
    Sum* sum = e.is_shared_ ? &e.sum_ : nullptr;
    if (!e.is_shown_) e.is_shown_ = shared_->show(e.call_, e.plan_.fingerprint, sum);
    const Shared::Met met = e.is_shown_ ? shared_->meet(e.call_, sum) : Shared::Met::not_yet;
    if (met == Shared::Met::not_yet) return;
    alike = met == Shared::Met::same;
    if (alike && sum && Shared::is_small(*sum)) {
      e.state_ = State::done;
      return;
    }
  } else {
    if (!is_finished(e, source)) return;
    // The largest fingerprint and the largest negative one are ours: then all are.
    alike = e.most_[0] == e.mine_[0] && e.most_[1] == e.mine_[1];
  }
  if (!alike)
    e.state_ = State::different;
  else if (e.is_shared_)
    e.state_ = State::moving;
  else
    send_payload(e);
}

void Channel::test(Exchange& e) {
  if (!is_finished(e, e.source_)) return;
  if (e.plan_.kind == Kind::all_reduce && ++e.piece_ < e.sum_.pieces.size()) return send_payload(e);
  e.state_ = State::done;
}

void Channel::advance() {
  // In the order in which they were begun: what stands before the first fingerprint that is not known yet may move. Of
  // those that move by shared memory, one does at a time.
  bool may_start = true;
  const Exchange* sharing = nullptr;
  for (auto& e : queue_) {
    if (e->state_ == State::waiting && may_start) {
      check_alike(*e);
      if (e->state_ == State::waiting) may_start = false;
    }
    if (e->state_ == State::moving && !e->is_shared_) {
      test(*e);
    } else if (e->state_ == State::moving && !sharing) {
      sharing = e.get();
      if (summing_ != e.get()) shared_->begin(e->sum_);
      summing_ = e.get();
      if (shared_->step(e->sum_)) {
        e->state_ = State::done;
        sharing = summing_ = nullptr;
      }
    }
    if (e->state_ == State::different || e->state_ == State::failed) abandoned_ = true;
  }
  std::erase_if(queue_, [](const auto& e) { return e->state_ == State::done; });
}

bool Channel::poll(const Exchange& wanted, int64_t microseconds) {
  const auto look = [&] {
    const std::lock_guard lock(turn);
    if (wanted.state() < State::done) advance();
    return wanted.state() >= State::done;
  };
  if (microseconds == 0) return look();
  // Who is late for long may be gone: then the cores are for others. Not earlier: to be woken takes longer than to
  // exchange a small tensor.
  constexpr std::chrono::microseconds kEager(100000), kPause(100);
  const auto start = std::chrono::steady_clock::now(), stop = start + std::chrono::microseconds(microseconds);
  // The clock is asked each time: to yield on a crowded machine takes as long as all others want to run.
  for (auto now = start; now <= stop; now = std::chrono::steady_clock::now()) {
    if (look()) return true;
    if (now - start > kEager)
      std::this_thread::sleep_for(kPause);
    else
      sched_yield();
  }
  return false;
}

}  // namespace cresset::mpi
