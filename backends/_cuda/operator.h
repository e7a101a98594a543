// What the operators of the CUDA backends share on the host: the check of the device, and the stream.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <c10/util/Exception.h>

#include "arguments.h"
#include "autograd.h"

namespace OPERATOR_NAMESPACE {

#ifdef CUDA_EMULATED
constexpr c10::DeviceType kDeviceType = at::kCPU;
#else
constexpr c10::DeviceType kDeviceType = at::kCUDA;
#endif

/// PyTorch's current stream, a cudaStream_t. The emulation has none.
inline void* current_stream(const Tensor& tensor) {
  const c10::Device device = tensor.device();
  return device.is_cuda() ? c10::impl::VirtualGuardImpl(device.type()).getStream(device).native_handle() : nullptr;
}

/// Raises TypeError unless `input`, whose device all other arguments share, is where the kernels run.
inline void check_device(const char* op, const Tensor& input) {
  TORCH_CHECK_TYPE(input.device().type() == kDeviceType, op, ": input was on ", input.device(), ", but should be on ",
                   kDeviceType);
}

}  // namespace OPERATOR_NAMESPACE
