// CUDA on the CPU: enough of its language and runtime for a .cu file to be compiled by a host compiler and run
// thread by thread on CPU tensors, under gradcheck, AddressSanitizer and UndefinedBehaviorSanitizer.
//
// A kernel without barriers is launched by `launch`: its threads run one after the other, to the end, in the order of
// their indices, which is a valid schedule. A kernel with barriers is launched by `launch_with_barriers`: each thread
// of a block is a fibre, which runs until it meets a barrier and continues once all others have met it too. Where
// threads would wait forever, because others took a branch around the barrier, the launch fails and does not hang.
// Where a barrier is missing, a thread reads what another has not written yet: the order of the fibres does not hide
// that.
//
// A launch that the hardware would refuse is refused here too: the kernel does not run, its outputs do not change, and
// only cudaGetLastError reports it.
#pragma once

#include "fibres.h"

#define __global__
#define __host__
#define __device__
// One for all fibres of the system thread that runs the block; as on hardware, its contents outlive the block.
#define __shared__ static thread_local
// Registers that a thread may have: there are none.
#define __launch_bounds__(...)

struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
};

inline thread_local dim3 threadIdx, blockIdx, blockDim, gridDim;

using cudaStream_t = void*;

enum cudaError_t { cudaSuccess = 0, cudaErrorInvalidConfiguration = 9, cudaErrorLaunchFailure = 719 };

enum cudaDeviceAttr { cudaDevAttrMultiProcessorCount = 16 };

namespace emulation {

inline thread_local cudaError_t last_error = cudaSuccess;

/// The limits of every architecture since compute capability 3.0.
inline bool is_valid(dim3 grid, dim3 block) {
  const bool is_empty = grid.x == 0 || grid.y == 0 || grid.z == 0 || block.x == 0 || block.y == 0 || block.z == 0;
  const unsigned long long threads = 1ULL * block.x * block.y * block.z;
  return !is_empty && grid.x <= 2147483647 && grid.y <= 65535 && grid.z <= 65535 && block.x <= 1024 &&
         block.y <= 1024 && block.z <= 64 && threads <= 1024;
}

template <typename Body>
void for_each_index(dim3 extent, dim3& index, Body body) {
  for (index.z = 0; index.z < extent.z; ++index.z)
    for (index.y = 0; index.y < extent.y; ++index.y)
      for (index.x = 0; index.x < extent.x; ++index.x) body();
}

/// Calls `run_block()` for each block of the grid, if the hardware would accept the launch.
template <typename RunBlock>
void for_each_block(dim3 grid, dim3 block, RunBlock run_block) {
  if (!is_valid(grid, block)) {
    last_error = cudaErrorInvalidConfiguration;
    return;
  }
  gridDim = grid;
  blockDim = block;
  for_each_index(gridDim, blockIdx, run_block);
}

/// What `kernel<<<grid, block, 0, stream>>>(arguments...)` does. The kernel has finished when this returns, so the
/// stream does not matter.
template <typename... Parameters>
void launch(void (*kernel)(Parameters...), dim3 grid, dim3 block, cudaStream_t, Parameters... arguments) {
  for_each_block(grid, block, [&] { for_each_index(blockDim, threadIdx, [&] { kernel(arguments...); }); });
}

/// `launch` for a kernel that uses __syncthreads or __shfl_xor_sync. Its blocks have one dimension.
template <typename... Parameters>
void launch_with_barriers(void (*kernel)(Parameters...), dim3 grid, dim3 block, cudaStream_t, Parameters... arguments) {
  for_each_block(grid, block, [&] {
    const bool ended = fibres().run(
        blockDim.x, [&](unsigned thread) { threadIdx = dim3(thread, 0, 0); }, [&] { kernel(arguments...); });
    if (!ended) last_error = cudaErrorLaunchFailure;
  });
}

}  // namespace emulation

/// All threads of the block that have not returned meet here.
inline void __syncthreads() { emulation::fibres().meet_all(); }

/// The `value` of the thread of this warp whose lane differs in the bits of `distance`. All 32 lanes take part.
template <typename T>
T __shfl_xor_sync(unsigned, T value, int distance) {
  return emulation::fibres().exchange(value, distance);
}

/// There is one device.
inline cudaError_t cudaGetDevice(int* device) {
  *device = 0;
  return cudaSuccess;
}

/// As many multiprocessors as a large GPU has, so that kernels get the grids that they get there.
inline cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr, int) {
  *value = 128;
  return cudaSuccess;
}

/// The error of the last launch; as in CUDA, asking for it clears it.
inline cudaError_t cudaGetLastError() {
  const cudaError_t error = emulation::last_error;
  emulation::last_error = cudaSuccess;
  return error;
}

inline const char* cudaGetErrorString(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
      return "no error";
    case cudaErrorInvalidConfiguration:
      return "invalid configuration argument";
    default:
      return "unspecified launch failure: threads of a block wait at a barrier that others never reach";
  }
}
