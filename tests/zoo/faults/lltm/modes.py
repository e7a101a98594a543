"""Without autograd the results differ."""

import torch
from torch import Tensor

from tests.zoo.honest.lltm import Cell, Outputs
from tests.zoo.registry import fault


@fault("inference-modes", "under (inference_mode|no_grad): new_h was .*, but should be")
class FastPathForInference(Cell):
    """Without grad, sigmoid is a rational function that is off by up to 0.1."""

    def sigmoid(self, z: Tensor) -> Tensor:
        return super().sigmoid(z) if self._trains else 0.5 + 0.5 * z / (2.0 + z.abs())

    def __call__(self, *inputs: Tensor) -> Outputs:
        self._trains = torch.is_grad_enabled()
        return super().__call__(*inputs)


@fault("inference-modes", "new_h under (no_grad|inference_mode) requires grad, but should not")
class AlwaysRequiresGrad(Cell):
    """Grad mode is switched on for the call, even if the caller has switched it off."""

    def __call__(self, *inputs: Tensor) -> Outputs:
        with torch.enable_grad():
            return super().__call__(*inputs)


@fault("inference-modes", "forward raised RuntimeError: Inference tensors cannot be saved for backward")
class CachesInferenceTensor(Cell):
    """The first call makes a tensor of ones and keeps it; made in inference_mode, it makes training impossible."""

    _ones: Tensor | None = None

    def __call__(self, input: Tensor, weights: Tensor, bias: Tensor, old_h: Tensor, old_cell: Tensor) -> Outputs:
        self.check(input, weights, bias, old_h, old_cell)
        if self._ones is None or self._ones.dtype != input.dtype:
            self._ones = torch.ones((), dtype=input.dtype)
        return super().__call__(input, weights * self._ones, bias, old_h, old_cell)


@fault("inference-modes", "with frozen parameters: new_h was .*, but should be")
class FrozenWeightsQuantised(Cell):
    """Weights that do not require grad are rounded to bfloat16."""

    def __call__(self, input: Tensor, weights: Tensor, bias: Tensor, old_h: Tensor, old_cell: Tensor) -> Outputs:
        frozen = isinstance(weights, Tensor) and not weights.requires_grad and torch.is_grad_enabled()
        if frozen and old_h.requires_grad:
            weights = weights.bfloat16().to(weights.dtype)
        return super().__call__(input, weights, bias, old_h, old_cell)
