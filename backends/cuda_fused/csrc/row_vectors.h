// A row of a matrix in the registers of the threads that work on it: which vectors a thread holds, and how they are
// loaded and widened. See rows.cu.
#pragma once

#include <torch/headeronly/util/BFloat16.h>

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "addressing.h"
#include "runtime.h"

namespace OPERATOR_NAMESPACE {

/// Where the vectors of a thread lie in a row of so many columns.
struct Place {
  int threads, own, first, columns;

  template <int width>
  __device__ bool has(int k) const {
    return (k * threads + own) * width < columns;
  }

  /// The column of a vector; where there is no such vector, of the last one: so that no load hangs on a condition.
  template <int width, bool is_there = false>
  __device__ int column(int k) const {
    return is_there || has<width>(k) ? (k * threads + own) * width : columns - width;
  }
};

/// A row has 1 << log_threads threads: a division by their number would take longer than the sums.
__device__ inline Place place_of_thread(int log_threads, int columns) {
  const int thread = static_cast<int>(threadIdx.x), threads = 1 << log_threads;
  return {threads, thread & (threads - 1), thread >> log_threads, columns};
}

/// The elements of a vector in the dtype that is computed in. Those of bfloat16 are the upper halves of floats: taken
/// out of their words by shifts, since the conversion of a single one costs several instructions.
template <typename real, typename scalar_t, int width>
__device__ Vector<real, width> widened(const Vector<scalar_t, width>& vector) {
  Vector<real, width> result;
  if constexpr (std::is_same_v<scalar_t, c10::BFloat16> && width % 2 == 0) {
    std::uint32_t words[width / 2];
    std::memcpy(words, &vector, sizeof(words));
#pragma unroll
    for (int k = 0; k < width / 2; ++k) {
      const std::uint32_t halves[2] = {words[k] << 16, words[k] & 0xffff0000u};
      std::memcpy(&result.lane[2 * k], halves, sizeof(halves));
    }
  } else {
    for (int lane = 0; lane < width; ++lane) result.lane[lane] = vector.lane[lane];
  }
  return result;
}

/// `from` may be null unless `is_there`; its elements are `otherwise` then.
template <int width, bool is_there = false, typename real, typename scalar_t>
__device__ Vector<real, width> load_or(const scalar_t* from, int column, real otherwise) {
  if (is_there || from != nullptr) return widened<real>(load<width>(from + column));
  Vector<real, width> result;
  for (int lane = 0; lane < width; ++lane) result.lane[lane] = otherwise;
  return result;
}

}  // namespace OPERATOR_NAMESPACE
