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

/// exp(x), 0 where that is subnormal: what keeps those costs three instructions more than the rest.
__host__ __device__ inline float quick_exp(float x) {
#if defined(__CUDA_ARCH__)
  float result;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x * 1.44269504f));
  return result;
#elif defined(__HIP_DEVICE_COMPILE__)
  return __expf(x);
#else
  return std::exp(x);
#endif
}

/// 1 / x, 0 where that is subnormal.
__host__ __device__ inline float quick_reciprocal(float x) {
#if defined(__CUDA_ARCH__)
  float result;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
#elif defined(__HIP_DEVICE_COMPILE__)
  return __fdividef(1.f, x);
#else
  return 1.f / x;
#endif
}

/// As `Library` in lltm_math.h. Where a difference would lose digits, near 0, there is a series, of which the first
/// term that is left out says how short it may be. Both sides of such a choice are computed, since a branch would cost
/// more. A NaN takes the second side of each and stays one.
struct Quick {
  static __host__ __device__ float sigmoid(float z) { return quick_reciprocal(1.f + quick_exp(-z)); }

  static __host__ __device__ float elu(float z) {  // left out: z^6/720
    const float series = z * (1.f + z * (1.f / 2 + z * (1.f / 6 + z * (1.f / 24 + z * (1.f / 120)))));
    const float difference = quick_exp(z) - 1.f;
    const float below = z > -0.2f ? series : difference;
    return z > 0.f ? z : below;
  }

  static __host__ __device__ float elu_slope(float z) {
    const float below = quick_exp(z);
    return z > 0.f ? 1.f : below;
  }

  static __host__ __device__ float tanh(float z) {  // left out: 62 z^9/2835
    const float size = std::fabs(z), square = z * z;
    const float series = z * (1.f + square * (-1.f / 3 + square * (2.f / 15 + square * (-17.f / 315))));
    const float difference = std::copysign(1.f - 2.f * quick_reciprocal(1.f + quick_exp(2.f * size)), z);
    return size < 0.25f ? series : difference;
  }
};

/// What a dtype is computed with.
template <typename scalar_t>
using functions_of = std::conditional_t<sizeof(scalar_t) == 2, Quick, Library<compute_t<scalar_t>>>;

}  // namespace OPERATOR_NAMESPACE
