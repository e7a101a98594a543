// LayerNorm of rows that do not fit the registers of a block, or that allow no loads of 16 bytes: by the kernels that
// read a row again in each pass.
#include "layer_norm_kernels.h"
#include "rows.h"

namespace OPERATOR_NAMESPACE {

void launch_long_rows_forward(ScalarType dtype, int64_t rows, int64_t columns, const void* input, const void* weight,
                              const void* bias, double eps, void* output, void* mean, void* rstd, void* stream) {
  for_row_instance(dtype, rows, columns, {input, weight, bias, output},
                   [&]<typename scalar_t, typename index_t, int width>(int threads) {
                     using real = compute_t<scalar_t>;
                     launch_with_barriers(
                         "layer_norm_forward_kernel", layer_norm_forward_kernel<scalar_t, index_t, width>, rows,
                         kBlockSize / threads, stream, static_cast<index_t>(rows), static_cast<index_t>(columns),
                         threads, static_cast<const scalar_t*>(input), static_cast<const scalar_t*>(weight),
                         static_cast<const scalar_t*>(bias), static_cast<real>(eps), static_cast<scalar_t*>(output),
                         static_cast<real*>(mean), static_cast<real*>(rstd));
                   });
}

void launch_long_rows_backward(ScalarType dtype, int64_t rows, int64_t columns, const void* grad_output,
                               const void* input, const void* mean, const void* rstd, const void* weight, void* d_input,
                               void* stream) {
  for_row_instance(dtype, rows, columns, {grad_output, input, weight, d_input},
                   [&]<typename scalar_t, typename index_t, int width>(int threads) {
                     using real = compute_t<scalar_t>;
                     launch_with_barriers(
                         "layer_norm_backward_kernel", layer_norm_backward_kernel<scalar_t, index_t, width>, rows,
                         kBlockSize / threads, stream, static_cast<index_t>(rows), static_cast<index_t>(columns),
                         threads, static_cast<const scalar_t*>(grad_output), static_cast<const scalar_t*>(input),
                         static_cast<const real*>(mean), static_cast<const real*>(rstd),
                         static_cast<const scalar_t*>(weight), static_cast<scalar_t*>(d_input));
                   });
}

void launch_columns(ScalarType dtype, int64_t rows, int64_t columns, int64_t parts, const void* grad_output,
                    const void* input, const void* mean, const void* rstd, void* d_weight, void* d_bias, void* stream) {
  for_dtype(dtype, [&]<typename scalar_t>() {
    using real = compute_t<scalar_t>;
    for_index_type(rows * columns, [&]<typename index_t>() {
      launch("layer_norm_columns_kernel", layer_norm_columns_kernel<scalar_t, index_t>, parts * columns, stream,
             static_cast<index_t>(rows), static_cast<index_t>(columns), static_cast<index_t>(parts),
             static_cast<const scalar_t*>(grad_output), static_cast<const scalar_t*>(input),
             static_cast<const real*>(mean), static_cast<const real*>(rstd), static_cast<real*>(d_weight),
             static_cast<real*>(d_bias));
    });
  });
}

}  // namespace OPERATOR_NAMESPACE
