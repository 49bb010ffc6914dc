#include "program_text.h"

#include <cctype>
#include <map>
#include <string_view>

namespace emulator {
namespace {

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

// Reads tokens. Strings and the compiler's line markers are one token each, so that nothing is found inside them.
class Reader {
 public:
  Reader(std::string_view text, size_t at) : text_(text), at_(at) {}
  size_t at() const { return at_; }
  bool done() const { return at_ >= text_.size(); }

  std::string_view next() {
    while (!done() && std::isspace(static_cast<unsigned char>(text_[at_]))) ++at_;
    const size_t begin = at_;
    if (done()) return {};
    const char c = text_[at_];
    if (is_word(c)) {
      const bool is_number = std::isdigit(static_cast<unsigned char>(c));  // may have quotes between its digits
      while (!done() && (is_word(text_[at_]) || (is_number && text_[at_] == '\''))) ++at_;
    } else if (c == '"' || c == '\'') {
      for (++at_; !done() && text_[at_] != c; ++at_)
        if (text_[at_] == '\\') ++at_;
      ++at_;
    } else if (c == '#') {
      while (!done() && text_[at_] != '\n') ++at_;
    } else {
      ++at_;
    }
    begin_ = begin;
    return text_.substr(begin, at_ - begin);
  }
  size_t begin() const { return begin_; }  // of the token read last

  // What stands in the parentheses that come next, without them.
  std::string_view in_parentheses() {
    next();
    const size_t begin = at_;
    for (int depth = 1; depth > 0 && !done();) {
      const std::string_view token = next();
      depth += token == "(" ? 1 : token == ")" ? -1 : 0;
    }
    return text_.substr(begin, begin_ - begin);
  }

 private:
  std::string_view text_;
  size_t at_, begin_ = 0;
};

// The declaration behind `extern __shared__`, e.g. `alignas(16) float values[]`, as a pointer to the launch's buffer.
// Stops at the semicolon.
std::string pointer_to_buffer(Reader& reader) {
  std::string type, name;
  for (std::string_view token = reader.next(); !token.empty() && token != "[" && token != ";"; token = reader.next()) {
    if (token == "alignas" || token == "__attribute__") {
      reader.in_parentheses();
      continue;
    }
    type += name + " ";
    name = token;
  }
  for (std::string_view token = "["; !token.empty() && token != ";"; token = reader.next()) {
  }
  return "[[maybe_unused]]" + type + "* const " + name + " = reinterpret_cast<" + type +
         "*>(emulated::dynamic_shared);";
}

// The kernel that `__global__` announces: its name, and what __launch_bounds__ says.
struct Announced {
  std::string name, max_threads = "0";
};
Announced announced(Reader reader) {
  Announced found;
  std::string_view before;
  for (std::string_view token = reader.next(); !token.empty() && token != ";" && token != "{"; token = reader.next()) {
    if (token == "__launch_bounds__") {
      const std::string_view bounds = reader.in_parentheses();
      Reader inside(bounds, 0);
      size_t end = bounds.size();
      for (int depth = 0; !inside.done();) {
        const std::string_view part = inside.next();
        depth += part == "(" || part == "<" ? 1 : part == ")" || part == ">" ? -1 : 0;
        if (depth == 0 && part == ",") {
          end = inside.begin();
          break;
        }
      }
      found.max_threads = bounds.substr(0, end);
      continue;
    }
    if (token == "__attribute__") {
      reader.in_parentheses();
      continue;
    }
    if (token == "(") {
      found.name = before;
      break;
    }
    before = token;
  }
  return found;
}

}  // namespace

std::string rewrite(const std::string& text) {
  std::string result;
  std::map<std::string, std::string> kernels;  // and their greatest number of threads
  Reader reader(text, 0);
  std::string_view before, before_that;
  size_t copied = 0;
  const auto replace_from = [&](size_t begin, const std::string& replacement) {
    result.append(text, copied, begin - copied).append(replacement);
    copied = reader.at();
  };
  size_t extern_at = 0;
  for (std::string_view token = reader.next(); !token.empty(); token = reader.next()) {
    if (token == "extern") extern_at = reader.begin();
    if (token == "__shared__" && before == "extern") {
      result.append(text, copied, extern_at - copied);
      const std::string pointer = pointer_to_buffer(reader);
      result += pointer;
      copied = reader.at();
    } else if (token == "__shared__") {
      replace_from(reader.begin(),
                   "static thread_local __attribute__((used))");  // used: also by who fills it before each block
      Reader ahead = reader;
      if (ahead.next() == "alignas") {  // which C++ does not allow in this place
        result += " __attribute__((aligned(" + std::string(ahead.in_parentheses()) + ")))";
        reader = ahead;
        copied = reader.at();
      }
    } else if (token == "__global__") {
      if (before == "\"C\"" && before_that == "extern") {
        const Announced kernel = announced(reader);
        kernels[kernel.name] = kernel.max_threads;
      }
      replace_from(reader.begin(), "");
    } else if (token == "__launch_bounds__") {
      const size_t begin = reader.begin();
      reader.in_parentheses();
      replace_from(begin, "");
    }
    before_that = before, before = token;
  }
  result.append(text, copied);
  result +=
      "\nextern \"C\" {\n__attribute__((visibility(\"default\"))) EmulatedModule emulated_module = "
      "emulated::describe_module();\n";
  for (const auto& [name, max_threads] : kernels)
    result += "__attribute__((visibility(\"default\"))) EmulatedKernel emulated_kernel_" + name +
              " = emulated::Launcher<&" + name + ">::describe(\"" + name + "\", " + max_threads + ");\n";
  return result + "}\n";
}

}  // namespace emulator
