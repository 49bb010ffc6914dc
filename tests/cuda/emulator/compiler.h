// Runs g++ and keeps what it made, by content, in a folder for temporary files, so that the second run of a test is
// quick.
#pragma once
#include <string>
#include <utility>
#include <vector>

namespace emulator {

struct Compiled {
  bool good = false;
  std::string log;    // what the compiler said
  std::string bytes;  // the shared object
};

struct ProgramSource {
  std::string text, name;
  std::vector<std::pair<std::string, std::string>> headers;  // name in #include, text
  std::vector<std::string> options;                          // -D, -U, -I, -std
};

Compiled compile(const ProgramSource& source);

}  // namespace emulator
