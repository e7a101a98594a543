// Cooperative launches: all blocks of the grid are on the device at once, so that one may wait for another.
#pragma once

#include <cstddef>
#include <cstdint>

#include "launch.h"
#include "multiprocessors.h"
#include "runtime.h"
#ifdef CUDA_EMULATED
#include "beside.h"
#endif

namespace OPERATOR_NAMESPACE {

#ifdef CUDA_EMULATED

/// The shared memory whose size the launch gave.
inline unsigned char* shared_memory() { return emulation::shared_memory; }

/// How many blocks of the kernel the current device holds at once; 0 if it cannot launch them together.
template <typename... Parameters>
int64_t resident_blocks(void (*)(Parameters...), int, size_t shared_bytes) {
  return shared_bytes > static_cast<size_t>(emulation::device.memory_of_block) ? 0 : emulation::kResidentBlocks;
}

/// Whether the current device has the products of tensor_cores.h.
inline bool has_tensor_cores() { return true; }

#else

__device__ inline unsigned char* shared_memory() {
  extern __shared__ uint4 memory_of_the_launch[];
  return reinterpret_cast<unsigned char*>(memory_of_the_launch);
}

inline int attribute_of_device(cudaDeviceAttr attribute) {
  int device = 0, value = 0;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&value, attribute, device);
  return value;
}

/// How many blocks of the kernel the current device holds at once; 0 if it cannot launch them together.
template <typename... Parameters>
int64_t resident_blocks(void (*kernel)(Parameters...), int threads, size_t shared_bytes) {
  int blocks = 0;
  if (attribute_of_device(cudaDevAttrCooperativeLaunch) == 0 ||
      shared_bytes > static_cast<size_t>(attribute_of_device(cudaDevAttrMaxSharedMemoryPerBlockOptin)) ||
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared_bytes)) !=
          cudaSuccess ||
      cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, threads, shared_bytes) != cudaSuccess) {
    cudaGetLastError();
    return 0;
  }
  return static_cast<int64_t>(blocks) * attribute_of_device(cudaDevAttrMultiProcessorCount);
}

/// Whether the current device has the products of tensor_cores.h.
inline bool has_tensor_cores() { return attribute_of_device(cudaDevAttrComputeCapabilityMajor) >= 8; }

#endif

/// Launches `kernel` on `stream` with all blocks at once, which `resident_blocks` allows, and checks that it was
/// launched.
template <typename... Parameters>
void launch_together(const char* name, void (*kernel)(Parameters...), int64_t blocks, int threads, size_t shared_bytes,
                     void* stream, std::type_identity_t<Parameters>... arguments) {
  const dim3 grid(static_cast<unsigned>(blocks)), block(static_cast<unsigned>(threads));
#ifdef CUDA_EMULATED
  emulation::launch_together(kernel, grid, block, shared_bytes, stream, arguments...);
#else
  void* addresses[] = {&arguments...};
  cudaLaunchCooperativeKernel(kernel, grid, block, addresses, shared_bytes, static_cast<cudaStream_t>(stream));
#endif
  check_launch(name);
}

}  // namespace OPERATOR_NAMESPACE
