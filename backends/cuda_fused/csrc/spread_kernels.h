// The kernels of a sequence whose state is spread over blocks that run at once. Each block keeps the weights of its
// part in registers (spread_state.h, spread_product.h).
//
// A step has one wait, for the messages of the other blocks (messages.h). The warps of a block multiply and meet once;
// then the warps that own a tile add up, compute its cells and send what the next step needs. In forward this is the
// state, in backward d_gates.
#pragma once

#include "functions.h"
#include "spread_product.h"
#include "together.h"

namespace OPERATOR_NAMESPACE {

/// The team of a block, and its first slice.
struct PlaceInTeam {
  int team, slice;

  __device__ PlaceInTeam(const Spread& spread, int slices) {
    const int blocks = spread.slices() / slices;
    team = static_cast<int>(blockIdx.x) / blocks;
    slice = static_cast<int>(blockIdx.x) % blocks * slices;
  }
};

/// Both units of an owner, from rows of `stride` numbers; 0 where there is none.
template <typename scalar_t>
__device__ void load_units(const Owner& owner, const scalar_t* rows, int64_t stride, int64_t column,
                           float (&units)[2]) {
  for (int k = 0; k < 2; ++k) {
    units[k] = owner.is_there[k] ? static_cast<float>(rows[owner.row * stride + column + owner.unit + k]) : 0.f;
  }
}

/// Both units rounded to the dtype; 0 where there is none.
template <typename scalar_t>
__device__ Pair<scalar_t> rounded_units(const Owner& owner, const float (&units)[2]) {
  Pair<scalar_t> pair;
  for (int k = 0; k < 2; ++k) pair.unit[k] = static_cast<scalar_t>(owner.is_there[k] ? units[k] : 0.f);
  return pair;
}

template <typename scalar_t>
__device__ void store_units(const Owner& owner, scalar_t* rows, int64_t stride, int64_t column,
                            const Pair<scalar_t>& pair) {
  for (int k = 0; k < 2; ++k) {
    if (owner.is_there[k]) rows[owner.row * stride + column + owner.unit + k] = pair.unit[k];
  }
}

template <typename scalar_t, int own, int slices, int ahead>
__global__ void __launch_bounds__(kSpreadThreads)
    spread_forward_kernel(Spread spread, const scalar_t* __restrict__ weights, const scalar_t* __restrict__ h0,
                          const scalar_t* __restrict__ c0, scalar_t* __restrict__ gates, scalar_t* __restrict__ h,
                          scalar_t* __restrict__ cells, scalar_t* __restrict__ c_T, void* __restrict__ messages) {
  using Mail = StateMail<scalar_t>;
  using Product = SpreadProduct<scalar_t, Mail, own, slices, ahead>;
  auto& shared = *reinterpret_cast<typename Product::Shared*>(shared_memory());
  const PlaceInTeam place(spread, slices);
  const Owner owner(spread, place.team, place.slice, slices);
  const bool owns = owner.tile < spread.tiles();
  const int64_t state_size = spread.state_size, of_step = spread.batch * state_size;
  Product product;
  product.load([&](int slice, int gate, int term, int column) -> scalar_t {
    const int unit = (place.slice + slice) * kSlice + column;
    const bool is_there = unit < spread.state_size && term < spread.state_size;
    return is_there ? weights[(gate * state_size + unit) * spread.weight_stride + term] : scalar_t(0.f);
  });
  float cell[2] = {};
  if (owns) {
    float state[2];
    load_units(owner, h0, state_size, 0, state);
    load_units(owner, c0, state_size, 0, cell);
    const Mailbox<Mail> mailbox(messages, spread, owner.tile);
    Mail::write(mailbox.of(1, owner.slice, owner.lane), owner.is_lower, {rounded_units<scalar_t>(owner, state)}, 1);
  }
  int turn = 0;
  for (int64_t step = 0; step < spread.steps; ++step) {
    const uint32_t flag = static_cast<uint32_t>(step) + 1;
    scalar_t* const gates_of_step = gates + step * kGates * of_step;
    float from_input[kGates][2];
    for (int gate = 0; gate < kGates && owns; ++gate) {
      load_units(owner, gates_of_step, kGates * state_size, gate * state_size, from_input[gate]);
    }
    for (int tile = place.team; tile < spread.tiles(); tile += spread.teams, turn ^= 1) {
      const Mailbox<Mail> mailbox(messages, spread, tile);
      product.multiply(mailbox, flag, spread.terms(), shared, turn);
      // Nobody writes to these sums before the barrier after the next one, which their readers reach when they are
      // done.
      __syncthreads();
      if (owner.tile != tile) continue;
      Pair<scalar_t> kept[kGates];
      for (int gate = 0; gate < kGates; ++gate) {
        float sums[2];
        sums_over_warps(shared.sums[turn], owner.slice - place.slice, gate, sums);
        for (int k = 0; k < 2; ++k) sums[k] += from_input[gate][k];
        kept[gate] = rounded_units<scalar_t>(owner, sums);
      }
      float new_h[2], new_cell[2];
      for (int k = 0; k < 2; ++k) {
        // The cell is computed from the rounded values, which are those that backward reads.
        const auto next =
            cell_forward<float, functions_of<scalar_t>>(kept[0].unit[k], kept[1].unit[k], kept[2].unit[k], cell[k]);
        new_h[k] = next.new_h;
        new_cell[k] = next.new_cell;
      }
      const Pair<scalar_t> state = rounded_units<scalar_t>(owner, new_h);
      if (step + 1 < spread.steps) {
        Mail::write(mailbox.of(flag + 1, owner.slice, owner.lane), owner.is_lower, {state}, flag + 1);
      }
      store_units(owner, h + step * of_step, state_size, 0, state);
      store_units(owner, cells + step * of_step, state_size, 0, rounded_units<scalar_t>(owner, cell));
      for (int gate = 0; gate < kGates; ++gate) {
        store_units(owner, gates_of_step, kGates * state_size, gate * state_size, kept[gate]);
      }
      // The next step starts from the rounded values, as a separate call would.
      const Pair<scalar_t> next_cell = rounded_units<scalar_t>(owner, new_cell);
      for (int k = 0; k < 2; ++k) cell[k] = next_cell.unit[k];
    }
  }
  if (owns) store_units(owner, c_T, state_size, 0, rounded_units<scalar_t>(owner, cell));
}

template <typename scalar_t, int own, int slices, int ahead>
__global__ void __launch_bounds__(kSpreadThreads)
    spread_backward_kernel(Spread spread, const scalar_t* __restrict__ weights, const scalar_t* __restrict__ gates,
                           const scalar_t* __restrict__ cells, const scalar_t* __restrict__ grad_h,
                           const scalar_t* __restrict__ grad_cell, scalar_t* __restrict__ d_gates,
                           scalar_t* __restrict__ d_h0, scalar_t* __restrict__ d_c0, void* __restrict__ messages) {
  using Mail = GatesMail<scalar_t>;
  using Product = SpreadProduct<scalar_t, Mail, own, slices, ahead>;
  auto& shared = *reinterpret_cast<typename Product::Shared*>(shared_memory());
  const PlaceInTeam place(spread, slices);
  const Owner owner(spread, place.team, place.slice, slices);
  const bool owns = owner.tile < spread.tiles();
  const int64_t state_size = spread.state_size, of_step = spread.batch * state_size;
  Product product;
  product.load([&](int slice, int gate, int term, int column) -> scalar_t {
    const int unit = (place.slice + slice) * kSlice + column;
    const bool is_there = unit < spread.state_size && term < spread.state_size;
    return is_there ? weights[(gate * state_size + term) * spread.weight_stride + unit] : scalar_t(0.f);
  });
  float d_h[2] = {}, d_cell[2] = {};
  if (owns) load_units(owner, grad_cell, state_size, 0, d_cell);
  int turn = 0;
  // The d_gates of step t are sent with the flag steps - t, and become d_h in the turn of step t - 1. The last turn is
  // for h0.
  for (int64_t step = spread.steps - 1; step >= -1; --step) {
    const uint32_t flag = static_cast<uint32_t>(spread.steps - step);
    const bool is_first = flag == 1, is_last = step < 0;
    float z[kGates][2], cell[2], given[2];
    if (owns && !is_last) {
      for (int gate = 0; gate < kGates; ++gate) {
        load_units(owner, gates + step * kGates * of_step, kGates * state_size, gate * state_size, z[gate]);
      }
      load_units(owner, cells + step * of_step, state_size, 0, cell);
      load_units(owner, grad_h + step * of_step, state_size, 0, given);
    }
    for (int tile = place.team; tile < spread.tiles(); tile += spread.teams, turn ^= 1) {
      const Mailbox<Mail> mailbox(messages, spread, tile);
      if (!is_first) {
        product.multiply(mailbox, flag - 1, spread.terms(), shared, turn);
        __syncthreads();
      }
      if (owner.tile != tile) continue;
      for (int gate = 0; gate < kGates && !is_first; ++gate) {
        float sums[2];
        sums_over_warps(shared.sums[turn], owner.slice - place.slice, gate, sums);
        for (int k = 0; k < 2; ++k) d_h[k] = gate > 0 ? d_h[k] + sums[k] : sums[k];
      }
      if (is_last) continue;
      float of_gate[kGates][2];
      for (int k = 0; k < 2; ++k) {
        const auto gradient =
            cell_vjp<float, functions_of<scalar_t>>(d_h[k] + given[k], d_cell[k], z[0][k], z[1][k], z[2][k], cell[k]);
        of_gate[0][k] = gradient.d_in_gate;
        of_gate[1][k] = gradient.d_out_gate;
        of_gate[2][k] = gradient.d_candidate_gate;
        d_cell[k] = gradient.d_old_cell;
      }
      Pair<scalar_t> stored[kGates];
      for (int gate = 0; gate < kGates; ++gate) stored[gate] = rounded_units<scalar_t>(owner, of_gate[gate]);
      Mail::write(mailbox.of(flag, owner.slice, owner.lane), owner.is_lower, stored, flag);
      for (int gate = 0; gate < kGates; ++gate) {
        store_units(owner, d_gates + step * kGates * of_step, kGates * state_size, gate * state_size, stored[gate]);
      }
    }
  }
  if (owns) {
    store_units(owner, d_h0, state_size, 0, rounded_units<scalar_t>(owner, d_h));
    store_units(owner, d_c0, state_size, 0, rounded_units<scalar_t>(owner, d_cell));
  }
}

}  // namespace OPERATOR_NAMESPACE
