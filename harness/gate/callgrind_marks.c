/* The marks between which callgrind counts. The worker calls them through ctypes; the gate compiles this file.
   Outside valgrind the requests are a few instructions without effect. */
#include "callgrind.h"

void begin_counting(void) {
  CALLGRIND_START_INSTRUMENTATION;
  CALLGRIND_ZERO_STATS;
}

void end_counting(void) {
  CALLGRIND_DUMP_STATS;
  CALLGRIND_STOP_INSTRUMENTATION;
}
