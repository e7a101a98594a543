"""Which properties make a quick run (`--quick`): computed from the faults of the zoo and from measured costs.

A quick run judges values, gradients and safety: what decides the exit code of a candidate. Each fault of the zoo names
the property that catches it, and a test holds that. Where this property is dear, the fault is judged by the cheaper
ones, the cheapest first, until one notices it: so `--measure` fills `noticed` of `harness/running/quick.json`, which
takes minutes. The set is then a cover: `chosen` takes forward-parity and vjp-parity, then the property that adds most
faults for its cost, until the share of all faults is large enough. Most properties of a quick run are judged in its
first dtype alone. `in_each_dtype` are those that are not: forward-parity, vjp-parity, and what faults of other dtypes
than float32 need beside them.

The costs are processor time, of the judge and of all its processes, so that it does not matter what else the machine
does. `--costs` measures them with a candidate that is right, whose expected results are known: not in the first turn.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import select
import signal
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import torch

from harness.building.cache import expected_root
from harness.judging import stored
from harness.judging.subject import USUAL
from harness.properties import all_properties
from harness.report.cell import FAIL, PASS
from harness.report.levels import SAFE, is_required
from harness.running.candidate_process import Limits
from harness.running.isolation import Isolation
from harness.running.quick import FILE
from harness.running.selection import Selection, slots
from tests.zoo import registry as zoo

#: A property that takes more seconds is dear.
DEAR = 0.35
#: The share of the faults that a quick run should notice.
SHARE = 0.97
#: What a quick run is about.
ALWAYS = ("forward-parity", "vjp-parity")
#: Seconds after which one property hangs.
_LIMIT = 60.0


#: What the costs are measured with.
_CANDIDATE = """
import torch
from torch.nn.functional import elu

def lltm(input, weights, bias, old_h, old_cell):
    gates = torch.addmm(bias, torch.cat([old_h, input], 1), weights.t())
    input_gate, output_gate, candidate = gates.chunk(3, 1)
    new_cell = old_cell + torch.sigmoid(input_gate) * elu(candidate)
    return torch.tanh(new_cell) * torch.sigmoid(output_gate), new_cell
"""


def costs(names: Sequence[str], turns: int = 3) -> dict[str, float]:
    """The least seconds of each property over the turns after the first: in float32 if it is asked there.

    A property that holds for no dtype is left out.
    """
    found = dict[str, float]()
    with tempfile.TemporaryDirectory() as folder, stored.used(expected_root()):
        (Path(folder) / "right.py").write_text(_CANDIDATE)
        selection = Selection(candidates=(f"lltm={folder}/right.py:lltm",), devices=("cpu",))
        places = sorted(slots(selection), key=lambda slot: slot.dtype != torch.float32)
        isolation = Isolation(selection, Limits())
        try:
            for turn, name in itertools.product(range(turns), names):
                before = _processor_seconds()
                slot = next((slot for slot in places if slot.is_asked(all_properties()[name])), None)
                if slot is not None and isolation.judge(slot, name).verdict == PASS and turn:
                    took = round(_processor_seconds() - before, 3)
                    found[name] = min(took, found.get(name, took))
        finally:
            isolation.stop()
    return found


def required() -> list[str]:
    """The properties that decide the exit code."""
    return sorted(name for name, property in all_properties().items() if is_required(property.level, SAFE))


def _processor_seconds() -> float:
    """Of this process and of all that it has started, those that have ended too."""
    total = 0.0
    for process in (psutil.Process(), *psutil.Process().children(recursive=True)):
        with suppress(psutil.Error):
            times = process.cpu_times()
            total += times.user + times.system + times.children_user + times.children_system
    return total


def chosen(noticed: Mapping[str, Sequence[str]], cost: Mapping[str, float], share: float = SHARE) -> list[str]:
    """The properties of a quick run, in the order in which they are taken. `noticed` has those of each fault."""
    taken: list[str] = []
    left = {fault: set(by) for fault, by in noticed.items()}
    for name in ALWAYS:
        taken.append(name)
        left = {fault: by for fault, by in left.items() if name not in by}
    while len(left) > (1 - share) * len(noticed):
        gains = {name: sum(name in by for by in left.values()) for name in cost if name not in taken}
        best = max(gains, key=lambda name: (gains[name] / max(cost[name], 0.001), name), default="")
        if not best or not gains[best]:
            return taken
        taken.append(best)
        left = {fault: by for fault, by in left.items() if best not in by}
    return taken


def in_each_dtype(
    noticed: Mapping[str, Sequence[str]],
    properties: Sequence[str],
    others: Sequence[str],
    cost: Mapping[str, float],
    share: float = SHARE,
) -> list[str]:
    """Of the properties those that are judged in each dtype; `others` are the faults of other dtypes than float32.

    Those of ALWAYS, and the ones that add most for their cost, until the share of all faults is large enough. What is
    not asked in float32 is judged in the first dtype in which it is, and no cost.
    """
    alone = not_in_float32(properties)
    taken = [*ALWAYS, *alone]
    while share_of(noticed, properties, taken, others) < share:
        left = [noticed[fault] for fault in others if fault in noticed and not set(noticed[fault]) & set(taken)]
        gains = {name: sum(name in by for by in left) for name in properties if name not in taken}
        best = max(gains, key=lambda name: (gains[name] / max(cost[name], 0.001), name), default="")
        if not best or not gains[best]:
            break
        taken.append(best)
    return [name for name in taken if name not in alone]


def not_in_float32(properties: Sequence[str]) -> list[str]:
    """Those that are asked in other dtypes alone."""
    return [name for name in properties if not all_properties()[name].is_asked("cpu", "float32")]


def share_of(
    noticed: Mapping[str, Sequence[str]],
    properties: Sequence[str],
    everywhere: Sequence[str] = (),
    others: Sequence[str] = (),
) -> float:
    """The share of the faults that these properties notice: of `others`, by those `everywhere` alone."""
    seen = {fault: everywhere if fault in others else properties for fault in noticed}
    return sum(bool(set(by) & set(seen[fault])) for fault, by in noticed.items()) / len(noticed)


def faults_of_other_dtypes() -> list[str]:
    """The ids of the faults that are judged in another dtype than float32."""
    return [fault.id for fault in judged_faults() if fault.dtype != torch.float32]


def measured(cost: Mapping[str, float], known: Mapping[str, Sequence[str]], limit: int | None) -> dict[str, list[str]]:
    """By the id of each fault: the property that catches it and, where that is dear, the cheapest that notices it.

    Faults that are `known` are taken over. With a `limit`, only so many others are judged.
    """
    cheap = sorted((name for name, seconds in cost.items() if seconds <= DEAR), key=lambda name: (cost[name], name))
    found: dict[str, list[str]] = {}
    judged = 0
    for fault in judged_faults():
        found[fault.id] = [fault.caught_by]
        if fault.caught_by in cheap:
            continue
        if fault.id in known:
            found[fault.id] = list(known[fault.id])
        elif limit is None or judged < limit:
            judged += 1
            by = _first(fault, cheap)
            found[fault.id] = [fault.caught_by, *([by] if by else [])]
            print(f"{fault.id}: {fault.caught_by}, {by or 'no cheaper one'}", file=sys.stderr, flush=True)
    return found


def judged_faults() -> list[zoo.Fault]:
    """The faults that a property of the required levels catches."""
    zoo.load()
    properties = all_properties()
    return [fault for fault in zoo.FAULTS if is_required(properties[fault.caught_by].level, SAFE)]


def _first(fault: zoo.Fault, properties: Sequence[str]) -> str:
    """The first of the properties that notices the fault, in a process of its own; a crash or a hang is noticed."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        _child(fault, properties, writing)
    os.close(writing)
    last = ""
    with os.fdopen(reading) as lines:
        while select.select([lines], [], [], _LIMIT)[0] and (line := lines.readline()):
            last = line.strip()
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return "" if last == "none" else last


