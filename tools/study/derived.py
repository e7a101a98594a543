"""How much a contract that is derived from its reference alone sees of what the hand-written contract sees.

    python -m tools.study.derived -o results/cpu/derived.json

For each operator the reference of the contract becomes a plain function with one example call, and a contract is
derived from it. Every fault of tests/zoo whose property is at level values, gradients or safe is judged under both
contracts by that property, and every control by the properties of values and gradients. The table is in docs/method.md.
"""

from __future__ import annotations

import argparse
import inspect
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from harness.deriving.contract import derive_from
from harness.discovery import operator
from harness.judging.judge import judge
from harness.judging.scenarios import representative
from harness.judging.subject import Examples, Subject
from harness.properties import all_properties
from harness.report.atomic_write import write_atomically
from harness.report.cell import FAIL, NOT_RUN, PASS
from harness.report.levels import SAFE, is_required
from harness.running import environment
from spec.contract import Draw, Operator
from tests.zoo import registry as zoo

OPERATORS = ("lltm", "mlp", "layer_norm")
#: Properties by which a control is judged: those of values and gradients that take seconds at most.
OF_CONTROLS = ("forward-parity", "vjp-parity", "sizes", "layouts", "gradient-subsets", "invariants", "drawn-calls")


def derived(hand: Operator) -> Operator:
    """The contract derived from the hand-written one's reference, in its first form, and one example call."""
    names = [arg.name for arg in hand.inputs]

    def reference(*tensors: Tensor) -> Any:
        outputs = hand.forward(*tensors)
        return outputs[0] if len(outputs) == 1 else outputs

    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    reference.__signature__ = inspect.Signature([inspect.Parameter(name, kind) for name in names])  # type: ignore[attr-defined]
    reference.__name__ = hand.name
    made = hand.ordinary(representative(hand).sizes, Draw(0))
    return derive_from(reference, tuple(made[name] for name in names), hand.name).operator


def _verdict(contract: Operator, function: Callable[..., Any], property: str, dtype: torch.dtype, examples: int) -> str:
    drawn = Examples(examples)
    subject = Subject(contract, "it", "cpu", dtype, function, examples=drawn, files=zoo.file_of(function))
    return judge(subject, all_properties()[property]).verdict


def measured(name: str, count: int | None) -> dict[str, Any]:
    """Verdicts of the faults under both contracts, and alarms of the derived one about controls."""
    hand = operator(name)
    contract = derived(hand)
    chosen = [fault for fault in zoo.faults(name) if is_required(all_properties()[fault.caught_by].level, SAFE)]
    faults = []
    for fault in chosen[:count]:
        function = hand.bound(fault.function)
        examples = fault.examples or zoo.EXAMPLES
        by_hand = _verdict(hand, fault.function, fault.caught_by, fault.dtype, examples)
        found = _verdict(contract, function, fault.caught_by, fault.dtype, examples)
        others = () if found == FAIL else OF_CONTROLS
        elsewhere = next((p for p in others if _verdict(contract, function, p, fault.dtype, 20) == FAIL), "")
        faults.append(
            {"fault": fault.id, "property": fault.caught_by, "hand": by_hand, "derived": found, "elsewhere": elsewhere}
        )
        print(f"{fault.id:70} {by_hand:12} {found:12} {elsewhere}", flush=True)
    alarms = []
    for control in zoo.controls(name)[:count]:
        for property in OF_CONTROLS:
            for dtype in (torch.float32, torch.bfloat16):
                verdict = _verdict(contract, hand.bound(control.function), property, dtype, 20)
                if verdict not in (PASS, NOT_RUN):
                    alarms.append([control.id, property, str(dtype).removeprefix("torch."), verdict])
                    print("alarm", *alarms[-1], flush=True)
    return {"faults": faults, "controls": len(zoo.controls(name)[:count]), "alarms": alarms}


def table(record: dict[str, Any]) -> str:
    """For each operator: how many faults each contract catches, and how many controls the derived one rejects."""
    rows = []
    for name, found in record["operators"].items():
        by_hand = [fault for fault in found["faults"] if fault["hand"] == FAIL]
        same = sum(fault["derived"] == FAIL for fault in by_hand)
        other = sum(bool(fault["elsewhere"]) for fault in by_hand)
        rejected = len({alarm[0] for alarm in found["alarms"]})
        share = f"{100 * (same + other) / max(len(by_hand), 1):.0f}%"
        rows.append([name, str(len(by_hand)), str(same), str(other), share, f"{rejected} of {found['controls']}"])
    header = ["operator", "caught by hand-written", "by derived", "by another property", "share", "controls rejected"]
    lines = ["| " + " | ".join(row) + " |" for row in (header, ["---"] * len(header), *rows)]
    return "\n".join(lines) + "\n"


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and write the record after each operator."""
    parser = argparse.ArgumentParser(prog="python -m tools.study.derived", description=__doc__)
    parser.add_argument("--operator", action="append", choices=OPERATORS, help="only this one; repeatable")
    parser.add_argument("--count", type=int, help="only the first COUNT faults and controls of each")
    parser.add_argument("-o", "--output", type=Path, required=True)
    given = parser.parse_args(arguments)
    record = json.loads(given.output.read_text()) if given.output.exists() else {"operators": {}}
    torch.set_num_threads(1)
    for name in given.operator or OPERATORS:
        record["operators"][name] = measured(name, given.count)
        record["environment"] = environment.describe()
        write_atomically(given.output, json.dumps(record, indent=1) + "\n")
    print(table(record))


if __name__ == "__main__":
    main()
