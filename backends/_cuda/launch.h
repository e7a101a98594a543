// From an operator call to a kernel: the instance of the template for a dtype and a size, the grid, the launch.
#pragma once

#include <torch/headeronly/core/ScalarType.h>
#include <torch/headeronly/util/Exception.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "runtime.h"

namespace OPERATOR_NAMESPACE {

using torch::headeronly::ScalarType;

constexpr int64_t kBlockSize = 256;

/// More blocks than any GPU holds at once; the grid-stride loop covers the rest. It is low enough that an int32 index
/// does not overflow when it steps past the end: see `for_index_type`.
constexpr int64_t kMaxGridSize = 65536;

/// The dtype of the arithmetic: float for half types, otherwise the dtype itself.
template <typename scalar_t>
using compute_t = std::conditional_t<sizeof(scalar_t) == 2, float, scalar_t>;

/// Calls `body.operator()<scalar_t>()` with the C++ type of `dtype`.
template <typename Body>
void for_dtype(ScalarType dtype, Body body) {
  switch (dtype) {
    case ScalarType::Float:
      return body.template operator()<float>();
    case ScalarType::Double:
      return body.template operator()<double>();
    case ScalarType::Half:
      return body.template operator()<c10::Half>();
    case ScalarType::BFloat16:
      return body.template operator()<c10::BFloat16>();
    default:
      STD_TORCH_CHECK(false, "no kernel for dtype ", torch::headeronly::toString(dtype));
  }
}

/// Calls `body.operator()<index_t>()`: with int32_t, whose arithmetic is cheaper, if it holds every index and offset
/// up to `largest` and the step of a grid-stride loop past them; with int64_t otherwise.
template <typename Body>
void for_index_type(int64_t largest, Body body) {
  if (largest <= std::numeric_limits<int32_t>::max() - kMaxGridSize * kBlockSize) {
    body.template operator()<int32_t>();
  } else {
    body.template operator()<int64_t>();
  }
}

/// Raises if the last launch failed. A refused launch leaves its outputs unchanged and reports nothing else.
inline void check_launch(const char* name) {
  const cudaError_t error = cudaGetLastError();
  STD_TORCH_CHECK(error == cudaSuccess, "launch of ", name, " failed: ", cudaGetErrorString(error));
}

/// The grid for `items` > 0, `items_per_block` of them a block.
inline dim3 grid_for(int64_t items, int64_t items_per_block) {
  return {static_cast<unsigned>(std::min((items + items_per_block - 1) / items_per_block, kMaxGridSize))};
}

/// Launches `kernel`, a grid-stride loop over `items` > 0, on `stream`, and checks that it was launched.
template <typename... Parameters>
void launch(const char* name, void (*kernel)(Parameters...), int64_t items, void* stream,
            std::type_identity_t<Parameters>... arguments) {
  const dim3 grid = grid_for(items, kBlockSize), block(kBlockSize);
  const auto cuda_stream = static_cast<cudaStream_t>(stream);
#ifdef CUDA_EMULATED
  emulation::launch(kernel, grid, block, cuda_stream, arguments...);
#else
  kernel<<<grid, block, 0, cuda_stream>>>(arguments...);
#endif
  check_launch(name);
}

/// Waits until the kernel before this one in its stream has ended, and what it wrote can be read: the first statement
/// of a kernel that is launched early, or what comes before it reads nothing that the kernel before it writes.
__device__ inline void wait_for_previous() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

/// Lets a kernel after this one that is launched early begin as soon as all blocks of this one have. Without it, it
/// begins when all of them have ended.
__device__ inline void let_next_begin() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;");
#endif
}

/// The first statement of a kernel that is launched early and needs everything before it. The kernel after it is
/// brought to the GPU meanwhile, if it is launched early too: that takes as long as a small kernel runs.
__device__ inline void begin_after_previous() {
  let_next_begin();
  wait_for_previous();
}

#if !defined(CUDA_EMULATED) && !defined(__HIPCC__)
/// Launches a kernel that waits with `wait_for_previous`; where the GPU supports it, before the one before it has
/// ended.
template <typename... Parameters>
void launch_overlapping(const char* name, void (*kernel)(Parameters...), dim3 grid, dim3 block, size_t shared_bytes,
                        void* stream, std::type_identity_t<Parameters>... arguments) {
  int device = 0, generation = 0;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&generation, cudaDevAttrComputeCapabilityMajor, device);
  cudaLaunchAttribute early{};
  early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = grid;
  config.blockDim = block;
  config.dynamicSmemBytes = shared_bytes;
  config.stream = static_cast<cudaStream_t>(stream);
  config.attrs = &early;
  config.numAttrs = generation >= 9 ? 1 : 0;
  cudaLaunchKernelEx(&config, kernel, arguments...);
  check_launch(name);
}
#endif

/// `launch` for a kernel that waits with `wait_for_previous`: where the GPU supports it, the launch overlaps with the
/// kernel before it, which saves most of a microsecond.
template <typename... Parameters>
void launch_early(const char* name, void (*kernel)(Parameters...), int64_t items, void* stream,
                  std::type_identity_t<Parameters>... arguments) {
#if defined(CUDA_EMULATED) || defined(__HIPCC__)
  launch(name, kernel, items, stream, arguments...);
#else
  launch_overlapping(name, kernel, grid_for(items, kBlockSize), {kBlockSize}, 0, stream, arguments...);
#endif
}

/// `launch` for a kernel with barriers, of a grid and blocks of its own.
template <typename... Parameters>
void launch_blocks(const char* name, void (*kernel)(Parameters...), dim3 grid, dim3 block, void* stream,
                   std::type_identity_t<Parameters>... arguments) {
  const auto cuda_stream = static_cast<cudaStream_t>(stream);
#ifdef CUDA_EMULATED
  emulation::launch_with_barriers(kernel, grid, block, cuda_stream, arguments...);
#else
  kernel<<<grid, block, 0, cuda_stream>>>(arguments...);
#endif
  check_launch(name);
}

/// `launch_early` for a kernel with barriers, of a grid and blocks of its own.
template <typename... Parameters>
void launch_blocks_early(const char* name, void (*kernel)(Parameters...), dim3 grid, dim3 block, void* stream,
                         std::type_identity_t<Parameters>... arguments) {
#if defined(CUDA_EMULATED) || defined(__HIPCC__)
  launch_blocks(name, kernel, grid, block, stream, arguments...);
#else
  launch_overlapping(name, kernel, grid, block, 0, stream, arguments...);
#endif
}

/// `launch` for a kernel with barriers, whose blocks take `items_per_block` items each.
template <typename... Parameters>
void launch_with_barriers(const char* name, void (*kernel)(Parameters...), int64_t items, int64_t items_per_block,
                          void* stream, std::type_identity_t<Parameters>... arguments) {
  launch_blocks(name, kernel, grid_for(items, items_per_block), {kBlockSize}, stream, arguments...);
}

/// First item of this thread in a grid-stride loop.
template <typename index_t>
__device__ index_t first_item() {
  return static_cast<index_t>(blockIdx.x) * static_cast<index_t>(blockDim.x) + static_cast<index_t>(threadIdx.x);
}

/// Distance between two items of one thread.
template <typename index_t>
__device__ index_t item_stride() {
  return static_cast<index_t>(gridDim.x) * static_cast<index_t>(blockDim.x);
}

}  // namespace OPERATOR_NAMESPACE
