#include "base/device.h"

namespace cresset {

static Device the_default_device;

Device default_device() { return the_default_device; }
void set_default_device(Device d) { the_default_device = d; }

}  // namespace cresset
