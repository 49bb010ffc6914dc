// Exchanges between GPUs by NCCL, which is opened when it is first needed. Every call puts work on a stream and
// returns.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "base/dtype.h"
#include "cuda/driver.h"

namespace cresset::cuda {

std::string nccl_problem();    // why NCCL is not there; empty when it is
int nccl_version();            // 22805 is 2.28.5
std::string nccl_unique_id();  // what one rank makes and all need to meet
void nccl_group_start();       // exchanges of this thread until the end begin together: sends and receives may cross
void nccl_group_end();

// What an exchange is about; kinds and reductions are numbered as in distributed/mpi.h, `count` is one rank's share.
struct NcclPlan {
  int kind;
  const void* from;
  void* to;
  int64_t count;
  Dtype dtype;
  int reduction, root;
  std::vector<int64_t> sent, received;  // elements for each rank, of all_to_all
};

// A group of processes, each with one GPU.
class Communicator {
 public:
  // Waits until all ranks are here.
  Communicator(const std::string& id, int rank, int size, int device);
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  void begin(const NcclPlan& plan, StreamHandle stream);
  std::string error() const;  // what went wrong on the way; empty if nothing did
  void abort();               // frees whoever waits; nothing is exchanged any more

 private:
  void* handle_ = nullptr;
  int rank_, size_, device_;
};

}  // namespace cresset::cuda
