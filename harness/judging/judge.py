"""Judge one property of one subject: the result is a `Cell` of the report."""

from __future__ import annotations

import functools
import importlib
import time
import traceback
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from harness.errors import Failure, NoEvidence, NotApplicable
from harness.judging import tampering
from harness.judging.property import Property, hold_gradient
from harness.judging.subject import CANDIDATE_ERRORS, Subject, one_line
from harness.report import parts
from harness.report.cell import DECLARED, FAIL, NEEDLESS, NO_EVIDENCE, NOT_RUN, PASS, Cell
from harness.report.figures import totals
from harness.report.levels import GRADIENTS, PRODUCTION, VALUES
from harness.report.shards import UNDIVIDED

#: Verdict, reason, figures, and the level at which it failed if that is not the property's.
_Found = tuple[str, str, dict[str, Any], str]

#: The folder of the packages that judge.
_ROOT = Path(__file__).parents[1]
_trusted: dict[tuple[str, str], tuple[Any, Any]] = {}


def bind(drawing: bool = True) -> None:
    """Remember the functions that the judge uses. Call it before the first candidate is imported.

    With `drawing`, hypothesis is imported too, which takes a third of a second: a process in which no candidate runs,
    or which draws no calls, can wait until it needs it.
    """
    if drawing:
        importlib.import_module("harness.judging.drawn_scenarios")
    _trusted.update(tampering.snapshot())


def judge(subject: Subject, property: Property) -> Cell:
    """Run the property's check and turn its result into a cell. Only an error of the harness itself is raised.

    Raises ValueError for a place where the property is not asked: there is no cell.
    """
    if not property.is_asked(subject.device, subject.dtype_name, property.sanitized):
        raise ValueError(
            f"{property.name} is asked {property.only()}; it was judged on {subject.device} in {subject.dtype_name}"
        )
    if not _trusted:
        bind()
    start = time.perf_counter()
    declaration = subject.declaration(property.name)
    if not property.divisible:
        subject = replace(subject, share=UNDIVIDED)
    if declaration is not None and subject.is_part:
        why = "it is declared not to hold, and a part of it may: judge it without --divide"
        verdict, reason, figures, level = NOT_RUN, why, dict[str, Any](), ""
    else:
        verdict, reason, figures, level = _verdict(subject, property)
    replaced = tampering.undo(_trusted)
    if replaced:  # a declaration does not excuse this
        verdict, figures, level = FAIL, {}, ""
        reason = f"the candidate replaced {', '.join(replaced[:5])}, which the judge uses, but should leave it alone"
    elif subject.is_part and verdict == PASS:
        verdict, figures = NO_EVIDENCE, parts.held(figures, subject.share)
        reason = parts.reason(figures)
    elif declaration is not None:
        if verdict == PASS and declaration.by_chance:
            figures = {**figures, "seen": "it held in this run"}
            verdict, reason = DECLARED, declaration.reason
        elif verdict == PASS:
            # Nothing is wrong with what it computes: it counts against the last level.
            verdict, level, figures = FAIL, PRODUCTION, {**figures, NEEDLESS: True}
            reason = (
                f"the backend declares that it does not hold {property.name} ({declaration.reason}), but it does: "
                "remove the declaration, or say by_chance=True if it depends on the run"
            )
        elif verdict == FAIL:
            figures = {**figures, "seen": reason}
            verdict, reason = DECLARED, declaration.reason
    return Cell(
        operator=subject.operator.name,
        backend=subject.backend,
        device=subject.device,
        dtype=subject.dtype_name,
        property=property.name,
        verdict=verdict,
        reason=reason,
        figures=figures,
        seconds=round(time.perf_counter() - start, 4),
        level=level if verdict == FAIL else "",
    )


