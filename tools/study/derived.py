"""How much a contract that is derived from its reference alone sees of what the hand-written contract sees.

    python -m tools.study.derived -o results/cpu/derived.json --jobs 16
    python -m tools.study.derived --draw results/cpu/derived.json

For each form of an operator the reference of the contract becomes a plain function with one example call, and a
contract is derived from it, as by `verify(function, reference=...)`. Every fault of tests/zoo whose property is at
level values or gradients is judged by that property under both contracts. Where the derived one does not see it there,
all properties of these levels are asked. Every control is judged by the derived contract, in float32 and bfloat16, by
those that take seconds; it is rejected where one fails. A run that was ended goes on where it stopped. The table is in
docs/method.md.
"""

from __future__ import annotations

import argparse
import inspect
import json
import multiprocessing
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from harness.deriving.contract import derive_from
from harness.discovery import operator
from harness.judging.judge import judge
from harness.judging.scenarios import representative
from harness.judging.subject import USUAL, Examples, Subject
from harness.properties import all_properties
from harness.rendering import tables
from harness.report.atomic_write import write_atomically
from harness.report.cell import FAIL
from harness.report.levels import GRADIENTS, is_required
from harness.running import environment
from spec.contract import Draw, Operator
from tests.zoo import registry as zoo
from tools.study.options import parsed

DOCUMENT = Path("docs/method.md")
OPERATORS = ("lltm", "mlp", "layer_norm")
#: Properties by which a control is judged: those of values and gradients that take seconds at most.
OF_CONTROLS = ("forward-parity", "vjp-parity", "sizes", "layouts", "gradient-subsets", "invariants", "drawn-calls")


@cache
def derived(name: str, form: str) -> Operator:
    """The contract derived from the hand-written one's reference in that form, and one example call."""
    hand = operator(name).in_form(form)
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


def _by_derived(name: str, function: Callable[..., Any], property: str, dtype: torch.dtype, examples: int) -> str:
    """FAIL if a contract derived from one of the forms says so, or else the verdict in the first form."""
    found = []
    for form in operator(name).every_form():
        found.append(_verdict(derived(name, form.form), form.bound(function), property, dtype, examples))
        if found[-1] == FAIL:
            return FAIL
    return found[0]


def _of_fault(name: str, id: str) -> dict[str, Any]:
    """Verdicts on a fault: by the hand-written contract, by the derived one, and which other property finds it."""
    hand, (fault,) = operator(name), (fault for fault in zoo.faults(name) if fault.id == id)
    by_hand = _verdict(hand, fault.function, fault.caught_by, fault.dtype, fault.examples or zoo.EXAMPLES)
    found = _by_derived(name, fault.function, fault.caught_by, fault.dtype, fault.examples or zoo.EXAMPLES)
    others = () if found == FAIL else _properties(fault.dtype)
    elsewhere = next((p for p in others if _by_derived(name, fault.function, p, fault.dtype, USUAL.count) == FAIL), "")
    return {"property": fault.caught_by, "hand": by_hand, "derived": found, "elsewhere": elsewhere}


def _properties(dtype: torch.dtype) -> list[str]:
    """All properties of values and gradients that are asked on a CPU in that dtype."""
    wanted = str(dtype).removeprefix("torch.")
    return [
        name
        for name, each in all_properties().items()
        if is_required(each.level, GRADIENTS) and each.is_asked("cpu", wanted)
    ]


def _of_control(name: str, id: str) -> dict[str, Any]:
    """What the derived contracts reject of a control."""
    (control,) = (control for control in zoo.controls(name) if control.id == id)
    alarms = []
    for property in (each for each in OF_CONTROLS if each not in control.gives_up):
        for dtype in (torch.float32, torch.bfloat16):
            if _by_derived(name, control.function, property, dtype, USUAL.count) == FAIL:
                alarms.append(f"{property} {str(dtype).removeprefix('torch.')}")
    return {"alarms": alarms}


_MEASURES = {"faults": _of_fault, "controls": _of_control}
_Task = tuple[str, str, str]  # operator, kind, id


def measured(task: _Task) -> tuple[_Task, dict[str, Any]]:
    """The task, and what was found of it. Each process has one thread."""
    torch.set_num_threads(1)
    name, kind, id = task
    return task, _MEASURES[kind](name, id)


