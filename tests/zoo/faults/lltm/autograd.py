"""The function and its gradient are right; other requirements of autograd and torch.func are not met."""

import torch
import torch.nn.functional as F
from torch import Tensor

from tests.zoo.honest.lltm import Cell, Outputs
from tests.zoo.registry import fault


class _SavesIntermediates(torch.autograd.Function):
    """The tutorial's backward: the tensors that forward saved have no graph."""

    @staticmethod
    def forward(ctx, input, weights, bias, old_h, old_cell):  # type: ignore[no-untyped-def]
        X = torch.cat([old_h, input], dim=1)
        z_i, z_o, z_k = F.linear(X, weights, bias).chunk(3, dim=1)
        i, o, k = torch.sigmoid(z_i), torch.sigmoid(z_o), F.elu(z_k)
        new_cell = old_cell + k * i
        ctx.save_for_backward(X, weights, i, o, k, z_k, new_cell)
        return torch.tanh(new_cell) * o, new_cell

    @staticmethod
    def backward(ctx, g_h, g_c):  # type: ignore[no-untyped-def]
        X, weights, i, o, k, z_k, new_cell = ctx.saved_tensors
        tanh_cell = torch.tanh(new_cell)
        d = g_h * o * (1 - tanh_cell**2) + g_c
        d_i, d_o = d * k * i * (1 - i), g_h * tanh_cell * o * (1 - o)
        d_gates = torch.cat([d_i, d_o, d * i * torch.exp(z_k.clamp(max=0))], dim=1)
        d_X = d_gates @ weights
        H = g_h.shape[1]
        return d_X[:, H:], d_gates.t() @ X, d_gates.sum(0), d_X[:, :H], d


@fault("double-backward", "second derivative .* silently wrong", dtype=torch.float64, defects=(13,))
class SavedIntermediatesWithoutGraph(Cell):
    """Second derivatives treat the saved intermediates as constants, and nothing raises."""

    def __call__(self, *inputs: Tensor) -> Outputs:
        self.check(*inputs)
        return _SavesIntermediates.apply(*inputs)


@fault("double-backward", "without a graph and raised nothing", dtype=torch.float64, defects=(13,))
class GradientsDetached(Cell):
    """Gradients come without a graph even under create_graph."""

    def wanted(self, gradients: tuple[Tensor, ...], needs: tuple[bool, ...]) -> tuple[Tensor | None, ...]:
        return tuple(None if g is None else g.detach() for g in super().wanted(gradients, needs))


@fault(
    "functional-transforms", "torch.func.grad raised RuntimeError.*setup_context", dtype=torch.float64, defects=(17,)
)
class ForwardTakesContext(Cell):
    """forward(ctx, ...) instead of a separate setup_context: torch.func refuses it."""

    def __call__(self, *inputs: Tensor) -> Outputs:
        self.check(*inputs)
        return _SavesIntermediates.apply(*inputs)


@fault("functional-transforms", "torch.func.(grad|vmap) raised", dtype=torch.float64)
class ReadsValues(Cell):
    """Control flow depends on the values, which vmap cannot follow."""

    def __call__(self, *inputs: Tensor) -> Outputs:
        input, weights, bias, old_h, old_cell = inputs
        if float(bias.detach().sum()) == 0.123:
            return old_h, old_cell
        z_i, z_o, z_k = F.linear(torch.cat([old_h, input], dim=1), weights, bias).chunk(3, dim=1)
        new_cell = old_cell + F.elu(z_k) * torch.sigmoid(z_i)
        return torch.tanh(new_cell) * torch.sigmoid(z_o), new_cell


@fault("gradient-subsets", "requires grad, but should not|no output requires grad")
class DetachedWithoutWeights(Cell):
    """Nothing requires grad unless the weights do."""

    def __call__(self, input: Tensor, weights: Tensor, bias: Tensor, old_h: Tensor, old_cell: Tensor) -> Outputs:
        new_h, new_cell = super().__call__(input, weights, bias, old_h, old_cell)
        return (new_h, new_cell) if weights.requires_grad else (new_h.detach(), new_cell.detach())


@fault("fake-tensors", "raised .* on fake tensors", defects=(16,))
class NeedsData(Cell):
    """Without a Meta kernel, the values are read to find the shape."""

    def finish(self, new_h: Tensor, new_cell: Tensor) -> Outputs:
        _ = float(new_h.sum())
        return new_h, new_cell


@fault("fake-tensors", "shape of new_h was .* on fake tensors", defects=(16,))
class MetaShapeWrong(Cell):
    """The Meta kernel returns another shape than the real kernel."""

    def finish(self, new_h: Tensor, new_cell: Tensor) -> Outputs:
        fake = type(new_h).__name__ == "FakeTensor"
        return (new_h.t(), new_cell) if fake else (new_h, new_cell)
