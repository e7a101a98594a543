// A block as kSlots slots of kTile threads: each thread of a slot has one column, and the slots share out the rows of
// that column. The sums of the slots are added up in shared memory, in the order of the slots.
#pragma once

#include <cstdint>

#include "launch.h"
#include "runtime.h"

namespace OPERATOR_NAMESPACE {

constexpr int kTile = 32, kSlots = static_cast<int>(kBlockSize) / kTile;

/// For the sum of parts: a tile of 32 bytes, since the fewer parts a thread adds up, the less it waits for memory.
constexpr int kTotalTile = 8, kTotalSlots = static_cast<int>(kBlockSize) / kTotalTile;

/// The slot of this thread, and its column in the tile.
struct SlotOfThread {
  int slot, column;
};

template <int tile = kTile>
__device__ SlotOfThread slot_of_thread() {
  return {static_cast<int>(threadIdx.x) / tile, static_cast<int>(threadIdx.x) % tile};
}

/// `value(0) + value(1) + ...` over all slots.
template <int slots = kSlots, typename Value>
__device__ auto sum_over_slots(Value value) {
  auto sum = value(0);
  for (int slot = 1; slot < slots; ++slot) sum += value(slot);
  return sum;
}

/// In slot 0, the sum of column `column` of the matrix `sums`, (parts, columns); 0 in other slots. All threads of the
/// block call it; each of its kTotalSlots slots adds up every kTotalSlots-th part.
template <typename real>
__device__ real sum_of_parts(int64_t parts, int64_t columns, int64_t column, const real* sums) {
  __shared__ real of_slot[kTotalSlots][kTotalTile];
  const auto [slot, own] = slot_of_thread<kTotalTile>();
  real sum = 0;
  for (int64_t part = slot; part < parts && column < columns; part += kTotalSlots) sum += sums[part * columns + column];
  __syncthreads();  // all threads have read what an earlier call stored
  of_slot[slot][own] = sum;
  __syncthreads();
  if (slot > 0) return 0;
  return sum_over_slots<kTotalSlots>([&, at = own](int other) { return of_slot[other][at]; });
}

}  // namespace OPERATOR_NAMESPACE
