#include "compiler.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "program_text.h"

extern char** environ;

namespace emulator {
namespace {

namespace fs = std::filesystem;

std::string read(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}
std::string without(std::string text, const std::string& part) {
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at)) text.erase(at, part.size());
  return text;
}
void write(const fs::path& path, const std::string& text) { std::ofstream(path, std::ios::binary) << text; }

// Where this library lies, the headers for kernels beside it.
fs::path own_folder() {
  Dl_info info;
  dladdr(reinterpret_cast<void*>(&own_folder), &info);
  return fs::path(info.dli_fname).parent_path();
}

fs::path cache_folder() {
  if (const char* wish = std::getenv("CRESSET_EMULATOR_CACHE")) return wish;
  return fs::temp_directory_path() / ("cresset-emulator-" + std::to_string(getuid()));
}

// Two runs of FNV-1a from different starts: a name for content, not a seal.
std::string digest(const std::string& text) {
  std::ostringstream name;
  for (uint64_t hash : {uint64_t(0xcbf29ce484222325), uint64_t(0x9e3779b97f4a7c15)}) {
    for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
    name << std::hex << hash;
  }
  return name.str();
}

// Runs a program; what it says goes to `log`. True if it ended well.
bool run(const std::vector<std::string>& command, const fs::path& log) {
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 2, log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
  pid_t child = 0;
  int status = 1;
  if (posix_spawnp(&child, arguments[0], &actions, nullptr, arguments.data(), environ) == 0)
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
  else
    std::ofstream(log, std::ios::app) << command[0] << " could not be started\n";
  posix_spawn_file_actions_destroy(&actions);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

// Stands between our headers and the program, and survives the preprocessor.
constexpr const char* boundary = "#pragma emulated program\n";

fs::path language() { return own_folder() / "device/emulated.h"; }

// What comes before the program: our headers, and only then the macros of its options, which may be called T or n.
std::string opening(const ProgramSource& source) {
  std::string text = "#include \"" + language().string() + "\"\n" + boundary + "#define CRESSET_EMULATED 1\n";
  for (const std::string& option : source.options) {
    const size_t equals = option.find('=');
    if (option.starts_with("-U"))
      text += "#undef " + option.substr(2) + "\n";
    else if (option.starts_with("-D") && equals == std::string::npos)
      text += "#define " + option.substr(2) + " 1\n";
    else if (option.starts_with("-D"))
      text += "#define " + option.substr(2, equals - 2) + " " + option.substr(equals + 1) + "\n";
  }
  return text + "#line 1 \"" + source.name + "\"\n";
}

class WorkFolder {
 public:
  WorkFolder() {
    static std::atomic<int> number = 0;
    path_ = cache_folder() / ("work-" + std::to_string(getpid()) + "-" + std::to_string(number++));
    fs::create_directories(path_);
  }
  ~WorkFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  const fs::path& path() const { return path_; }
  fs::path operator/(const std::string& name) const { return path_ / name; }

 private:
  fs::path path_;
};

// The program with its includes and macros resolved, ours before `boundary`. Empty if that failed.
std::string preprocess(const std::string& compiler, const ProgramSource& source, const WorkFolder& work,
                       const fs::path& log) {
  const fs::path text = work / "program.cu", result = work / "preprocessed";
  write(text, opening(source) + source.text);
  // Without the system's headers, as NVRTC: they are long to read and declare names of CUDA's.
  std::vector<std::string> command = {compiler,    "-E",          "-x",       "c++",
                                      "-nostdinc", "-nostdinc++", "-isystem", own_folder() / "device/standard"};
  for (const std::string& option : source.options)
    if (option.starts_with("-I") || option.starts_with("-std=")) command.push_back(option);
  for (const auto& [name, content] : source.headers) {
    const fs::path path = work / ("headers/" + name);
    fs::create_directories(path.parent_path());
    write(path, content);
  }
  if (!source.headers.empty()) command.push_back("-I" + (work / "headers").string());
  command.insert(command.end(), {text, "-o", result});
  if (!run(command, log)) return "";
  // The same text in every run, and wherever cresset is installed.
  std::string preprocessed = without(read(result), work.path().string() + "/");
  for (const std::string& option : source.options)
    if (option.starts_with("-I")) preprocessed = without(std::move(preprocessed), option.substr(2) + "/");
  return preprocessed;
}

std::vector<std::string> flags_for(const ProgramSource& source) {
  // Checks of every access (device/checking.h), and no-tree-sra so that a vector is read as one, as on the device.
  std::vector<std::string> flags = {"-O1",
                                    "-std=c++20",
                                    "-fPIC",
                                    "-ffp-contract=off",
                                    "-fno-math-errno",
                                    "-fno-strict-aliasing",
                                    "-fno-exceptions",
                                    "-fno-rtti",
                                    "-fno-asynchronous-unwind-tables",
                                    "-fvisibility=hidden",
                                    "-fno-gnu-unique",
                                    "-ftrivial-auto-var-init=pattern",
                                    "-fno-tree-sra",
                                    "-w",
                                    "-fsanitize=kernel-address",
                                    "--param=asan-instrumentation-with-call-threshold=0",
                                    "--param=asan-stack=0",
                                    "--param=asan-globals=0"};
  for (const std::string& option : source.options)
    if (option.starts_with("-std=")) flags[1] = option;
  return flags;
}

// Our headers in the compiler's own form, which takes a tenth of the time to read. It finds them beside the headers;
// without them it reads those.
void precompile_language(const std::string& compiler, const std::vector<std::string>& flags, const WorkFolder& work) {
  const fs::path ready = language().string() + ".gch", made = work / "language.gch";
  if (fs::exists(ready)) return;
  std::vector<std::string> command = {compiler, "-x", "c++-header"};
  command.insert(command.end(), flags.begin(), flags.end());
  command.insert(command.end(), {language(), "-o", made});
  std::error_code ignored;  // another folder's device, or a folder that we may not write to: it goes without
  if (run(command, work / "log of headers")) fs::rename(made, ready, ignored);
}

}  // namespace

Compiled compile(const ProgramSource& source) {
  const char* wish = std::getenv("CXX");
  const std::string compiler = wish && *wish ? wish : "g++";
  WorkFolder work;
  const fs::path log = work / "log";
  const std::string preprocessed = preprocess(compiler, source, work, log);
  if (preprocessed.empty()) return {false, read(log), ""};

  const std::vector<std::string> flags = flags_for(source);
  std::string key = compiler + "\n" + preprocessed;
  for (const std::string& flag : flags) key += flag + "\n";
  const fs::path kept = cache_folder() / (digest(key) + ".so");
  if (std::string bytes = read(kept); !bytes.empty()) return {true, "", std::move(bytes)};

  precompile_language(compiler, flags, work);
  const fs::path program = work / "program.cpp", made = work / "program.so";
  write(program, rewrite(preprocessed.substr(preprocessed.find(boundary))));
  std::vector<std::string> command = {compiler, "-include", language()};
  command.insert(command.end(), flags.begin(), flags.end());
  command.insert(command.end(), {program, "-shared", "-nostdlib", "-o", made, "-lm", "-lc"});
  if (!run(command, log)) return {false, read(log), ""};
  std::string bytes = read(made);
  std::error_code ignored;
  fs::rename(made, kept, ignored);
  return {true, read(log), std::move(bytes)};
}

}  // namespace emulator
