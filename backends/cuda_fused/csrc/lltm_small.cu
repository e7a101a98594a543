// The whole LLTM cell in one kernel forward and one backward, for sizes at which a matrix product takes less time than
// its launch. Neither [old_h, input] nor d_gates is stored in memory.
//
// Forward: a warp has one element of the state in kRows rows of the batch. Its lanes share out the columns of the
// weights, `width` neighbouring ones a load. Their sums are added up across the warp in such a way that each quarter of
// it ends with the sums of one row. Such a kernel spends its time on waiting for memory, for its own instructions too.
// So it has few instructions, and it starts all loads at the beginning.
//
// Backward has two kinds of blocks, which compute the d_gates that they need from the pre-activations: the first kind
// multiplies those of kRows rows by a tile of columns of the weights, for d_old_h and d_input; the second has kWarps
// elements of the state in all rows, for their rows of d_weights, their d_bias, and d_old_cell.
#include "functions.h"
#include "launch.h"
#include "lltm.h"
#include "multiprocessors.h"
#include "vectors.h"

namespace OPERATOR_NAMESPACE {

constexpr int kRows = 4, kWarps = static_cast<int>(kBlockSize) / kLanes;
/// States whose d_gates a block of the first kind holds at a time; rows that one of the second kind holds.
constexpr int kStates = 128, kMaxBatch = 64;
/// Columns that a lane loads before it multiplies.
constexpr int kAhead = 8;
/// Lanes that end with the sums of one row.
constexpr int kQuarter = kLanes / kRows;
/// Products of two numbers in a forward for each multiprocessor, at most: their time depends on both, and that of the
/// launches which one kernel saves on neither.
constexpr int64_t kMaxProducts = 1 << 15;

/// States of a small backward, at most: some of its blocks go through all of them, and products share them out.
constexpr int64_t kMostStates = 256;

/// Sizes for which `is_small` is true fit an int, and so do all offsets.
struct SmallSizes {
  int batch, input_features, state_size;

