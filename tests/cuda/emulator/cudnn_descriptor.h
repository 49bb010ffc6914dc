// A descriptor of cuDNN's interface of graphs: a kind and its attributes, every element in a word.
#pragma once
#include <cstdint>
#include <map>
#include <vector>

namespace emulator {

struct Descriptor {
  int kind;
  bool is_final = false;
  int engine = 0;
  std::map<int, std::vector<int64_t>> values;
  bool has(int name) const { return values.count(name) > 0; }
  int64_t number(int name) const { return values.at(name)[0]; }
  Descriptor* part(int name) const { return reinterpret_cast<Descriptor*>(values.at(name)[0]); }
};

}  // namespace emulator
