// LayerNorm in fused kernels: rows that fit a block are read once (rows.cu, rows_backward.cu, few_rows_backward.cu),
// few longer ones are shared by several blocks (split_rows.cu, split_rows_backward.cu), and other rows are read in each
// pass (long_rows.cu).
//
// The kernels take no strides, so what is not contiguous is copied first.
#include "rows.h"

#include "layer_norm_operator.h"

namespace OPERATOR_NAMESPACE {

static Tensor dense_or_undefined(const Tensor& tensor) { return tensor.defined() ? tensor.contiguous() : tensor; }

static const void* pointer_or_null(const Tensor& tensor) {
  return tensor.defined() ? tensor.const_data_ptr() : nullptr;
}

static void* place_or_null(const Tensor& tensor) { return tensor.defined() ? tensor.mutable_data_ptr() : nullptr; }

void layer_norm_rows_forward(const Tensor& input, const Tensor& weight, const Tensor& bias, double eps,
                             const Tensor& output, const Tensor& mean, const Tensor& rstd) {
  const Tensor x = input.contiguous(), w = dense_or_undefined(weight), b = dense_or_undefined(bias);
  const void *of_x = x.const_data_ptr(), *of_w = pointer_or_null(w), *of_b = pointer_or_null(b);
  const int64_t rows = x.size(0), columns = x.size(1);
  const auto dtype = x.scalar_type();
  const std::initializer_list<const void*> pointers = {of_x, of_w, of_b, output.const_data_ptr()};
  void *const to_y = output.mutable_data_ptr(), *const to_mean = place_or_null(mean);
  void *const to_rstd = place_or_null(rstd), *const stream = current_stream(x);
  const auto statistics = x.options().dtype(layer_norm_statistics_dtype(x));
  if (fits_forward(dtype, columns, pointers)) {
    launch_rows_forward(dtype, rows, columns, of_x, of_w, of_b, eps, to_y, to_mean, to_rstd, stream);
  } else if (is_split(dtype, rows, columns, pointers)) {
    const Tensor numbers = at::empty({split_forward_numbers(dtype, rows, columns, pointers)}, statistics);
    launch_split_forward(dtype, rows, columns, of_x, of_w, of_b, eps, to_y, to_mean, to_rstd,
                         numbers.mutable_data_ptr(), stream);
  } else {
    // These kernels always write mean and rstd.
    const Tensor m = mean.defined() ? mean : at::empty({rows}, statistics);
    const Tensor r = rstd.defined() ? rstd : at::empty({rows}, statistics);
    launch_long_rows_forward(dtype, rows, columns, of_x, of_w, of_b, eps, to_y, m.mutable_data_ptr(),
                             r.mutable_data_ptr(), stream);
  }
}

TORCH_LIBRARY_FRAGMENT(OPERATOR_NAMESPACE, m) { m.impl("layer_norm", torch::dispatch(kDeviceType, &layer_norm_alone)); }

void layer_norm_matrix_backward(const Tensor& grad_output, const Tensor& input, const Tensor& mean, const Tensor& rstd,
                                const Tensor& weight, const Tensor& d_input, const Tensor& d_weight,
                                const Tensor& d_bias) {
  const Tensor g = grad_output.contiguous(), x = input.contiguous(), w = dense_or_undefined(weight);
  const void *of_g = g.const_data_ptr(), *of_x = x.const_data_ptr(), *of_w = pointer_or_null(w);
  const int64_t rows = x.size(0), columns = x.size(1);
  const auto dtype = x.scalar_type();
  const void *of_mean = mean.const_data_ptr(), *of_rstd = rstd.const_data_ptr();
  void *const to_x = place_or_null(d_input), *const to_w = place_or_null(d_weight), *const to_b = place_or_null(d_bias);
  void* const stream = current_stream(x);
  const bool fits_registers = fits_backward(dtype, columns, {of_g, of_x, of_w, to_x});
  if (fits_registers && is_few(rows)) {
    launch_few_rows_backward(dtype, rows, columns, of_g, of_x, of_mean, of_rstd, of_w, to_x, to_w, to_b, stream);
    return;
  }
  const std::initializer_list<const void*> pointers = {of_g, of_x, of_w, to_x, to_w, to_b};
  if (!fits_registers && is_split(dtype, rows, columns, pointers)) {
    const Tensor numbers = at::empty({split_backward_numbers(dtype, rows, columns, pointers)}, rstd.options());
    launch_split_backward(dtype, rows, columns, of_g, of_x, of_mean, of_rstd, of_w, to_x, to_w, to_b,
                          numbers.mutable_data_ptr(), stream);
    return;
  }
  const bool fits = fits_registers && has_memory_for_rows(dtype, rows, columns);
  const bool wants_sums = d_weight.defined() || d_bias.defined();
  const int64_t parts = fits ? row_parts(dtype, rows, columns) : column_parts(dtype, rows, columns);
  const Tensor sums = wants_sums ? at::empty({2, parts, columns}, rstd.options()) : Tensor();
  if (fits) {
    launch_rows_backward(dtype, rows, columns, of_g, of_x, of_mean, of_rstd, of_w, to_x, place_or_null(sums), stream);
  } else {
    if (to_x != nullptr) {
      launch_long_rows_backward(dtype, rows, columns, of_g, of_x, of_mean, of_rstd, of_w, to_x, stream);
    }
    if (wants_sums) {
      launch_columns(dtype, rows, columns, parts, of_g, of_x, of_mean, of_rstd, sums.mutable_data_ptr(), stream);
    }
  }
  if (wants_sums) {
    launch_totals(dtype, parts, columns, sums.const_data_ptr(), to_w, to_b, stream);
  }
}

}  // namespace OPERATOR_NAMESPACE
