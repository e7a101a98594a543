// The CUDA runtime, or its emulation on the CPU; translated by hipify, the HIP runtime.
#pragma once

#ifdef CUDA_EMULATED
#include "emulation.h"
#else
#include <cuda_runtime.h>
#endif

namespace OPERATOR_NAMESPACE {

constexpr int kLanes = 32;  // of a warp; where a wavefront has 64, of either half of it

/// The `value` of the thread whose lane, of 32, differs in the bits of `distance`. All threads of the block take part.
template <typename T>
__device__ T from_lane(T value, int distance) {
#ifdef __HIPCC__
  // HIP has the other name in its later versions alone, with a mask as wide as the wavefront.
  return __shfl_xor(value, distance, kLanes);
#else
  return __shfl_xor_sync(0xffffffffu, value, distance);
#endif
}

}  // namespace OPERATOR_NAMESPACE
