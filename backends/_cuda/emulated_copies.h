// The asynchronous copies of copies.h, for the emulation. A copy is made as late as CUDA allows: when its thread waits
// for it. Until then its bytes are those of a NaN, so that a kernel that does not wait computes nonsense.
#pragma once

#include <cstddef>
#include <cstring>
#include <deque>
#include <unordered_map>
#include <utility>
#include <vector>

#include "emulation.h"

namespace emulation {

/// Each byte of shared memory that nobody has written: the NaN of every dtype.
constexpr unsigned char kUnwritten = 0xff;

/// Aligned as shared memory is.
struct alignas(128) Line {
  unsigned char bytes[128];
};

/// What `launch_early_with_memory` gave the block, rounded up to a line, so that AddressSanitizer sees an access beyond
/// it.
inline std::vector<Line>& memory_of_block() {
  static thread_local std::vector<Line> memory;
  return memory;
}

/// The copies that the threads of a block have begun and not waited for.
class Copies {
 public:
  /// Zeros come from a null pointer.
  void begin(void* to, const void* from, size_t bytes) {
    std::memset(to, kUnwritten, bytes);
    of_thread().open.push_back({to, from, bytes});
  }

  void end_group() {
    OfThread& own = of_thread();
    own.groups.push_back(std::exchange(own.open, {}));
  }

  /// Makes the copies of all groups of the running thread but the `later` last ones.
  void wait(size_t later) {
    auto& groups = of_thread().groups;
    for (; groups.size() > later; groups.pop_front()) {
      for (const Copy& copy : groups.front()) {
        if (copy.from != nullptr) {
          std::memcpy(copy.to, copy.from, copy.bytes);
        } else {
          std::memset(copy.to, 0, copy.bytes);
        }
      }
    }
  }

  /// What threads of an earlier launch began and never waited for.
  void forget() { threads_.clear(); }

 private:
  struct Copy {
    void* to;
    const void* from;
    size_t bytes;
  };
  struct OfThread {
    unsigned block;
    std::vector<Copy> open;
    std::deque<std::vector<Copy>> groups;
  };

  /// Those of the running thread: none if it is the first time in its block. Grids have one dimension.
  OfThread& of_thread() {
    OfThread& own = threads_[threadIdx.x];
    if (own.block != blockIdx.x) own = {blockIdx.x, {}, {}};
    return own;
  }

  std::unordered_map<unsigned, OfThread> threads_;
};

inline Copies& copies() {
  static thread_local Copies copies;
  return copies;
}

/// Gives the blocks of the next launch that many bytes, and forgets what threads of earlier launches began to copy.
/// False, as the last error says, if the device has less for a block.
inline bool give_memory(size_t bytes) {
  if (bytes > static_cast<size_t>(device.memory_of_block)) {
    last_error = cudaErrorInvalidValue;
    return false;
  }
  auto& memory = memory_of_block();
  memory.resize((bytes + sizeof(Line) - 1) / sizeof(Line));
  std::memset(memory.data(), kUnwritten, memory.size() * sizeof(Line));
  copies().forget();
  return true;
}

}  // namespace emulation
