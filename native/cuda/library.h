// A shared library that is opened when it is first needed. Nothing here is linked, so the package works where CUDA is
// not installed.
#pragma once
#include <initializer_list>
#include <string>
#include <vector>

namespace cresset::cuda {

class Library {
 public:
  // Tries the names in order: in the folders of CRESSET_CUDA_LIBRARIES, in those of NVIDIA's Python packages, and where
  // the system looks.
  explicit Library(std::initializer_list<const char*> names);
  bool found() const { return handle_; }
  const std::string& problem() const { return problem_; }  // why it was not found
  void* find(const char* symbol) const;                    // null when it is not there
  void* symbol(const char* symbol) const;                  // raises

 private:
  void* handle_ = nullptr;
  std::string name_, problem_;
};

// The library folders of NVIDIA's packages (nvidia/*/lib beside other packages); the bindings plug in how.
extern std::vector<std::string> (*package_folders)();

}  // namespace cresset::cuda
