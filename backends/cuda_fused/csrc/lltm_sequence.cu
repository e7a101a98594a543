// All steps of a sequence in one kernel: the weights of the state stay in the registers of a block, one row of the
// batch at a time in its shared memory.
//
// Rows of the batch do not depend on each other, so no block waits for another. A block has three threads for an
// element of the state, one for each gate. In forward, such a thread holds the row of the weights that makes its
// pre-activation. In backward, it holds its third of the column that makes its element of d_h. Where a state is
// narrower than `widest`, the other weights are 0.
#include "lltm_sequence.h"

#include <algorithm>

#include "functions.h"
#include "launch.h"

namespace OPERATOR_NAMESPACE {

using torch::headeronly::ScalarType;

/// Weights that a thread keeps: 128 registers of the 168 that it may have.
template <typename real>
constexpr int kWidest = 512 / static_cast<int>(sizeof(real));

/// The sum of weights[k] * values[k], in four sums that do not wait for each other.
template <int widest, typename real>
__device__ real dot(const real (&weights)[widest], const real* values) {
  real sum[4] = {};
#pragma unroll
  for (int k = 0; k < widest; ++k) sum[k % 4] += weights[k] * values[k];
  return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

template <typename scalar_t, int widest>
__global__ void __launch_bounds__(3 * widest)
    sequence_forward_kernel(int64_t steps, int64_t batch, int state_size, int64_t weight_stride,
                            const scalar_t* __restrict__ weights, const scalar_t* __restrict__ h0,
                            const scalar_t* __restrict__ c0, scalar_t* __restrict__ gates, scalar_t* __restrict__ h,
                            scalar_t* __restrict__ cells, scalar_t* __restrict__ c_T) {
  using real = compute_t<scalar_t>;
  alignas(16) __shared__ real state[widest];
  __shared__ real pre_activation[3 * widest];
  const int thread = static_cast<int>(threadIdx.x);
  const bool has_gate = thread < 3 * state_size, has_state = thread < state_size;
  real row_of_weights[widest];
#pragma unroll
  for (int k = 0; k < widest; ++k) {
    row_of_weights[k] = has_gate && k < state_size ? static_cast<real>(weights[thread * weight_stride + k]) : real(0);
  }
  for (int64_t row = blockIdx.x; row < batch; row += gridDim.x) {
    __syncthreads();  // all threads have read the last state of the previous row
    if (thread < widest) state[thread] = has_state ? static_cast<real>(h0[row * state_size + thread]) : real(0);
    real cell = has_state ? static_cast<real>(c0[row * state_size + thread]) : real(0);
    real from_input = has_gate ? static_cast<real>(gates[row * 3 * state_size + thread]) : real(0);
    for (int64_t step = 0; step < steps; ++step) {
      const int64_t at = step * batch + row;
      __syncthreads();
      if (has_gate) {
        // The cell is computed from the rounded value, which is the one that backward reads.
        const scalar_t kept = from_input + dot(row_of_weights, state);
        pre_activation[thread] = kept;
        gates[at * 3 * state_size + thread] = kept;
        if (step + 1 < steps) from_input = gates[(at + batch) * 3 * state_size + thread];
      }
      __syncthreads();
      if (has_state) {
        const auto next = cell_forward<real, functions_of<scalar_t>>(
            pre_activation[thread], pre_activation[state_size + thread], pre_activation[2 * state_size + thread], cell);
        const scalar_t new_h = next.new_h, new_cell = next.new_cell;
        cells[at * state_size + thread] = cell;
        h[at * state_size + thread] = new_h;
        // The next step starts from the rounded values, as a separate call would.
        state[thread] = new_h;
        cell = new_cell;
      }
    }
    if (has_state) c_T[row * state_size + thread] = cell;
  }
}

template <typename scalar_t, int widest>
__global__ void __launch_bounds__(3 * widest)
    sequence_backward_kernel(int64_t steps, int64_t batch, int state_size, int64_t weight_stride,
                             const scalar_t* __restrict__ weights, const scalar_t* __restrict__ gates,
                             const scalar_t* __restrict__ cells, const scalar_t* __restrict__ grad_h,
                             const scalar_t* __restrict__ grad_cell, scalar_t* __restrict__ d_gates,
                             scalar_t* __restrict__ d_h0, scalar_t* __restrict__ d_c0) {
  using real = compute_t<scalar_t>;
  alignas(16) __shared__ real d_gate[3][widest];
  __shared__ real part[3 * widest];
  const int thread = static_cast<int>(threadIdx.x);
  const int gate = thread / state_size, column = thread % state_size;
  const bool has_gate = thread < 3 * state_size, has_state = thread < state_size;
  real column_of_weights[widest];
#pragma unroll
  for (int k = 0; k < widest; ++k) {
    const bool is_there = has_gate && k < state_size;
    column_of_weights[k] =
        is_there ? static_cast<real>(weights[(gate * state_size + k) * weight_stride + column]) : real(0);
  }
  for (int k = thread; k < 3 * widest; k += 3 * widest) d_gate[k / widest][k % widest] = 0;
  for (int64_t row = blockIdx.x; row < batch; row += gridDim.x) {
    real d_h = 0, d_cell = has_state ? static_cast<real>(grad_cell[row * state_size + thread]) : real(0);
    for (int64_t step = steps - 1; step >= 0; --step) {
      const int64_t at = step * batch + row;
      __syncthreads();
      if (has_state) {
        const scalar_t* z = gates + at * 3 * state_size + thread;
        const int64_t own = at * state_size + thread;
        const auto gradient = cell_vjp<real, functions_of<scalar_t>>(d_h + static_cast<real>(grad_h[own]), d_cell, z[0],
                                                                     z[state_size], z[2 * state_size], cells[own]);
        const real of_gate[3] = {gradient.d_in_gate, gradient.d_out_gate, gradient.d_candidate_gate};
        for (int k = 0; k < 3; ++k) {
          const scalar_t stored = of_gate[k];
          d_gates[at * 3 * state_size + k * state_size + thread] = stored;
          d_gate[k][thread] = stored;
        }
        d_cell = gradient.d_old_cell;
      }
      __syncthreads();
      if (has_gate) part[thread] = dot(column_of_weights, d_gate[gate]);
      __syncthreads();
      if (has_state) d_h = part[thread] + part[state_size + thread] + part[2 * state_size + thread];
    }
    if (has_state) {
      d_h0[row * state_size + thread] = d_h;
      d_c0[row * state_size + thread] = d_cell;
    }
  }
}

bool fits_a_block(ScalarType dtype, int64_t state_size) {
  return state_size <= (dtype == ScalarType::Double ? kWidest<double> : kWidest<float>);
}

/// Calls `body.operator()<scalar_t, widest>()` with the narrowest instance that holds the state.
template <typename Body>
void for_width(ScalarType dtype, int64_t state_size, Body body) {
  for_dtype(dtype, [&]<typename scalar_t>() {
    constexpr int widest = kWidest<compute_t<scalar_t>>;
    if (state_size <= widest / 4) {
      body.template operator()<scalar_t, widest / 4>();
    } else {
      body.template operator()<scalar_t, widest>();
    }
  });
}

void launch_sequence_forward(ScalarType dtype, const SequenceSizes& sizes, const void* weights, const void* h0,
                             const void* c0, void* gates, void* h, void* cells, void* c_T, void* stream) {
  for_width(dtype, sizes.state_size, [&]<typename scalar_t, int widest>() {
    launch_blocks("sequence_forward_kernel", sequence_forward_kernel<scalar_t, widest>, grid_for(sizes.batch, 1),
                  {3 * widest}, stream, sizes.steps, sizes.batch, static_cast<int>(sizes.state_size),
                  sizes.weight_stride, static_cast<const scalar_t*>(weights), static_cast<const scalar_t*>(h0),
                  static_cast<const scalar_t*>(c0), static_cast<scalar_t*>(gates), static_cast<scalar_t*>(h),
                  static_cast<scalar_t*>(cells), static_cast<scalar_t*>(c_T));
  });
}

void launch_sequence_backward(ScalarType dtype, const SequenceSizes& sizes, const void* weights, const void* gates,
                              const void* cells, const void* grad_h, const void* grad_cell, void* d_gates, void* d_h0,
                              void* d_c0, void* stream) {
  for_width(dtype, sizes.state_size, [&]<typename scalar_t, int widest>() {
    launch_blocks("sequence_backward_kernel", sequence_backward_kernel<scalar_t, widest>, grid_for(sizes.batch, 1),
                  {3 * widest}, stream, sizes.steps, sizes.batch, static_cast<int>(sizes.state_size),
                  sizes.weight_stride, static_cast<const scalar_t*>(weights), static_cast<const scalar_t*>(gates),
                  static_cast<const scalar_t*>(cells), static_cast<const scalar_t*>(grad_h),
                  static_cast<const scalar_t*>(grad_cell), static_cast<scalar_t*>(d_gates),
                  static_cast<scalar_t*>(d_h0), static_cast<scalar_t*>(d_c0));
  });
}

}  // namespace OPERATOR_NAMESPACE
