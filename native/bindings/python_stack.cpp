#include "bindings/python_stack.h"

namespace cresset {

size_t PythonStacks::Hash::operator()(const Line& line) const {
  uint64_t h = reinterpret_cast<uintptr_t>(line.code) >> 4;
  h = (h ^ static_cast<uint32_t>(line.around)) * 0x9e3779b97f4a7c15u;
  h = (h ^ (h >> 32) ^ static_cast<uint32_t>(line.instruction)) * 0x9e3779b97f4a7c15u;
  return h ^ (h >> 29);
}

int32_t PythonStacks::number_of(PyFrameObject* frame) {
  // Looking at frames makes objects of them, for which an older Python may collect garbage: users' finalizers must not
  // run in the middle of an operator.
  const bool collects = PyGC_Disable();
  Line found[1024];
  int depth = 0;
  Py_XINCREF(frame);
  while (frame) {
    PyCodeObject* code = PyFrame_GetCode(frame);
    if (depth < 1024) found[depth++] = {-1, code, PyFrame_GetLasti(frame)};
    Py_DECREF(code);  // the frame has it
    PyFrameObject* around = PyFrame_GetBack(frame);
    Py_DECREF(frame);
    frame = around;
  }
  int32_t number = -1;
  for (int i = depth - 1; i >= 0; --i) {
    found[i].around = number;
    const auto [place, is_new] = numbers_.try_emplace(found[i], static_cast<int32_t>(lines_.size()));
    number = place->second;
    if (!is_new) continue;
    lines_.push_back(found[i]);
    Py_INCREF(found[i].code);
  }
  if (collects) PyGC_Enable();
  return number;
}

void PythonStacks::forget() {
  std::vector<Line> lines;
  lines.swap(lines_);
  numbers_.clear();
  for (const Line& line : lines) Py_DECREF(line.code);
}

PythonStacks& python_stacks() {
  static auto* the = new PythonStacks;
  return *the;
}

}  // namespace cresset
