// A row of a matrix in the registers of the threads that work on it: which vectors a thread holds, and which instance
// of a kernel a matrix needs.
#pragma once

#include <bit>
#include <cstdint>

#include "launch.h"
#include "multiprocessors.h"
#include "runtime.h"
#include "vectors.h"
#include "widened_vectors.h"

namespace OPERATOR_NAMESPACE {

/// Vectors of a row that a thread should hold. With fewer, more threads wait for each other's sums, which takes most of
/// the time of a row (an H200, 8192 columns of bfloat16: 68 us with 4, 76 with 2, 110 with 1).
constexpr int kHeld = 4;
/// Vectors of a row that a thread has at most: forward, backward of few rows, and of many, where it also holds a sum
/// for each element and gradient.
constexpr int kMostForward = 8, kMostOfFewRows = 8, kMostBackward = 4;
/// Threads of a block of the backward of many rows, for rows that need no more, and for others.
constexpr int64_t kNarrowBlock = 256, kWideBlock = 512;
/// Threads that are enough work for a multiprocessor.
constexpr int64_t kManyThreads = 512;

/// Where the vectors of a thread lie in a row of `columns` elements.
struct Place {
  int threads, own, first, columns;

  template <int width>
  __device__ bool has(int k) const {
    return (k * threads + own) * width < columns;
  }

  /// The column of vector k. Beyond the end of the row, that of the last vector, so that no load depends on a
  /// condition.
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

/// How many threads work on a row of that many vectors: enough for `kHeld` vectors each, and at most a block of
/// `block`. More threads where there are too few rows to fill a GPU.
inline int threads_that_hold(int64_t rows, int64_t vectors, int block) {
  const int64_t enough = for_all_multiprocessors(kManyThreads);
  const auto is_enough = [&](int threads) { return threads * kHeld >= vectors && rows * threads >= enough; };
  int threads = 1;
  while (threads < vectors && threads < block && !is_enough(threads)) threads *= 2;
  return threads;
}

/// The exponent of a power of two.
inline int log_of(int power) { return std::countr_zero(static_cast<unsigned>(power)); }

/// Calls `body.operator()<held>()` with the least power of two that holds `needed` vectors, and is at most `most`.
template <int most, int held = 1, typename Body>
void for_held(int64_t needed, Body body) {
  if constexpr (held < most) {
    if (needed > held) return for_held<most, 2 * held>(needed, body);
  }
  body.template operator()<held>();
}

/// Calls `body.operator()<scalar_t, width, held>(threads)` with the instance for a matrix, for blocks of `block`
/// threads and at most `most` vectors a thread.
template <int most, int block, typename Body>
void for_rows(ScalarType dtype, int64_t rows, int64_t columns, Body body) {
  for_dtype(dtype, [&]<typename scalar_t>() {
    constexpr int width = kVectorBytes / sizeof(scalar_t);
    const int64_t vectors = columns / width;
    const int threads = threads_that_hold(rows, vectors, block);
    for_held<most>((vectors + threads - 1) / threads,
                   [&]<int held>() { body.template operator()<scalar_t, width, held>(threads); });
  });
}

}  // namespace OPERATOR_NAMESPACE
