// Where the fibres of a block wait for each other: the block's barrier, and the intrinsics of its warps.
#pragma once

#include <bit>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <source_location>
#include <string>

namespace emulation {

constexpr unsigned kWarpSize = 32;

/// `round` counts how often all that were expected have met.
struct Meeting {
  unsigned round = 0;
};

/// The threads at the block's barrier: `arrived` of them, at one place in the source.
struct BlockMeeting : Meeting {
  unsigned arrived = 0;
  std::source_location at;
};

/// The lanes of `mask` in an intrinsic: `arrived` of them, with a bit for each that votes yes.
struct WarpMeeting : Meeting {
  const char* intrinsic = "";
  uint32_t mask = 0, arrived = 0, votes = 0;
};

/// The lanes of a warp that exist, those that have not ended, and where they meet. Lanes with distinct masks may be in
/// distinct intrinsics at the same time.
struct Warp {
  explicit Warp(unsigned count = 0) : exist(count >= kWarpSize ? ~0u : (1u << count) - 1), alive(exist) {}

  /// The meeting in progress of that intrinsic and mask, or a free one. There is one for each lane.
  WarpMeeting& meeting(const char* intrinsic, uint32_t mask) {
    WarpMeeting* free = nullptr;
    for (WarpMeeting& meeting : meetings) {
      if (meeting.arrived == 0) {
        if (free == nullptr) free = &meeting;
      } else if (meeting.mask == mask && std::strcmp(meeting.intrinsic, intrinsic) == 0) {
        return meeting;
      }
      if (meeting.mask == 0) break;  // neither this one nor any after it was ever used
    }
    free->intrinsic = intrinsic;
    free->mask = mask;
    return *free;
  }

  /// The same meeting as one of this warp; nullptr if it is the block's.
  const WarpMeeting* of(const Meeting* meeting) const {
    for (const WarpMeeting& own : meetings)
      if (&own == meeting) return &own;
    return nullptr;
  }

  uint32_t exist, alive;
  WarpMeeting meetings[kWarpSize];
};

inline std::string hexadecimal(uint32_t mask) {
  char text[16];
  std::snprintf(text, sizeof(text), "0x%08x", mask);
  return text;
}

/// Whether `lane` may meet the lanes of `mask`, and have the value of `source`.
inline bool may_meet(const Warp& warp, uint32_t mask, unsigned lane, unsigned source) {
  return (mask >> lane & 1u) != 0 && (mask & ~warp.alive) == 0 && (mask >> source & 1u) != 0;
}

/// Why it may not, in words.
inline std::string wrong_mask(const Warp& warp, uint32_t mask, unsigned lane, unsigned source) {
  const auto first = [](uint32_t lanes) { return std::to_string(std::countr_zero(lanes)); };
  const std::string named = "has the mask " + hexadecimal(mask);
  if ((mask >> lane & 1u) == 0) return named + ", which lacks the calling lane, " + std::to_string(lane);
  if ((mask & ~warp.exist) != 0)
    return named + ", but its warp has " + std::to_string(std::popcount(warp.exist)) + " lanes: lane " +
           first(mask & ~warp.exist) + " does not exist";
  if ((mask & ~warp.alive) != 0) return named + ", but its lane " + first(mask & ~warp.alive) + " has ended";
  return "reads lane " + std::to_string(source) + ", which is not in the mask " + hexadecimal(mask);
}

inline bool is_same_place(const std::source_location& a, const std::source_location& b) {
  return a.line() == b.line() && a.column() == b.column() && std::strcmp(a.file_name(), b.file_name()) == 0;
}

/// `lltm.cu:152`, and the column, which tells two barriers of a line apart.
inline std::string place(const std::source_location& at) {
  const std::string file = at.file_name();
  return file.substr(file.rfind('/') + 1) + ":" + std::to_string(at.line()) + ":" + std::to_string(at.column());
}

}  // namespace emulation