def tasks(name: str) -> list[_Task]:
    """All faults of an operator at levels values and gradients, and all controls."""
    known = all_properties()
    chosen = [fault.id for fault in zoo.faults(name) if is_required(known[fault.caught_by].level, GRADIENTS)]
    controls = [control.id for control in zoo.controls(name)]
    return [(name, "faults", id) for id in chosen] + [(name, "controls", id) for id in controls]


def counts(found: dict[str, Any]) -> tuple[int, int, int]:
    """Of one operator: faults that the hand-written contract catches, of these what the derived one catches by the same
    property, and by another one.
    """
    by_hand = [fault for fault in found["faults"].values() if fault["hand"] == FAIL]
    same = sum(fault["derived"] == FAIL for fault in by_hand)
    return len(by_hand), same, sum(bool(fault["elsewhere"]) for fault in by_hand)


def drawn(record: dict[str, Any]) -> dict[str, str]:
    """The text by the names of the markers: the counts, and the faults that the derived contracts miss."""
    header = ["operator", "caught by the hand-written contract", "by the derived one", "by another property of it"]
    rows, missed = [[*header, "together", "controls that it rejects"]], []
    rows.append(["---"] * len(rows[0]))
    for name, found in record["operators"].items():
        hand, same, other = counts(found)
        rejected = sum(bool(control["alarms"]) for control in found["controls"].values())
        together = f"{100 * (same + other) / max(hand, 1):.1f}%"
        rows.append([name, str(hand), str(same), str(other), together, f"{rejected} of {len(found['controls'])}"])
        missed += [
            f"- `{id}`, which the hand-written contract finds by `{fault['property']}`"
            for id, fault in found["faults"].items()
            if fault["hand"] == FAIL and fault["derived"] != FAIL and not fault["elsewhere"]
        ]
    text = "\n".join("| " + " | ".join(row) + " |" for row in rows) + "\n"
    return {"derived": text, "derived, missed": "\n".join(missed or ["None is missed."]) + "\n"}


def insert(record: dict[str, Any], document: str) -> str:
    """`document` with both parts redrawn."""
    for name, text in drawn(record).items():
        document = tables.insert(text, document, name)
    return document


def _study(path: Path, chosen: Sequence[str], count: int | None, jobs: int) -> None:
    """Measure what the record lacks, and write it after each result."""
    record = json.loads(path.read_text()) if path.exists() else {"operators": {}}
    open_: list[_Task] = []
    for name in chosen:
        asked = tasks(name)
        before = record["operators"].get(name, {"faults": {}, "controls": {}})
        # What is not in the zoo any more is left out.
        record["operators"][name] = {
            kind: {id: found for id, found in before[kind].items() if (name, kind, id) in asked} for kind in before
        }
        open_ += [task for task in asked if task[2] not in before[task[1]]]
    open_ = open_[:count]
    record["environment"] = environment.describe()
    with ProcessPoolExecutor(jobs, mp_context=multiprocessing.get_context("spawn")) as pool:
        for done in as_completed([pool.submit(measured, task) for task in open_]):
            (name, kind, id), found = done.result()
            record["operators"][name][kind][id] = found
            print(id, *found.values(), flush=True)
            write_atomically(path, json.dumps(_sorted(record), indent=1) + "\n")


def _sorted(record: dict[str, Any]) -> dict[str, Any]:
    """The record with operators in their order and ids in alphabetical order, whatever ended first."""
    operators = record["operators"]
    ordered = {
        name: {kind: dict(sorted(found.items())) for kind, found in operators[name].items()}
        for name in OPERATORS
        if name in operators
    }
    return {"operators": ordered, "environment": record["environment"]}


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, draw, or both."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.study.derived", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--operator", action="append", choices=OPERATORS, help="only this one; repeatable")
    parser.add_argument("--count", type=int, help="end after COUNT more faults and controls")
    parser.add_argument("--jobs", type=int, default=1, help="processes, one core each")
    parser.add_argument("-o", "--output", type=Path, help="write the record here, or add to it what it lacks")
    parser.add_argument("--draw", type=Path, metavar="RECORD", help="draw the table of docs/method.md from a record")
    given = parsed(parser, arguments)
    if given.output:
        _study(given.output, given.operator or OPERATORS, given.count, given.jobs)
    if given.draw:
        DOCUMENT.write_text(insert(json.loads(given.draw.read_text()), DOCUMENT.read_text()))


if __name__ == "__main__":
    main()
