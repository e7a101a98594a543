// The recurrent product of the slices of a block: its part of the weights stays in registers, and the other factor
// arrives in messages (spread_state.h).
//
// For each of the three gates, a block has the weights of all terms by the columns of its slices. Forward, the terms
// are the state, the same for all gates. Backward, they are d_gates, others for each gate.
#pragma once

#include "spread_state.h"
#include "vectors.h"

namespace OPERATOR_NAMESPACE {

/// Sums of one warp: [gate][row][unit of the slice], for each slice.
constexpr int kSumsOfSlice = kGates * kTileRows * kSlice;

/// What the warps of a block share: two sets of their sums, used in turn, and room for `staged_size` numbers each.
template <int slices, int staged_size>
struct SpreadShared {
  float sums[2][kSpreadWarps][slices][kSumsOfSlice];
  alignas(16) float staged[kSpreadWarps][staged_size];
};

__device__ inline int warp_of_thread() { return static_cast<int>(threadIdx.x) / kLanes; }
__device__ inline int lane_of_thread() { return static_cast<int>(threadIdx.x) % kLanes; }

/// The sums over all warps for a gate of what this thread owns, in slice `slice` of the block.
template <int slices>
__device__ void sums_over_warps(const float (&sums)[kSpreadWarps][slices][kSumsOfSlice], int slice, int gate,
                                float (&units)[2]) {
  const int own = (gate * kOwners + static_cast<int>(threadIdx.x) % kOwners) * 2;
  units[0] = units[1] = 0.f;
#pragma unroll
  for (int warp = 0; warp < kSpreadWarps; ++warp) {
    for (int k = 0; k < 2; ++k) units[k] += sums[warp][slice][own + k];
  }
}

/// Receives the messages for `count` times kTileTerms terms of this warp, the first of them its `begin`th, when all
/// have arrived. Each kSpreadWarps-th is this warp's; those beyond the last of `terms` are left as they are.
template <typename Mail, int count>
__device__ void receive(const Mailbox<Mail>& mailbox, uint32_t flag, int begin, int terms,
                        typename Mail::Part (&messages)[count][2][Mail::parts]) {
  const int lane = lane_of_thread();
  const auto for_each = [&](auto body) {
#pragma unroll
    for (int k = 0; k < count; ++k) {
      const int term = warp_of_thread() + (begin + k) * kSpreadWarps;
      if (term >= terms) continue;
#pragma unroll
      for (int slice = 0; slice < 2; ++slice) {
#pragma unroll
        for (int part = 0; part < Mail::parts; ++part) {
          body(messages[k][slice][part], mailbox.of(flag, 2 * term + slice, lane) + part);
        }
      }
    }
  };
  wait_until([&] {
    bool arrived = true;
    for_each([](auto& message, const auto* from) { message = received(from); });  // all are on their way at once
    for_each([&](auto& message, const auto*) { arrived = arrived && message.has(flag); });
    return __all_sync(0xffffffffu, arrived) != 0;
  });
}

/// Half types, on tensor cores. `own` is how many times kTileTerms terms a warp has at most; it receives `ahead` of
/// them at a time.
template <typename scalar_t, typename Mail, int own, int slices, int ahead>
class SpreadProduct {
 public:
  using Shared = SpreadShared<slices, 4>;

  /// `weight(slice, gate, term, column)` is 0 beyond the ends.
  template <typename Weight>
  __device__ void load(Weight weight) {
    const int g = lane_of_thread() / 4, t = lane_of_thread() % 4;
#pragma unroll
    for (int k = 0; k < own; ++k) {
      const int first = (warp_of_thread() + k * kSpreadWarps) * kTileTerms + 2 * t;
      for (int slice = 0; slice < slices; ++slice) {
        for (int gate = 0; gate < kGates; ++gate) {
          for (int half = 0; half < 2; ++half) {
            const int term = first + half * kTileTerms / 2;
            weights_[k][slice][gate][half] =
                packed<scalar_t>(weight(slice, gate, term, g), weight(slice, gate, term + 1, g));
          }
        }
      }
    }
  }

  /// Writes the sums of this warp, when all messages with that flag have arrived.
  __device__ void multiply(const Mailbox<Mail>& mailbox, uint32_t flag, int terms, Shared& shared, int turn) const {
    float sums[slices][kGates][4] = {};
#pragma unroll
    for (int begin = 0; begin < own; begin += ahead) {
      typename Mail::Part messages[ahead][2][Mail::parts];
      receive<Mail>(mailbox, flag, begin, terms, messages);
#pragma unroll
      for (int k = 0; k < ahead; ++k) {
        if (warp_of_thread() + (begin + k) * kSpreadWarps >= terms) continue;
        for (int gate = 0; gate < kGates; ++gate) {
          const uint32_t rows[4] = {Mail::value(messages[k][0], gate, 0, 0), Mail::value(messages[k][0], gate, 1, 0),
                                    Mail::value(messages[k][1], gate, 0, 0), Mail::value(messages[k][1], gate, 1, 0)};
          for (int slice = 0; slice < slices; ++slice) {
            multiply_tiles<scalar_t>(sums[slice][gate], rows, weights_[begin + k][slice][gate]);
          }
        }
      }
    }
    for (int slice = 0; slice < slices; ++slice) {
      float* const to = shared.sums[turn][warp_of_thread()][slice] + 2 * lane_of_thread();
      for (int gate = 0; gate < kGates; ++gate) {
        for (int k = 0; k < 4; ++k) to[(gate * kOwners + k / 2 * kLanes) * 2 + k % 2] = sums[slice][gate][k];
      }
    }
  }

