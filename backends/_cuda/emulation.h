// CUDA on the CPU: enough of its language and runtime for a .cu file to be compiled by a host compiler and run
// thread by thread on CPU tensors, under gradcheck, AddressSanitizer and UndefinedBehaviorSanitizer.
//
// A kernel without barriers is launched by `launch`: its threads run one after the other, to the end, in the order of
// their indices, which is a valid schedule. A kernel with barriers is launched by `launch_with_barriers`: each thread
// of a block is a fibre, which runs until it meets a barrier and continues once all others have met it too. Where
// threads would wait forever, because others took a branch around the barrier, the launch fails and does not hang. It
// also fails where CUDA leaves undefined what happens: a mask that names lanes that do not exist, have ended or do not
// take part, a value from such a lane, a barrier in divergent code. cudaGetErrorString then says what it was.
// Where a barrier is missing, a thread reads what another has not written yet: the order of the fibres does not hide
// that.
//
// The blocks of both run one after the other. `launch_together` runs all blocks of a grid beside each other, as a
// cooperative launch does, so that one may wait for what another writes; see beside.h.
//
// A launch that the hardware would refuse is refused here too: the kernel does not run, its outputs do not change, and
// only cudaGetLastError reports it.
#pragma once

#include <source_location>
#include <string>

#include "fibres.h"
#include "warps.h"

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

enum cudaError_t {
  cudaSuccess = 0,
  cudaErrorInvalidValue = 1,
  cudaErrorInvalidConfiguration = 9,
  cudaErrorLaunchFailure = 719
};

enum cudaDeviceAttr { cudaDevAttrMultiProcessorCount = 16, cudaDevAttrMaxSharedMemoryPerBlockOptin = 97 };

namespace emulation {

/// What cudaDeviceGetAttribute says of the device. By default that of a large GPU, so that kernels get the grids that
/// they get there. A program that emulates another one changes it before anything else: answers are remembered.
struct Device {
  int multiprocessors = 128, memory_of_block = 227 * 1024;
};

inline Device device;

inline thread_local cudaError_t last_error = cudaSuccess;

/// What cudaGetErrorString says of a launch that failed.
inline thread_local std::string failed_launch = "unspecified launch failure";

/// Makes `failure`, unless it is empty, the error of the last launch. The first of several is kept.
inline void report(const std::string& failure) {
  if (failure.empty() || last_error == cudaErrorLaunchFailure) return;
  last_error = cudaErrorLaunchFailure;
  failed_launch = "unspecified launch failure: block (" + std::to_string(blockIdx.x) + ", " +
                  std::to_string(blockIdx.y) + ", " + std::to_string(blockIdx.z) + "), " + failure;
}

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
  for_each_block(grid, block, [&] {
    for_each_index(blockDim, threadIdx, [&] { kernel(arguments...); });
    report(fibres().take_failure());
  });
}

/// `launch` for a kernel that uses __syncthreads or an intrinsic of warps.h. Its blocks have one dimension.
template <typename... Parameters>
void launch_with_barriers(void (*kernel)(Parameters...), dim3 grid, dim3 block, cudaStream_t, Parameters... arguments) {
  for_each_block(grid, block, [&] {
    const bool ended = fibres().run(
        blockDim.x, [&](unsigned thread) { threadIdx = dim3(thread, 0, 0); }, [&] { kernel(arguments...); });
    if (!ended) report(fibres().take_failure());
  });
}

}  // namespace emulation

/// All threads of the block that have not returned meet here.
inline void __syncthreads(std::source_location at = std::source_location::current()) {
  emulation::fibres().meet_all(at);
}

/// There is one device.
inline cudaError_t cudaGetDevice(int* device) {
  *device = 0;
  return cudaSuccess;
}

inline cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int) {
  const emulation::Device& device = emulation::device;
  *value = attribute == cudaDevAttrMultiProcessorCount ? device.multiprocessors : device.memory_of_block;
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
    case cudaErrorInvalidValue:
      return "invalid argument";
    case cudaErrorInvalidConfiguration:
      return "invalid configuration argument";
    default:
      return emulation::failed_launch.c_str();
  }
}