  __host__ __device__ int columns() const { return state_size + input_features; }
  __host__ __device__ int column_tiles() const { return (columns() + kLanes - 1) / kLanes; }
  __host__ __device__ int groups() const { return (batch + kRows - 1) / kRows; }
  __host__ __device__ int tiles() const { return (state_size + kWarps - 1) / kWarps; }
};

/// An element of [old_h, input].
template <typename scalar_t>
__device__ compute_t<scalar_t> element_of_joined(const SmallSizes& sizes, const scalar_t* old_h, const scalar_t* input,
                                                 int row, int column) {
  const int state_size = sizes.state_size;
  return column < state_size ? old_h[row * state_size + column]
                             : input[row * sizes.input_features + column - state_size];
}

/// Adds up over the warp: sum[0] of a lane becomes the sums of row lane / kQuarter. In each step a lane passes on
/// the sums that it does not keep. So fewer numbers are exchanged than if each lane got all sums.
template <typename real>
__device__ void add_up_rows(real (&sum)[kRows][3], int lane) {
#pragma unroll
  for (int kept = kRows / 2, distance = kLanes / 2; kept > 0; kept /= 2, distance /= 2) {
    const bool is_upper = (lane & distance) != 0;
    for (int r = 0; r < kept; ++r) {
      for (int gate = 0; gate < 3; ++gate) {
        const real other = is_upper ? sum[r][gate] : sum[kept + r][gate];
        sum[r][gate] = (is_upper ? sum[kept + r][gate] : sum[r][gate]) + from_lane(other, distance);
      }
    }
  }
  for (int gate = 0; gate < 3; ++gate) {
    for (int distance = kQuarter / 2; distance > 0; distance /= 2) {
      sum[0][gate] += from_lane(sum[0][gate], distance);
    }
  }
}

template <typename scalar_t, int width>
__global__ void small_forward_kernel(SmallSizes sizes, const scalar_t* input, const scalar_t* weights,
                                     const scalar_t* bias, const scalar_t* old_h, const scalar_t* old_cell,
                                     scalar_t* new_h, scalar_t* new_cell, scalar_t* gates) {
  using real = compute_t<scalar_t>;
  begin_after_previous();
  constexpr int ahead = kAhead / width;
  const int lane = static_cast<int>(threadIdx.x) % kLanes, warp = static_cast<int>(threadIdx.x) / kLanes;
  const int state_size = sizes.state_size, columns = sizes.columns();
  const int first = static_cast<int>(blockIdx.x) / sizes.tiles() * kRows;
  const int own_state = static_cast<int>(blockIdx.x) % sizes.tiles() * kWarps + warp;
  // A row, state or column beyond the end is replaced by an existing one, and its result is not used. So no load
  // depends on a condition, and no load waits for another.
  const int state = own_state < state_size ? own_state : state_size - 1;
  const int own_row = first + lane / kQuarter, row = own_row < sizes.batch ? own_row : sizes.batch - 1;
  const real cell = old_cell[row * state_size + state];
  real b[3], sum[kRows][3] = {};
  for (int gate = 0; gate < 3; ++gate) b[gate] = bias[gate * state_size + state];
  for (int begin = lane * width; begin < columns; begin += kAhead * kLanes) {
    Vector<scalar_t, width> w[ahead][3], x[ahead][kRows];
#pragma unroll
    for (int k = 0; k < ahead; ++k) {
      const int wanted = begin + k * kLanes * width, column = wanted < columns ? wanted : columns - width;
      const bool is_h = column < state_size;
      const scalar_t* const from = is_h ? old_h + column : input + (column - state_size);
      const int row_size = is_h ? state_size : sizes.input_features;
      for (int gate = 0; gate < 3; ++gate) {
        w[k][gate] = load<width>(weights + (gate * state_size + state) * columns + column);
      }
      for (int r = 0; r < kRows; ++r) {
        x[k][r] = load<width>(from + (first + r < sizes.batch ? first + r : first) * row_size);
      }
    }
#pragma unroll
    for (int k = 0; k < ahead; ++k) {
      if (begin + k * kLanes * width >= columns) continue;
      for (int l = 0; l < width; ++l) {
        for (int r = 0; r < kRows; ++r) {
          for (int gate = 0; gate < 3; ++gate) {
            sum[r][gate] += static_cast<real>(w[k][gate].lane[l]) * static_cast<real>(x[k][r].lane[l]);
          }
        }
      }
    }
  }
  add_up_rows(sum, lane);
  if (lane % kQuarter != 0 || own_row >= sizes.batch || own_state >= state_size) return;
  for (int gate = 0; gate < 3; ++gate) {
    sum[0][gate] += b[gate];
    if (gates != nullptr) gates[(row * 3 + gate) * state_size + state] = sum[0][gate];
  }
  const auto next = cell_forward<real, functions_of<scalar_t>>(sum[0][0], sum[0][1], sum[0][2], cell);
  new_h[row * state_size + state] = next.new_h;
  new_cell[row * state_size + state] = next.new_cell;
}

/// What both kinds of blocks read.
template <typename scalar_t>
struct Cotangents {
  const scalar_t *grad_h, *grad_cell, *gates, *old_cell;

