// Contiguous memory, read and written 16 bytes at a time where size and alignment allow it.
#pragma once

#include <cstdint>
#include <initializer_list>

#include "runtime.h"

namespace OPERATOR_NAMESPACE {

constexpr int kVectorBytes = 16;

/// `width` neighbouring elements. An assignment copies lane by lane, so no aliasing rule is broken when an array of
/// scalar_t is accessed through a Vector. The alignment makes one load or store of the whole.
template <typename scalar_t, int width>
struct alignas(sizeof(scalar_t) * width) Vector {
  scalar_t lane[width];
};

template <int width, typename scalar_t>
__device__ Vector<scalar_t, width> load(const scalar_t* from) {
  return *reinterpret_cast<const Vector<scalar_t, width>*>(from);
}

template <int width, typename scalar_t>
__device__ void store(scalar_t* to, const Vector<scalar_t, width>& vector) {
  *reinterpret_cast<Vector<scalar_t, width>*>(to) = vector;
}

/// Lets the memory at `from` come to the cache that all blocks share, and does not wait for it.
__device__ inline void begin_caching([[maybe_unused]] const void* from) {
#if defined(__CUDA_ARCH__)
  asm volatile("prefetch.global.L2 [%0];" ::"l"(from));
#endif
}

/// Calls `body.operator()<width>()` with the width of 16 bytes if a row of `row_size` elements is a whole number of
/// such vectors and all pointers are aligned to them; with width 1 otherwise.
template <typename scalar_t, typename Body>
void for_vector_width(int64_t row_size, std::initializer_list<const void*> pointers, Body body) {
  constexpr int width = kVectorBytes / sizeof(scalar_t);
  bool vectorizes = row_size % width == 0;
  for (const void* pointer : pointers) {
    vectorizes = vectorizes && reinterpret_cast<std::uintptr_t>(pointer) % kVectorBytes == 0;
  }
  if (vectorizes) {
    body.template operator()<width>();
  } else {
    body.template operator()<1>();
  }
}

}  // namespace OPERATOR_NAMESPACE
