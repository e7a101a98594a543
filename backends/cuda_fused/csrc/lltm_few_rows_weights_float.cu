// The gradient of LLTM's weights in one kernel, for float and few rows; lltm_few_rows_weights.cu has half types.
//
// A block copies its columns of all rows to shared memory. A lane has kLaneUnits rows of the result by a vector of
// columns, so that a warp writes a line of kColumns elements at once.
//
// Not on AMD GPUs, as all kernels for few rows.
#ifndef __HIPCC__
#include "copies.h"
#include "lltm_few_rows.h"

namespace OPERATOR_NAMESPACE {

/// Floats of a vector.
constexpr int kFloats = kVectorBytes / static_cast<int>(sizeof(float));
/// The part of the result that a warp has, and that a block has.
constexpr int kLaneUnits = 8, kColumns = kLanes * kFloats, kUnits = kWarps * kLaneUnits;

using Floats = Vector<float, kFloats>;

/// Some columns of all rows.
template <int columns>
struct alignas(kVectorBytes) FloatsOfRows {
  float values[kMostGradientRowsOfFloats][columns];
};

__global__ void __launch_bounds__(kBlockSize)
    few_rows_gradient_of_floats_kernel(FewRows sizes, const float* d_gates, JoinedRows<float> joined,
                                       float* d_weights) {
  begin_after_previous();
  __shared__ FloatsOfRows<kUnits> of_gates;
  __shared__ FloatsOfRows<kColumns> of_inputs;
  const int thread = static_cast<int>(threadIdx.x), lane = thread % kLanes, warp = thread / kLanes;
  const int units = kGates * sizes.state_size, columns = sizes.columns();
  const int across = (columns + kColumns - 1) / kColumns;
  const int first_unit = static_cast<int>(blockIdx.x) / across * kUnits;
  const int first_column = static_cast<int>(blockIdx.x) % across * kColumns;

  // What is not there is zeros, and not written.
  constexpr int kVectorsOfRow = (kUnits + kColumns) / kFloats;
  for (int item = thread; item < sizes.batch * kVectorsOfRow; item += static_cast<int>(kBlockSize)) {
    const int row = item / kVectorsOfRow, place = item % kVectorsOfRow * kFloats;
    if (place < kUnits) {
      const bool is_unit = first_unit + place < units;
      begin_copy_or_zeros(&of_gates.values[row][place], d_gates + (is_unit ? row * units + first_unit + place : 0),
                          is_unit);
    } else {
      const int own = place - kUnits, column = first_column + own;
      const bool is_column = column < columns;
      begin_copy_or_zeros(&of_inputs.values[row][own], joined.element(sizes, row, is_column ? column : 0), is_column);
    }
  }
  end_group();
  wait_for_groups<0>();
  __syncthreads();

  const int own_unit = warp * kLaneUnits, own_column = lane * kFloats;
  Floats sums[kLaneUnits] = {};
#pragma unroll 2
  for (int row = 0; row < sizes.batch; ++row) {
    const Floats inputs = load<kFloats>(&of_inputs.values[row][own_column]);
#pragma unroll
    for (int unit = 0; unit < kLaneUnits; unit += kFloats) {
      const Floats gates = load<kFloats>(&of_gates.values[row][own_unit + unit]);
      for (int k = 0; k < kFloats; ++k) {
        for (int own = 0; own < kFloats; ++own) sums[unit + k].lane[own] += gates.lane[k] * inputs.lane[own];
      }
    }
  }

  const int column = first_column + own_column;
  if (column >= columns) return;
#pragma unroll
  for (int own = 0; own < kLaneUnits; ++own) {
    const int unit = first_unit + own_unit + own;
    if (unit < units) store(d_weights + unit * columns + column, sums[own]);
  }
}

void launch_few_rows_gradient_of_floats(const FewRows& sizes, const float* d_gates, const JoinedRows<float>& joined,
                                        float* d_weights, void* stream) {
  const int down = (kGates * sizes.state_size + kUnits - 1) / kUnits,
            across = (sizes.columns() + kColumns - 1) / kColumns;
  launch_blocks_early("few_rows_gradient_of_floats_kernel", few_rows_gradient_of_floats_kernel,
                      {static_cast<unsigned>(down * across)}, {kBlockSize}, stream, sizes, d_gates, joined, d_weights);
}

}  // namespace OPERATOR_NAMESPACE
#endif
