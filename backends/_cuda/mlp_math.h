// The arithmetic of one hidden unit of the MLP and of its gradient, for device and host.
//
// Names are those of spec/mlp.py. `real` is float or double.
#pragma once

#include "runtime.h"

namespace OPERATOR_NAMESPACE {

/// relu of the pre-activation. A NaN is not below 0 and stays a NaN.
template <typename real>
__host__ __device__ real hidden_forward(real product, real bias) {
  const real z = product + bias;
  return z < real(0) ? real(0) : z;
}

/// d_z. It selects: a product with a mask would be inf * 0 = NaN where d_hidden has overflowed. hidden is above 0
/// exactly where the pre-activation is.
template <typename real>
__host__ __device__ real hidden_vjp(real d_hidden, real hidden) {
  return hidden > real(0) ? d_hidden : real(0);
}

}  // namespace OPERATOR_NAMESPACE
