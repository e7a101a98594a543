// A state that is spread over blocks: which block has which part of it, and what they send each other.
//
// A slice is kSlice neighbouring units of the state. Each block of a team owns one or two of them, keeps the weights
// that make them, and sends them to the others in each step. A team computes kTileRows rows of the batch at a time, a
// tile; teams do not depend on each other. The warps of a block share out the terms of its products, kTileTerms at a
// time, which are two slices.
//
// A tile of a slice belongs to two warps. Lane 4g + t of the first has units 2t and 2t+1 of row g, and the same lane of
// the second has those of row g + 8. So a lane that multiplies tiles (tensor_cores.h) needs just what the same lane of
// these two sent.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "launch.h"
#include "messages.h"
#include "tensor_cores.h"

namespace OPERATOR_NAMESPACE {

constexpr int kGates = 3;
constexpr int kSlice = kTileColumns, kSpreadWarps = 8, kSpreadThreads = kSpreadWarps * kLanes;
/// Threads that own a tile of a slice, two units of one row each.
constexpr int kOwners = kTileRows * kSlice / 2;

/// Sizes and shares; what fits a grid has a batch and a state that fit an int.
struct Spread {
  int64_t steps, weight_stride;
  int batch, state_size, teams;

  __host__ __device__ int terms() const { return (state_size + kTileTerms - 1) / kTileTerms; }
  __host__ __device__ int slices() const { return 2 * terms(); }
  __host__ __device__ int tiles() const { return (batch + kTileRows - 1) / kTileRows; }
};

/// Tiles of a team, at most: each warp owns a part of one, and keeps in registers what goes on from step to step.
template <int slices>
constexpr int kMostTiles = kSpreadThreads / kOwners / slices;

/// What a thread owns.
struct Owner {
  int slice, tile;  // of the state and the batch; a tile beyond the last where the warp owns none
  int lane, row, unit;
  bool is_lower, is_there[2];  // is_lower: row g + 8. is_there: the unit is in the state, and the row in the batch

  /// Of a block whose first slice is `first_slice`, of so many.
  __device__ Owner(const Spread& spread, int team, int first_slice, int slices) {
    const int thread = static_cast<int>(threadIdx.x), part = thread / kOwners;
    slice = first_slice + part % slices;
    tile = team + part / slices * spread.teams;
    lane = thread % kLanes;
    is_lower = thread % kOwners >= kLanes;
    row = tile * kTileRows + lane / 4 + (is_lower ? kTileRows / 2 : 0);
    unit = slice * kSlice + lane % 4 * 2;
    for (int k = 0; k < 2; ++k) is_there[k] = row < spread.batch && unit + k < spread.state_size;
  }
};

/// Two neighbouring units, rounded to the dtype.
template <typename scalar_t>
struct Pair {
  scalar_t unit[2];
};

__device__ inline uint32_t bits_of(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof(bits));
  return bits;
}

/// In forward blocks send the state: each owner its two units. In the form for half types a word has both.
template <typename scalar_t>
struct StateMail {
  static constexpr bool is_half = sizeof(scalar_t) == 2;
  using Part = TwoWords;
  /// What one lane of a tile of a slice receives, and how many of the gates are multiplied with other numbers.
  static constexpr int parts = is_half ? 1 : 2, planes = 1;

  __device__ static void write(Part* to, bool is_lower, const Pair<scalar_t> (&pairs)[1], uint32_t flag) {
    const auto& unit = pairs[0].unit;
    if constexpr (is_half) {
      send(&to->word[is_lower ? 1 : 0], Word{packed(unit[0], unit[1]), flag});
    } else {
      send(to + (is_lower ? 1 : 0), TwoWords{{{bits_of(unit[0]), flag}, {bits_of(unit[1]), flag}}});
    }
  }

  /// Of half 0 (row g) or 1 (row g + 8): both units, or for float one.
  __device__ static uint32_t value(const Part (&given)[parts], int /*plane*/, int half, int unit) {
    return is_half ? given[0].word[half].value : given[half % parts].word[unit].value;
  }
};

/// In backward they send d_gates: each owner those of its two units, all gates together.
template <typename scalar_t>
struct GatesMail {
  static constexpr bool is_half = sizeof(scalar_t) == 2;
  using Part = Triple;
  static constexpr int parts = is_half ? 2 : 4, planes = kGates;

  __device__ static void write(Part* to, bool is_lower, const Pair<scalar_t> (&pairs)[kGates], uint32_t flag) {
    Part* const own = to + (is_lower ? parts / 2 : 0);
    if constexpr (is_half) {
      send(own, Triple{{packed(pairs[0].unit[0], pairs[0].unit[1]), packed(pairs[1].unit[0], pairs[1].unit[1]),
                        packed(pairs[2].unit[0], pairs[2].unit[1])},
                       flag});
    } else {
      for (int k = 0; k < 2; ++k) {
        send(own + k, Triple{{bits_of(pairs[0].unit[k]), bits_of(pairs[1].unit[k]), bits_of(pairs[2].unit[k])}, flag});
      }
    }
  }

  __device__ static uint32_t value(const Part (&given)[parts], int plane, int half, int unit) {
    return given[is_half ? half : (half * 2 + unit) % parts].value[plane];
  }
};

/// Where the messages of one tile lie. Flags count from 1. Messages whose flags are both odd or both even share their
/// place: who sends the later one has received the answers to the earlier one.
template <typename Mail>
class Mailbox {
 public:
  using Part = typename Mail::Part;

  __device__ Mailbox(void* all, const Spread& spread, int tile)
      : all_(static_cast<Part*>(all)), slices_(spread.slices()), tiles_(spread.tiles()), tile_(tile) {}

  /// What a lane of the owners of a slice sends: Mail::parts places.
  __device__ Part* of(uint32_t flag, int slice, int lane) const {
    const int row = (static_cast<int>(flag % 2) * tiles_ + tile_) * slices_ + slice;
    return all_ + (static_cast<int64_t>(row) * kLanes + lane) * Mail::parts;
  }

  static int64_t bytes(const Spread& spread) {
    return int64_t{2} * spread.tiles() * spread.slices() * kLanes * Mail::parts * static_cast<int64_t>(sizeof(Part));
  }

 private:
  Part* all_;
  int slices_, tiles_, tile_;
};

}  // namespace OPERATOR_NAMESPACE
