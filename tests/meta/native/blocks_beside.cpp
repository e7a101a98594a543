// Kernels whose blocks run beside each other: right ones, whose results main compares, and wrong ones, whose launches
// must fail. The argument is the name of one; what is printed is "right", "another result", or why the launch failed.
#include <cstdio>
#include <cstring>
#include <vector>

#include "beside.h"

namespace {

constexpr unsigned kThreads = 40;

struct Places {
  volatile int* messages;  // 0 until they are sent
  int* found;
};
using Kernel = void (*)(Places);

int& own_place(Places places) { return places.found[blockIdx.x * kThreads + threadIdx.x]; }

/// Each block waits for its left neighbour, and the first for nobody: as many waits as there are blocks.
void chain(Places places) {
  if (blockIdx.x > 0) emulation::fibres().wait_until([&] { return places.messages[blockIdx.x - 1] != 0; });
  __syncthreads();
  if (threadIdx.x == 0) places.messages[blockIdx.x] = 1;
  own_place(places) = 1;
}

/// As `chain` from the other side: the first block waits for the last, which starts after it.
void chain_from_the_last(Places places) {
  if (blockIdx.x + 1 < gridDim.x) emulation::fibres().wait_until([&] { return places.messages[blockIdx.x + 1] != 0; });
  __syncthreads();
  if (threadIdx.x == 0) places.messages[blockIdx.x] = 1;
  own_place(places) = 1;
}

/// All blocks wait for the message of a thread of their own, which comes after theirs.
void thread_of_the_block(Places places) {
  if (threadIdx.x == 39) places.messages[blockIdx.x] = 1;
  emulation::fibres().wait_until([&] { return places.messages[blockIdx.x] != 0; });
  own_place(places) = 1;
}

/// Shared memory is the block's own while others run, and a NaN before.
void memory_of_its_own(Places places) {
  auto* const shared = reinterpret_cast<unsigned*>(emulation::shared_memory);
  const bool was_nan = shared[threadIdx.x] == 0xffffffffu;
  __syncthreads();
  shared[threadIdx.x] = blockIdx.x;
  places.messages[blockIdx.x] = 1;
  for (unsigned block = 0; block < gridDim.x; ++block)
    emulation::fibres().wait_until([&] { return places.messages[block] != 0; });
  __syncthreads();
  own_place(places) = was_nan && shared[(threadIdx.x + 1) % kThreads] == blockIdx.x;
}

/// A barrier is the block's own: blocks reach it different numbers of times.
void barriers_of_its_own(Places places) {
  auto* const shared = reinterpret_cast<unsigned*>(emulation::shared_memory);
  bool is_right = true;
  for (unsigned round = 0; round < blockIdx.x + 1; ++round) {
    shared[threadIdx.x] = round;
    __syncthreads();
    is_right = is_right && shared[(threadIdx.x + 1) % kThreads] == round;
    __syncthreads();
  }
  own_place(places) = is_right;
}

// Wrong.

void never_sent(Places places) {
  emulation::fibres().wait_until([&] { return places.messages[gridDim.x] != 0; });
}

void circle(Places places) {
  const unsigned left = (blockIdx.x + gridDim.x - 1) % gridDim.x;
  emulation::fibres().wait_until([&] { return places.messages[left] != 0; });
  places.messages[blockIdx.x] = 1;
}

/// One warp waits for a message of the other, which waits at the barrier.
void behind_a_barrier(Places places) {
  if (threadIdx.x < 32) emulation::fibres().wait_until([&] { return places.messages[blockIdx.x] != 0; });
  __syncthreads();
  places.messages[blockIdx.x] = 1;
}

void undefined_in_the_last(Places) {
  if (blockIdx.x + 1 == gridDim.x) __shfl_sync(0u, 1, 0);
}

const struct {
  const char* name;
  Kernel kernel;
} kKernels[] = {
    {"chain", chain},
    {"chain_from_the_last", chain_from_the_last},
    {"thread_of_the_block", thread_of_the_block},
    {"memory_of_its_own", memory_of_its_own},
    {"barriers_of_its_own", barriers_of_its_own},
    {"never_sent", never_sent},
    {"circle", circle},
    {"behind_a_barrier", behind_a_barrier},
    {"undefined_in_the_last", undefined_in_the_last},
};

/// One block more than the device holds is refused. Where the blocks run one after the other, the first waits forever.
void launch(Kernel kernel, const char* how, Places places) {
  constexpr unsigned kBlocks = 5;
  if (std::strcmp(how, "one after the other") == 0) {
    emulation::launch_with_barriers<Places>(kernel, kBlocks, kThreads, nullptr, places);
  } else {
    const unsigned blocks = std::strcmp(how, "too many") == 0 ? emulation::kResidentBlocks + 1 : kBlocks;
    emulation::launch_together<Places>(kernel, blocks, kThreads, kThreads * sizeof(unsigned), nullptr, places);
  }
}

}  // namespace

int main(int count, char** arguments) {
  for (const auto& [name, kernel] : kKernels) {
    if (std::strcmp(name, arguments[1]) != 0) continue;
    // Twice: blocks and fibres of the first launch are used again in the second.
    for (int round = 0; round < 2; ++round) {
      std::vector<int> messages(emulation::kResidentBlocks + 2), found(5 * kThreads);
      launch(kernel, count > 2 ? arguments[2] : "", {messages.data(), found.data()});
      const cudaError_t error = cudaGetLastError();
      bool is_right = true;
      for (const int one : found) is_right = is_right && one == 1;
      std::puts(error != cudaSuccess ? cudaGetErrorString(error) : is_right ? "right" : "another result");
    }
  }
}
