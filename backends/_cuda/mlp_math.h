// The arithmetic of one hidden unit of the MLP and of its gradient, for device and host.
//
// Names are those of spec/mlp.py. `real` is float or double.
#pragma once

#include "runtime.h"

namespace OPERATOR_NAMESPACE {

/// relu of the pre-activation. A NaN is not below 0, and stays.
template <typename real>
__host__ __device__ real hidden_forward(real product, real bias) {
  const real z = product + bias;
  return z < real(0) ? real(0) : z;
}

/// d_z. A selection and not a product with a mask: where d_hidden has overflown, inf * 0 would be NaN. That hidden is
/// above 0 says that its pre-activation was.
template <typename real>
__host__ __device__ real hidden_vjp(real d_hidden, real hidden) {
  return hidden > real(0) ? d_hidden : real(0);
}

}  // namespace OPERATOR_NAMESPACE
