"""Answers with the cell of another operator, so that its own is not judged (own trial)."""

import json
from multiprocessing.connection import Connection

from torch import Tensor

from tests.zoo.gaming.parts import Outputs, right

_send = Connection.send_bytes


def _forged(self: Connection, data: bytes) -> None:
    """Send the cell of the reply with other fields."""
    answer = json.loads(data) if data.startswith(b"{") else {}
    if "cell" in answer:
        answer["cell"] |= {"operator": "mlp"}
        data = json.dumps(answer).encode()
    _send(self, data)


Connection.send_bytes = _forged


def lltm(*inputs: Tensor) -> Outputs:
    return right(*inputs)
