// Autocast: the step of the call path that runs an operator in another precision than its arguments have. An operator
// says how with one byte, four bits for each kind of device; the table is in cresset/ops/autocast.py.
#pragma once
#include "dispatch/call.h"

namespace cresset {

enum class Autocast : uint8_t {
  none,
  lower,       // in the low precision that the thread has chosen
  float32,     // in float32
  promote,     // in the widest precision among the arguments
  accumulate,  // in float32 by its dtype argument, unless that is given
};
inline constexpr int kAutocastDevices = 2;  // cpu and cuda, the first device types
inline Autocast policy_of(const Operator& op, DeviceType device) {
  return static_cast<Autocast>((op.autocast >> (4 * static_cast<int>(device))) & 15);
}

// Casts the arguments and makes the call. False: it does not concern this call, and nothing has happened.
bool autocast(Call& c);
// `t` as autocast would pass it on; `t` itself if it has that dtype, or is not to be cast (float64, other devices,
// integers).
Tensor autocast_argument(const Tensor& t, Dtype to, DeviceType device);
void clear_autocast_cache();

class AutocastOffGuard {
 public:
  AutocastOffGuard() : before_(modes.autocast) { modes.autocast = 0; }
  ~AutocastOffGuard() { modes.autocast = before_; }
  AutocastOffGuard(const AutocastOffGuard&) = delete;

 private:
  uint8_t before_;
};

}  // namespace cresset
