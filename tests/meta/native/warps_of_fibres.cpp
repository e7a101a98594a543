// Kernels whose lanes meet: right ones, whose results main compares, and wrong ones, whose launches must fail.
// The argument is the name of one; what is printed is "right", "another result", or why the launch failed.
#include <cstdio>
#include <cstring>

#include "emulation.h"

namespace {

using Kernel = void (*)(int*);

/// A block of 40 threads has a second warp of 8 lanes.
constexpr unsigned kThreads = 40, kLast = 0xffu, kFull = 0xffffffffu;

unsigned lane() { return threadIdx.x % 32; }
unsigned existing() { return threadIdx.x < 32 ? kFull : kLast; }

// Right: each thread writes 1 to its place of `found`.

void partial_warp(int* found) {
  int sum = 1;
  for (int distance = 4; distance > 0; distance /= 2) sum += __shfl_xor_sync(existing(), sum, distance);
  found[threadIdx.x] = sum == 8;
}

void halves_of_a_warp(int* found) {
  if (threadIdx.x >= 32) {
    found[threadIdx.x] = 1;
    return;
  }
  const int below = __shfl_down_sync(kFull, static_cast<int>(lane()), 8, 16);
  const int above = __shfl_up_sync(kFull, static_cast<int>(lane()), 8, 16);
  const int expected = static_cast<int>(lane());
  found[threadIdx.x] =
      below == (expected % 16 < 8 ? expected + 8 : expected) && above == (expected % 16 < 8 ? expected : expected - 8);
}

/// CUDA takes the source modulo the width, and gives a lane its own value where the other is in a later group.
void outside_the_group(int* found) {
  const int own = static_cast<int>(lane());
  const int first = __shfl_sync(existing(), own, 8, 8), last = __shfl_sync(existing(), own, -1, 8);
  const int crossed = __shfl_xor_sync(existing(), own, 4, 4), wide = __shfl_down_sync(existing(), own, 20, 8);
  const int group = own / 8 * 8;
  found[threadIdx.x] = first == group && last == group + 7 && crossed == (own % 8 < 4 ? own : own - 4) && wide == own;
}

/// Two branches with masks of their own; each exchanges a different number of times, in different intrinsics.
void branches_apart(int* found) {
  if (threadIdx.x >= 32) {
    found[threadIdx.x] = 1;
  } else if (lane() < 16) {
    int sum = 1;
    for (int distance = 8; distance > 0; distance /= 2) sum += __shfl_xor_sync(0xffffu, sum, distance);
    found[threadIdx.x] = sum == 16;
  } else {
    found[threadIdx.x] = __shfl_sync(0xffff0000u, static_cast<int>(lane()), 20) == 20;
  }
  __syncthreads();
}

void votes(int* found) {
  const bool even = lane() % 2 == 0;
  const unsigned ballot = __ballot_sync(existing(), even);
  __syncwarp(existing());
  __syncwarp();
  found[threadIdx.x] = ballot == (0x55555555u & existing()) && __any_sync(existing(), lane() == 3) == 1 &&
                       __any_sync(existing(), 0) == 0 && __all_sync(existing(), 1) == 1 &&
                       __all_sync(existing(), even) == 0;
}

void whole_warps_return(int* found) {
  found[threadIdx.x] = 1;
  if (threadIdx.x >= 32) return;
  __syncthreads();
  found[threadIdx.x] = __shfl_sync(kFull, 1, 31);
}

void condition_of_the_block(int* found) {
  for (unsigned i = 0; i < blockDim.x / 8; ++i) {
    if (i % 2 == 0) __syncthreads();
    __syncthreads();
  }
  found[threadIdx.x] = 1;
}

// Wrong.

void lane_that_does_not_exist(int* found) { found[threadIdx.x] = __shfl_xor_sync(existing(), 1, 32); }
void negative_distance(int* found) { found[threadIdx.x] = __shfl_down_sync(existing(), 1, -1); }
void lane_behind_the_last(int* found) { found[threadIdx.x] = __shfl_down_sync(existing(), 1, 4); }
void lane_outside_the_mask(int* found) {
  if (lane() < 4) found[threadIdx.x] = __shfl_sync(0xfu, 1, 5);
}
void mask_beyond_the_last_warp(int* found) { found[threadIdx.x] = __shfl_xor_sync(kFull, 1, 1); }
void mask_without_the_caller(int* found) { found[threadIdx.x] = __shfl_sync(existing() & ~2u, 1, 0); }
void empty_mask(int*) { __syncwarp(0); }
void width_24(int* found) { found[threadIdx.x] = __shfl_sync(existing(), 1, 0, 24); }
void width_64(int* found) { found[threadIdx.x] = __shfl_sync(existing(), 1, 0, 64); }
void width_0(int* found) { found[threadIdx.x] = __shfl_sync(existing(), 1, 0, 0); }
void half_a_warp(int* found) { found[threadIdx.x] = lane() < 4 ? __shfl_xor_sync(existing(), 1, 1) : 0; }
void lanes_that_have_ended(int* found) {
  if (lane() < 4) return;
  found[threadIdx.x] = __shfl_xor_sync(existing(), 1, 1);
}
void two_masks(int* found) {
  found[threadIdx.x] = __shfl_xor_sync(lane() < 4 ? 0xfu : existing(), 1, 1);
  __syncthreads();
}
void two_intrinsics(int* found) {
  found[threadIdx.x] = lane() < 4 ? __any_sync(existing(), 1) : __all_sync(existing(), 1);
}
void barrier_and_exchange(int* found) {
  if (threadIdx.x < 32 || lane() == 0)
    __syncthreads();
  else
    found[threadIdx.x] = __shfl_xor_sync(kLast, 1, 1);
}
void two_barriers(int* found) {
  if (threadIdx.x < 32)
    __syncthreads();
  else
    __syncthreads();
  found[threadIdx.x] = 1;
}
void part_of_a_warp_skips_the_barrier(int* found) {
  if (threadIdx.x < 36) __syncthreads();
  found[threadIdx.x] = 1;
}
void part_of_a_warp_waits_less_often(int* found) {
  for (unsigned i = threadIdx.x; i < 70; i += kThreads) __syncthreads();
  found[threadIdx.x] = 1;
}

#define NAMED(kernel) {#kernel, kernel}
const struct {
  const char* name;
  Kernel kernel;
} kKernels[] = {
    NAMED(partial_warp),
    NAMED(halves_of_a_warp),
    NAMED(outside_the_group),
    NAMED(branches_apart),
    NAMED(votes),
    NAMED(whole_warps_return),
    NAMED(condition_of_the_block),
    NAMED(lane_that_does_not_exist),
    NAMED(negative_distance),
    NAMED(lane_behind_the_last),
    NAMED(lane_outside_the_mask),
    NAMED(mask_beyond_the_last_warp),
    NAMED(mask_without_the_caller),
    NAMED(empty_mask),
    NAMED(width_24),
    NAMED(width_64),
    NAMED(width_0),
    NAMED(half_a_warp),
    NAMED(lanes_that_have_ended),
    NAMED(two_masks),
    NAMED(two_intrinsics),
    NAMED(barrier_and_exchange),
    NAMED(two_barriers),
    NAMED(part_of_a_warp_skips_the_barrier),
    NAMED(part_of_a_warp_waits_less_often),
};

}  // namespace

int main(int count, char** arguments) {
  const bool without_barriers = count > 2;
  for (const auto& [name, kernel] : kKernels) {
    if (std::strcmp(name, arguments[1]) != 0) continue;
    for (int time = 0; time < 2; ++time) {  // a block that failed does not disturb the next
      int found[kThreads] = {};
      (without_barriers ? emulation::launch<int*> : emulation::launch_with_barriers<int*>)(kernel, 2, kThreads, nullptr,
                                                                                           found);
      const cudaError_t error = cudaGetLastError();
      bool right = true;
      for (const int one : found) right = right && one == 1;
      std::puts(error != cudaSuccess ? cudaGetErrorString(error) : right ? "right" : "another result");
    }
    return 0;
  }
  std::puts("no kernel has that name");
  return 2;
}
