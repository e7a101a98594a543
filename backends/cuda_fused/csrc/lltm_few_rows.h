// What the kernels of LLTM for few rows share: those of the forward, lltm_few_rows.cu for half types and
// lltm_few_rows_float.cu, and those of the gradient of the weights, lltm_few_rows_weights.cu and
// lltm_few_rows_weights_float.cu.
//
// In the forward, a block has kStates elements of the state, in all three gates and in a group of the rows. Its warps
// share out the terms of the products. Their sums are added up in shared memory, in the order of the warps, and become
// the next state.
#pragma once

#include <cstdint>
#include <initializer_list>

#include "functions.h"
#include "launch.h"
#include "lltm.h"
#include "vectors.h"

namespace OPERATOR_NAMESPACE {

constexpr int kWarps = static_cast<int>(kBlockSize) / kLanes, kGates = 3;
/// Elements of the state that a block has.
constexpr int kStates = 8;
/// Rows of a batch in the forward, at most.
constexpr int kMostRows = 64;
/// Rows for the gradient of the weights, at most: with more a library's product is faster.
constexpr int kMostGradientRows = 32, kMostGradientRowsOfFloats = 16;
/// Rounds that are on their way: as many as fit the 227 KiB of a block on Hopper, or the 99 KiB on Ada.
constexpr int kAhead = 5, kAheadOfLittle = 2;

/// Neighbours of half types that are read together.
constexpr int kHalves = kVectorBytes / 2;

/// Whether the rows of old_h and of input are whole vectors of half types, and all pointers are aligned to them.
inline bool is_of_vectors(const LltmSizes& sizes, std::initializer_list<const void*> pointers) {
  bool aligned = sizes.state_size % kHalves == 0 && sizes.input_features % kHalves == 0;
  for (const void* pointer : pointers) {
    aligned = aligned && reinterpret_cast<std::uintptr_t>(pointer) % kVectorBytes == 0;
  }
  return aligned;
}

/// Sizes for which `has_few_rows` or `has_few_rows_gradient` is true fit an int, and so do all offsets.
struct FewRows {
  int batch, input_features, state_size;

  explicit FewRows(const LltmSizes& sizes)
      : batch(static_cast<int>(sizes.batch)),
        input_features(static_cast<int>(sizes.input_features)),
        state_size(static_cast<int>(sizes.state_size)) {}

  __host__ __device__ int columns() const { return state_size + input_features; }
  __host__ __device__ int state_groups() const { return state_size / kStates; }

  /// What this block has.
  __device__ int first_state() const { return static_cast<int>(blockIdx.x) % state_groups() * kStates; }
  __device__ int row_group() const { return static_cast<int>(blockIdx.x) / state_groups(); }
};

/// [old_h, input], which lie apart.
template <typename scalar_t>
struct JoinedRows {
  const scalar_t *old_h, *input;

  /// Where the elements of a row from `column` on are, which is a multiple of the elements that are read together.
  __device__ const scalar_t* element(const FewRows& sizes, int row, int column) const {
    return column < sizes.state_size ? old_h + row * sizes.state_size + column
                                     : input + row * sizes.input_features + (column - sizes.state_size);
  }
};

/// What the forward multiplies.
template <typename scalar_t>
struct Factors : JoinedRows<scalar_t> {
  const scalar_t* weights;
};

/// What the end reads and writes beside the sums. Gates that are null are not wanted.
template <typename scalar_t>
struct NextState {
  const scalar_t *bias, *old_cell;
  scalar_t *new_h, *new_cell, *gates;
};

/// The sums of each warp.
template <int rows>
using WarpSums = float[kWarps][kGates][rows][kStates];

/// Calls `body(own, row)` for the rows of this thread at the end: their number in the block, and in the batch.
template <int rows, typename Body>
__device__ void for_rows_at_end(const FewRows& sizes, Body body) {
  constexpr int kRowsAtOnce = static_cast<int>(kBlockSize) / kStates;
  for (int own = static_cast<int>(threadIdx.x) / kStates; own < rows; own += kRowsAtOnce) {
    const int row = sizes.row_group() * rows + own;
    if (row < sizes.batch) body(own, row);
  }
}

/// The element of the state that this thread has at the end.
__device__ inline int state_at_end(const FewRows& sizes) {
  return sizes.first_state() + static_cast<int>(threadIdx.x) % kStates;
}

/// Lets what the end reads arrive meanwhile.
template <int rows, typename scalar_t>
__device__ void begin_caching(const FewRows& sizes, const NextState<scalar_t>& next) {
  const int state = state_at_end(sizes);
  begin_caching(next.bias + static_cast<int>(threadIdx.x) % kGates * sizes.state_size + state);
  for_rows_at_end<rows>(sizes, [&](int, int row) { begin_caching(next.old_cell + row * sizes.state_size + state); });
}

/// Adds up the sums of all warps, and computes the next state from them.
template <int rows, typename scalar_t>
__device__ void write_next_state(const FewRows& sizes, const WarpSums<rows>& sums, const NextState<scalar_t>& next) {
  const int unit = static_cast<int>(threadIdx.x) % kStates, state = state_at_end(sizes), state_size = sizes.state_size;
  for_rows_at_end<rows>(sizes, [&](int own, int row) {
    float total[kGates];
    for (int gate = 0; gate < kGates; ++gate) {
      total[gate] = next.bias[gate * state_size + state];
      for (int warp = 0; warp < kWarps; ++warp) total[gate] += sums[warp][gate][own][unit];
      if (next.gates != nullptr) next.gates[(row * kGates + gate) * state_size + state] = total[gate];
    }
    const auto cell = cell_forward<float, functions_of<scalar_t>>(total[0], total[1], total[2],
                                                                  next.old_cell[row * state_size + state]);
    next.new_h[row * state_size + state] = cell.new_h;
    next.new_cell[row * state_size + state] = cell.new_cell;
  });
}

/// Whether the current device has enough shared memory for `launch_few_rows_of_floats`.
bool has_memory_for_floats(const LltmSizes& sizes);

void launch_few_rows_of_floats(const FewRows& sizes, const Factors<float>& factors, const NextState<float>& next,
                               void* stream);

void launch_few_rows_gradient_of_floats(const FewRows& sizes, const float* d_gates, const JoinedRows<float>& joined,
                                        float* d_weights, void* stream);

}  // namespace OPERATOR_NAMESPACE
