#include "base/error.h"

#include <new>
#include <sstream>

namespace cresset {

void MessagePart::write_text(std::ostream& out, const void* text) { out << static_cast<const char*>(text); }

std::string join_parts(std::initializer_list<MessagePart> parts) {
  std::ostringstream text;
  text.precision(17);
  for (const MessagePart& part : parts) part.write(text);
  if (!text) throw std::bad_alloc();  // a stream keeps silent about it, and has the beginning of the message
  return text.str();
}

void fail_parts(ErrorKind kind, std::initializer_list<MessagePart> parts) { throw Error(kind, join_parts(parts)); }

}  // namespace cresset
