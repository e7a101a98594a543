// Copies from global to shared memory that go on while their thread does something else, and shared memory whose size
// the launch decides.
//
// A thread begins copies of 16 bytes, ends a group of them, and waits later for its oldest groups. The wait is for the
// copies of this thread: others see them after a barrier. Before compute capability 8.0, and on AMD GPUs, a copy is
// complete when it has begun.
#pragma once

#include <cstddef>
#include <cstdint>

#include "launch.h"
#include "multiprocessors.h"
#include "runtime.h"

#ifdef CUDA_EMULATED
#include "emulated_copies.h"
#elif !defined(__HIPCC__)
#include <cuda_pipeline_primitives.h>
#endif

namespace OPERATOR_NAMESPACE {

/// Bytes of one copy. Both of its addresses are multiples of it.
constexpr int kCopyBytes = 16;

__device__ inline void begin_copy(void* to_shared, const void* from_global) {
#ifdef CUDA_EMULATED
  emulation::copies().begin(to_shared, from_global, kCopyBytes);
#elif defined(__HIPCC__)
  *static_cast<uint4*>(to_shared) = *static_cast<const uint4*>(from_global);
#else
  __pipeline_memcpy_async(to_shared, from_global, kCopyBytes);
#endif
}

/// `begin_copy`, or zeros in place of what is not there: without a branch.
__device__ inline void begin_copy_or_zeros(void* to_shared, const void* from_global, bool is_there) {
#ifdef CUDA_EMULATED
  emulation::copies().begin(to_shared, is_there ? from_global : nullptr, kCopyBytes);
#elif defined(__HIPCC__)
  *static_cast<uint4*>(to_shared) = is_there ? *static_cast<const uint4*>(from_global) : uint4{};
#else
  __pipeline_memcpy_async(to_shared, from_global, kCopyBytes, is_there ? 0 : kCopyBytes);
#endif
}

/// The copies that this thread began since the last group are a group; it may be empty.
__device__ inline void end_group() {
#ifdef CUDA_EMULATED
  emulation::copies().end_group();
#elif !defined(__HIPCC__)
  __pipeline_commit();
#endif
}

/// Waits until all groups of this thread but the `later` last ones are complete.
template <int later>
__device__ void wait_for_groups() {
#ifdef CUDA_EMULATED
  emulation::copies().wait(later);
#elif !defined(__HIPCC__)
  __pipeline_wait_prior(later);
#endif
}

/// The shared memory of the block that `launch_early_with_memory` asked for.
template <typename T>
__device__ T* memory_of_block() {
#ifdef CUDA_EMULATED
  return reinterpret_cast<T*>(emulation::memory_of_block().data());
#else
  extern __shared__ __align__(128) unsigned char memory[];
  return reinterpret_cast<T*>(memory);
#endif
}

/// Bytes of shared memory that a block may ask for on the current device.
inline int64_t most_memory_of_block() {
  return remembered_for_device([] {
#ifdef __HIPCC__
    constexpr auto attribute = cudaDevAttrMaxSharedMemoryPerBlock;
#else
    constexpr auto attribute = cudaDevAttrMaxSharedMemoryPerBlockOptin;
#endif
    int device = 0, bytes = 0;
    cudaGetDevice(&device);
    cudaDeviceGetAttribute(&bytes, attribute, device);
    return int64_t{bytes};
  });
}

/// `launch_blocks_early` for a kernel whose blocks have `bytes` of shared memory beside what it declares, up to
/// `most_memory_of_block`.
template <typename... Parameters>
void launch_early_with_memory(const char* name, void (*kernel)(Parameters...), dim3 grid, dim3 block, int64_t bytes,
                              void* stream, std::type_identity_t<Parameters>... arguments) {
#ifdef CUDA_EMULATED
  if (emulation::give_memory(static_cast<size_t>(bytes))) {
    emulation::launch_with_barriers(kernel, grid, block, static_cast<cudaStream_t>(stream), arguments...);
  }
  check_launch(name);
#elif defined(__HIPCC__)
  kernel<<<grid, block, static_cast<size_t>(bytes), static_cast<cudaStream_t>(stream)>>>(arguments...);
  check_launch(name);
#else
  // More than 48 KiB is given to those alone who ask for it. A refusal is reported by the launch.
  cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes));
  launch_overlapping(name, kernel, grid, block, static_cast<size_t>(bytes), stream, arguments...);
#endif
}

}  // namespace OPERATOR_NAMESPACE
