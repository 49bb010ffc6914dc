// Memory that the processes of a group have in common, where all of them run on one machine. Fingerprints meet there,
// and tensors are reduced there: each process reduces its share of the elements, and nothing passes the kernel.
//
// Nobody waits in here: a step does what can be done now. Who is ahead of the others is told by counters that only
// grow.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "distributed/arithmetic.h"

namespace cresset::mpi {

// Elements of one tensor among those that are reduced together, in place.
struct Piece {
  void* at;
  int64_t count;
  int64_t start = 0;  // how many elements lie in the pieces before it
};

// How elements are written for the others; see Note [Stores].
enum class Stores : uint8_t { ordinary, past_cache };

// What is reduced: consecutive pieces of one dtype, each element first multiplied by a factor.
struct Sum {
  void set_pieces(std::vector<Piece> given);
  std::vector<Piece> pieces;
  Dtype dtype = Dtype::f32;
  Reduction reduction = Reduction::sum;
  double factor = 1;
  Stores stores = Stores::past_cache;  // the same in all processes

  int64_t count() const;
  int64_t bytes() const;
};

// Which stores are the faster ones for sums of about one size, as far as was seen. The slower ones are tried again
// after a while, which gets longer as long as they stay that.
class Pace {
 public:
  Stores next();
  // So many seconds went into a byte with these stores.
  void saw(Stores stores, double seconds);

 private:
  Stores faster() const { return cost_[0] < cost_[1] ? Stores::ordinary : Stores::past_cache; }
  double cost_[2] = {1, 1};  // of each of the stores
  int64_t until_trial_ = 2, pause_ = 8;
};

class Shared {
 public:
  // Where a process finds the memory that another one made.
  struct Address {
    // The word is written into it, so that it cannot be mistaken. Processes whose machines have different names do not
    // share: what separates them, a network that is cut, would not be noticed.
    int64_t process = 0, file = 0, word = 0, machine = 0;
  };
  static constexpr int kMembers = 64;

  // Makes memory for a group; nullptr where the system has none to give.
  static std::unique_ptr<Shared> make(int rank, int size);
  // The memory at an address; nullptr if this process cannot see it.
  static std::unique_ptr<Shared> find(const Address& address, int rank, int size);
  ~Shared();
  Shared(const Shared&) = delete;
  Shared& operator=(const Shared&) = delete;

  Address address() const;
  void close_file();  // all have found it

  enum class Met : uint8_t { not_yet, same, different };
  // Shows the fingerprint of call number `call` (and a small sum's elements) to the others, unless they are too far
  // behind; whether it did. Calls are numbered from 0 by each in the same order. `sum` is nullptr if it is none.
  bool show(int64_t call, int64_t fingerprint, const Sum* sum);
  // What the others showed. A small sum that is the same everywhere is also computed; a large one may begin.
  Met meet(int64_t call, Sum* sum);
  static bool is_small(const Sum& sum) { return sum.bytes() <= kSmall; }

  // Begins a large sum; one at a time.
  void begin(const Sum& sum);
  // Does what can be done of it; whether it is done.
  bool step(const Sum& sum);

 private:
  static constexpr int64_t kSmall = 4096;  // bytes of a sum that travels with its fingerprint
  struct Slot;
  Shared(void* at, int file, int rank, int size);
  Slot& slot(int rank) const;
  char* part(int rank, int64_t chunk) const;
  int64_t least(int which) const;
  struct Range {
    int64_t begin, end;
  };
  Range share(int rank, int64_t elements) const;
  // The elements of a chunk: where they begin, and how many they are.
  struct Chunk {
    int64_t start, count;
  };
  Chunk chunk(const Sum& sum, int64_t index) const;
  Pace& pace(const Sum& sum);
  bool go_on(const Sum& sum);
  void bring(const Sum& sum, int64_t index);
  void reduce(const Sum& sum, int64_t index);
  void fetch(const Sum& sum, int64_t index);
  void* at_;
  int file_, rank_, size_;
  int64_t chunks_ = 0;                                            // of all sums before this one
  int64_t brought_ = 0, reduced_ = 0, fetched_ = 0, needed_ = 0;  // of this one
  double seconds_ = 0;                                            // that went into this one
  Pace paces_[64];                                                // by the logarithm of the bytes
};

}  // namespace cresset::mpi
