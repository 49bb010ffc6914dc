// A dictionary from names and values by turns: dictionary("graphs", s.graphs, "replays", s.replays).
#pragma once
#include <nanobind/nanobind.h>

namespace cresset {

template <class... Rest>
void add_to(nanobind::dict& d, const char* name, const auto& value, const Rest&... rest) {
  d[name] = value;
  if constexpr (sizeof...(rest) > 0) add_to(d, rest...);
}

template <class... Pairs>
nanobind::dict dictionary(const Pairs&... pairs) {
  nanobind::dict d;
  add_to(d, pairs...);
  return d;
}

}  // namespace cresset
