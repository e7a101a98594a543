"""A fork of the judge computes what properties foresee: only what they ask for, and the same to the last bit."""

from __future__ import annotations

import os
import time
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import psutil
import pytest
import torch
from torch import Tensor

from harness.judging import oracle, stored
from harness.judging.scenario import realise
from harness.properties import all_properties
from harness.running import foreseeing, forking
from harness.running.selection import Selection, Slot, slots
from spec.envelope import Envelope

FORESEEN = {name: found for name, found in all_properties().items() if found.foreseen is not None}
#: Seconds for some results to be computed.
_ENOUGH = 120.0
#: Why no process can be forked here.
_ALONE = not forking.AVAILABLE or len(os.sched_getaffinity(0)) < 2


def slot() -> Slot:
    (found,) = slots(Selection(("softmax",), ("python-autograd",), ("cpu",), ("float32",)))
    return found


@pytest.mark.parametrize("name", FORESEEN)
def test_what_a_property_foresees_is_asked_for(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Anything else would be computed in vain."""
    source = tmp_path / "source.py"
    source.write_text("BLOCK = 48\n")  # sizes are harvested around it
    subject, property = replace(slot().subject(), files=(source,)), FORESEEN[name]
    assert property.outside, "no other property is judged where the store is used"
    asked, real = set(), oracle._expected

    def recorded(key: Any, values: Any, dtype: torch.dtype) -> Any:
        asked.add((key.operator.title, values))
        return real(key, values, dtype)

    monkeypatch.setattr(oracle, "_expected", recorded)
    for form in subject.operator.every_form():
        now = subject.in_form(form)
        assert property.foreseen is not None
        foreseen = {(form.title, oracle.values_of(scenario)) for scenario in property.foreseen(now)}
        property.check(now)
        assert foreseen
        assert foreseen <= asked


def same(one: Any, other: Any) -> bool:
    if isinstance(one, Tensor):
        return torch.equal(one, other) or bool(((one == other) | (one.isnan() & other.isnan())).all())
    return bool(one == other)


def _runs(process: psutil.Process) -> bool:
    return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)


@pytest.mark.skipif(_ALONE, reason="needs a second core, and no GPU")
def test_a_fork_keeps_what_the_judge_would_compute(tmp_path: Path) -> None:
    asked = [(slot(), FORESEEN["layouts"])]
    wanted = list(foreseeing.backwards(asked))
    others = {child.pid for child in psutil.Process().children()}
    end = foreseeing.begin(asked, tmp_path)
    assert end is not None
    (fork,) = (child for child in psutil.Process().children() if child.pid not in others)
    deadline = time.monotonic() + _ENOUGH
    with stored.used(tmp_path):
        while time.monotonic() < deadline and _runs(fork):
            time.sleep(0.1)
        end()
        end()  # another time changes nothing
        for operator, values, dtype in wanted:
            assert not oracle.prepare(operator, values, dtype), "it is kept"
            call = realise(operator, values, dtype)
            kept, own = oracle.expected_of(operator, call, dtype), oracle._computed(operator, call, dtype)
            for name, envelope in {
                **kept.outputs,
                **{f"gradient of {k}": v for k, v in kept.gradients.items()},
            }.items():
                for part in fields(Envelope):
                    assert same(getattr(envelope, part.name), getattr(own.envelopes[name], part.name))


@pytest.mark.skipif(_ALONE, reason="needs a second core, and no GPU")
def test_nothing_is_forked_for_properties_that_foresee_nothing(tmp_path: Path) -> None:
    assert foreseeing.begin([(slot(), all_properties()["gradcheck"])], tmp_path) is None


def test_of_what_an_earlier_run_has_kept_only_some_is_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked = []
    monkeypatch.setattr(oracle, "prepare", lambda *question: bool(looked.append(question)))
    asked = [(slot(), FORESEEN["combinations"])]
    assert len(list(foreseeing.backwards(asked))) > foreseeing._MET
    foreseeing.prepare(asked, tmp_path)
    assert len(looked) == foreseeing._MET
