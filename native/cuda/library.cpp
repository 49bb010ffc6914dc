#include "cuda/library.h"

#include <dlfcn.h>

#include <cstdlib>
#include <sstream>

#include "base/error.h"

namespace cresset::cuda {

std::vector<std::string> (*package_folders)() = nullptr;

namespace {

const std::vector<std::string>& folders() {
  static const auto* found = [] {
    auto* all = new std::vector<std::string>;
    if (const char* wish = std::getenv("CRESSET_CUDA_LIBRARIES")) {
      std::istringstream text(wish);
      for (std::string folder; std::getline(text, folder, ':');)
        if (!folder.empty()) all->push_back(folder + "/");
    }
    if (package_folders)
      for (const std::string& folder : package_folders()) all->push_back(folder + "/");
    all->push_back("");  // where the system looks
    all->push_back("/usr/local/cuda/lib64/");
    all->push_back("/usr/local/cuda/extras/CUPTI/lib64/");
    return all;
  }();
  return *found;
}

}  // namespace

Library::Library(std::initializer_list<const char*> names) {
  for (const std::string& folder : folders())
    for (const char* name : names) {
      if ((handle_ = dlopen((folder + name).c_str(), RTLD_NOW | RTLD_LOCAL))) {
        name_ = name;
        return;
      }
      // That a file is not in a folder is no news; that it is and cannot be opened says what to do.
      const char* said = dlerror();
      const std::string why = said ? said : "",
                        missing = folder + name + ": cannot open shared object file: No such file";
      if (!why.starts_with(missing)) problem_ = why;
    }
  problem_ =
      problem_.empty() ? join(*names.begin(), " was not found") : join(*names.begin(), " cannot be opened: ", problem_);
}

void* Library::find(const char* symbol) const { return handle_ ? dlsym(handle_, symbol) : nullptr; }

void* Library::symbol(const char* symbol) const {
  check(handle_, problem_, ". Install the CUDA libraries: pip install cresset[cuda]");
  void* p = dlsym(handle_, symbol);
  check(p, name_, " has no function ", symbol, ": it is too old");
  return p;
}

}  // namespace cresset::cuda
