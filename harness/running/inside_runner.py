"""The program of the process that judges beside an implementation: `python -m harness.running.inside_runner NUMBER`.

A property that looks at hooks, graphs, memory or global state has to run where the implementation runs. It runs here,
whole, and answers with a cell as JSON. An implementation could forge that answer; the values of its results are judged
elsewhere, see `harness.running.isolation`.
"""

from __future__ import annotations

import base64
import json
import os
import pickle
import sys
from dataclasses import asdict
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Protocol

import torch
from safetensors.torch import save

from harness.candidate import Candidate
from harness.errors import HarnessError, UsageError
from harness.executing.lifeline import end_with_parent
from harness.executing.runner import lost_device, messages
from harness.judging import fresh_process, stored, traced
from harness.judging import judge as judging
from harness.judging.property import Property
from harness.judging.subject import one_line
from harness.properties import all_properties
from harness.report.cell import FAIL
from harness.report.report import jsonable
from harness.running.selection import Selection, Slot, slots


def start(selection: Selection, extra: tuple[Property, ...], trace: int, store: Path | None) -> str:
    """What `begin` needs, as text. The judge writes it, so that the process may unpickle it.

    `store` is the folder of expected results that the process may use, if it may use one.
    """
    return base64.b64encode(pickle.dumps((selection, extra, trace, store))).decode()


class InsideRunner:
    """The slots and properties of this process."""

    def __init__(self) -> None:
        self._slots: dict[str, Slot] = {}
        self._properties: dict[str, Property] = all_properties()
        self._store: Path | None = None

    def answer(self, asked: dict[str, Any]) -> dict[str, Any]:
        """The reply to one request: `begin` with what `start` wrote, or a slot and a property to judge."""
        if "begin" in asked:
            fresh_process.begin()
            selection, extra, traced.FILE, self._store = pickle.loads(base64.b64decode(asked["begin"]))
            self._properties |= {property.name: property for property in extra}
            # The calls of a candidate are drawn by the judge's own process.
            judging.bind(drawing=not selection.candidates)
            self._slots = {slot.id: slot for slot in slots(selection)}
            return {}
        slot, property = self._slots[asked["slot"]], self._properties[asked["property"]]
        try:
            with stored.used(self._store):
                cell = slot.judge(property)
        except UsageError as error:
            if not isinstance(slot.source, Candidate):
                raise
            # The option was right: the file is not what it was at its first import.
            cell = slot.cell(property.name, FAIL, f"{slot.source.where} is not what it was: {error}")
        return {"cell": jsonable(asdict(cell))}


class Answers(Protocol):
    """What answers the requests to a process."""

    def answer(self, asked: dict[str, Any]) -> dict[str, Any]:
        """The reply to one request. What it raises is told as trouble."""
        ...


def main(descriptor: int) -> None:
    """Answer requests until the judge closes the connection."""
    answer_all(descriptor, InsideRunner())


def answer_all(descriptor: int, runner: Answers) -> None:
    """Have `runner` answer each request, until the connection closes."""
    end_with_parent()
    for place in reversed(os.environ.get("PYTHONPATH", "").split(os.pathsep)):  # which a new process has, and no fork
        if place and place not in sys.path:
            sys.path.insert(0, place)
    fresh_process.remember_environment()
    connection = Connection(descriptor)
    torch.set_num_threads(1)
    for asked, _ in messages(connection):  # requests have no tensors
        try:
            answer = runner.answer(asked)
        except HarnessError as error:
            answer = {"trouble": str(error)}
        except Exception as error:  # an error of the harness: the parent raises it
            answer = {"trouble": one_line(error)}
        connection.send_bytes(json.dumps({**answer, "lost": lost_device(), "id": asked["id"]}).encode())
        connection.send_bytes(save({}))


if __name__ == "__main__":
    main(int(sys.argv[1]))
