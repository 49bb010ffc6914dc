// Stacks of Python frames as numbers: equal stacks have one number, and a stack is a line and the stack around it. So a
// profiler notes a million calls in a few bytes each.
#pragma once
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "bindings/python.h"

namespace cresset {

class PythonStacks {
 public:
  struct Line {
    int32_t around = -1;  // the caller's
    PyCodeObject* code = nullptr;
    int32_t instruction = 0;
  };
  // All of these hold the interpreter lock.
  int32_t number_of(PyFrameObject* frame);  // borrowed; -1 for none
  void forget();
  const std::vector<Line>& lines() const { return lines_; }

 private:
  struct Hash {
    size_t operator()(const Line& line) const;
  };
  struct Equal {
    bool operator()(const Line& a, const Line& b) const {
      return a.around == b.around && a.code == b.code && a.instruction == b.instruction;
    }
  };
  std::vector<Line> lines_;
  std::unordered_map<Line, int32_t, Hash, Equal> numbers_;
};

PythonStacks& python_stacks();

}  // namespace cresset
