// Collectives between processes by MPI, through the standard ABI of MPI 5: any library that offers libmpi_abi will do,
// and it is opened when it is first needed. No call here waits inside of MPI: an exchange is begun, and asked whether
// it is done.
#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "distributed/shared.h"

namespace cresset::mpi {

// Opens the library at `path`; raises what the system says.
void open(const std::string& path);
bool is_open();
// Starts MPI, once in a process. PMI answers who else there is.
void start();
void finish();  // nothing may be on its way

enum class Kind : uint8_t {
  barrier,
  broadcast,
  all_reduce,
  reduce,
  all_gather,
  gather,
  scatter,
  reduce_scatter,
  all_to_all,
  send,
  receive
};
enum class State : uint8_t { waiting, moving, done, different, failed };

// What an exchange is about. `count` is in elements; of gather, scatter and the like it is one rank's share.
struct Plan {
  Kind kind;
  const void* from = nullptr;
  void* to = nullptr;
  int64_t count = 0;
  Dtype dtype = Dtype::u8;
  Reduction reduction = Reduction::sum;
  int root = 0;  // also the other side of send and receive; -1: anybody
  int tag = 0;
  int64_t fingerprint = 0;              // what all ranks must have in common, in 62 bits; not for send and receive
  std::vector<int64_t> sent, received;  // counts for each rank, of all_to_all
  // Of all_reduce, in place of the addresses: tensors that travel together, multiplied by the factor before.
  std::vector<Piece> pieces;
  double factor = 1;
};

class Channel;

// An exchange on its way. The memory it names belongs to it until it is done.
class Exchange {
 public:
  State state() const { return state_; }
  const std::string& problem() const { return problem_; }
  int source() const { return source_; }  // of receive: who sent

 private:
  friend class Channel;
  Plan plan_;
  Sum sum_;  // of all_reduce
  State state_ = State::waiting;
  int64_t call_ = 0;           // which collective of the channel it is
  bool is_shown_ = false;      // its fingerprint, to processes that share memory
  bool is_shared_ = false;     // it moves by shared memory
  size_t piece_ = 0;           // that MPI reduces now
  int64_t mine_[2], most_[2];  // fingerprint and its negative; the largest of all ranks
  void* request_ = nullptr;
  std::vector<ptrdiff_t> offsets_[2];
  std::string problem_;
  int source_ = -1;
};

// A group of processes that exchange in a fixed order: a communicator for fingerprints and one for what they protect.
// Where they share memory, fingerprints and sums go by that.
class Channel {
 public:
  static std::shared_ptr<Channel> world();
  // Those of `ranks`, in this order; every one of them calls this.
  std::shared_ptr<Channel> among(const std::vector<int>& ranks, int tag) const;

  int rank() const { return rank_; }
  int size() const { return size_; }
  bool shares_memory() const { return shared_ != nullptr; }
  std::shared_ptr<Exchange> begin(Plan plan);
  // Moves what is on its way; whether `wanted` came to an end within some microseconds.
  bool poll(const Exchange& wanted, int64_t microseconds);
  // After an error: nothing is exchanged any more, and what is on its way stays so for ever.
  void abandon() { abandoned_ = true; }
  // Gives the communicators back; every member calls this, and nothing is exchanged after. A broken channel keeps them:
  // what is on its way may still use them.
  void release();

 private:
  Channel(void* checks, void* payload);
  void share_memory();
  void advance();
  void check_alike(Exchange& exchange);
  void test(Exchange& exchange);
  bool is_finished(Exchange& exchange, int& source);
  void send_payload(Exchange& exchange);
  void* checks_;
  void* payload_;
  int rank_ = 0, size_ = 1;
  bool abandoned_ = false;
  std::deque<std::shared_ptr<Exchange>> queue_;
  std::unique_ptr<Shared> shared_;
  int64_t calls_ = 0;
  const Exchange* summing_ = nullptr;  // that shared memory is used by
};

}  // namespace cresset::mpi
