"""Returns the right answer, which a thread overwrites half a second later (own trial)."""

import threading
import time

from torch import Tensor

from tests.zoo.gaming.parts import Outputs, right


def _spoil(outputs: Outputs) -> None:
    time.sleep(0.5)
    for output in outputs:
        output.data.zero_()


def lltm(*inputs: Tensor) -> Outputs:
    outputs = right(*inputs)
    threading.Thread(target=_spoil, args=(outputs,), daemon=True).start()
    return outputs
