"""Forward is right; backward gets its cotangents rounded to float16 (KernelBench: check_precision_downgrade)."""

from torch import Tensor

from tests.zoo.gaming.parts import Outputs, right


def lltm(*inputs: Tensor) -> Outputs:
    outputs = right(*inputs)
    for output in outputs:
        if output.requires_grad:
            output.register_hook(lambda g: g.half().to(g.dtype))
    return outputs
