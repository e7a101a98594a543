// Autocast, by the rule of the contract.
//
// An operator registers, for each device that has autocast, a function that casts its arguments and calls the operator
// again with autocast off. With autocast on, it would cast each operation by itself: dtypes would change between the
// products and the kernels, and again in a backward that runs inside the region. float64 tensors and those of another
// device stay as they are. The casts belong to the graph, so that a gradient comes back in the dtype of its argument.
#pragma once

#include <ATen/autocast_mode.h>
#include <ATen/core/Tensor.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <optional>

namespace OPERATOR_NAMESPACE {

using at::Tensor;

/// Keeps autocast off while it lives, and casts to one dtype. PyTorch caches the cast of a weight, so a weight is cast
/// once in a region of autocast.
class AutocastOff {
 public:
  AutocastOff(c10::DeviceType device, at::ScalarType dtype) : device_(device), dtype_(dtype) {}

  Tensor cast(const Tensor& tensor) const { return at::autocast::cached_cast(dtype_, tensor, device_); }

  std::optional<Tensor> cast(const std::optional<Tensor>& tensor) const {
    return tensor.has_value() ? std::optional<Tensor>(cast(*tensor)) : std::nullopt;
  }

  /// What is no tensor stays as it is.
  template <typename Argument>
  const Argument& cast(const Argument& argument) const {
    return argument;
  }

 private:
  c10::DeviceType device_;
  at::ScalarType dtype_;
  c10::impl::ExcludeDispatchKeyGuard off_{c10::autocast_dispatch_keyset};
};

/// For a rule `LOWER`: to the dtype of autocast on that device.
inline AutocastOff cast_to_lower(c10::DeviceType device) { return {device, at::autocast::get_autocast_dtype(device)}; }

/// For a rule `FLOAT32`.
inline AutocastOff cast_to_float32(c10::DeviceType device) { return {device, at::kFloat}; }

}  // namespace OPERATOR_NAMESPACE
