// LayerNorm in fused kernels: rows that fit the registers of a block are read once (rows.cu, rows_backward.cu), other
// rows in each pass (long_rows.cu).
//
// The kernels take no strides, so what is not contiguous is copied first.
#include "rows.h"

#include "layer_norm_passes.h"

namespace OPERATOR_NAMESPACE {

static Tensor dense_or_undefined(const Tensor& tensor) { return tensor.defined() ? tensor.contiguous() : tensor; }

static const void* pointer_or_null(const Tensor& tensor) {
  return tensor.defined() ? tensor.const_data_ptr() : nullptr;
}

static void* place_or_null(const Tensor& tensor) { return tensor.defined() ? tensor.mutable_data_ptr() : nullptr; }

// For layer_norm_in_two_passes, which `layer_norm_matrix_backward` calls with contiguous tensors.

void layer_norm_rows_backward(const Tensor& grad_output, const Tensor& input, const Tensor& mean, const Tensor& rstd,
                              const Tensor& weight, const Tensor& d_input) {
  launch_long_rows_backward(input.scalar_type(), input.size(0), input.size(1), grad_output.const_data_ptr(),
                            input.const_data_ptr(), mean.const_data_ptr(), rstd.const_data_ptr(),
                            pointer_or_null(weight), d_input.mutable_data_ptr(), current_stream(input));
}

void layer_norm_columns_backward(const Tensor& grad_output, const Tensor& input, const Tensor& mean, const Tensor& rstd,
                                 const Tensor& d_weight, const Tensor& d_bias) {
  launch_columns(input.scalar_type(), input.size(0), input.size(1), d_weight.size(0), grad_output.const_data_ptr(),
                 input.const_data_ptr(), mean.const_data_ptr(), rstd.const_data_ptr(), d_weight.mutable_data_ptr(),
                 d_bias.mutable_data_ptr(), current_stream(input));
}

void layer_norm_rows_forward(const Tensor& input, const Tensor& weight, const Tensor& bias, double eps,
                             const Tensor& output, const Tensor& mean, const Tensor& rstd) {
  const Tensor x = input.contiguous(), w = dense_or_undefined(weight), b = dense_or_undefined(bias);
  const void *of_x = x.const_data_ptr(), *of_w = pointer_or_null(w), *of_b = pointer_or_null(b);
  const bool fits = fits_forward(x.scalar_type(), x.size(1), {of_x, of_w, of_b, output.const_data_ptr()});
  const auto launch = fits ? launch_rows_forward : launch_long_rows_forward;
  launch(x.scalar_type(), x.size(0), x.size(1), of_x, of_w, of_b, eps, output.mutable_data_ptr(),
         mean.mutable_data_ptr(), rstd.mutable_data_ptr(), current_stream(x));
}

void layer_norm_matrix_backward(const Tensor& grad_output, const Tensor& input, const Tensor& mean, const Tensor& rstd,
                                const Tensor& weight, const Tensor& d_input, const Tensor& d_weight,
                                const Tensor& d_bias) {
  const Tensor g = grad_output.contiguous(), x = input.contiguous(), w = dense_or_undefined(weight);
  const void *of_g = g.const_data_ptr(), *of_x = x.const_data_ptr(), *of_w = pointer_or_null(w);
  const int64_t rows = x.size(0), columns = x.size(1);
  if (!fits_backward(x.scalar_type(), columns, {of_g, of_x, of_w, place_or_null(d_input)})) {
    layer_norm_in_two_passes(g, x, mean, rstd, w, d_input, d_weight, d_bias);
    return;
  }
  if (is_few(rows)) {
    launch_few_rows_backward(x.scalar_type(), rows, columns, of_g, of_x, mean.const_data_ptr(), rstd.const_data_ptr(),
                             of_w, place_or_null(d_input), place_or_null(d_weight), place_or_null(d_bias),
                             current_stream(x));
    return;
  }
  const bool wants_sums = d_weight.defined() || d_bias.defined();
  const int64_t parts = row_parts(x.scalar_type(), rows, columns);
  const Tensor sums = wants_sums ? at::empty({2, parts, columns}, rstd.options()) : Tensor();
  launch_rows_backward(x.scalar_type(), rows, columns, of_g, of_x, mean.const_data_ptr(), rstd.const_data_ptr(), of_w,
                       place_or_null(d_input), place_or_null(sums), current_stream(x));
  if (wants_sums) {
    launch_totals(x.scalar_type(), parts, columns, sums.const_data_ptr(), place_or_null(d_weight),
                  place_or_null(d_bias), current_stream(x));
  }
}

}  // namespace OPERATOR_NAMESPACE
