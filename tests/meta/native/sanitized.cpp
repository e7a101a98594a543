// Copies of tensors, for a candidate under AddressSanitizer and UBSan. That of float32 is right, two have a fault.

#include <cstdint>

extern "C" void copy_float32(const float* from, float* to, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    to[i] = from[i];
  }
}

// Reads one element past the end, in the tail of a loop over four elements.
extern "C" void copy_float64(const double* from, double* to, int64_t count) {
  int64_t i = 0;
  for (; i + 4 <= count; i += 4) {
    for (int64_t k = i; k < i + 4; ++k) {
      to[k] = from[k];
    }
  }
  volatile double next = 0;
  for (; i < count; ++i) {
    to[i] = from[i];
    next = from[i + 1];
  }
  (void)next;
}

// Computes a hash whose multiplication overflows.
extern "C" void copy_float16(const uint16_t* from, uint16_t* to, int64_t count) {
  volatile int hash = 1 << 30;
  for (int64_t i = 0; i < count; ++i) {
    to[i] = from[i];
    hash = hash * 31;
  }
}
