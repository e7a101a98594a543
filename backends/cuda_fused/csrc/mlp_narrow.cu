// The pass forward of an MLP with few outputs together with its second product, for which a library has no good shape:
// each hidden unit is multiplied by the output's weights while it is in a register.
//
// A block has one row. A thread has `width` neighbouring hidden units at a time, and a sum for each output. The sums
// are added up across the warps, then in the order of the warps.
#include <algorithm>

#include "launch.h"
#include "mlp.h"
#include "mlp_math.h"
#include "multiprocessors.h"
#include "row_sums.h"
#include "vectors.h"

namespace OPERATOR_NAMESPACE {

/// Outputs, at most: a thread has the weights of all of them in registers.
constexpr int kMostOutputs = 16;
/// Products of two numbers for each multiprocessor, at most: all blocks read all weights of the output.
constexpr int64_t kNarrowProducts = 1 << 13;
constexpr int kNarrowWarps = static_cast<int>(kBlockSize) / kLanes;

template <typename scalar_t, int width>
__global__ void __launch_bounds__(kBlockSize)
    narrow_output_kernel(int hidden_size, int output_size, const scalar_t* hidden_bias, const scalar_t* output_weights,
                         const scalar_t* output_bias, scalar_t* hidden, scalar_t* output) {
  using real = compute_t<scalar_t>;
  __shared__ real of_warp[kMostOutputs][kNarrowWarps];
  const int thread = static_cast<int>(threadIdx.x), threads = static_cast<int>(blockDim.x);
  const int row = static_cast<int>(blockIdx.x), warp = thread / kLanes, lane = thread % kLanes,
            warps = threads / kLanes;
  // The weights come to a cache while the first product is computed.
  for (int output_unit = 0; output_unit < output_size; ++output_unit) {
    if (thread * width < hidden_size) begin_caching(output_weights + output_unit * hidden_size + thread * width);
  }
  begin_after_previous();
  real sum[kMostOutputs] = {};
  for (int unit = thread * width; unit < hidden_size; unit += threads * width) {
    // All loads are on their way together.
    Vector<scalar_t, width> weights[kMostOutputs];
#pragma unroll
    for (int k = 0; k < kMostOutputs; ++k) {
      if (k < output_size) weights[k] = load<width>(output_weights + k * hidden_size + unit);
    }
    const auto bias = load<width>(hidden_bias + unit);
    auto value = load<width>(hidden + row * hidden_size + unit);
    for (int own = 0; own < width; ++own) {
      value.lane[own] = hidden_forward<real>(value.lane[own], bias.lane[own]);
    }
    store(hidden + row * hidden_size + unit, value);
#pragma unroll
    for (int k = 0; k < kMostOutputs; ++k) {
      if (k >= output_size) continue;
      for (int own = 0; own < width; ++own) {
        // The output is made of the hidden units as they are stored.
        sum[k] += static_cast<real>(value.lane[own]) * static_cast<real>(weights[k].lane[own]);
      }
    }
  }
#pragma unroll
  for (int k = 0; k < kMostOutputs; ++k) {
    if (k >= output_size) continue;
    const real total = sum_over_lanes(sum[k], kLanes);
    if (lane == 0) of_warp[k][warp] = total;
  }
  __syncthreads();
  if (thread < output_size) {
    real total = 0;
    for (int other = 0; other < warps; ++other) total += of_warp[thread][other];
    output[row * output_size + thread] = total + static_cast<real>(output_bias[thread]);
  }
}

bool is_narrow(const MlpSizes& sizes) {
  const int64_t most = for_all_multiprocessors(kNarrowProducts);
  return sizes.output_size > 0 && sizes.output_size <= kMostOutputs && sizes.batch <= kMaxGridSize &&
         sizes.hidden_size <= most && sizes.batch * sizes.hidden_size <= most &&
         sizes.batch * sizes.hidden_size * sizes.output_size <= most;
}

void launch_narrow_output(ScalarType dtype, const MlpSizes& sizes, const void* hidden_bias, const void* output_weights,
                          const void* output_bias, void* hidden, void* output, void* stream) {
  for_dtype(dtype, [&]<typename scalar_t>() {
    const auto read = [](const void* pointer) { return static_cast<const scalar_t*>(pointer); };
    for_vector_width<scalar_t>(sizes.hidden_size, {hidden_bias, output_weights, hidden}, [&]<int width>() {
      const int64_t warps = (sizes.hidden_size / width + kLanes - 1) / kLanes;
      const dim3 block{static_cast<unsigned>(std::clamp<int64_t>(warps, 1, kNarrowWarps) * kLanes)};
      launch_blocks_early("narrow_output_kernel", narrow_output_kernel<scalar_t, width>, grid_for(sizes.batch, 1),
                          block, stream, static_cast<int>(sizes.hidden_size), static_cast<int>(sizes.output_size),
                          read(hidden_bias), read(output_weights), read(output_bias), static_cast<scalar_t*>(hidden),
                          static_cast<scalar_t*>(output));
    });
  });
}

}  // namespace OPERATOR_NAMESPACE
