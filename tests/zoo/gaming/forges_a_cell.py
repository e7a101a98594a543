"""Changes its input, and answers «pass» in place of the process that looks for that (own trial)."""

import json
from multiprocessing.connection import Connection

import torch
from torch import Tensor

from tests.zoo.gaming.parts import Outputs, right

_send = Connection.send_bytes


def _forged(self: Connection, data: bytes) -> None:
    """Send the cell of the reply with other fields."""
    answer = json.loads(data) if data.startswith(b"{") else {}
    if "cell" in answer:
        answer["cell"] |= {"verdict": "pass", "reason": "", "figures": {}}
        data = json.dumps(answer).encode()
    _send(self, data)


Connection.send_bytes = _forged


def lltm(*inputs: Tensor) -> Outputs:
    with torch.no_grad():
        inputs[4].add_(1)
    return right(*inputs)