 private:
  uint32_t weights_[own][slices][kGates][2];
};

/// float, without tensor cores: lane 4u + q has column u and the terms of quarter q. The messages pass through shared
/// memory, so that all lanes read all rows.
template <typename Mail, int own, int ahead>
class SpreadProduct<float, Mail, own, 1, ahead> {
  static constexpr int kQuarter = kTileTerms / 4, kStride = kTileTerms + 4;  // in each row other banks
 public:
  using Shared = SpreadShared<1, Mail::planes * kTileRows * kStride>;

  template <typename Weight>
  __device__ void load(Weight weight) {
    const int column = lane_of_thread() / 4, quarter = lane_of_thread() % 4;
#pragma unroll
    for (int k = 0; k < own; ++k) {
      const int first = (warp_of_thread() + k * kSpreadWarps) * kTileTerms + quarter * kQuarter;
      for (int gate = 0; gate < kGates; ++gate) {
        for (int j = 0; j < kQuarter; ++j) weights_[k][gate][j] = weight(0, gate, first + j, column);
      }
    }
  }

  __device__ void multiply(const Mailbox<Mail>& mailbox, uint32_t flag, int terms, Shared& shared, int turn) const {
    float* const staged = shared.staged[warp_of_thread()];
    const int quarter = lane_of_thread() % 4;
    float sums[kTileRows][kGates] = {};
#pragma unroll
    for (int k = 0; k < own; ++k) {
      if (warp_of_thread() + k * kSpreadWarps >= terms) continue;
      stage(mailbox, flag, k, terms, staged);
#pragma unroll
      for (int row = 0; row < kTileRows; ++row) {
        for (int gate = 0; gate < kGates; ++gate) {
          const int at = (gate % Mail::planes * kTileRows + row) * kStride + quarter * kQuarter;
          const auto values = OPERATOR_NAMESPACE::load<kQuarter>(staged + at);
          for (int j = 0; j < kQuarter; ++j) sums[row][gate] += values.lane[j] * weights_[k][gate][j];
        }
      }
      __syncwarp();  // all lanes have read what the next ones overwrite
    }
    add_up(sums, shared.sums[turn][warp_of_thread()][0]);
  }

 private:
  __device__ static void stage(const Mailbox<Mail>& mailbox, uint32_t flag, int own_term, int terms, float* staged) {
    typename Mail::Part messages[1][2][Mail::parts];
    receive<Mail>(mailbox, flag, own_term, terms, messages);
    const int g = lane_of_thread() / 4, t = lane_of_thread() % 4;
    for (int plane = 0; plane < Mail::planes; ++plane) {
      for (int slice = 0; slice < 2; ++slice) {
        for (int half = 0; half < 2; ++half) {
          float* const to = staged + (plane * kTileRows + half * kTileRows / 2 + g) * kStride + slice * kSlice + 2 * t;
          for (int k = 0; k < 2; ++k) {
            const uint32_t bits = Mail::value(messages[0][slice], plane, half, k);
            memcpy(to + k, &bits, sizeof(float));
          }
        }
      }
    }
    __syncwarp();
  }

  /// Over the four lanes of a column, four rows at a time: each lane ends with one of them.
  __device__ static void add_up(const float (&sums)[kTileRows][kGates], float (&total)[kSumsOfSlice]) {
    const int lane = lane_of_thread();
    const bool is_upper = (lane & 2) != 0, is_odd = (lane & 1) != 0;
#pragma unroll
    for (int first = 0; first < kTileRows; first += 4) {
      for (int gate = 0; gate < kGates; ++gate) {
        float two[2];
        for (int k = 0; k < 2; ++k) {
          const float low = sums[first + k][gate], high = sums[first + k + 2][gate];
          two[k] = (is_upper ? high : low) + from_lane(is_upper ? low : high, 2);
        }
        const float one = (is_odd ? two[1] : two[0]) + from_lane(is_odd ? two[0] : two[1], 1);
        total[(gate * kTileRows + first + lane % 4) * kSlice + lane / 4] = one;
      }
    }
  }

  float weights_[own][kGates][kQuarter];
};

}  // namespace OPERATOR_NAMESPACE
