"""The answer depends only on the values of the inputs: not on the caller, and not on earlier calls.

Some kernels return what they computed earlier for the same addresses or shapes, or answer from the reference while a
test is on the call stack. So the same tensors get new values in place, and the candidate is also called from a stack
without any frame of this suite.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import torch

from backends.base import CUDA
from harness.errors import Failure
from harness.judging.oracle import expected
from harness.judging.property import Property
from harness.judging.scenarios import smallest
from harness.judging.subject import CANDIDATE_ERRORS, Subject, one_line
from harness.judging.tally import Tally
from harness.report.levels import VALUES


def check(subject: Subject) -> dict[str, Any]:
    """New values at old addresses, three times; then a call from a bare stack."""
    tally = Tally(subject)
    scenario = smallest(subject.operator)
    held = subject.realise(scenario)
    for seed in (11, 12, 13):
        fresh = replace(scenario, seed=seed)
        with torch.no_grad():
            for tensor, value in zip(held.inputs, subject.realise(fresh).inputs, strict=True):
                tensor.copy_(value)
        cotangents = subject.realise(fresh).cotangents
        with subject.remote.same_addresses() if subject.remote else nullcontext():
            outputs = subject.outputs(held, fresh)
        gradients = subject.gradients(replace(held, cotangents=cotangents), outputs, fresh)
        tally.scenarios += 1
        tally.hold_all(fresh, expected(subject.operator, fresh, subject.dtype), outputs, gradients)

    unseen = replace(scenario, seed=14)
    call = subject.realise(unseen)
    try:
        # The thread's stack holds the frames of the pool and of the candidate, and none of this suite.
        with ThreadPoolExecutor(max_workers=1, initializer=_enter, initargs=(subject,)) as pool:
            results = pool.submit(subject.function, *call.inputs).result()
    except CANDIDATE_ERRORS as error:
        raise Failure(f"forward raised {one_line(error)} in a thread of its own, but not elsewhere") from error
    if subject.device == CUDA:
        torch.cuda.synchronize()
    outputs = subject.checked(results, call, unseen)
    tally.scenarios += 1
    tally.hold_all(unseen, expected(subject.operator, unseen, subject.dtype), outputs, {})
    return tally.figures()


def _enter(subject: Subject) -> None:
    """Create the CUDA context of a new thread. Otherwise cuBLAS would warn, which is no fault of the candidate."""
    torch.zeros(1, device=subject.torch_device)


PROPERTY = Property(
    "no-special-treatment", "the answer depends on the values of the inputs only", check, level=VALUES, outside=True
)
