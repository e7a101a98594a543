"""Effects of the import and the first call: load and call an implementation in a fresh process and watch its state."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import lru_cache

import torch

from harness.errors import Failure, NoEvidence
from harness.judging import fresh_process, fresh_subject
from harness.judging.process_state import Watch
from harness.judging.scenario import Scenario
from harness.judging.scenarios import smallest
from harness.judging.subject import Subject
from spec.contract import Operator

#: Seconds for a fresh process, which loads the implementation, opens the device and makes one call.
LIMIT = 300.0


def warm_up(subject: Subject, scenario: Scenario) -> None:
    """Call the reference, so that what torch changes at its own first use is not attributed to the candidate."""
    call = subject.realise(scenario)
    outputs = subject.operator.forward(*call.inputs)
    leaves = [tensor for tensor in call.inputs if tensor.requires_grad]
    if leaves:
        ys, gs = call.used(outputs)
        torch.autograd.grad(ys, leaves, gs, allow_unused=True)


def hold(subject: Subject) -> str:
    """Load and call the implementation in a process of its own. Raises Failure if it changed global state there.

    Returns in words what was done, or why it was not.
    """
    if subject.dtype != torch.float32:
        return "done in float32 only"
    why_not = fresh_subject.why_not(subject)
    if why_not:
        return f"not done: {why_not}"
    about = fresh_subject.described(subject)
    if (json.dumps(about), subject.operator.form) in _answered:
        return "done with the first form"
    forms = [form.form for form in subject.operator.every_form()]
    answer = json.loads(_asked(json.dumps({**about, "forms": forms})))
    if answer["changes"]:
        name, phase, now, was, where = answer["changes"][0]
        raise Failure(
            f"{name} was {now} after {phase} in a fresh process, but should be left as it was, {was} [{where}]"
        )
    _answered.update((json.dumps(about), form) for form in forms[1:])
    return str(answer["done"])


#: The questions that were answered, with the forms that each answer covered besides the first.
_answered: set[tuple[str, str]] = set()


@lru_cache(maxsize=64)
def _asked(question: str) -> str:
    try:
        return fresh_process.asked(__name__, answer.__name__, question, LIMIT)
    except fresh_process.TooLate as error:
        raise Failure(
            f"import and first call took more than {LIMIT:g} s in a fresh process, but should return"
        ) from error
    except fresh_process.NoAnswer as error:
        raise NoEvidence(f"the fresh process that watches import and first call ended with: {error}") from error


def answer(asked: str) -> str:
    """Runs in the fresh process: load, call, and return what changed as JSON."""
    question = json.loads(asked)
    device, operator = question["device"], fresh_subject.operator(question)
    forms = [operator.in_form(name) for name in question["forms"]]
    idle = Subject(operator, question["backend"], device, torch.float32, operator.forward)
    for form in forms:
        warm_up(replace(idle, operator=form, function=form.forward), smallest(form))
    changes: list[list[str]] = []
    watch = Watch(device)

    def note(phase: str, form: Operator) -> None:
        where = smallest(form).describe(form)
        changes.extend([name, phase, now, was, where] for name, now, was in watch.changes())

    found = fresh_subject.imported(question)
    if found is None:
        return json.dumps({"changes": [], "done": "not done: the function cannot be found by name"})
    note("its import", forms[0])
    subject = Subject(operator, question["backend"], device, torch.float32, fresh_subject.made(found))
    for form in forms:
        if not changes:
            now, scenario = subject.in_form(form), smallest(form)
            call = now.realise(scenario)
            now.gradients(call, now.outputs(call, scenario), scenario)
            note("its first forward and backward", form)
    return json.dumps({"changes": changes, "done": "import, first forward and backward"})
