// The functions of the LLTM cell in as many instructions as its dtype deserves.
//
// The kernels of the cell are bound by arithmetic before they are bound by memory where these are the library's: half
// types have 8 or 11 bits, and the library computes 24. What is here has 20, relatively, also near 0 and in the tails.
#pragma once

#include <cmath>
#include <type_traits>

#include "launch.h"
#include "lltm_math.h"
#include "runtime.h"

namespace OPERATOR_NAMESPACE {

__host__ __device__ inline float quick_exp(float x) {
#if defined(__CUDA_ARCH__) || defined(__HIP_DEVICE_COMPILE__)
  return __expf(x);
#else
  return std::exp(x);
#endif
}

__host__ __device__ inline float quick_divide(float x, float y) {
#if defined(__CUDA_ARCH__) || defined(__HIP_DEVICE_COMPILE__)
  return __fdividef(x, y);
#else
  return x / y;
#endif
}

/// exp(x) - 1 for x <= 0. The difference loses digits near 0, where the series is short: its next term is x^6/5040. Its
/// factors are 1/2 to 1/6, since a division costs as much as the rest of it.
__host__ __device__ inline float quick_expm1(float x) {
  const float series =
      x * (1.f + x * 0.5f * (1.f + x * (1.f / 3.f) * (1.f + x * 0.25f * (1.f + x * 0.2f * (1.f + x * (1.f / 6.f))))));
  return x > -0.35f ? series : quick_exp(x) - 1.f;
}

/// As `Library` in lltm_math.h. A NaN takes the second branch of each choice and stays one.
struct Quick {
  static __host__ __device__ float sigmoid(float z) { return quick_divide(1.f, 1.f + quick_exp(-z)); }
  static __host__ __device__ float elu(float z) { return z > 0.f ? z : quick_expm1(z); }
  static __host__ __device__ float elu_slope(float z) { return z > 0.f ? 1.f : quick_exp(z); }
  static __host__ __device__ float tanh(float z) {
    const float e = quick_expm1(-2.f * std::fabs(z));
    return std::copysign(quick_divide(-e, 2.f + e), z);
  }
};

/// What a dtype is computed with.
template <typename scalar_t>
using functions_of = std::conditional_t<sizeof(scalar_t) == 2, Quick, Library<compute_t<scalar_t>>>;

}  // namespace OPERATOR_NAMESPACE
