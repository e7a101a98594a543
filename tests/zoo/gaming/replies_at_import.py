"""Replies to the request that imports it, with an error that is none (own trial)."""

import json

from safetensors.torch import save

from tests.zoo.gaming.caller import caller
from tests.zoo.gaming.parts import right as lltm

__all__ = ["lltm"]
_connection, _number = caller()
_connection.send_bytes(json.dumps({"id": _number, "error": 5}).encode())
_connection.send_bytes(save({}))
