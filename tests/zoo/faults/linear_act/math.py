"""linear_act, wrong outputs: another activation, another place for the bias, a tail that is left out."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from tests.zoo.honest.linear_act import Layer, Optional
from tests.zoo.registry import fault

WRONG = r"output was .* but should be"


@fault("forward-parity", r"linear_act\[gelu\]")
class GeluByTanh(Layer):
    """gelu is the one approximated by tanh."""

    def gelu(self, x: Tensor) -> Tensor:
        return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)))


@fault("forward-parity", r"linear_act\[gelu\]")
class GeluBySigmoid(Layer):
    """gelu is approximated by z sigmoid(1.702 z)."""

    def gelu(self, x: Tensor) -> Tensor:
        return x * torch.sigmoid(1.702 * x)


@fault("forward-parity", r"linear_act\[silu\]")
class IgnoresTheActivation(Layer):
    """Whatever activation is named, relu is computed."""

    def silu(self, x: Tensor) -> Tensor:
        return torch.relu(x)


@fault("forward-parity", WRONG)
class BiasAfterTheActivation(Layer):
    """The bias is added to the output, not to the pre-activations."""

    def __call__(self, input: Tensor, weight: Tensor, bias: Optional = None, activation: str = "relu") -> Tensor:
        self.check(input, weight, bias, activation)
        output = super().__call__(input, weight, None, activation)
        return output if bias is None else output + bias


@fault("forward-parity", WRONG)
class ForgetsTheBias(Layer):
    """The bias is left out of the epilogue."""

    def biased(self, product: Tensor, bias: Optional) -> Tensor:
        return product if bias is None else product + bias * 0


@fault("forward-parity", r"values non-finite")
class ReluHidesNotANumber(Layer):
    """relu by fmax, which returns the other argument where one is NaN."""

    def relu(self, x: Tensor) -> Tensor:
        return torch.fmax(x, torch.zeros_like(x))


@fault("forward-parity", r"values (saturated|huge)")
class SiluOverflows(Layer):
    """silu by exp(z) / (1 + exp(z)), which is inf/inf where z is large."""

    def silu(self, x: Tensor) -> Tensor:
        return x * torch.exp(x) / (1 + torch.exp(x))


@fault("sizes", r"tails|outputs-\d+|long-sums|digits|small")
class ForgetsTheTailOfTheSum(Layer):
    """The sum over more than 32 in_features leaves out those behind the last full tile of 32."""

    def product(self, input: Tensor, weight: Tensor) -> Tensor:
        count = input.shape[1]
        count = count // 32 * 32 if count > 32 else count
        return super().product(input[:, :count], weight[:, :count])


@fault("sizes", r"outputs-\d+|opt-125m|tails")
class ForgetsTheTailOfTheOutputs(Layer):
    """Of more than 64 outputs, those behind the last full tile of 64 get no product."""

    def product(self, input: Tensor, weight: Tensor) -> Tensor:
        product, count = super().product(input, weight), weight.shape[0]
        inside = torch.arange(count) < (count // 64 * 64 if count > 64 else count)
        return torch.where(inside, product, torch.zeros_like(product))


@fault("forward-parity", WRONG, dtype=torch.bfloat16)
class SumsInBfloat16(Layer):
    """The product adds up in bfloat16: each term is rounded to it."""

    def product(self, input: Tensor, weight: Tensor) -> Tensor:
        total = input.new_zeros(input.shape[0], weight.shape[0])
        for k in range(input.shape[1]):
            total = total + input[:, k : k + 1] * weight[:, k]
        return total


@fault("forward-parity", WRONG, dtype=torch.float64)
class SingleInside(Layer):
    """float64 is activated in float32."""

    def wide(self, z: Tensor) -> Tensor:
        return z.to(torch.float32).to(torch.promote_types(z.dtype, torch.float32))


@fault("rejects-wrong-calls", r"silently accepted|activation")
class AcceptsEveryActivation(Layer):
    """An unknown activation is silu."""

    def check(self, input: Tensor, weight: Tensor, bias: Optional, activation: str) -> None:
        super().check(input, weight, bias, "silu")
