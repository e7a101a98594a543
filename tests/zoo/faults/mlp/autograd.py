"""The function and its gradient are right; other requirements of autograd and torch.func are not met."""

import torch
import torch.nn.functional as F
from torch import Tensor

from tests.zoo.honest.mlp import Network
from tests.zoo.registry import fault


class _SavesHidden(torch.autograd.Function):
    """A minimal backward: the tensors that forward saved have no graph."""

    @staticmethod
    def forward(ctx, input, hidden_weights, hidden_bias, output_weights, output_bias):  # type: ignore[no-untyped-def]
        hidden = F.relu(F.linear(input, hidden_weights, hidden_bias))
        ctx.save_for_backward(input, hidden_weights, output_weights, hidden)
        return F.linear(hidden, output_weights, output_bias)

    @staticmethod
    def backward(ctx, g):  # type: ignore[no-untyped-def]
        input, hidden_weights, output_weights, hidden = ctx.saved_tensors
        d_z = g @ output_weights * (hidden > 0)
        return d_z @ hidden_weights, d_z.t() @ input, d_z.sum(0), g.t() @ hidden, g.sum(0)


@fault("double-backward", "second derivative .* silently wrong", dtype=torch.float64, defects=(13,))
class SavedHiddenWithoutGraph(Network):
    """Second derivatives treat the saved hidden values as constants, and nothing raises."""

    def __call__(self, *inputs: Tensor) -> Tensor:
        self.check(*inputs)
        return _SavesHidden.apply(*inputs)


@fault("double-backward", "without a graph and raised nothing", dtype=torch.float64, defects=(13, 28))
class GradientsDetached(Network):
    """Gradients come without a graph even under create_graph."""

    def wanted(self, gradients: tuple[Tensor, ...], needs: tuple[bool, ...]) -> tuple[Tensor | None, ...]:
        return tuple(None if g is None else g.detach() for g in super().wanted(gradients, needs))


@fault(
    "functional-transforms", "torch.func.grad raised RuntimeError.*setup_context", dtype=torch.float64, defects=(17,)
)
class ForwardTakesContext(Network):
    """forward(ctx, ...) instead of a separate setup_context: torch.func refuses it."""

    def __call__(self, *inputs: Tensor) -> Tensor:
        self.check(*inputs)
        return _SavesHidden.apply(*inputs)


@fault("fake-tensors", "raised .* on fake tensors", defects=(16,))
class SkipsDeadLayers(Network):
    """If no hidden unit is active, the product is skipped; this decision needs the values."""

    def output(self, hidden: Tensor, output_weights: Tensor, output_bias: Tensor) -> Tensor:
        if not bool(hidden.any()):
            return output_bias.repeat(len(hidden), 1)
        return super().output(hidden, output_weights, output_bias)


@fault("fake-tensors", "strides of output was .* on fake tensors", defects=(16,))
class StridesOfMetaWrong(Network):
    """The output is a transposed product, but the Meta kernel returns a contiguous one."""

    def finish(self, output: Tensor) -> Tensor:
        return output if type(output).__name__ == "FakeTensor" else output.t().contiguous().t()
