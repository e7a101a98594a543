// The size of the current device, for grids and thresholds that depend on it. For the host.
#pragma once

#include <bit>
#include <cstdint>

#include "runtime.h"

namespace OPERATOR_NAMESPACE {

/// `ask()`. Each thread remembers the answer for the device that it asked last; each place of the source has its own.
template <typename Ask>
int64_t remembered_for_device(Ask ask) {
  static thread_local int known_device = -1;
  static thread_local int64_t answer = 0;
  int device = 0;
  cudaGetDevice(&device);
  if (device != known_device) {
    answer = ask();
    known_device = device;
  }
  return answer;
}

/// How many multiprocessors the current device has.
inline int64_t multiprocessors() {
  return remembered_for_device([] {
    int device = 0, count = 0;
    cudaGetDevice(&device);
    cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device);
    return int64_t{count};
  });
}

/// So many for each multiprocessor, rounded down to a power of two: a threshold for the current device.
inline int64_t for_all_multiprocessors(int64_t each) {
  return static_cast<int64_t>(std::bit_floor(static_cast<std::uint64_t>(each * multiprocessors())));
}

}  // namespace OPERATOR_NAMESPACE
