"""Call attacks as a user would, in processes without the suite: is the function really wrong?

`python plain_call.py CHECKOUT`, with a list of [name, sizes, calls, seconds] as JSON on the standard input. Prints a
line of JSON for each: by how much the worst element of any call was off, or how its process ended.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import sys
import tempfile
from pathlib import Path

import torch
from torch import Tensor


def right(input: Tensor, weights: Tensor, bias: Tensor, old_h: Tensor, old_cell: Tensor) -> tuple[Tensor, Tensor]:
    """The cell, from torch's functions before any attack replaces them."""
    z_i, z_o, z_k = (torch.cat([old_h, input], dim=1) @ weights.t() + bias).chunk(3, dim=1)
    new_cell = old_cell + torch.nn.functional.elu(z_k) * torch.sigmoid(z_i)
    return torch.tanh(new_cell) * torch.sigmoid(z_o), new_cell


def drawn(sizes: tuple[int, int, int], seed: int) -> tuple[Tensor, ...]:
    """Ordinary inputs."""
    batch, features, state = sizes
    shapes = ((batch, features), (3 * state, state + features), (3 * state,), (batch, state), (batch, state))
    generator = torch.Generator().manual_seed(seed)
    return tuple(torch.randn(shape, generator=generator) for shape in shapes)


def off(name: str, sizes: tuple[int, int, int], calls: int) -> float:
    """How far the worst element of new_h and new_cell was off, in calls with new values at the same addresses."""
    values = [drawn(sizes, seed) for seed in range(min(calls, 50))]
    answers = [[y.flatten().tolist() for y in right(*inputs)] for inputs in values]
    held = drawn(sizes, 0)
    function = importlib.import_module(f"tests.zoo.gaming.{name}").lltm
    worst = 0.0
    with torch.no_grad():
        for number in range(calls):
            place = number % len(values)
            # Addresses are the same from call to call; version counters and objects are new.
            for old, new in zip(held, values[place], strict=True):
                old.data.copy_(new)
            outputs = function(*(tensor.data for tensor in held))
            if number < 50 or number == calls - 1:
                pairs = zip(outputs, answers[place], strict=True)
                found = [abs(a - b) for y, known in pairs for a, b in zip(y.flatten().tolist(), known, strict=True)]
                worst = max(worst, *(float("inf") if value != value else value for value in found))
    return worst


def in_a_child(name: str, sizes: tuple[int, int, int], calls: int, seconds: int) -> dict[str, object]:
    """The result of `off` in a forked process, or how that ended."""
    answer = Path(tempfile.gettempdir()) / "off.json"
    answer.unlink(missing_ok=True)
    child = os.fork()
    if child == 0:
        os.setsid()
        signal.alarm(seconds)
        nothing = os.open(os.devnull, os.O_RDWR)
        for number in (0, 1, 2):
            os.dup2(nothing, number)
        with answer.open("w") as file:  # an attack may forbid to open files, or write to those that are open
            value = json.dumps(off(name, sizes, calls))
            file.truncate(0)
            file.seek(0)
            file.write(value)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    text = answer.read_text() if os.waitstatus_to_exitcode(status) == 0 else ""
    found = json.loads(text) if text else None
    return {"name": name, "off": found, "code": os.waitstatus_to_exitcode(status)}


if __name__ == "__main__":
    sys.path.insert(0, sys.argv[1])
    torch.set_num_threads(1)
    importlib.import_module("tests.zoo.gaming.parts")
    for asked in json.load(sys.stdin):
        print(json.dumps(in_a_child(*asked)), flush=True)
