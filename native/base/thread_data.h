// The thread-local data of a thread.
#pragma once

namespace cresset {

// Makes it, where there is memory for it. Otherwise it is made when it is first used, and where there is none then, the
// process ends: that is what the dynamic linker does.
bool make_thread_data();

}  // namespace cresset
