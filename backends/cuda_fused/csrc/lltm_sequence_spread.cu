// All steps of a sequence in one kernel, for states whose weights do not fit a block: which kernel of spread_kernels.h,
// with how many blocks, and its launch.
//
// Not on AMD GPUs: a message is 16 bytes that are written at once and read at once (messages.h), which HIP has no
// access for. There no plan has teams, and the steps are made one by one.
#include "lltm_sequence.h"

#include "launch.h"

#ifndef __HIPCC__
#include <algorithm>

#include "spread_kernels.h"
#endif

namespace OPERATOR_NAMESPACE {

#ifdef __HIPCC__

SpreadPlan plan_spread_forward(ScalarType, const SequenceSizes&) { return {}; }
SpreadPlan plan_spread_backward(ScalarType, const SequenceSizes&) { return {}; }

void launch_spread_forward(ScalarType, const SequenceSizes&, const SpreadPlan&, const void*, const void*, const void*,
                           void*, void*, void*, void*, void*, void*) {
  STD_TORCH_CHECK(false, "launch_spread_forward: AMD GPUs have no plan for it; call plan_spread_forward first");
}

void launch_spread_backward(ScalarType, const SequenceSizes&, const SpreadPlan&, const void*, const void*, const void*,
                            const void*, const void*, void*, void*, void*, void*, void*) {
  STD_TORCH_CHECK(false, "launch_spread_backward: AMD GPUs have no plan for it; call plan_spread_backward first");
}

#else

// Kernels for one width of the state: a warp has at most `own` times kTileTerms terms. Registers limit how many
// messages it receives `ahead`. States beyond four times, and two slices a block, are for half types alone.

template <typename scalar, int own, int slices_of_block>
struct ForwardKernel {
  using scalar_t = scalar;
  using Mail = StateMail<scalar_t>;
  static constexpr int slices = slices_of_block, ahead = std::min(own, 4);
  static constexpr bool exists = sizeof(scalar_t) == 2 || (slices == 1 && own <= 4);
  static constexpr auto function() { return spread_forward_kernel<scalar_t, own, slices, ahead>; }
  static constexpr size_t shared_bytes() {
    return sizeof(typename SpreadProduct<scalar_t, Mail, own, slices, ahead>::Shared);
  }
};

/// The widest states always have two slices a block: d_gates are three times the state, and the time of all blocks to
/// read them is what counts (an H200, 1024 units, 16 rows, 32 steps: 187 us, with one slice 212).
template <typename scalar, int own, int slices_of_block>
struct BackwardKernel {
  using scalar_t = scalar;
  using Mail = GatesMail<scalar_t>;
  static constexpr int slices = slices_of_block, ahead = std::min(own, 2);
  static constexpr bool exists = sizeof(scalar_t) == 2 ? slices == 2 || own <= 4 : slices == 1 && own <= 4;
  static constexpr auto function() { return spread_backward_kernel<scalar_t, own, slices, ahead>; }
  static constexpr size_t shared_bytes() {
    return sizeof(typename SpreadProduct<scalar_t, Mail, own, slices, ahead>::Shared);
  }
};

/// Calls `body.operator()<Kernel<...>>()` for the kernels of the least width that holds the state, the one with fewer
/// slices first, until it returns true. Calls none for other dtypes and wider states.
template <template <typename, int, int> typename Kernel, typename Body>
void for_kernels(ScalarType dtype, int64_t state_size, Body body) {
  for_dtype(dtype, [&]<typename scalar_t>() {
    if constexpr (sizeof(scalar_t) <= sizeof(float)) {
      const auto try_slices = [&]<int own, int slices>() {
        if constexpr (Kernel<scalar_t, own, slices>::exists) {
          return body.template operator()<Kernel<scalar_t, own, slices>>();
        } else {
          return false;
        }
      };
      const auto try_width = [&]<int own>() {
        if (state_size > own * kTileTerms * kSpreadWarps) return false;
        if (!try_slices.template operator()<own, 1>()) try_slices.template operator()<own, 2>();
        return true;
      };
      if (!try_width.template operator()<2>() && !try_width.template operator()<4>())
        try_width.template operator()<8>();
    }
  });
}

/// More rows than any device holds, and more steps than any memory: up to here no product of sizes overflows, and the
/// last flag fits its 32 bits.
constexpr int64_t kMostSpreadBatch = 1 << 20, kMostSpreadSteps = 1 << 30;

static Spread spread_of(const SequenceSizes& sizes, int64_t teams) {
  return {sizes.steps, sizes.weight_stride, static_cast<int>(sizes.batch), static_cast<int>(sizes.state_size),
          static_cast<int>(teams)};
}

/// As many teams as the device holds, at most one for each tile; none if they are too few.
template <typename Kernel>
SpreadPlan plan_for(const SequenceSizes& sizes) {
  if (sizeof(typename Kernel::scalar_t) == 2 && !has_tensor_cores()) return {};
  const int64_t resident =
      remembered_for_device([] { return resident_blocks(Kernel::function(), kSpreadThreads, Kernel::shared_bytes()); });
  const Spread spread = spread_of(sizes, 1);
  const int64_t teams = std::min<int64_t>(resident / (spread.slices() / Kernel::slices), spread.tiles());
  if (spread.tiles() > teams * kMostTiles<Kernel::slices>) return {};
  return {teams, Kernel::slices, Mailbox<typename Kernel::Mail>::bytes(spread)};
}

/// One slice a block if each tile then has a team of its own, otherwise two: a team that has two tiles takes almost
/// twice as long (an H200, 512 units, 64 rows, 32 steps, both passes: 280 us with one slice and two tiles a team, 236
/// with two slices and one tile).
template <template <typename, int, int> typename Kernel>
SpreadPlan plan_spread(ScalarType dtype, const SequenceSizes& sizes) {
  SpreadPlan plan{};
  if (sizes.batch > kMostSpreadBatch || sizes.steps > kMostSpreadSteps) return plan;
  for_kernels<Kernel>(dtype, sizes.state_size, [&]<typename Candidate>() {
    const SpreadPlan candidate = plan_for<Candidate>(sizes);
    if (candidate.teams > plan.teams) plan = candidate;
    return plan.teams == spread_of(sizes, 1).tiles();
  });
  return plan;
}

/// Launches the kernel of the plan.
template <template <typename, int, int> typename Kernel, typename Launch>
void launch_spread(const char* name, ScalarType dtype, const SequenceSizes& sizes, const SpreadPlan& plan, void* stream,
                   Launch launch) {
  const Spread spread = spread_of(sizes, plan.teams);
  for_kernels<Kernel>(dtype, sizes.state_size, [&]<typename Chosen>() {
    if (Chosen::slices != plan.slices) return false;
    launch.template operator()<typename Chosen::scalar_t>([&](auto... pointers) {
      launch_together(name, Chosen::function(), plan.teams * (spread.slices() / Chosen::slices), kSpreadThreads,
                      Chosen::shared_bytes(), stream, spread, pointers...);
    });
    return true;
  });
}

SpreadPlan plan_spread_forward(ScalarType dtype, const SequenceSizes& sizes) {
  return plan_spread<ForwardKernel>(dtype, sizes);
}

SpreadPlan plan_spread_backward(ScalarType dtype, const SequenceSizes& sizes) {
  return plan_spread<BackwardKernel>(dtype, sizes);
}

void launch_spread_forward(ScalarType dtype, const SequenceSizes& sizes, const SpreadPlan& plan, const void* weights,
                           const void* h0, const void* c0, void* gates, void* h, void* cells, void* c_T, void* messages,
                           void* stream) {
  launch_spread<ForwardKernel>(
      "spread_forward_kernel", dtype, sizes, plan, stream, [&]<typename scalar_t>(auto launch) {
        launch(static_cast<const scalar_t*>(weights), static_cast<const scalar_t*>(h0),
               static_cast<const scalar_t*>(c0), static_cast<scalar_t*>(gates), static_cast<scalar_t*>(h),
               static_cast<scalar_t*>(cells), static_cast<scalar_t*>(c_T), messages);
      });
}

void launch_spread_backward(ScalarType dtype, const SequenceSizes& sizes, const SpreadPlan& plan, const void* weights,
                            const void* gates, const void* cells, const void* grad_h, const void* grad_cell,
                            void* d_gates, void* d_h0, void* d_c0, void* messages, void* stream) {
  launch_spread<BackwardKernel>("spread_backward_kernel", dtype, sizes, plan, stream,
                                [&]<typename scalar_t>(auto launch) {
                                  launch(static_cast<const scalar_t*>(weights), static_cast<const scalar_t*>(gates),
                                         static_cast<const scalar_t*>(cells), static_cast<const scalar_t*>(grad_h),
                                         static_cast<const scalar_t*>(grad_cell), static_cast<scalar_t*>(d_gates),
                                         static_cast<scalar_t*>(d_h0), static_cast<scalar_t*>(d_c0), messages);
                                });
}

#endif

}  // namespace OPERATOR_NAMESPACE