  __device__ CellGradient<compute_t<scalar_t>> gradient(int row, int state, int state_size) const {
    const int at = row * state_size + state;
    const scalar_t* gate = gates + row * 3 * state_size + state;
    return cell_vjp<compute_t<scalar_t>, functions_of<scalar_t>>(grad_h[at], grad_cell[at], gate[0], gate[state_size],
                                                                 gate[2 * state_size], old_cell[at]);
  }
};

/// d_old_h and d_input of kRows rows and kLanes columns: each warp adds up over every kWarps-th state.
template <typename scalar_t>
__device__ void gradient_of_rows(const SmallSizes& sizes, int block, const Cotangents<scalar_t>& given,
                                 const scalar_t* weights, scalar_t* d_old_h, scalar_t* d_input) {
  using real = compute_t<scalar_t>;
  __shared__ real d_gates[kStates][3][kRows], of_warp[kWarps][kRows][kLanes];
  const int lane = static_cast<int>(threadIdx.x) % kLanes, warp = static_cast<int>(threadIdx.x) / kLanes;
  const int state_size = sizes.state_size, columns = sizes.columns();
  const int first = block / sizes.column_tiles() * kRows;
  const int column = block % sizes.column_tiles() * kLanes + lane;
  real sum[kRows] = {};
  for (int begin = 0; begin < state_size; begin += kStates) {
    const int states = state_size - begin < kStates ? state_size - begin : kStates;
    __syncthreads();  // all threads have read the previous d_gates
    for (int k = static_cast<int>(threadIdx.x); k < kRows * kStates; k += static_cast<int>(kBlockSize)) {
      const int r = k / kStates, state = k % kStates;
      if (state >= states) continue;
      const bool is_there = first + r < sizes.batch;
      const auto gradient = given.gradient(is_there ? first + r : 0, begin + state, state_size);
      d_gates[state][0][r] = is_there ? gradient.d_in_gate : real(0);
      d_gates[state][1][r] = is_there ? gradient.d_out_gate : real(0);
      d_gates[state][2][r] = is_there ? gradient.d_candidate_gate : real(0);
    }
    __syncthreads();
    for (int state = warp; state < states && column < columns; state += kWarps) {
      for (int gate = 0; gate < 3; ++gate) {
        const real w = weights[(gate * state_size + begin + state) * columns + column];
        for (int r = 0; r < kRows; ++r) sum[r] += d_gates[state][gate][r] * w;
      }
    }
  }
  for (int r = 0; r < kRows; ++r) of_warp[warp][r][lane] = sum[r];
  __syncthreads();
  const int row = first + warp;
  if (warp >= kRows || row >= sizes.batch || column >= columns) return;
  real total = 0;
  for (int other = 0; other < kWarps; ++other) total += of_warp[other][warp][lane];
  if (column < state_size) {
    if (d_old_h != nullptr) d_old_h[row * state_size + column] = total;
  } else if (d_input != nullptr) {
    d_input[row * sizes.input_features + column - state_size] = total;
  }
}

/// d_weights, d_bias and d_old_cell of kWarps states.
template <typename scalar_t>
__device__ void gradient_of_states(const SmallSizes& sizes, int block, const Cotangents<scalar_t>& given,
                                   const scalar_t* input, const scalar_t* old_h, scalar_t* d_weights, scalar_t* d_bias,
                                   scalar_t* d_old_cell) {
  using real = compute_t<scalar_t>;
  constexpr int kGates = 3 * kWarps;
  __shared__ real d_gates[kMaxBatch][kGates];
  const int thread = static_cast<int>(threadIdx.x), first = block * kWarps;
  const int state_size = sizes.state_size, columns = sizes.columns();
  for (int k = thread; k < sizes.batch * kWarps; k += static_cast<int>(kBlockSize)) {
    const int row = k / kWarps, own = k % kWarps, state = first + own;
    if (state >= state_size) continue;
    const auto gradient = given.gradient(row, state, state_size);
    d_gates[row][own] = gradient.d_in_gate;
    d_gates[row][kWarps + own] = gradient.d_out_gate;
    d_gates[row][2 * kWarps + own] = gradient.d_candidate_gate;
    if (d_old_cell != nullptr) d_old_cell[row * state_size + state] = gradient.d_old_cell;
  }
  __syncthreads();
  if (d_bias != nullptr && thread < kGates && first + thread % kWarps < state_size) {
    real sum = 0;
    for (int row = 0; row < sizes.batch; ++row) sum += d_gates[row][thread];
    d_bias[thread / kWarps * state_size + first + thread % kWarps] = sum;
  }
  for (int column = thread; column < columns && d_weights != nullptr; column += static_cast<int>(kBlockSize)) {
    real sum[kGates] = {};
    for (int row = 0; row < sizes.batch; ++row) {
      const real x = element_of_joined(sizes, old_h, input, row, column);
      for (int k = 0; k < kGates; ++k) sum[k] += d_gates[row][k] * x;
    }
    for (int k = 0; k < kGates; ++k) {
      const int state = first + k % kWarps;
      if (state < state_size) d_weights[(k / kWarps * state_size + state) * columns + column] = sum[k];
    }
  }
}

template <typename scalar_t>
__global__ void small_backward_kernel(SmallSizes sizes, Cotangents<scalar_t> given, const scalar_t* input,
                                      const scalar_t* weights, const scalar_t* old_h, scalar_t* d_input,
                                      scalar_t* d_weights, scalar_t* d_bias, scalar_t* d_old_h, scalar_t* d_old_cell) {
  begin_after_previous();
  const int block = static_cast<int>(blockIdx.x);
  if (block < sizes.tiles()) {
    gradient_of_states(sizes, block, given, input, old_h, d_weights, d_bias, d_old_cell);
  } else {
    gradient_of_rows(sizes, block - sizes.tiles(), given, weights, d_old_h, d_input);
  }
}

static SmallSizes small(const LltmSizes& sizes) {
  return {static_cast<int>(sizes.batch), static_cast<int>(sizes.input_features), static_cast<int>(sizes.state_size)};
}

bool is_small(const LltmSizes& sizes) {
  const int64_t columns = sizes.state_size + sizes.input_features, most = for_all_multiprocessors(kMaxProducts);
  // Each factor is compared by itself first, so that no product of them can overflow.
  return sizes.batch <= kMaxBatch && columns <= most && sizes.batch * sizes.state_size <= most &&
         3 * sizes.batch * sizes.state_size * columns <= most;
}

bool is_small_backward(const LltmSizes& sizes) { return is_small(sizes) && sizes.state_size <= kMostStates; }

void launch_small_forward(ScalarType dtype, const LltmSizes& sizes, const void* input, const void* weights,
                          const void* bias, const void* old_h, const void* old_cell, void* new_h, void* new_cell,
                          void* gates, void* stream) {
  const SmallSizes own = small(sizes);
  for_dtype(dtype, [&]<typename scalar_t>() {
    // The OR of the lengths is divisible by 2^k iff both lengths are.
    const int64_t common = sizes.state_size | sizes.input_features;
    for_vector_width<scalar_t>(common, {input, weights, old_h}, [&]<int width>() {
      launch_blocks_early("small_forward_kernel", small_forward_kernel<scalar_t, width>,
                          grid_for(static_cast<int64_t>(own.groups()) * own.tiles(), 1), {kBlockSize}, stream, own,
                          static_cast<const scalar_t*>(input), static_cast<const scalar_t*>(weights),
                          static_cast<const scalar_t*>(bias), static_cast<const scalar_t*>(old_h),
                          static_cast<const scalar_t*>(old_cell), static_cast<scalar_t*>(new_h),
                          static_cast<scalar_t*>(new_cell), static_cast<scalar_t*>(gates));
    });
  });
}

void launch_small_backward(ScalarType dtype, const LltmSizes& sizes, const void* grad_h, const void* grad_cell,
                           const void* gates, const void* input, const void* weights, const void* old_h,
                           const void* old_cell, const LltmGradients& gradients, void* stream) {
  const SmallSizes own = small(sizes);
  const bool wants_rows = gradients.d_old_h != nullptr || gradients.d_input != nullptr;
  const int64_t rows = wants_rows ? static_cast<int64_t>(own.groups()) * own.column_tiles() : 0;
  for_dtype(dtype, [&]<typename scalar_t>() {
    const Cotangents<scalar_t> given{static_cast<const scalar_t*>(grad_h), static_cast<const scalar_t*>(grad_cell),
                                     static_cast<const scalar_t*>(gates), static_cast<const scalar_t*>(old_cell)};
    launch_blocks_early("small_backward_kernel", small_backward_kernel<scalar_t>, grid_for(own.tiles() + rows, 1),
                        {kBlockSize}, stream, own, given, static_cast<const scalar_t*>(input),
                        static_cast<const scalar_t*>(weights), static_cast<const scalar_t*>(old_h),
                        static_cast<scalar_t*>(gradients.d_input), static_cast<scalar_t*>(gradients.d_weights),
                        static_cast<scalar_t*>(gradients.d_bias), static_cast<scalar_t*>(gradients.d_old_h),
                        static_cast<scalar_t*>(gradients.d_old_cell));
  });
}

}  // namespace OPERATOR_NAMESPACE
