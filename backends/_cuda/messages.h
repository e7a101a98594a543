// Numbers that a block sends to others while a kernel runs: they travel together with a flag that says which ones they
// are.
//
// Numbers and flag are written at once and read at once, so who reads the flag it waits for has the numbers too. That
// takes one way through memory, where data, a fence and a barrier take three. The memory is 0 before the launch, and no
// flag is.
#pragma once

#include <cstdint>

#include "runtime.h"

namespace OPERATOR_NAMESPACE {

/// One number. The words of a pair may come from two threads.
struct alignas(8) Word {
  uint32_t value, flag;
};

struct alignas(16) TwoWords {
  Word word[2];

  __device__ bool has(uint32_t flag) const { return word[0].flag == flag && word[1].flag == flag; }
};

/// Three numbers of one thread.
struct alignas(16) Triple {
  uint32_t value[3], flag;

  __device__ bool has(uint32_t expected) const { return flag == expected; }
};

#ifdef CUDA_EMULATED

inline void send(Word* to, Word word) { *to = word; }
inline void send(TwoWords* to, const TwoWords& words) { *to = words; }
inline void send(Triple* to, const Triple& triple) { *to = triple; }
inline TwoWords received(const TwoWords* from) { return *from; }
inline Triple received(const Triple* from) { return *from; }

/// Waits until `arrived()`, on which the lanes of a warp agree.
template <typename Arrived>
void wait_until(Arrived arrived) {
  emulation::fibres().wait_until(arrived);
}

#else

/// So often a warp looks before it ends the kernel with an error, after some ten seconds. Otherwise a message that is
/// never sent would block the GPU.
constexpr uint32_t kMostLooks = 1u << 24;

__device__ inline uint64_t bits_of(uint32_t low, uint32_t high) { return static_cast<uint64_t>(high) << 32 | low; }
__device__ inline uint32_t low_of(uint64_t bits) { return static_cast<uint32_t>(bits); }
__device__ inline uint32_t high_of(uint64_t bits) { return static_cast<uint32_t>(bits >> 32); }

__device__ inline void send(Word* to, Word word) {
  asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(to), "l"(bits_of(word.value, word.flag)) : "memory");
}

__device__ inline void send(TwoWords* to, const TwoWords& words) {
  const Word &first = words.word[0], &second = words.word[1];
  asm volatile("st.relaxed.gpu.global.v2.u64 [%0], {%1, %2};" ::"l"(to), "l"(bits_of(first.value, first.flag)),
               "l"(bits_of(second.value, second.flag))
               : "memory");
}

__device__ inline void send(Triple* to, const Triple& triple) {
  asm volatile(
      "{\n\t.reg .b128 all;\n\tmov.b128 all, {%1, %2};\n\tst.relaxed.gpu.global.b128 [%0], all;\n\t}" ::"l"(to),
      "l"(bits_of(triple.value[0], triple.value[1])), "l"(bits_of(triple.value[2], triple.flag))
      : "memory");
}

__device__ inline TwoWords received(const TwoWords* from) {
  uint64_t first, second;
  asm volatile("ld.relaxed.gpu.global.v2.u64 {%0, %1}, [%2];" : "=l"(first), "=l"(second) : "l"(from));
  return {{{low_of(first), high_of(first)}, {low_of(second), high_of(second)}}};
}

__device__ inline Triple received(const Triple* from) {
  uint64_t first, second;
  asm volatile("{\n\t.reg .b128 all;\n\tld.relaxed.gpu.global.b128 all, [%2];\n\tmov.b128 {%0, %1}, all;\n\t}"
               : "=l"(first), "=l"(second)
               : "l"(from));
  return {{low_of(first), high_of(first), low_of(second)}, high_of(second)};
}

/// Waits until `arrived()`, on which the lanes of a warp agree.
template <typename Arrived>
__device__ void wait_until(Arrived arrived) {
  for (uint32_t looks = 0; !arrived(); ++looks) {
    if (looks == kMostLooks) __trap();
  }
}

#endif

}  // namespace OPERATOR_NAMESPACE
