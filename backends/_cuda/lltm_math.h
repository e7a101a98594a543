// The arithmetic of one element of the LLTM cell and of its gradient, for device and host.
//
// Names and order of operations are those of spec/lltm.py. `real` is float or double, and all of the arithmetic is
// done in it: no literal or function of the other precision.
#pragma once

#include <cmath>

#include "runtime.h"

namespace OPERATOR_NAMESPACE {

template <typename real>
struct Cell {
  real input_gate, output_gate, candidate, new_cell, tanh_cell, new_h;
};

template <typename real>
struct CellGradient {
  real d_in_gate, d_out_gate, d_candidate_gate, d_old_cell;
};

template <typename real>
__host__ __device__ real sigmoid(real z) {
  return real(1) / (real(1) + std::exp(-z));
}

template <typename real>
__host__ __device__ real elu(real z) {
  return z > real(0) ? z : std::expm1(z);
}

/// elu'(z). It selects by z: exp(z) times a mask would be inf * 0 = NaN where exp overflows. At 0 it is exp(0) = 1. A
/// NaN takes the second branch and stays a NaN.
template <typename real>
__host__ __device__ real elu_slope(real z) {
  return z > real(0) ? real(1) : std::exp(z);
}

/// The functions above, and the library's tanh. A backend with functions of its own passes a struct like this one.
template <typename real>
struct Library {
  static __host__ __device__ real sigmoid(real z) { return OPERATOR_NAMESPACE::sigmoid(z); }
  static __host__ __device__ real elu(real z) { return OPERATOR_NAMESPACE::elu(z); }
  static __host__ __device__ real elu_slope(real z) { return OPERATOR_NAMESPACE::elu_slope(z); }
  static __host__ __device__ real tanh(real z) { return std::tanh(z); }
};

template <typename real, typename Functions = Library<real>>
__host__ __device__ Cell<real> cell_forward(real in_gate, real out_gate, real candidate_gate, real old_cell) {
  Cell<real> cell;
  cell.input_gate = Functions::sigmoid(in_gate);
  cell.output_gate = Functions::sigmoid(out_gate);
  cell.candidate = Functions::elu(candidate_gate);
  cell.new_cell = old_cell + cell.candidate * cell.input_gate;
  cell.tanh_cell = Functions::tanh(cell.new_cell);
  cell.new_h = cell.tanh_cell * cell.output_gate;
  return cell;
}

/// The gradient, from the pre-activations: `cell_forward` is repeated, since arithmetic is cheaper here than memory.
template <typename real, typename Functions = Library<real>>
__host__ __device__ CellGradient<real> cell_vjp(real grad_h, real grad_cell, real in_gate, real out_gate,
                                                real candidate_gate, real old_cell) {
  const Cell<real> cell = cell_forward<real, Functions>(in_gate, out_gate, candidate_gate, old_cell);
  const real i = cell.input_gate, o = cell.output_gate, k = cell.candidate, t = cell.tanh_cell;
  const real d_new_cell = grad_h * o * (real(1) - t * t) + grad_cell;
  CellGradient<real> gradient;
  gradient.d_in_gate = d_new_cell * k * i * (real(1) - i);
  gradient.d_out_gate = grad_h * t * o * (real(1) - o);
  gradient.d_candidate_gate = d_new_cell * i * Functions::elu_slope(candidate_gate);
  gradient.d_old_cell = d_new_cell;
  return gradient;
}

}  // namespace OPERATOR_NAMESPACE
