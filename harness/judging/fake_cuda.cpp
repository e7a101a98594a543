// CUDA devices for fake tensors: what PyTorch asks a device for when it builds a graph of autograd. PyTorch without
// CUDA has no answer, and ends the process. Nothing runs on these devices; only the current one is remembered.
#include <c10/core/impl/DeviceGuardImplInterface.h>

namespace {

constexpr c10::DeviceIndex kDevices = 4;

c10::DeviceIndex& current() {
  static thread_local c10::DeviceIndex index = 0;
  return index;
}

struct FakeGuard final : c10::impl::NoOpDeviceGuardImpl<c10::DeviceType::CUDA> {
  c10::Device exchangeDevice(c10::Device device) const override {
    const c10::Device was = getDevice();
    setDevice(device);
    return was;
  }
  c10::Device getDevice() const override { return {c10::DeviceType::CUDA, current()}; }
  void setDevice(c10::Device device) const override { uncheckedSetDevice(device); }
  void uncheckedSetDevice(c10::Device device) const noexcept override {
    if (device.has_index()) current() = device.index();
  }
  c10::DeviceIndex deviceCount() const noexcept override { return kDevices; }
};

const c10::impl::DeviceGuardImplRegistrar registrar(c10::DeviceType::CUDA, new FakeGuard());

}  // namespace

#define EXPORTED extern "C" __attribute__((visibility("default")))

EXPORTED int fake_cuda_count() { return kDevices; }
EXPORTED int fake_cuda_current() { return current(); }
EXPORTED void fake_cuda_set(int index) { current() = static_cast<c10::DeviceIndex>(index); }
