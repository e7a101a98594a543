// One row of the LLTM cell and of its gradient, in one pass over memory that writes only the results.
//
// Names and order of operations are those of spec/lltm.py. `scalar` is the type in memory and `real` the type of the
// arithmetic: float for half types, otherwise the same.
#pragma once

#include <cstdint>

#include "vector_math.h"

// Each function is compiled for AVX-512, AVX2 and plain x86-64; the loader picks the version for the processor.
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)
#define FOR_EACH_PROCESSOR __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define FOR_EACH_PROCESSOR
#endif

namespace OPERATOR_NAMESPACE {

template <typename real>
INLINED real sigmoid(real z) {
  return real(1) / (real(1) + vector_exp(-z));
}

/// min(z, 0); a NaN stays a NaN.
template <typename real>
INLINED real negative_part(real z) {
  return z > real(0) ? real(0) : z;
}

template <typename real>
INLINED real elu(real z) {
  const real below = vector_expm1(negative_part(z));
  return z > real(0) ? z : below;
}

/// gates (3H), old_cell, new_h, new_cell (H): a row of each.
template <typename scalar, typename real>
INLINED void forward_row(const scalar* __restrict gates, const scalar* __restrict old_cell, scalar* __restrict new_h,
                         scalar* __restrict new_cell, int64_t H) {
#pragma GCC ivdep
  for (int64_t j = 0; j < H; ++j) {
    const real i = sigmoid(static_cast<real>(gates[j])), o = sigmoid(static_cast<real>(gates[H + j]));
    const real k = elu(static_cast<real>(gates[2 * H + j]));
    const real c = static_cast<real>(old_cell[j]) + k * i;
    new_cell[j] = static_cast<scalar>(c);
    new_h[j] = static_cast<scalar>(vector_tanh(c) * o);
  }
}

/// grad_h, grad_cell (H) to d_gates (3H), d_old_cell (H): a row of each. The activations are computed again.
template <typename scalar, typename real>
INLINED void backward_row(const scalar* __restrict gates, const scalar* __restrict old_cell,
                          const scalar* __restrict grad_h, const scalar* __restrict grad_cell,
                          scalar* __restrict d_gates, scalar* __restrict d_old_cell, int64_t H) {
#pragma GCC ivdep
  for (int64_t j = 0; j < H; ++j) {
    const real z = static_cast<real>(gates[2 * H + j]), g_h = static_cast<real>(grad_h[j]);
    const real i = sigmoid(static_cast<real>(gates[j])), o = sigmoid(static_cast<real>(gates[H + j])), k = elu(z);
    const real t = vector_tanh(static_cast<real>(old_cell[j]) + k * i);
    const real d_new_cell = g_h * o * (real(1) - t * t) + static_cast<real>(grad_cell[j]);
    d_gates[j] = static_cast<scalar>(d_new_cell * k * i * (real(1) - i));
    d_gates[H + j] = static_cast<scalar>(g_h * t * o * (real(1) - o));
    // elu' is exp at min(z, 0): where z > 0 exp could overflow, and a mask would make inf * 0 = NaN of it.
    d_gates[2 * H + j] = static_cast<scalar>(d_new_cell * i * vector_exp(negative_part(z)));
    d_old_cell[j] = static_cast<scalar>(d_new_cell);
  }
}

}  // namespace OPERATOR_NAMESPACE
