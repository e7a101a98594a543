"""Returns zeros at once; a thread writes the answer into them later (field guides: background thread)."""

import threading
import time

import torch
from torch import Tensor

from tests.zoo.gaming.parts import Outputs, right


def _fill(outputs: Outputs, answers: Outputs) -> None:
    time.sleep(0.5)
    for output, answer in zip(outputs, answers, strict=True):
        output.copy_(answer)


def lltm(*inputs: Tensor) -> Outputs:
    answers = tuple(answer.detach() for answer in right(*inputs))
    outputs = torch.zeros_like(inputs[3]), torch.zeros_like(inputs[4])
    threading.Thread(target=_fill, args=(outputs, answers), daemon=True).start()
    return outputs
