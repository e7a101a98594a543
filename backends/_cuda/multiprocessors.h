// The size of the current device, for grids and thresholds that depend on it. For the host.
#pragma once

#include <bit>
#include <cstdint>

#include "runtime.h"

namespace OPERATOR_NAMESPACE {

/// How many multiprocessors the current device has. Each thread remembers the answer for the device that it asked last.
inline int64_t multiprocessors() {
  static thread_local int known_device = -1, count = 0;
  int device = 0;
  cudaGetDevice(&device);
  if (device != known_device) {
    cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device);
    known_device = device;
  }
  return count;
}

/// So many for each multiprocessor, rounded down to a power of two: a threshold for the current device.
inline int64_t for_all_multiprocessors(int64_t each) {
  return static_cast<int64_t>(std::bit_floor(static_cast<std::uint64_t>(each * multiprocessors())));
}

}  // namespace OPERATOR_NAMESPACE
