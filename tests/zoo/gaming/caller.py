"""What the attacks on the protocol take out of the runner's frames."""

from __future__ import annotations

import json
import sys
from multiprocessing.connection import Connection
from typing import Any

from safetensors.torch import save
from torch import Tensor

TENSOR = {"kind": "Tensor", "requires_grad": False, "device": "cpu"}


def caller() -> tuple[Connection, str]:
    """The connection to the judge, and the id of its request."""
    found: dict[str, Any] = {}
    frame = sys._getframe(1)
    while frame is not None:
        found |= {name: frame.f_locals[name] for name in ("connection", "asked") if name in frame.f_locals}
        frame = frame.f_back  # type: ignore[assignment]
    return found["connection"], found["asked"]["id"]


def reply(outputs: tuple[Tensor, ...], **changes: object) -> None:
    """Reply to the request in place of the runner."""
    connection, number = caller()
    header = {
        "id": number,
        "results": [TENSOR for _ in outputs],
        "record": 1,
        "single": False,
        "shares": [],
        "changed": [],
        "overlaps": [],
        "turned": [],
        **changes,
    }
    connection.send_bytes(json.dumps(header).encode())
    connection.send_bytes(save({str(place): y.detach() for place, y in enumerate(outputs)}))
