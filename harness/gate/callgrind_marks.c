/* Where callgrind counts from and to: called by the worker through ctypes, compiled where the gate runs.
   Outside valgrind the requests are a few instructions that do nothing. */
#include "callgrind.h"

void begin_counting(void) {
  CALLGRIND_START_INSTRUMENTATION;
  CALLGRIND_ZERO_STATS;
}

void end_counting(void) {
  CALLGRIND_DUMP_STATS;
  CALLGRIND_STOP_INSTRUMENTATION;
}
