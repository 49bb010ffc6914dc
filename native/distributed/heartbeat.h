// Signs of life: a thread that writes the same message to a socket again and again, whatever the program does
// meanwhile.
#pragma once
#include <string>

namespace cresset {

class Heartbeat {
 public:
  // The socket stays the caller's and must outlive this.
  Heartbeat(int socket, std::string message, double seconds);
  ~Heartbeat();
  Heartbeat(const Heartbeat&) = delete;

 private:
  struct State;
  State* state_;
};

}  // namespace cresset
