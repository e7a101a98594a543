// Emulated grids whose blocks run beside each other, as in a cooperative launch: a block may wait for another.
//
// The blocks take turns: each goes on until all its threads wait. A block has shared memory of its own, which a kernel
// gets by its size at the launch. Variables that are `__shared__` would be common to all blocks: such a kernel has
// none.
#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "emulation.h"

namespace emulation {

/// Blocks that the emulated device holds at once: few, since each of their threads has a stack.
constexpr int kResidentBlocks = 40;

/// The shared memory of the running block.
inline thread_local unsigned char* shared_memory = nullptr;

/// A block of such a grid.
struct BlockBesideOthers {
  Fibres fibres;
  std::unique_ptr<std::max_align_t[]> shared;
};

/// They are kept, so that the stacks of their fibres are allocated once.
inline std::vector<std::unique_ptr<BlockBesideOthers>>& blocks_beside_each_other() {
  static thread_local std::vector<std::unique_ptr<BlockBesideOthers>> blocks;
  return blocks;
}

/// Lets each block go on in turn as far as it gets, until all have ended, one failed, or none gets further. So a block
/// is ahead of another by as much as their messages allow, and what it overwrites too early is not there any more.
inline void take_turns(unsigned count) {
  const auto& blocks = blocks_beside_each_other();
  const auto fails = [](Fibres& fibres) {
    const std::string failure = fibres.take_failure();
    report(failure);
    return !failure.empty();
  };
  for (bool progressed = true, is_alive = true; is_alive;) {
    const bool none_gets_further = !progressed;
    progressed = is_alive = false;
    for (unsigned number = 0; number < count; ++number) {
      Fibres& fibres = blocks[number]->fibres;
      if (!fibres.is_alive()) continue;
      blockIdx = dim3(number, 0, 0);
      fibres_of_one_of_many() = &fibres;
      if (none_gets_further) fibres.fail_waiting();
      while (fibres.is_alive() && fibres.advance()) progressed = true;
      is_alive = fibres.is_alive() || is_alive;
      if (fails(fibres)) return;
    }
  }
}

/// What a cooperative launch does. Grid and blocks have one dimension.
template <typename... Parameters>
void launch_together(void (*kernel)(Parameters...), dim3 grid, dim3 block, size_t shared_bytes, cudaStream_t,
                     Parameters... arguments) {
  if (!is_valid(grid, block) || grid.x > kResidentBlocks) {
    last_error = cudaErrorInvalidConfiguration;
    return;
  }
  gridDim = grid;
  blockDim = block;
  auto& blocks = blocks_beside_each_other();
  while (blocks.size() < grid.x) blocks.push_back(std::make_unique<BlockBesideOthers>());
  for (unsigned number = 0; number < grid.x; ++number) {
    BlockBesideOthers& own = *blocks[number];
    const size_t units = (shared_bytes + sizeof(std::max_align_t) - 1) / sizeof(std::max_align_t);
    own.shared.reset(new std::max_align_t[units]);
    std::memset(own.shared.get(), 0xff, units * sizeof(std::max_align_t));  // NaN where nothing was written
    own.fibres.begin(
        block.x,
        [&own](unsigned thread) {
          threadIdx = dim3(thread, 0, 0);
          shared_memory = reinterpret_cast<unsigned char*>(own.shared.get());
        },
        [&] { kernel(arguments...); });
  }
  take_turns(grid.x);
  for (unsigned number = 0; number < grid.x; ++number) blocks[number]->fibres.stop();
  fibres_of_one_of_many() = nullptr;
}

}  // namespace emulation