def _verdict(subject: Subject, property: Property) -> _Found:
    found: dict[str, dict[str, Any]] = {}
    lacks: dict[str, str] = {}
    unasked: dict[str, str] = {}
    try:
        with torch.random.fork_rng(devices=[]):
            for form in subject.operator.every_form():
                now = subject.in_form(form)
                try:
                    if property.level == GRADIENTS:
                        hold_gradient(form)
                    found[form.title] = property.check(now)
                except (NoEvidence, NotApplicable) as why:
                    if not _raised_here(why, property):  # a candidate knows these exceptions too
                        reason = f"{property.name}: the candidate raised {one_line(why)}, but should not raise"
                        return FAIL, reason, {}, ""
                    (lacks if isinstance(why, NoEvidence) else unasked)[form.title] = str(why)
    except Failure as failure:
        figures = {**failure.figures, "tensor": failure.tensor} if failure.tensor else failure.figures
        if failure.level:
            return FAIL, str(failure), figures, failure.level
        of_outputs = _of_outputs(subject, property, failure)
        if of_outputs is not None and of_outputs[0] == PASS:
            return FAIL, f"{failure}\n  - all outputs are right; only gradients are wrong", figures, GRADIENTS
        about = f"{figures.get('tensor', '')}{figures.get('raised', '')}"
        if of_outputs is not None and of_outputs[0] == FAIL and ("gradient of" in about or "backward raised" in about):
            return of_outputs  # a wrong output says more of a property of values than what was found first
        return FAIL, str(failure), figures, ""
    except CANDIDATE_ERRORS as error:
        if not _raised_by_candidate(error, subject):
            raise
        return FAIL, f"{property.name}: the candidate raised {one_line(error)}, but should not raise", {}, ""
    if lacks:
        return NO_EVIDENCE, _of_forms(lacks), {}, ""
    if not found:
        return NOT_RUN, _of_forms(unasked), {}, ""
    return PASS, "", _merged(found, {**subject.lacks, **unasked}), ""


def _of_outputs(subject: Subject, property: Property, failure: Failure) -> _Found | None:
    """Of a property of values, which compares gradients too: what is found if outputs alone are compared.

    None for other properties, and where an output was wrong: a second run could only find that again.
    """
    if property.level != VALUES or subject.outputs_only or not subject.operator.has_gradient:
        return None
    if failure.tensor in (arg.name for arg in subject.operator.outputs):
        return None
    traceback.clear_frames(failure.__traceback__)  # its tensors may fill a GPU, which the second run needs
    return _verdict(replace(subject, outputs_only=True), property)


def _of_forms(reasons: dict[str, str]) -> str:
    """One reason for all forms; or each form's reason if they differ."""
    different = dict.fromkeys(reasons.values())
    if len(different) == 1:
        return next(iter(different))
    return "; ".join(f"{title}: {reason}" for title, reason in reasons.items())


def _merged(found: dict[str, dict[str, Any]], unasked: dict[str, str]) -> dict[str, Any]:
    """The figures of all forms, with the worst error and the sum of the scenarios."""
    if len(found) == 1 and not unasked:
        return next(iter(found.values()))
    return {"forms": found, **({"not asked of": unasked} if unasked else {}), **totals(found.values())}


def _raised_here(error: BaseException, property: Property) -> bool:
    """Whether a file of the suite raised it, or that of the property, and not what they called."""
    *_, (frame, _) = traceback.walk_tb(error.__traceback__)
    file, own = frame.f_code.co_filename, getattr(property.check, "__code__", None)
    return Path(file).is_relative_to(_ROOT) or (own is not None and own.co_filename == file)


def _raised_by_candidate(error: BaseException, subject: Subject) -> bool:
    """Whether the candidate's code is on the stack. An error of the harness must never count as the candidate's."""
    function = subject.function
    while isinstance(function, functools.partial):
        function = function.func
    code = getattr(function, "__code__", None) or getattr(type(function).__call__, "__code__", None)
    frames = [frame.f_code for frame, _ in traceback.walk_tb(error.__traceback__)]
    return code in frames if code is not None else False
