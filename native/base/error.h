// Errors: `check(condition, parts...)` raises with the parts joined; the bindings turn the kind into the Python class.
#pragma once
#include <cstdint>
#include <exception>
#include <sstream>
#include <string>

namespace cresset {

enum class ErrorKind : uint8_t { runtime, value, type, index, not_implemented, out_of_memory, buffer, assertion };

class Error : public std::exception {
 public:
  Error(ErrorKind kind, std::string message) : kind_(kind), message_(std::move(message)) {}
  const char* what() const noexcept override { return message_.c_str(); }
  ErrorKind kind() const { return kind_; }

 private:
  ErrorKind kind_;
  std::string message_;
};

template <class... Parts>
std::string join(const Parts&... parts) {
  std::ostringstream text;
  text.precision(17);
  (text << ... << parts);
  return text.str();
}

template <class... Parts>
[[noreturn, gnu::cold, gnu::noinline]] void fail(ErrorKind kind, const Parts&... parts) {
  throw Error(kind, join(parts...));
}
template <class... Parts>
[[noreturn, gnu::cold, gnu::noinline]] void fail(const Parts&... parts) {
  throw Error(ErrorKind::runtime, join(parts...));
}

#define CRESSET_CHECK_KIND(kind, condition, ...) \
  do {                                           \
    if (!(condition)) [[unlikely]]               \
      ::cresset::fail(kind, __VA_ARGS__);        \
  } while (false)
// Macros, so that the parts are evaluated only when the check fails.
#define check(condition, ...) CRESSET_CHECK_KIND(::cresset::ErrorKind::runtime, condition, __VA_ARGS__)
#define check_index(condition, ...) CRESSET_CHECK_KIND(::cresset::ErrorKind::index, condition, __VA_ARGS__)
#define check_value(condition, ...) CRESSET_CHECK_KIND(::cresset::ErrorKind::value, condition, __VA_ARGS__)
#define check_type(condition, ...) CRESSET_CHECK_KIND(::cresset::ErrorKind::type, condition, __VA_ARGS__)
#define check_implemented(condition, ...) \
  CRESSET_CHECK_KIND(::cresset::ErrorKind::not_implemented, condition, __VA_ARGS__)
// Our own mistakes.
#define invariant(condition, what) \
  check(condition, "cresset has a bug: ", what, " (", __FILE__, ":", __LINE__, "); please report it")

}  // namespace cresset
