// Asynchronous copies of the emulation: what has been waited for is there, and nothing else is.
#include <cmath>
#include <cstdio>
#include <vector>

#include "emulated_copies.h"

constexpr unsigned kThreads = 64, kBlocks = 3;

/// Each thread copies two groups of four numbers, waits for all but `later` of them, and returns its sum over both.
void copying_kernel(const float* from, float* to, int later) {
  float* const own = reinterpret_cast<float*>(emulation::memory_of_block().data()) + 8 * threadIdx.x;
  const float* const its = from + 8 * (blockIdx.x * kThreads + threadIdx.x);
  for (int group = 0; group < 2; ++group) {
    emulation::copies().begin(own + 4 * group, its + 4 * group, 16);
    emulation::copies().end_group();
  }
  __syncthreads();
  if (later < 2) emulation::copies().wait(static_cast<size_t>(later));
  float* const sums = to + 2 * (blockIdx.x * kThreads + threadIdx.x);
  for (int group = 0; group < 2; ++group) {
    sums[group] = own[4 * group] + own[4 * group + 1] + own[4 * group + 2] + own[4 * group + 3];
  }
}

int failures = 0;

void hold(bool condition, const char* what) {
  if (condition) return;
  ++failures;
  std::printf("wrong: %s\n", what);
}

int main() {
  std::vector<float> given(8 * kBlocks * kThreads), sums(2 * kBlocks * kThreads);
  for (size_t i = 0; i < given.size(); ++i) given[i] = static_cast<float>(i % 11);

  // Copies that nobody waits for come first: no later launch and no later block may find them.
  for (int later : {2, 1, 0, 2, 0}) {
    emulation::give_memory(8 * kThreads * sizeof(float));
    emulation::launch_with_barriers<const float*, float*, int>(copying_kernel, kBlocks, kThreads, nullptr, given.data(),
                                                               sums.data(), later);
    hold(cudaGetLastError() == cudaSuccess, "the launch");
    for (size_t i = 0; i < sums.size(); ++i) {
      const bool is_there = static_cast<int>(i % 2) < 2 - later;
      const float sum = given[4 * i] + given[4 * i + 1] + given[4 * i + 2] + given[4 * i + 3];
      hold(is_there ? sums[i] == sum : std::isnan(sums[i]), is_there ? "a group that came" : "a group that is missing");
    }
  }
  if (failures == 0) std::puts("done");
  return failures;
}
