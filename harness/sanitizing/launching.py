"""The program that compute-sanitizer watches: it calls one implementation at small and tail sizes.

`python -m harness.sanitizing.launching --operator mlp --backend cuda-fused --dtype float32`, or with `--candidate`.
"""

from __future__ import annotations

import argparse
from dataclasses import replace

import torch

from backends.base import CUDA
from harness.candidate import Candidate
from harness.judging.scenario import Scenario
from harness.judging.scenarios import of_sizes, ordinary
from harness.judging.subject import Subject
from harness.running import selection_options
from harness.running.selection import Selection, Slot, slots
from harness.sanitizing.products import in_float32

#: The options that name one implementation.
_OPTIONS = ("operator", "backend", "dtype", "candidate", "spec-path")
#: The most elements of all tensors of a call: under a tool a launch takes hundreds of times as long.
_LARGEST = 2**18


def options(slot: Slot, selection: Selection) -> list[str]:
    """The options of this program for a slot of the selection."""
    dtype = str(slot.dtype).removeprefix("torch.")
    if isinstance(slot.source, Candidate):
        contracts = [f"--spec-path={path.resolve()}" for path in selection.spec_paths]
        return [f"--candidate={slot.source.text}", f"--dtype={dtype}", *contracts]
    return [f"--operator={slot.operator.name}", f"--backend={slot.backend}", f"--dtype={dtype}"]


def launch(subject: Subject) -> int:
    """Call the subject at small and tail sizes, forward and backward, in every form; returns the number of calls."""
    count = 0
    for form in subject.operator.every_form():
        now = subject.in_form(form)
        for scenario in (*ordinary(form), *of_sizes(form)):
            if _elements(now, scenario) <= _LARGEST:
                call = now.realise(scenario)
                now.gradients(call, now.outputs(call, scenario), scenario)
                torch.cuda.synchronize()
                count += 1
    return count


def chosen(arguments: list[str] | None = None) -> Slot:
    """The slot that the options name, by default those of the process."""
    parser = argparse.ArgumentParser()
    selection_options.add(parser.add_argument, _OPTIONS)
    (slot,) = slots(replace(selection_options.read(parser.parse_args(arguments)), devices=(CUDA,)))
    return slot


def _elements(subject: Subject, scenario: Scenario) -> int:
    sizes = dict(scenario.sizes)
    return sum(
        torch.Size(arg.shape_for(sizes)).numel() for arg in (*subject.operator.inputs, *subject.operator.outputs)
    )


if __name__ == "__main__":
    with in_float32():
        print(f"{launch(chosen().subject())} calls")
