"""A forked child computes the same as its parent, and does not disturb it.

On Linux a DataLoader forks its workers, and so does a server that loads its model once: the child has all of its
parent's memory and none of its threads. There, code that waits for a worker thread of its own waits for ever; a handle
that belongs to one process is refused in another; scratch in shared memory is overwritten. So the operator is called in
this process first, forward and backward, and one forward is left without its backward. Then a forked child calls it
with other values. The child's results are compared with the oracle here, and so are those of the delayed backward and
of one further call.

The child runs with one thread, as PyTorch's own workers do: OpenMP's pool does not exist there, and code that uses it
hangs. A child that does not answer is ended. If PyTorch has started threads for a GPU, its autograd refuses to run in
a child of any implementation, and only the forward is run. A CUDA context does not survive a fork at all.

A spawned process has nothing of its parent's. Every candidate is judged in such a process anyway.
"""

from __future__ import annotations

import gc
import io
import os
import select
import signal
import time
import traceback
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from backends.base import CPU, SIMULATED
from harness.errors import Failure, HarnessError
from harness.judging import exit_status
from harness.judging.oracle import Expected, expected
from harness.judging.property import INTEGRATION, Property
from harness.judging.scenario import Scenario
from harness.judging.scenarios import smallest
from harness.judging.subject import Subject
from harness.judging.tally import Tally
from harness.report.levels import PRODUCTION

#: Seconds after which a child that has not answered counts as hanging; its work takes milliseconds.
LIMIT = 30.0

_NO_AUTOGRAD = "outputs: PyTorch's autograd refuses to run in a child where it has started threads for a GPU"

Results = tuple[tuple[Tensor, ...], dict[str, Tensor]]


def check(subject: Subject) -> dict[str, Any]:
    """A call here, a call in a child; then the delayed backward and a further call here."""
    tally = Tally(subject)
    scenario = smallest(subject.operator)
    other = replace(scenario, seed=scenario.seed + 1)
    measure, measure_of_other = (expected(subject.operator, each, subject.dtype) for each in (scenario, other))
    tally.run(scenario)
    call = subject.realise(scenario)
    waiting = subject.outputs(call, scenario)

    where = f"[{other.describe(subject.operator)}]"
    answer = _answer_of_child(lambda: _for_parent(subject, other), where)
    if "failure" in answer:
        raise Failure(f"in a forked child, though right in its parent: {answer['failure']}")
    _hold("in a forked child, though right in its parent", tally, other, measure_of_other, tuple(answer["results"]))

    after = "in the parent, after a forked child had called"
    _hold(after, tally, scenario, measure, (waiting, subject.gradients(call, waiting, scenario)))
    _hold(after, tally, other, measure_of_other, _results(subject, other))
    return {**tally.figures(), "asked of the child": answer["asked"]}


def _results(subject: Subject, scenario: Scenario, with_gradients: bool = True) -> Results:
    call = subject.realise(scenario)
    outputs = subject.outputs(call, scenario)
    return outputs, subject.gradients(call, outputs, scenario) if with_gradients else {}


def _hold(who: str, tally: Tally, scenario: Scenario, measure: Expected, results: Results) -> None:
    tally.scenarios += 1
    try:
        tally.hold_all(scenario, measure, *results)
    except Failure as failure:  # no scenario: its script would not fork
        raise failure.prefixed(f"{who}: ") from failure


def _for_parent(subject: Subject, scenario: Scenario) -> dict[str, Any]:
    """Runs in the child: the results of one call, or the message of its Failure."""
    asks_gradients = _autograd_runs()
    try:
        outputs, gradients = _results(subject, scenario, asks_gradients)
    except Failure as failure:
        return {"failure": str(failure)}
    plain = (tuple(y.detach() for y in outputs), {name: g.detach() for name, g in gradients.items()})
    return {"results": plain, "asked": "outputs and gradients" if asks_gradients else _NO_AUTOGRAD}


def _autograd_runs() -> bool:
    leaf = torch.ones((), requires_grad=True)
    try:
        torch.autograd.grad(leaf * 2, leaf)
    except RuntimeError:
        return False
    return True


def _answer_of_child(work: Callable[[], dict[str, Any]], where: str) -> dict[str, Any]:
    """What `work` returns in a forked child. Raises Failure if the child hangs or dies before it has answered."""
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        # From Python 3.12 on, a fork beside other threads gives a warning; torch's and pytest's are always there.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        _live(work, writing)
    os.close(writing)
    ended = None
    try:
        sent = _read(reading)
        if sent is None:
            raise Failure(
                f"a forked child hung: it had not answered after {LIMIT:g} s, but should as its parent does {where}"
            )
        _, ended = os.waitpid(child, 0)
    finally:
        os.close(reading)
        if ended is None:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
    if not sent:
        how = exit_status.in_words(os.waitstatus_to_exitcode(ended))
        raise Failure(f"a forked child {how} before it had answered, but should answer {where}")
    answer: dict[str, Any] = torch.load(io.BytesIO(sent), weights_only=True)
    if "error" in answer:
        raise HarnessError(f"in a forked child: {answer['error']}")
    return answer


def _live(work: Callable[[], dict[str, Any]], writing: int) -> None:
    """The whole life of the child. It never returns, so that nothing of the parent's is done twice."""
    status = 1
    try:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(int(2 * LIMIT))  # a child whose parent was killed ends by itself
        gc.disable()  # objects that the parent has yet to free may belong to a GPU
        torch.set_num_threads(1)
        try:
            answer = work()
        except Exception:  # of the harness: the candidate's own have become Failures
            answer = {"error": traceback.format_exc()}
        file = io.BytesIO()
        torch.save(answer, file)
        rest = file.getvalue()
        while rest:
            rest = rest[os.write(writing, rest) :]
        status = 0
    finally:
        os._exit(status)


def _read(reading: int) -> bytes | None:
    """All bytes until the other end is closed; None if it is still open at the time limit."""
    deadline = time.monotonic() + LIMIT
    parts: list[bytes] = []
    while True:
        ready, _, _ = select.select([reading], [], [], max(deadline - time.monotonic(), 0.0))
        if not ready:
            return None
        part = os.read(reading, 1 << 16)
        if not part:
            return b"".join(parts)
        parts.append(part)


PROPERTY = Property(
    "multiprocessing",
    "a forked child computes as its parent does, and does not disturb it",
    check,
    view=INTEGRATION,
    level=PRODUCTION,
    dtypes=("float32",),
    devices=(CPU, *SIMULATED),
    why_only="a fork does not depend on the dtype, and a CUDA context does not survive one",
)
