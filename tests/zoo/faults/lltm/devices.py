"""A device is written down: right on the CPU and on the first GPU, wrong on another one. No GPU is needed to see it."""

import torch
from torch import Tensor

from tests.zoo.honest.lltm import Cell, Outputs
from tests.zoo.registry import fault


@fault("fake-devices", "forward raised .*cuda:1(,| and) cuda:0.* with fake tensors on cuda:1")
class CudaWithoutIndex(Cell):
    """A temporary tensor is made on "cuda", which is the current GPU."""

    def gates(self, input: Tensor, weights: Tensor, bias: Tensor, old_h: Tensor) -> Tensor:
        z = super().gates(input, weights, bias, old_h)
        return z + torch.zeros(z.shape, dtype=z.dtype, device="cuda" if input.is_cuda else "cpu")


@fault("fake-devices", "device of new_h was cuda:0, but should be cuda:1")
class OutputOnTheFirstDevice(Cell):
    """An output is made on cuda:0."""

    def finish(self, new_h: Tensor, new_cell: Tensor) -> Outputs:
        return new_h.to("cuda:0" if new_h.is_cuda else "cpu"), new_cell


@fault("fake-devices", "device of new_cell was cuda:0, but should be cuda:1")
class OutputOnTheCurrentDevice(Cell):
    """An output is made on the current device."""

    def finish(self, new_h: Tensor, new_cell: Tensor) -> Outputs:
        return new_h, new_cell.to(torch.cuda.current_device() if new_h.is_cuda else "cpu")


@fault("fake-devices", "forward raised .*cuda:1(,| and) cpu.* with fake tensors on cuda:1")
class TemporaryOnTheCpu(Cell):
    """A temporary tensor is made without a device."""

    def gates(self, input: Tensor, weights: Tensor, bias: Tensor, old_h: Tensor) -> Tensor:
        z = super().gates(input, weights, bias, old_h)
        return z + torch.zeros(z.shape, dtype=z.dtype)


@fault("fake-devices", "device of the gradient of bias was cuda:0, but should be cuda:1")
class GradientOnTheFirstDevice(Cell):
    """Backward makes the gradient of the bias on "cuda"."""

    def d_bias(self, d_gates: Tensor) -> Tensor:
        return super().d_bias(d_gates).to("cuda" if d_gates.is_cuda else "cpu")


@fault("fake-devices", "backward raised .*(cuda:1(,| and) cpu|cpu(,| and) cuda:1).* with fake tensors on cuda:1")
class BackwardOnTheCpu(Cell):
    """Backward makes a temporary tensor without a device."""

    def d_weights(self, d_gates: Tensor, X: Tensor) -> Tensor:
        return torch.zeros(d_gates.shape[1], X.shape[1], dtype=X.dtype).addmm(d_gates.t(), X)


@fault("fake-devices", "forward raised .*cuda:2(,| and) cuda:1.* with fake tensors on cuda:2")
class CacheOfTheFirstCall(Cell):
    """A tensor that an earlier call made is used again, on whichever GPU the call is."""

    def __init__(self) -> None:
        self._made: dict[tuple[object, ...], Tensor] = {}

    def gates(self, input: Tensor, weights: Tensor, bias: Tensor, old_h: Tensor) -> Tensor:
        z = super().gates(input, weights, bias, old_h)
        key = (z.device.type, z.shape, z.dtype, type(z))
        if key not in self._made:
            self._made[key] = torch.zeros_like(z)
        return z + self._made[key]


@fault("fake-devices", "should give outputs there, as it does on cuda:0")
class FirstDeviceOnly(Cell):
    """Every GPU but the first is refused."""

    def check(self, *inputs: Tensor) -> None:
        super().check(*inputs)
        if inputs[0].is_cuda and inputs[0].get_device() != 0:
            raise ValueError(f"lltm: input was on {inputs[0].device}, but should be on cuda:0")


@fault("fake-devices", "raised RuntimeError: unsupported .* or an error that names the device")
class RefusesWithoutTheDevice(Cell):
    """A GPU is refused by an error that does not say why."""

    def check(self, *inputs: Tensor) -> None:
        super().check(*inputs)
        if inputs[0].device.type != "cpu":
            raise RuntimeError("unsupported")
