// The whole forward of a small MLP in one kernel, where a product takes less time than its launch.
//
// A block has one row of the batch. It keeps it in shared memory, and so it does the hidden units. A warp has kUnits
// units at a time, of the hidden layer first, then of the output: its lanes share out the features, neighbouring lanes
// the neighbouring ones, and add up their sums across the warp.
#include <algorithm>

#include "launch.h"
#include "mlp.h"
#include "mlp_math.h"
#include "multiprocessors.h"
#include "row_sums.h"

namespace OPERATOR_NAMESPACE {

/// Units of a warp whose loads are on their way together.
constexpr int kUnits = 4;
/// Warps of a block, at most: as many as the hidden layer has work for, since each waits for its few loads.
constexpr int kMostWarps = 16;
/// Numbers of a row, and of its hidden units, that a block holds.
constexpr int kMostHeld = 2048;
/// Weights of both layers, at most: each block reads all of them. Rows, at most: each is a block.
constexpr int64_t kMaxWeights = 1 << 14, kMaxRows = 512;
/// Products of two numbers for each multiprocessor, at most.
constexpr int64_t kMaxProducts = 1 << 15;

/// Calls `write(unit, sum)`, in one lane, for each unit of a layer: the product of its row of weights with `values`,
/// which are in shared memory.
template <typename scalar_t, typename real, typename Write>
__device__ void for_units(int units, int features, const scalar_t* weights, const real* values, Write write) {
  const int warp = static_cast<int>(threadIdx.x) / kLanes, lane = static_cast<int>(threadIdx.x) % kLanes;
  const int warps = static_cast<int>(blockDim.x) / kLanes;
  for (int first = warp * kUnits; first < units; first += warps * kUnits) {
    real sum[kUnits] = {};
    for (int feature = lane; feature < features; feature += kLanes) {
#pragma unroll
      for (int k = 0; k < kUnits; ++k) {
        // Beyond the last unit, the last one is read again, so that no load depends on a condition.
        const int unit = first + k < units ? first + k : units - 1;
        sum[k] += static_cast<real>(weights[unit * features + feature]) * values[feature];
      }
    }
#pragma unroll
    for (int k = 0; k < kUnits; ++k) {
      const real total = sum_over_lanes(sum[k], kLanes);
      if (lane == k && first + k < units) write(first + k, total);
    }
  }
}

template <typename scalar_t>
__global__ void __launch_bounds__(kMostWarps* kLanes)
    small_mlp_kernel(int batch, int input_features, int hidden_size, int output_size, const scalar_t* input,
                     const scalar_t* hidden_weights, const scalar_t* hidden_bias, const scalar_t* output_weights,
                     const scalar_t* output_bias, scalar_t* hidden, scalar_t* output) {
  using real = compute_t<scalar_t>;
  __shared__ real own_input[kMostHeld], own_hidden[kMostHeld];
  begin_after_previous();
  for (int row = static_cast<int>(blockIdx.x); row < batch; row += static_cast<int>(gridDim.x)) {
    for (int k = static_cast<int>(threadIdx.x); k < input_features; k += static_cast<int>(blockDim.x)) {
      own_input[k] = input[row * input_features + k];
    }
    __syncthreads();
    for_units(hidden_size, input_features, hidden_weights, own_input, [&](int unit, real product) {
      // The output is made of the hidden units as they are stored.
      const scalar_t value = hidden_forward<real>(product, hidden_bias[unit]);
      hidden[row * hidden_size + unit] = value;
      own_hidden[unit] = value;
    });
    __syncthreads();
    for_units(output_size, hidden_size, output_weights, own_hidden, [&](int unit, real product) {
      output[row * output_size + unit] = product + static_cast<real>(output_bias[unit]);
    });
    __syncthreads();  // the next row takes the place of this one
  }
}

bool is_small(const MlpSizes& sizes) {
  if (sizes.input_features > kMostHeld || sizes.hidden_size > kMostHeld || sizes.output_size > kMostHeld) return false;
  const int64_t weights = sizes.hidden_size * (sizes.input_features + sizes.output_size);
  return weights <= kMaxWeights && sizes.batch <= kMaxRows &&
         sizes.batch * weights <= for_all_multiprocessors(kMaxProducts);
}

void launch_small_forward(ScalarType dtype, const MlpSizes& sizes, const void* input, const void* hidden_weights,
                          const void* hidden_bias, const void* output_weights, const void* output_bias, void* hidden,
                          void* output, void* stream) {
  const int64_t busy_warps = (std::max(sizes.hidden_size, sizes.output_size) + kUnits - 1) / kUnits;
  const dim3 block{static_cast<unsigned>(std::clamp<int64_t>(busy_warps, 1, kMostWarps) * kLanes)};
  for_dtype(dtype, [&]<typename scalar_t>() {
    const auto read = [](const void* pointer) { return static_cast<const scalar_t*>(pointer); };
    launch_blocks_early("small_mlp_kernel", small_mlp_kernel<scalar_t>, grid_for(sizes.batch, 1), block, stream,
                        static_cast<int>(sizes.batch), static_cast<int>(sizes.input_features),
                        static_cast<int>(sizes.hidden_size), static_cast<int>(sizes.output_size), read(input),
                        read(hidden_weights), read(hidden_bias), read(output_weights), read(output_bias),
                        static_cast<scalar_t*>(hidden), static_cast<scalar_t*>(output));
  });
}

}  // namespace OPERATOR_NAMESPACE
