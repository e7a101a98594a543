// The intrinsics of CUDA by which the lanes of a warp exchange values, vote and wait, for the emulation.
//
// Each lane that a mask names must exist, must not have ended, and must come to the same intrinsic with the same mask.
// CUDA exempts lanes that have ended; here they fail too, because nothing but chance decides whether a lane that takes
// no part has ended yet. A lane may only read from one that the mask names. CUDA leaves the value undefined otherwise;
// here the launch fails.
#pragma once

#include <bit>
#include <cstdint>
#include <string>

#include "fibres.h"

namespace emulation {

/// Ends the block unless a shuffle may have this width and this distance. Where the distance is 32 or more, CUDA's
/// guide and the hardware, which reads five bits of it, disagree.
inline void check_shuffle(const char* intrinsic, unsigned distance, int width) {
  if (width < 1 || width > static_cast<int>(kWarpSize) || !std::has_single_bit(static_cast<unsigned>(width))) {
    fibres().fail(std::string(intrinsic) + " has the width " + std::to_string(width) +
                  ", but should have 1, 2, 4, 8, 16 or 32");
  } else if (distance >= kWarpSize) {
    fibres().fail(std::string(intrinsic) + " has the distance " + std::to_string(static_cast<int>(distance)) +
                  ", but should have one from 0 to 31");
  } else {
    return;
  }
  fibres().abandon();
}

}  // namespace emulation

/// The `value` of lane `source` of this lane's group of `width`. As in CUDA, a source outside the group is taken modulo
/// the width.
template <typename T>
T __shfl_sync(unsigned mask, T value, int source, int width = 32) {
  emulation::check_shuffle("__shfl_sync", 0, width);
  const unsigned lane = emulation::fibres().lane(), within = static_cast<unsigned>(width) - 1;
  const unsigned from = (lane & ~within) | (static_cast<unsigned>(source) & within);
  return emulation::fibres().exchange("__shfl_sync", mask, value, from);
}

/// The `value` of the lane that is `distance` lower; its own value if that would be outside the group.
template <typename T>
T __shfl_up_sync(unsigned mask, T value, unsigned distance, int width = 32) {
  emulation::check_shuffle("__shfl_up_sync", distance, width);
  const unsigned lane = emulation::fibres().lane(), within = static_cast<unsigned>(width) - 1;
  const unsigned from = (lane & within) >= distance ? lane - distance : lane;
  return emulation::fibres().exchange("__shfl_up_sync", mask, value, from);
}

/// The `value` of the lane that is `distance` higher; its own value if that would be outside the group.
template <typename T>
T __shfl_down_sync(unsigned mask, T value, unsigned distance, int width = 32) {
  emulation::check_shuffle("__shfl_down_sync", distance, width);
  const unsigned lane = emulation::fibres().lane(), within = static_cast<unsigned>(width) - 1;
  const unsigned from = (lane & within) + distance <= within ? lane + distance : lane;
  return emulation::fibres().exchange("__shfl_down_sync", mask, value, from);
}

/// The `value` of the lane that differs in the bits of `distance`; its own value if that lane is in a later group.
template <typename T>
T __shfl_xor_sync(unsigned mask, T value, int distance, int width = 32) {
  emulation::check_shuffle("__shfl_xor_sync", static_cast<unsigned>(distance), width);
  const unsigned lane = emulation::fibres().lane(), within = static_cast<unsigned>(width) - 1;
  const unsigned other = lane ^ static_cast<unsigned>(distance);
  return emulation::fibres().exchange("__shfl_xor_sync", mask, value, other <= (lane | within) ? other : lane);
}

inline void __syncwarp(unsigned mask) { emulation::fibres().ballot("__syncwarp", mask, false); }

/// Without a mask, all lanes of the warp meet: of the block's last warp, as many as there are.
inline void __syncwarp() { __syncwarp(emulation::fibres().lanes()); }

/// A bit for each lane of `mask` whose `predicate` is not 0.
inline unsigned __ballot_sync(unsigned mask, int predicate) {
  return emulation::fibres().ballot("__ballot_sync", mask, predicate != 0);
}

inline int __any_sync(unsigned mask, int predicate) {
  return emulation::fibres().ballot("__any_sync", mask, predicate != 0) != 0;
}

inline int __all_sync(unsigned mask, int predicate) {
  return emulation::fibres().ballot("__all_sync", mask, predicate != 0) == mask;
}
