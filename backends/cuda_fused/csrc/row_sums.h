// Sums over the threads of a row that need one barrier: what the kernels of LayerNorm add up.
#pragma once

#include <cstdint>

#include "launch.h"
#include "runtime.h"

namespace OPERATOR_NAMESPACE {

/// Shared memory that `row_sums` declares.
template <int block, typename real>
constexpr int64_t kRowSumsBytes = 2LL * 2 * (block / kLanes) * sizeof(real);

/// The sum over the `lanes` neighbouring lanes, at most `most`; both are powers of two. Without a loop, which takes
/// longer than the sum.
template <int most = kLanes, typename real>
__device__ real sum_over_lanes(real value, int lanes) {
#pragma unroll
  for (int distance = most / 2; distance > 0; distance /= 2) {
    if (distance < lanes) value += from_lane(value, distance);
  }
  return value;
}

/// Replaces both values by their sums over the threads of a row, in the same order each time. All threads of the block
/// call it. `round` is odd in every other call: so one barrier is enough.
template <int block, typename real>
__device__ void row_sums(real& first, real& second, int threads, int round) {
  first = sum_over_lanes(first, threads);
  second = sum_over_lanes(second, threads);
  if (threads <= kLanes) return;
  __shared__ real of_warp[2][2][block / kLanes];
  const int warp = static_cast<int>(threadIdx.x) / kLanes, lane = static_cast<int>(threadIdx.x) % kLanes;
  const int warps = threads / kLanes, own = warps - 1;  // a mask: the warps of a row are a power of two
  if (lane == 0) {
    of_warp[round][0][warp] = first;
    of_warp[round][1][warp] = second;
  }
  __syncthreads();
  first = of_warp[round][0][(warp & ~own) + (lane & own)];
  second = of_warp[round][1][(warp & ~own) + (lane & own)];
  first = sum_over_lanes<block / kLanes>(first, warps);
  second = sum_over_lanes<block / kLanes>(second, warps);
}

/// The sum of `value` over the threads of a row, as `row_sums` makes it.
template <int block, typename real>
__device__ real row_sum_of_round(real value, int threads, int round) {
  value = sum_over_lanes(value, threads);
  if (threads <= kLanes) return value;
  __shared__ real of_warp[2][block / kLanes];
  const int warp = static_cast<int>(threadIdx.x) / kLanes, lane = static_cast<int>(threadIdx.x) % kLanes;
  const int warps = threads / kLanes, own = warps - 1;
  if (lane == 0) of_warp[round][warp] = value;
  __syncthreads();
  return sum_over_lanes<block / kLanes>(of_warp[round][(warp & ~own) + (lane & own)], warps);
}

/// Mean and sum of squared deviations of `count` numbers.
template <typename real>
struct Moments {
  real mean = 0, squares = 0, count = 0;

  /// Adds other numbers, by the formula of Chan, Golub and LeVeque (1983), which cancels nothing. A count of 0 comes
  /// between the factors: the square of a large mean would be infinite, and 0 times it is not 0.
  __device__ void add(const Moments& other) {
    const real total = count + other.count, apart = other.mean - mean;
    const real part = total > 0 ? other.count / total : real(0);
    mean += apart * part;
    squares += other.squares + apart * count * part * apart;
    count = total;
  }

  /// Adds those of the lane that differs in the bits of `distance`.
  __device__ void add_lane(int distance) {
    add({from_lane(mean, distance), from_lane(squares, distance), from_lane(count, distance)});
  }
};

/// The moments over all threads of the block, each of which calls this. `round` as for `row_sums`.
template <int block, typename real>
__device__ Moments<real> moments_of_block(Moments<real> own, int round) {
  constexpr int warps = block / kLanes;
  __shared__ real of_warp[2][3][warps];
  for (int distance = kLanes / 2; distance > 0; distance /= 2) own.add_lane(distance);
  const int warp = static_cast<int>(threadIdx.x) / kLanes, lane = static_cast<int>(threadIdx.x) % kLanes;
  if (lane == 0) {
    of_warp[round][0][warp] = own.mean;
    of_warp[round][1][warp] = own.squares;
    of_warp[round][2][warp] = own.count;
  }
  __syncthreads();
  const int from = lane % warps;
  own = {of_warp[round][0][from], of_warp[round][1][from], of_warp[round][2][from]};
  for (int distance = warps / 2; distance > 0; distance /= 2) own.add_lane(distance);
  return own;
}

}  // namespace OPERATOR_NAMESPACE
