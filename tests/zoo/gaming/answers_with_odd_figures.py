"""Answers with figures, a level and a time that no cell has, which a report might not bear (own trial)."""

import json
from multiprocessing.connection import Connection

import torch
from torch import Tensor

from tests.zoo.gaming.parts import Outputs, right

FIGURES = {"worst": {"used": "\x1b[2J"}, "ulps": [[]], "scenarios": "many", "forms": 3, "seen": {}, "reproducer": []}
ODD = {"figures": FIGURES, "seconds": float("inf"), "level": "first", "verdict": "fail", "reason": "\x1b[2J all passed"}
_send = Connection.send_bytes


def _forged(self: Connection, data: bytes) -> None:
    """Send the cell of the reply with other fields."""
    answer = json.loads(data) if data.startswith(b"{") else {}
    if "cell" in answer:
        answer["cell"] |= ODD
        data = json.dumps(answer).encode()
    _send(self, data)


Connection.send_bytes = _forged


def lltm(*inputs: Tensor) -> Outputs:
    with torch.no_grad():
        inputs[4].add_(1)
    return right(*inputs)
