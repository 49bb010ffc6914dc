// Threads that are at work while the interpreter ends.
//
// A daemon thread that asks for the interpreter's lock then is ended by CPython (before 3.14) with pthread_exit, which
// unwinds its stack. Our destructors would give back references without that lock, and the first that may not throw
// ends the process. So the frames of this module, which are asked first how they are unwound, stop such a thread where
// it is: as CPython itself does from 3.14 on.
#include <unistd.h>
#include <unwind.h>

extern "C" {

_Unwind_Reason_Code __real___gxx_personality_v0(int version, _Unwind_Action actions, _Unwind_Exception_Class kind,
                                                _Unwind_Exception* exception, _Unwind_Context* context);

// The linker puts it in the place of the original: see CMakeLists.txt.
_Unwind_Reason_Code __wrap___gxx_personality_v0(int version, _Unwind_Action actions, _Unwind_Exception_Class kind,
                                                _Unwind_Exception* exception, _Unwind_Context* context) {
  while (actions & _UA_FORCE_UNWIND) pause();
  return __real___gxx_personality_v0(version, actions, kind, exception, context);
}
}
