"""A module that is right in training mode, and wrong after eval() (own trial)."""

from torch import Tensor, nn

from tests.zoo.gaming.parts import Outputs, right, wrong


class Step(nn.Module):
    """Never put into eval mode by the suite."""

    def forward(self, *inputs: Tensor) -> Outputs:
        return (right if self.training else wrong)(*inputs)


lltm = Step()
