// Signs of life: a thread that tells the other end of a socket what the program does, again and again, whatever the
// program does meanwhile, and keeps what comes back.
#pragma once
#include <string>

namespace cresset {

class Heartbeat {
 public:
  // The socket stays the caller's and must outlive this. A message is a length of 4 bytes and so many bytes.
  //   before: what comes before the note in a message.
  Heartbeat(int socket, std::string before, double seconds);
  ~Heartbeat();
  Heartbeat(const Heartbeat&) = delete;

  // What the program does now: the next message says it.
  void note(std::string text);
  // The messages that came since the last call, without echoes of our own.
  std::string heard();
  // Seconds since anything came; less than 0 if the other end has closed.
  double silence() const;

 private:
  struct State;
  State* state_;
};

}  // namespace cresset
