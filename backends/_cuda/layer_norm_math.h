// The arithmetic of one element of LayerNorm and of its gradient, and the sums over a row that both need.
//
// Names and order of operations are those of spec/layer_norm.py. `real` is float or double, and all of the arithmetic
// is done in it.
//
// A row is worked on by `threads` neighbouring threads of a block, a power of two: as many as it has vectors, up to the
// whole block. A block of kBlockSize threads then has kBlockSize / threads rows at a time.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "launch.h"
#include "runtime.h"

namespace OPERATOR_NAMESPACE {

/// How many threads work on a row of that many vectors: a power of two, with at least one thread for each
/// vector, up to kBlockSize.
inline int threads_for_row(int64_t vectors) {
  int threads = 1;
  while (threads < vectors && threads < kBlockSize) threads *= 2;
  return threads;
}

/// The sum of `value` over the threads of a row, in the same order each time. Each of them gets it. All threads of the
/// block call it, also those without a row.
template <typename real>
__device__ real row_sum(real value, int threads) {
  for (int distance = (threads < kLanes ? threads : kLanes) / 2; distance > 0; distance /= 2) {
    value += from_lane(value, distance);
  }
  if (threads <= kLanes) return value;
  __shared__ real of_warp[kBlockSize / kLanes];
  const int warp = static_cast<int>(threadIdx.x) / kLanes, lane = static_cast<int>(threadIdx.x) % kLanes;
  const int warps = threads / kLanes, own = warps - 1;  // a mask: the warps of a row are a power of two
  __syncthreads();                                      // all threads have read the values of an earlier sum
  if (lane == 0) of_warp[warp] = value;
  __syncthreads();
  value = of_warp[(warp & ~own) + (lane & own)];
  for (int distance = warps / 2; distance > 0; distance /= 2) value += from_lane(value, distance);
  return value;
}

template <typename real>
__host__ __device__ real reciprocal_root(real variance, real eps) {
  return real(1) / std::sqrt(variance + eps);
}

/// xhat w + b
template <typename real>
__host__ __device__ real normalise(real x, real mean, real rstd, real weight, real bias) {
  return (x - mean) * rstd * weight + bias;
}

/// rstd (h - sum(h)/N - xhat sum(h xhat)/N), of the two means over the row
template <typename real>
__host__ __device__ real input_gradient(real h, real xhat, real rstd, real mean_h, real mean_h_xhat) {
  return rstd * (h - mean_h - xhat * mean_h_xhat);
}

}  // namespace OPERATOR_NAMESPACE
