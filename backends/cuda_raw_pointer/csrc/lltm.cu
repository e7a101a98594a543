// The element-wise part of the LLTM cell, forward and backward, over raw pointers.
//
// Reading order:
//    1. spec/lltm.py             the mathematics, with the names that are used here
//    2. lltm.cu                  this file: two kernels, and their launches, which lltm.h declares
//    3. _cuda/lltm_math.h        the arithmetic of one element
//    4. _cuda/vectors.h          loads and stores of 16 bytes
//    5. _cuda/launch.h           the instance for a dtype and an index type, the grid, the check of a launch
//    6. lltm.cpp                 from tensors to pointers
//    7. _cuda/lltm_operator.h    the matrix products around the kernels
//    8. _native/lltm_autograd.h  argument checks, differentiable formulae, and the traits of the operator
//    9. _native/registration.h   autograd, autocast, Meta kernels and registration, for every operator
//   10. lltm_sequence.cpp        the same kernels for each step of a sequence
//
// gates and d_gates are (batch, 3*state_size): a row holds in_gate, out_gate and candidate_gate, state_size each. All
// other arrays are (batch, state_size). Everything is contiguous.
//
// Work: an item is `width` neighbouring elements of one row, so item n starts at element n*width of a state and at
// element n*width + row*2*state_size of the gates. Neighbouring threads take neighbouring items: every load and store
// is coalesced, and of 16 bytes where size and alignment allow it. For each element of the state, forward moves 6
// elements and backward 10.
#include "launch.h"
#include "lltm.h"
#include "lltm_math.h"
#include "vectors.h"

namespace OPERATOR_NAMESPACE {

template <typename scalar_t, typename index_t, int width>
__global__ void lltm_forward_kernel(index_t batch, index_t state_size, const scalar_t* __restrict__ gates,
                                    const scalar_t* __restrict__ old_cell, scalar_t* __restrict__ new_h,
                                    scalar_t* __restrict__ new_cell) {
  const index_t items = batch * state_size / width;
  for (index_t item = first_item<index_t>(); item < items; item += item_stride<index_t>()) {
    const index_t state = item * width;
    const index_t row = state / state_size;
    const index_t gate = state + row * 2 * state_size;
    const auto in_gate = load<width>(gates + gate);
    const auto out_gate = load<width>(gates + gate + state_size);
    const auto candidate_gate = load<width>(gates + gate + 2 * state_size);
    const auto cell = load<width>(old_cell + state);
    Vector<scalar_t, width> h, c;
    for (int k = 0; k < width; ++k) {
      const auto next =
          cell_forward<compute_t<scalar_t>>(in_gate.lane[k], out_gate.lane[k], candidate_gate.lane[k], cell.lane[k]);
      h.lane[k] = next.new_h;
      c.lane[k] = next.new_cell;
    }
    store(new_h + state, h);
    store(new_cell + state, c);
  }
}

template <typename scalar_t, typename index_t, int width>
__global__ void lltm_backward_kernel(index_t batch, index_t state_size, const scalar_t* __restrict__ gates,
                                     const scalar_t* __restrict__ old_cell, const scalar_t* __restrict__ grad_h,
                                     const scalar_t* __restrict__ grad_cell, scalar_t* __restrict__ d_gates,
                                     scalar_t* __restrict__ d_old_cell) {
  const index_t items = batch * state_size / width;
  for (index_t item = first_item<index_t>(); item < items; item += item_stride<index_t>()) {
    const index_t state = item * width;
    const index_t row = state / state_size;
    const index_t gate = state + row * 2 * state_size;
    const auto in_gate = load<width>(gates + gate);
    const auto out_gate = load<width>(gates + gate + state_size);
    const auto candidate_gate = load<width>(gates + gate + 2 * state_size);
    const auto cell = load<width>(old_cell + state);
    const auto g_h = load<width>(grad_h + state);
    const auto g_c = load<width>(grad_cell + state);
    Vector<scalar_t, width> d_in_gate, d_out_gate, d_candidate_gate, d_cell;
    for (int k = 0; k < width; ++k) {
      const auto gradient = cell_vjp<compute_t<scalar_t>>(g_h.lane[k], g_c.lane[k], in_gate.lane[k], out_gate.lane[k],
                                                          candidate_gate.lane[k], cell.lane[k]);
      d_in_gate.lane[k] = gradient.d_in_gate;
      d_out_gate.lane[k] = gradient.d_out_gate;
      d_candidate_gate.lane[k] = gradient.d_candidate_gate;
      d_cell.lane[k] = gradient.d_old_cell;
    }
    store(d_gates + gate, d_in_gate);
    store(d_gates + gate + state_size, d_out_gate);
    store(d_gates + gate + 2 * state_size, d_candidate_gate);
    store(d_old_cell + state, d_cell);
  }
}

void launch_lltm_forward(ScalarType dtype, int64_t batch, int64_t state_size, const void* gates, const void* old_cell,
                         void* new_h, void* new_cell, void* stream) {
  for_dtype(dtype, [&]<typename scalar_t>() {
    for_index_type(3 * batch * state_size, [&]<typename index_t>() {
      for_vector_width<scalar_t>(state_size, {gates, old_cell, new_h, new_cell}, [&]<int width>() {
        launch("lltm_forward_kernel", lltm_forward_kernel<scalar_t, index_t, width>, batch * state_size / width, stream,
               static_cast<index_t>(batch), static_cast<index_t>(state_size), static_cast<const scalar_t*>(gates),
               static_cast<const scalar_t*>(old_cell), static_cast<scalar_t*>(new_h), static_cast<scalar_t*>(new_cell));
      });
    });
  });
}

void launch_lltm_backward(ScalarType dtype, int64_t batch, int64_t state_size, const void* gates, const void* old_cell,
                          const void* grad_h, const void* grad_cell, void* d_gates, void* d_old_cell, void* stream) {
  for_dtype(dtype, [&]<typename scalar_t>() {
    for_index_type(3 * batch * state_size, [&]<typename index_t>() {
      for_vector_width<scalar_t>(
          state_size, {gates, old_cell, grad_h, grad_cell, d_gates, d_old_cell}, [&]<int width>() {
            launch("lltm_backward_kernel", lltm_backward_kernel<scalar_t, index_t, width>, batch * state_size / width,
                   stream, static_cast<index_t>(batch), static_cast<index_t>(state_size),
                   static_cast<const scalar_t*>(gates), static_cast<const scalar_t*>(old_cell),
                   static_cast<const scalar_t*>(grad_h), static_cast<const scalar_t*>(grad_cell),
                   static_cast<scalar_t*>(d_gates), static_cast<scalar_t*>(d_old_cell));
          });
    });
  });
}

}  // namespace OPERATOR_NAMESPACE
