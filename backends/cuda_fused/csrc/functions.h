// The functions of the LLTM cell in as few instructions as its dtype needs.
//
// With the library's functions, arithmetic limits the kernels of the cell before memory does. Half types have 8 or 11
// bits, and the library computes 24. The functions here have a relative accuracy of 20 bits, also near 0 and in the
// tails.
#pragma once

#include <cmath>
#include <type_traits>

#include "launch.h"
#include "lltm_math.h"
#include "runtime.h"

namespace OPERATOR_NAMESPACE {

/// exp(x), or 0 where that is subnormal: to keep subnormal results costs three more instructions.
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

/// 1 / x, or 0 where that is subnormal.
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

/// As `Library` in lltm_math.h. Near 0, where a difference would lose digits, a series is used; a comment gives the
/// first term that it omits. Both sides of each choice are computed, since a branch would cost more. A NaN takes the
/// second side of each and stays a NaN.
struct Quick {
  static __host__ __device__ float sigmoid(float z) { return quick_reciprocal(1.f + quick_exp(-z)); }

  static __host__ __device__ float elu(float z) {  // omitted: z^6/720
    const float series = z * (1.f + z * (1.f / 2 + z * (1.f / 6 + z * (1.f / 24 + z * (1.f / 120)))));
    const float difference = quick_exp(z) - 1.f;
    const float below = z > -0.2f ? series : difference;
    return z > 0.f ? z : below;
  }

  static __host__ __device__ float elu_slope(float z) {
    const float below = quick_exp(z);
    return z > 0.f ? 1.f : below;
  }

  static __host__ __device__ float tanh(float z) {  // omitted: 62 z^9/2835
    const float size = std::fabs(z), square = z * z;
    const float series = z * (1.f + square * (-1.f / 3 + square * (2.f / 15 + square * (-17.f / 315))));
    const float difference = std::copysign(1.f - 2.f * quick_reciprocal(1.f + quick_exp(2.f * size)), z);
    return size < 0.25f ? series : difference;
  }
};

/// The functions for a dtype.
template <typename scalar_t>
using functions_of = std::conditional_t<sizeof(scalar_t) == 2, Quick, Library<compute_t<scalar_t>>>;

}  // namespace OPERATOR_NAMESPACE
