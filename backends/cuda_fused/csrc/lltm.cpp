// LLTM in fused kernels: one for the whole cell where it is small (lltm_small.cu), one for its forward with few rows
// (lltm_few_rows.cu, lltm_few_rows_float.cu) and one for the gradient of its weights (lltm_few_rows_weights.cu,
// lltm_few_rows_weights_float.cu), otherwise PyTorch's products with one pass around them (lltm.cu).
//
// The time of a product depends on the form of the call, by up to a factor of eight. The forms here were the fastest on
// an H200 in all dtypes of their kind (docs/performance.md). With half types and many rows that are not short, the bias
// adds no time to a product, and d_weights is computed by two products that write to their places, so [old_h, input] is
// built once. Otherwise the kernel adds the bias, which would double the time of the product in double.
//
// The kernels take no strides, so what is not contiguous is copied first.
#include "lltm.h"

#include <ATen/ops/addmm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>
#include <c10/core/DeviceGuard.h>

#include "lltm_autograd.h"
#include "operator.h"

namespace OPERATOR_NAMESPACE {

/// From this number of rows on, two products of d_gates take no longer than one product and the split of its result.
constexpr int64_t kManyRows = 1024;
/// Elements of the state from which on that is so in half types, and the bias adds no time to a product.
constexpr int64_t kLongState = 512;

/// Whether there are many rows, and none is short.
static bool is_long(int64_t rows, int64_t state_size) { return rows >= kManyRows && state_size >= kLongState; }

/// Whether a product is called in the form that is fastest for half types if `is_long`.
static bool is_of_halves(const Tensor& rows, int64_t state_size) {
  return rows.element_size() == 2 && is_long(rows.size(0), state_size);
}

static LltmSizes sizes_of(const Tensor& input, const Tensor& old_h) {
  return {input.size(0), input.size(1), old_h.size(1)};
}

/// [old_h, input]
static Tensor join(const Tensor& old_h, const Tensor& input) {
  const Tensor whole = at::empty({input.size(0), old_h.size(1) + input.size(1)}, input.options());
  launch_join(input.scalar_type(), input.size(0), old_h.size(1), input.size(1), old_h.const_data_ptr(),
              input.const_data_ptr(), whole.mutable_data_ptr(), current_stream(input));
  return whole;
}

/// new_h, new_cell and the gates. Gates that are not wanted are undefined or have any values.
static std::tuple<Tensor, Tensor, Tensor> forward_with_or_without_gates(const Tensor& input, const Tensor& weights,
                                                                        const Tensor& bias, const Tensor& old_h,
                                                                        const Tensor& old_cell, bool wants_gates) {
  lltm_check_forward_arguments(input, weights, bias, old_h, old_cell);
  check_device("lltm", input);
  const c10::DeviceGuard on_device(input.device());
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
  const Tensor new_h = at::empty(old_cell.sizes(), input.options());
  const Tensor new_cell = at::empty(old_cell.sizes(), input.options());
  if (new_cell.numel() == 0) return {new_h, new_cell, at::empty({input.size(0), weights.size(0)}, input.options())};
  const Tensor x = input.contiguous(), h = old_h.contiguous(), cell = old_cell.contiguous(), b = bias.contiguous();
  const LltmSizes sizes = sizes_of(x, h);
  const at::ScalarType dtype = x.scalar_type();
  void* const stream = current_stream(x);
  const bool small = is_small(sizes),
             few = !small && weights.is_contiguous() &&
                   has_few_rows(dtype, sizes, {x.const_data_ptr(), weights.const_data_ptr(), h.const_data_ptr()});
  if (small || few) {
    const Tensor w = weights.contiguous();
    const Tensor gates = wants_gates ? at::empty({x.size(0), w.size(0)}, x.options()) : Tensor();
    (small ? launch_small_forward : launch_few_rows_forward)(
        dtype, sizes, x.const_data_ptr(), w.const_data_ptr(), b.const_data_ptr(), h.const_data_ptr(),
        cell.const_data_ptr(), new_h.mutable_data_ptr(), new_cell.mutable_data_ptr(),
        wants_gates ? gates.mutable_data_ptr() : nullptr, stream);
    return {new_h, new_cell, gates};
  }
  const bool with_bias = is_of_halves(x, sizes.state_size);
  const Tensor whole = join(h, x);
  const Tensor gates = with_bias ? at::addmm(b, whole, weights.t()) : at::mm(whole, weights.t());
  launch_lltm_forward(dtype, sizes, gates.mutable_data_ptr(), with_bias ? nullptr : b.const_data_ptr(), wants_gates,
                      cell.const_data_ptr(), new_h.mutable_data_ptr(), new_cell.mutable_data_ptr(), stream);
  return {new_h, new_cell, gates};
}

std::tuple<Tensor, Tensor, Tensor> lltm_forward(const Tensor& input, const Tensor& weights, const Tensor& bias,
                                                const Tensor& old_h, const Tensor& old_cell) {
  return forward_with_or_without_gates(input, weights, bias, old_h, old_cell, /*wants_gates=*/true);
}

/// Where no gradient is wanted, the gates are not stored.
static std::tuple<Tensor, Tensor> lltm_alone(const Tensor& input, const Tensor& weights, const Tensor& bias,
                                             const Tensor& old_h, const Tensor& old_cell) {
  const auto [new_h, new_cell, gates] =
      forward_with_or_without_gates(input, weights, bias, old_h, old_cell, /*wants_gates=*/false);
  return {new_h, new_cell};
}

TORCH_LIBRARY_FRAGMENT(OPERATOR_NAMESPACE, m) { m.impl("lltm", torch::dispatch(kDeviceType, &lltm_alone)); }

/// d_old_h and d_input; one that is not wanted is undefined. d_gates are released as soon as they are not needed.
static std::pair<Tensor, Tensor> gradients_of_rows(Tensor d_gates, const Tensor& weights, int64_t state_size,
                                                   bool wants_h, bool wants_input) {
  const int64_t rows = d_gates.size(0), columns = weights.size(1);
  if (!wants_h || !wants_input || is_long(rows, state_size)) {
    return {wants_h ? d_gates.mm(weights.slice(1, 0, state_size)) : Tensor(),
            wants_input ? d_gates.mm(weights.slice(1, state_size)) : Tensor()};
  }
  const Tensor whole = d_gates.mm(weights);
  d_gates.reset();
  const Tensor d_old_h = at::empty({rows, state_size}, whole.options());
  const Tensor d_input = at::empty({rows, columns - state_size}, whole.options());
  launch_split(whole.scalar_type(), rows, state_size, columns - state_size, whole.const_data_ptr(),
               d_old_h.mutable_data_ptr(), d_input.mutable_data_ptr(), current_stream(whole));
  return {d_old_h, d_input};
}

static Tensor gradient_of_weights(const Tensor& d_gates, const Tensor& old_h, const Tensor& input) {
  const LltmSizes sizes = sizes_of(input, old_h);
  const int64_t state_size = sizes.state_size;
  const at::ScalarType dtype = d_gates.scalar_type();
  const bool few =
      has_few_rows_gradient(dtype, sizes, {d_gates.const_data_ptr(), old_h.const_data_ptr(), input.const_data_ptr()});
  if (!few && !is_of_halves(d_gates, state_size)) return d_gates.t().mm(join(old_h, input));
  const Tensor d_weights = at::empty({d_gates.size(1), state_size + sizes.input_features}, d_gates.options());
  if (few) {
    launch_few_rows_gradient(dtype, sizes, d_gates.const_data_ptr(), old_h.const_data_ptr(), input.const_data_ptr(),
                             d_weights.mutable_data_ptr(), current_stream(input));
    return d_weights;
  }
  Tensor of_h = d_weights.slice(1, 0, state_size), of_input = d_weights.slice(1, state_size);
  at::mm_out(of_h, d_gates.t(), old_h);
  at::mm_out(of_input, d_gates.t(), input);
  return d_weights;
}

/// For a cell that is not small: one pass, then the products.
static std::vector<Tensor> gradients_by_products(const Tensor& grad_h, const Tensor& grad_cell, const Tensor& gates,
                                                 const Tensor& input, const Tensor& weights, const Tensor& old_h,
                                                 const Tensor& old_cell, LltmWanted wanted) {
  const LltmSizes sizes = sizes_of(input, old_h);
  const at::ScalarType dtype = input.scalar_type();
  void* const stream = current_stream(input);
  Tensor d_gates = at::empty(gates.sizes(), input.options());
  const Tensor d_old_cell = at::empty(old_cell.sizes(), input.options());
  Tensor sums, d_bias;
  if (wanted[LltmInput::bias]) {
    const auto options = input.options().dtype(dtype == at::kDouble ? at::kDouble : at::kFloat);
    const int64_t parts = lltm_parts(dtype, sizes);
    if (parts > 1) sums = at::empty({parts, gates.size(1)}, options);
    d_bias = at::empty({gates.size(1)}, input.options());
  }
  const auto place = [](const Tensor& tensor) { return tensor.defined() ? tensor.mutable_data_ptr() : nullptr; };
  launch_lltm_backward(dtype, sizes, gates.const_data_ptr(), old_cell.const_data_ptr(), grad_h.const_data_ptr(),
                       grad_cell.const_data_ptr(), d_gates.mutable_data_ptr(), d_old_cell.mutable_data_ptr(),
                       place(sums), place(d_bias), stream);
  sums.reset();  // released before the products need memory
  // In this order the peak of memory is the smallest.
  const Tensor d_weights = wanted[LltmInput::weights] ? gradient_of_weights(d_gates, old_h, input) : Tensor();
  const auto [d_old_h, d_input] =
      gradients_of_rows(std::move(d_gates), weights, old_h.size(1), wanted[LltmInput::old_h], wanted[LltmInput::input]);
  std::vector<Tensor> gradients;
  if (wanted[LltmInput::input]) gradients.push_back(d_input);
  if (wanted[LltmInput::weights]) gradients.push_back(d_weights);
  if (wanted[LltmInput::bias]) gradients.push_back(d_bias);
  if (wanted[LltmInput::old_h]) gradients.push_back(d_old_h);
  if (wanted[LltmInput::old_cell]) gradients.push_back(d_old_cell);
  return gradients;
}

std::vector<Tensor> lltm_backward(const Tensor& grad_h, const Tensor& grad_cell, const Tensor& gates,
                                  const Tensor& input, const Tensor& weights, const Tensor& old_h,
                                  const Tensor& old_cell, LltmWanted wanted) {
  lltm_check_backward_arguments(grad_h, grad_cell, gates, input, weights, old_h, old_cell);
  check_device("lltm", input);
  const c10::DeviceGuard on_device(input.device());
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::autocast_dispatch_keyset);
  std::vector<Tensor> gradients;
  if (old_cell.numel() == 0) {  // PyTorch computes products of empty tensors
    return lltm_wanted_gradients(at::empty(gates.sizes(), input.options()),
                                 at::empty(old_cell.sizes(), input.options()), input, weights, old_h, wanted);
  }
  const Tensor g_h = grad_h.contiguous(), g_cell = grad_cell.contiguous(), z = gates.contiguous();
  const Tensor x = input.contiguous(), h = old_h.contiguous(), cell = old_cell.contiguous();
  if (!is_small_backward(sizes_of(x, h))) return gradients_by_products(g_h, g_cell, z, x, weights, h, cell, wanted);
  const Tensor w = weights.contiguous();
  const std::array<at::IntArrayRef, LltmInput::count> shapes = {x.sizes(), w.sizes(), w.sizes().slice(0, 1), h.sizes(),
                                                                cell.sizes()};
  std::array<void*, LltmInput::count> places = {};
  for (size_t k = 0; k < wanted.size(); ++k) {
    if (!wanted[k]) continue;
    gradients.push_back(at::empty(shapes[k], x.options()));
    places[k] = gradients.back().mutable_data_ptr();
  }
  launch_small_backward(x.scalar_type(), sizes_of(x, h), g_h.const_data_ptr(), g_cell.const_data_ptr(),
                        z.const_data_ptr(), x.const_data_ptr(), w.const_data_ptr(), h.const_data_ptr(),
                        cell.const_data_ptr(),
                        {places[LltmInput::input], places[LltmInput::weights], places[LltmInput::bias],
                         places[LltmInput::old_h], places[LltmInput::old_cell]},
                        current_stream(x));
  return gradients;
}

}  // namespace OPERATOR_NAMESPACE
