// The pointwise part of the LLTM cell, forward and backward: one pass over rows, which threads share.
//
// Everything is contiguous: gates and d_gates are (rows, 3H), all others (rows, H). `grain` is the number of elements
// that a thread takes at least.
#pragma once

#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>

#include <algorithm>

#include "cell.h"

namespace OPERATOR_NAMESPACE {

// Function multiversioning does not support templates, so there is a function for each dtype. Its resolvers are visible
// to other libraries, whatever the flags are, unless the function is local to its file.
namespace {

#define DEFINE_ROWS(scalar, real)                                                                             \
  FOR_EACH_PROCESSOR void forward_rows(int64_t rows, int64_t H, const scalar* gates, const scalar* old_cell,  \
                                       scalar* new_h, scalar* new_cell) {                                     \
    for (int64_t b = 0; b < rows; ++b)                                                                        \
      forward_row<scalar, real>(gates + b * 3 * H, old_cell + b * H, new_h + b * H, new_cell + b * H, H);     \
  }                                                                                                           \
  FOR_EACH_PROCESSOR void backward_rows(int64_t rows, int64_t H, const scalar* gates, const scalar* old_cell, \
                                        const scalar* grad_h, const scalar* grad_cell, scalar* d_gates,       \
                                        scalar* d_old_cell) {                                                 \
    for (int64_t b = 0; b < rows; ++b)                                                                        \
      backward_row<scalar, real>(gates + b * 3 * H, old_cell + b * H, grad_h + b * H, grad_cell + b * H,      \
                                 d_gates + b * 3 * H, d_old_cell + b * H, H);                                 \
  }

DEFINE_ROWS(float, float)
DEFINE_ROWS(double, double)
DEFINE_ROWS(c10::Half, float)
DEFINE_ROWS(c10::BFloat16, float)

#undef DEFINE_ROWS

/// The number of elements below which a second thread costs more time than it saves: kAsleep for a thread that has to
/// be woken, kAwake for one that has just computed its part of a product and waits for more work.
constexpr int64_t kAsleep = 8192, kAwake = 1024;

inline int64_t rows_of(int64_t grain, int64_t H) { return std::max<int64_t>(1, grain / H); }

template <typename scalar>
void forward_pass(int64_t grain, int64_t rows, int64_t H, const scalar* gates, const scalar* old_cell, scalar* new_h,
                  scalar* new_cell) {
  at::parallel_for(0, rows, rows_of(grain, H), [&](int64_t begin, int64_t end) {
    forward_rows(end - begin, H, gates + begin * 3 * H, old_cell + begin * H, new_h + begin * H, new_cell + begin * H);
  });
}

template <typename scalar>
void backward_pass(int64_t grain, int64_t rows, int64_t H, const scalar* gates, const scalar* old_cell,
                   const scalar* grad_h, const scalar* grad_cell, scalar* d_gates, scalar* d_old_cell) {
  at::parallel_for(0, rows, rows_of(grain, H), [&](int64_t begin, int64_t end) {
    backward_rows(end - begin, H, gates + begin * 3 * H, old_cell + begin * H, grad_h + begin * H,
                  grad_cell + begin * H, d_gates + begin * 3 * H, d_old_cell + begin * H);
  });
}

}  // namespace

}  // namespace OPERATOR_NAMESPACE
