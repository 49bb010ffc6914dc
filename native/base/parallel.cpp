#include "base/parallel.h"

#include <sched.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace cresset {
namespace {

// What a container may use: the cgroup quota, rounded up; 0 when there is none.
int cgroup_limit() {
  int limit = 0;
  if (FILE* f = std::fopen("/sys/fs/cgroup/cpu.max", "r")) {
    char quota[32];
    double period;
    if (std::fscanf(f, "%31s %lf", quota, &period) == 2 && std::strcmp(quota, "max") != 0)
      limit = static_cast<int>(std::ceil(std::atof(quota) / period));
    std::fclose(f);
  }
  return limit;
}

int detect() {
  if (const char* wish = std::getenv("OMP_NUM_THREADS"))
    if (const int n = std::atoi(wish); n > 0) return n;
  cpu_set_t set;
  int n = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
  if (const int limit = cgroup_limit(); limit > 0) n = std::min(n, limit);
  return std::max(n, 1);
}

int the_thread_count = 0;

}  // namespace

int thread_count() {
  if (the_thread_count == 0) set_thread_count(detect());
  return the_thread_count;
}

void set_thread_count(int n) {
  the_thread_count = n;
  omp_set_num_threads(n);
}

}  // namespace cresset
