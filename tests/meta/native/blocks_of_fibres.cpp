// Kernels that test the emulation: each writes the results of its threads, and main prints what was wrong.
#include <cstdio>
#include <vector>

#include "emulation.h"

namespace {

constexpr unsigned kThreads = 96;

/// Every thread writes, waits at a barrier, and reads its neighbour. Without the barrier it reads too early.
void neighbour_kernel(const int* given, int* found, bool meets) {
  __shared__ int shared[kThreads];
  const unsigned thread = threadIdx.x;
  shared[thread] = -1;
  __syncthreads();
  shared[thread] = given[blockIdx.x * kThreads + thread];
  if (meets) __syncthreads();
  found[blockIdx.x * kThreads + thread] = shared[(thread + 1) % kThreads];
}

/// Several sums over a warp in sequence: a lane that is ahead must not overwrite a value that another must still read.
void sums_kernel(const int* given, int* found, int times) {
  const unsigned thread = blockIdx.x * kThreads + threadIdx.x;
  int sum = given[thread];
  for (int time = 0; time < times; ++time)
    for (int distance = 16; distance > 0; distance /= 2) sum += __shfl_xor_sync(~0u, sum, distance);
  found[thread] = sum;
}

/// The last third of the threads returns before the barrier, which the others reach nevertheless.
void leaving_kernel(int* found) {
  if (threadIdx.x >= 64) return;
  __syncthreads();
  found[threadIdx.x] = 1;
}

/// Half of a warp skips the exchange: on hardware it would hang.
void diverged_kernel(int* found) {
  const int value = threadIdx.x < 16 ? __shfl_xor_sync(~0u, 1, 1) : 0;
  found[threadIdx.x] = value;
}

int failures = 0;

void hold(bool right, const char* what) {
  if (!right) {
    ++failures;
    std::printf("wrong: %s\n", what);
  }
}

}  // namespace

int main() {
  constexpr unsigned kBlocks = 3;
  std::vector<int> given(kBlocks * kThreads), found(given.size());
  for (size_t i = 0; i < given.size(); ++i) given[i] = static_cast<int>(i % 7 + 1);

  // Twice: fibres of the first round are reused in the second, and abandoned ones are created again.
  for (int round = 0; round < 2; ++round) {
    auto neighbours_are_right = [&](bool meets) {
      emulation::launch_with_barriers<const int*, int*, bool>(neighbour_kernel, kBlocks, kThreads, nullptr,
                                                              given.data(), found.data(), meets);
      bool right = cudaGetLastError() == cudaSuccess;
      for (unsigned i = 0; i < found.size(); ++i)
        right = right && found[i] == given[i / kThreads * kThreads + (i + 1) % kThreads];
      return right;
    };
    hold(neighbours_are_right(true), "the neighbour's value, after a barrier");
    hold(!neighbours_are_right(false), "a missing barrier is not hidden");

    emulation::launch_with_barriers<const int*, int*, int>(sums_kernel, kBlocks, kThreads, nullptr, given.data(),
                                                           found.data(), 3);
    bool sums = cudaGetLastError() == cudaSuccess;
    for (unsigned i = 0; i < found.size(); ++i) {
      int sum = 0;
      for (unsigned lane = 0; lane < 32; ++lane) sum += given[i / 32 * 32 + lane];
      sums = sums && found[i] == sum * 32 * 32;
    }
    hold(sums, "three sums over a warp, one behind the other");

    found.assign(found.size(), 0);
    emulation::launch_with_barriers<int*>(leaving_kernel, 1, kThreads, nullptr, found.data());
    bool left = cudaGetLastError() == cudaSuccess;
    for (unsigned thread = 0; thread < kThreads; ++thread) left = left && found[thread] == (thread < 64 ? 1 : 0);
    hold(left, "a barrier that some threads never reach, since they returned");

    emulation::launch_with_barriers<int*>(diverged_kernel, 1, 32, nullptr, found.data());
    hold(cudaGetLastError() == cudaErrorLaunchFailure, "half a warp at an exchange is a failed launch");
  }
  if (failures == 0) std::puts("done");
  return failures;
}