def _child(fault: zoo.Fault, properties: Sequence[str], writing: int) -> None:
    """Write the name of each property before it is judged; the last one is that which noticed the fault."""
    dtype = str(fault.dtype).removeprefix("torch.")
    with stored.used(expected_root()):
        for name in properties:
            if not all_properties()[name].is_asked("cpu", dtype):
                continue
            os.write(writing, f"{name}\n".encode())
            if zoo.judged(fault.function, name, fault.dtype, fault.operator, USUAL.count).verdict == FAIL:
                os._exit(0)
    os.write(writing, b"none\n")
    os._exit(0)


def recorded() -> dict[str, Any]:
    """What the file holds."""
    found: dict[str, Any] = json.loads(FILE.read_text())
    return found


def main(arguments: Sequence[str]) -> int:
    """Print the file that follows from what was measured, or write it with `--measure` or `--costs`."""
    parser = argparse.ArgumentParser(prog="python -m tools.quick_set", description=main.__doc__)
    parser.add_argument("--measure", action="store_true", help="judge the faults of which nothing is known")
    parser.add_argument("--costs", action="store_true", help="measure the costs")
    parser.add_argument("--limit", type=int, metavar="N", help="judge at most N faults; the next call goes on")
    given = parser.parse_args(arguments)
    torch.set_num_threads(1)
    cost, noticed = recorded()["cost"], recorded()["noticed"]
    if given.costs:
        cost = costs(required())
    if given.measure:
        noticed = measured(cost, noticed, given.limit)
    if given.measure or given.costs:
        FILE.write_text(text(noticed, cost))
    else:
        print(text(noticed, cost), end="")
    return 0


def text(noticed: Mapping[str, Sequence[str]], cost: Mapping[str, float]) -> str:
    """The contents of the file."""
    properties, others = chosen(noticed, cost), faults_of_other_dtypes()
    everywhere = in_each_dtype(noticed, properties, others, cost)
    facts = {
        "properties": properties,
        "in_each_dtype": everywhere,
        "share": round(share_of(noticed, properties, [*everywhere, *not_in_float32(properties)], others), 4),
        "seconds": round(sum(cost[name] for name in properties), 2),
        "cost": dict(cost),
        "noticed": {fault: list(by) for fault, by in noticed.items()},
    }
    return json.dumps(facts, indent=1) + "\n"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
