// Errors: `check(condition, parts...)` raises with the parts joined; the bindings turn the kind into the Python class.
#pragma once
#include <cstdint>
#include <exception>
#include <initializer_list>
#include <ostream>
#include <string>

namespace cresset {

enum class ErrorKind : uint8_t {
  runtime,
  value,
  type,
  index,
  not_implemented,
  out_of_memory,
  buffer,
  assertion,
  linear_algebra,  // a matrix without the asked-for answer
};

class Error : public std::exception {
 public:
  Error(ErrorKind kind, std::string message) : kind_(kind), message_(std::move(message)) {}
  const char* what() const noexcept override { return message_.c_str(); }
  ErrorKind kind() const { return kind_; }

 private:
  ErrorKind kind_;
  std::string message_;
};

// One part of a message: where it is, and how it is written. A message is made of these by one function (error.cpp), so
// that the many places that may fail compile to little.
class MessagePart {
 public:
  template <class T>
  MessagePart(const T& value)
      : value_(&value), write_([](std::ostream& out, const void* p) { out << *static_cast<const T*>(p); }) {}
  template <size_t n>
  MessagePart(const char (&text)[n]) : value_(text), write_(write_text) {}
  void write(std::ostream& out) const { write_(out, value_); }

 private:
  static void write_text(std::ostream& out, const void* text);
  const void* value_;
  void (*write_)(std::ostream&, const void*);
};
std::string join_parts(std::initializer_list<MessagePart> parts);
[[noreturn, gnu::cold]] void fail_parts(ErrorKind kind, std::initializer_list<MessagePart> parts);

template <class... Parts>
std::string join(const Parts&... parts) {
  return join_parts({MessagePart(parts)...});
}

template <class... Parts>
[[noreturn, gnu::cold, gnu::noinline]] void fail(ErrorKind kind, const Parts&... parts) {
  fail_parts(kind, {MessagePart(parts)...});
}
template <class... Parts>
[[noreturn, gnu::cold, gnu::noinline]] void fail(const Parts&... parts) {
  fail_parts(ErrorKind::runtime, {MessagePart(parts)...});
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
