// LAPACK's and BLAS's routines, in the OpenBLAS that NumPy or scipy-openblas64 brings, opened when the first is called.
//
// A routine stands for four, one a dtype: getrf for sgetrf, dgetrf, cgetrf and zgetrf, and orgqr for cungqr, too.
// Integers have 64 bits. Matrices lie column after column.
#pragma once
#include <initializer_list>
#include <string>
#include <vector>

#include "tensor/tensor.h"

namespace cresset {

enum class Lapack : uint8_t {
  geev,
  gels,
  gelsd,
  gelss,
  gelsy,
  geqrf,
  gesdd,
  getrf,
  getrs,
  hetrf,
  hetrs,
  orgqr,
  ormqr,
  potrf,
  potri,
  syevd,
  sytrf,
  sytrs,
  trsm,
  count,
};

// Where the library may lie, the best place first: the bindings plug in who knows where packages are.
extern std::vector<std::string> (*places_of_lapack)();

// An argument goes by its address: an option as a letter, a number, or memory.
class LapackArgument {
 public:
  LapackArgument(char option) : option_(option), kind_(Kind::option) {}
  LapackArgument(int64_t number) : number_(number), kind_(Kind::number) {}
  LapackArgument(const void* memory) : memory_(const_cast<void*>(memory)), kind_(Kind::memory) {}
  void* word() const { return kind_ == Kind::memory ? memory_ : const_cast<int64_t*>(&number_); }
  bool is_option() const { return kind_ == Kind::option; }

 private:
  enum class Kind : uint8_t { option, number, memory };
  union {
    char option_;  // where the number begins
    int64_t number_;
    void* memory_;
  };
  Kind kind_;
};

// While this lives, routines may be called for matrices of so many bytes, which take so many steps: there is room for
// what the library takes, small matrices are for one of its threads, and other Python threads run during long work.
class LapackWork {
 public:
  LapackWork(int64_t bytes, double steps);
  ~LapackWork();
  LapackWork(const LapackWork&) = delete;

 private:
  void* away_;
  bool alone_;
};

// Calls a routine, whose last argument is where it writes its number (`info`): gives that, 0 where all went well.
// gesdd's is -4 where there is a nan.
int64_t call_lapack(Lapack routine, Dtype dtype, std::initializer_list<LapackArgument> arguments);

// The lengths of a routine's workspaces, of the matrices' dtype and of integers, as it says itself: `ask` calls it with
// workspaces of one element and the length -1. `what` is all that they depend on.
struct LapackSizes {
  int64_t numbers, integers;
};
using AskLapack = void (*)(const void* context, void* numbers, int64_t* integers);
LapackSizes workspace_of(Lapack routine, Dtype dtype, std::initializer_list<int64_t> what, AskLapack ask,
                         const void* context);
template <class F>
LapackSizes workspace_of(Lapack routine, Dtype dtype, std::initializer_list<int64_t> what, const F& ask) {
  return workspace_of(
      routine, dtype, what,
      [](const void* f, void* numbers, int64_t* integers) { (*static_cast<const F*>(f))(numbers, integers); }, &ask);
}

}  // namespace cresset
