// Replaying launches: what is launched again and again, with the same arguments, goes to the driver as one graph.
//
// Note [Replaying launches]
// Telling the driver to launch a kernel takes 4 us; a graph of a hundred kernels takes it 10. While `replay(true)` is
// in force (mode="reduce-overhead" of torch.compile) the thread that launches gathers work instead of doing it at once,
// up to kMostGathered calls or until somebody waits. Gathered work is compared, byte for byte, with what was seen
// before: functions, grids, arguments, addresses. What is seen for the second time is captured as a graph, and what
// equals a graph is done by launching that. Python has run as always and nothing is assumed: work that differs in a
// single byte is launched as it is. So a graph can never be stale, and needs no memory of its own: the allocator gives
// a step that repeats itself the same addresses.
#pragma once
#include <cstdint>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "cuda/queue.h"

namespace cresset::cuda {

class Kernel;

inline constexpr size_t kMostGathered = 96;
inline constexpr uint64_t kMostGatheredBytes = 128 << 10;  // of the queue, which is some times larger

struct ReplayStatistics {
  int64_t graphs = 0, replays = 0, replayed = 0, plain = 0;  // `replayed` and `plain` count launches
  std::string problem;                                       // why launches were not replayed, the last time
};
ReplayStatistics replay_statistics();

// From here on, for all work of this process. It counts: as many calls with false end it.
void replay(bool on, int device);
// While a program captures graphs itself nothing is gathered. It counts, too.
void hold_replay(bool on);

// The side of the thread that launches.
class Gathered {
 public:
  using Execute = void (*)(const Work&, void* context);
  bool is_empty() const { return work_.empty(); }
  // Whether the work is gathered. What was gathered before has to be done first where it does not go together.
  bool takes(const Work& work) const;
  void add(const Work& work);
  bool is_full() const { return work_.size() >= kMostGathered || bytes_ >= kMostGatheredBytes; }
  void run(Execute execute, void* context);

 private:
  struct Known {
    std::string bytes;
    GraphExecHandle graph = nullptr;
    int seen = 0;
    bool refused = false;
  };
  GraphExecHandle capture();
  void forget_all();
  void learn_difference();

  std::vector<const Work*> work_;
  uint64_t bytes_ = 0, hash_ = 0;
  std::unordered_multimap<uint64_t, Known> known_;
  uint64_t known_bytes_ = 0;
  std::unordered_set<const Kernel*> changing_;  // kernels whose arguments are others each time: they go alone
};

}  // namespace cresset::cuda
