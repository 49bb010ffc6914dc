// Routines of Fortran, LAPACK's and BLAS's, called for each matrix of a batch.
#include <nanobind/nanobind.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "bindings/python.h"
#include "tensor/allocator.h"

namespace nb = nanobind;

namespace cresset {
namespace {

// Everything is passed by its address, apart from the lengths of texts, which are words of the same size.
constexpr size_t kMostArguments = 32;
using Words = std::array<void*, kMostArguments>;

template <size_t>
using Word = void*;
template <size_t... at>
void call_with(void* routine, const Words& words, std::index_sequence<at...>) {
  reinterpret_cast<void (*)(Word<at>...)>(routine)(words[at]...);
}
template <size_t count>
void call_counted(void* routine, const Words& words) {
  call_with(routine, words, std::make_index_sequence<count>());
}
template <size_t... counts>
constexpr auto callers_for(std::index_sequence<counts...>) {
  return std::array{&call_counted<counts>...};
}

// The argument of the first matrix, and how many bytes further that of the next one is.
struct Argument {
  char* first;
  int64_t step;
};

// What the library asks for that holds the routines.
struct Library {
  size_t room = 0;  // bytes that it takes, and ends the process without
  int threads = 1;  // of its own
  void (*set_threads)(int) = nullptr;
  int64_t few = 0;  // matrices of fewer bytes are for one thread
};
Library library;

void set_fortran(size_t room, int threads, size_t set_threads, int64_t few) {
  library = {room, threads, reinterpret_cast<void (*)(int)>(set_threads), few};
}

nb::object call_fortran(size_t routine, nb::tuple given, int64_t matrices) {
  if (!has_room(library.room)) return nb::none();
  std::vector<Argument> arguments;
  std::array<int64_t, kMostArguments> numbers;
  std::vector<int64_t> infos(static_cast<size_t>(matrices));
  size_t texts = 0;
  int64_t largest = 0;
  check(given.size() * 2 < kMostArguments, "call_fortran: ", given.size(), " arguments are too many");
  for (nb::handle argument : given) {
    if (PyBytes_Check(argument.ptr())) {
      arguments.push_back({PyBytes_AS_STRING(argument.ptr()), 0});
      ++texts;
    } else if (PyTuple_Check(argument.ptr())) {
      arguments.push_back({reinterpret_cast<char*>(nb::cast<size_t>(argument[0])), nb::cast<int64_t>(argument[1])});
      largest = std::max(largest, arguments.back().step);
    } else {
      int64_t& number = numbers[arguments.size()];
      number = nb::cast<int64_t>(argument);
      arguments.push_back({reinterpret_cast<char*>(&number), 0});
    }
  }
  arguments.push_back({reinterpret_cast<char*>(infos.data()), sizeof(int64_t)});
  static constexpr auto callers = callers_for(std::make_index_sequence<kMostArguments>());
  const auto call = callers[arguments.size() + texts];
  const bool alone = library.threads > 1 && largest < library.few;
  {
    nb::gil_scoped_release others_run;
    if (alone) library.set_threads(1);
    Words words;
    for (size_t k = 0; k < texts; ++k) words[arguments.size() + k] = reinterpret_cast<void*>(uintptr_t{1});
    for (int64_t i = 0; i < matrices; ++i) {
      for (size_t k = 0; k < arguments.size(); ++k) words[k] = arguments[k].first + i * arguments[k].step;
      call(reinterpret_cast<void*>(routine), words);
    }
    if (alone) library.set_threads(library.threads);
  }
  nb::list result;
  for (const int64_t info : infos) result.append(info);
  return result;
}

}  // namespace

void add_fortran(PyObject* module) {
  nb::borrow<nb::module_>(module).def(
      "set_fortran", set_fortran,
      "Says what the library of the routines asks for: bytes of room, how many threads it has, the address of the "
      "function that sets them, and below how many bytes a matrix is for one thread.");
  nb::borrow<nb::module_>(module).def(
      "call_fortran", call_fortran,
      "Calls the routine at an address for each of `matrices`, with a text of one letter (bytes), a number (int) or an "
      "address and its step from matrix to matrix (a tuple) each, and a number that it writes at the end: gives "
      "those, or None where there is no room.");
}

}  // namespace cresset
