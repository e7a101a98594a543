"""The answer depends only on the values of the inputs: not on the caller, and not on earlier calls.

Some kernels return what they computed earlier for the same addresses or shapes, or answer from the reference while a
test is on the call stack. So the same tensors get new values in place, and the candidate is also called from a stack
without any frame of this suite.

Models call in other ways than tests do. Their weights are instances of `Parameter`, for which a kernel may keep what it
has made of them; one tensor is passed twice, as a first state of zeros or the three inputs of self-attention are; and
torch has several threads.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import replace
from itertools import combinations
from typing import Any

import torch
from torch.nn import Parameter

from backends.base import CUDA
from harness.errors import Failure
from harness.judging.oracle import expected, expected_of
from harness.judging.property import Property
from harness.judging.scenario import Call, Scenario, realise
from harness.judging.scenarios import representative, smallest, tagged
from harness.judging.subject import CANDIDATE_ERRORS, Subject, raised_in
from harness.judging.tally import Tally
from harness.report.levels import VALUES
from spec.contract import TensorArg

#: What all sizes are where tensors of any two inputs shall have one shape.
_EQUAL = 7
#: Threads of torch: more than one, on any machine.
_THREADS = 4


def check(subject: Subject) -> dict[str, Any]:
    """New values at old addresses, three times, and of parameters; a call from a bare stack; then as models call."""
    tally = Tally(subject)
    scenario = smallest(subject.operator)
    _at_old_addresses(tally, scenario, subject.realise(scenario))
    _from_a_bare_stack(tally, replace(scenario, seed=14))
    _with_parameters(tally, scenario)
    _with_one_tensor_twice(tally)
    _with_threads(tally)
    return tally.figures()


def _at_old_addresses(tally: Tally, scenario: Scenario, held: Call) -> None:
    subject = tally.subject
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


def _from_a_bare_stack(tally: Tally, unseen: Scenario) -> None:
    subject = tally.subject
    call = subject.realise(unseen)
    try:
        # The thread's stack holds the frames of the pool and of the candidate, and none of this suite.
        with ThreadPoolExecutor(max_workers=1, initializer=_enter, initargs=(subject,)) as pool:
            results = pool.submit(subject.function, *call.inputs).result()
    except CANDIDATE_ERRORS as error:
        raise raised_in("forward", error, " in a thread of its own, but not elsewhere") from error
    if subject.device == CUDA:
        torch.cuda.synchronize()
    outputs = subject.checked(results, call, unseen)
    tally.scenarios += 1
    tally.hold_all(unseen, expected(subject.operator, unseen, subject.dtype), outputs, {})


def _with_parameters(tally: Tally, scenario: Scenario) -> None:
    """The inputs without a row for each row of the batch as parameters of a module, whose values change in place."""
    operator = tally.subject.operator
    which = [arg.row_dim is None and arg.differentiable for arg in operator.inputs]
    if not any(which):
        return
    call = tally.subject.realise(scenario)
    pairs = zip(call.inputs, which, strict=True)
    made = tuple(Parameter(tensor.detach(), tensor.requires_grad) if wanted else tensor for tensor, wanted in pairs)
    try:
        _at_old_addresses(tally, scenario, replace(call, inputs=made))
    except Failure as failure:  # its script would pass plain tensors
        names = [arg.name for arg, wanted in zip(operator.inputs, which, strict=True) if wanted]
        raise failure.prefixed(f"with {', '.join(names)} as torch.nn.Parameter: ") from failure


def _with_one_tensor_twice(tally: Tally) -> None:
    """Two inputs of one shape and one kind of values are one tensor."""
    subject, operator = tally.subject, tally.subject.operator
    usual = representative(operator).sizes
    equal = {symbol: usual[symbol] if symbol in operator.sequential else _EQUAL for symbol in operator.symbols()}
    for number, sizes in enumerate((usual, equal)):
        scenario = Scenario(tuple(sizes.items()), name=f"one tensor twice {number + 1}", seed=15, wanted=())
        for one, other in combinations(range(len(operator.inputs)), 2):
            first, second = operator.inputs[one], operator.inputs[other]
            if first.shape_for(sizes) != second.shape_for(sizes) or _values_of(first) != _values_of(second):
                continue
            made = subject.realise(scenario)
            inputs = tuple(made.inputs[one] if place == other else x for place, x in enumerate(made.inputs))
            exact = Call(tuple(x.cpu() for x in inputs), realise(operator, scenario, subject.dtype).cotangents)
            tally.scenarios += 1
            try:
                with torch.no_grad():
                    outputs = subject.outputs(replace(made, inputs=inputs), scenario)
                tally.hold_all(scenario, expected_of(operator, exact, subject.dtype), outputs, {})
            except Failure as failure:
                raise failure.prefixed(f"where {second.name} is the same tensor as {first.name}: ") from failure


def _values_of(arg: TensorArg) -> tuple[object, ...]:
    """What the values of a tensor depend on, but for their size."""
    return arg.dtype, arg.differentiable, arg.low, arg.high, arg.uniform, arg.whole, arg.offsets


def _with_threads(tally: Tally) -> None:
    """Calls while torch has several threads. Another process can be asked for that; here it could disturb others."""
    subject = tally.subject
    if subject.remote is None:
        return
    cases = [representative(subject.operator), *tagged(subject.operator, "benchmark")[:1]]
    for scenario in (Scenario.of(case, seed=16) for case in cases):
        tally.scenarios += 1
        call = subject.realise(scenario)
        try:
            with subject.remote.threads(_THREADS):
                outputs = subject.outputs(call, scenario)
            tally.hold_all(scenario, expected(subject.operator, scenario, subject.dtype), outputs, {})
        except Failure as failure:
            raise failure.prefixed(f"with {_THREADS} threads: ") from failure


def _enter(subject: Subject) -> None:
    """Create the CUDA context of a new thread. Otherwise cuBLAS would warn, which is no fault of the candidate."""
    torch.zeros(1, device=subject.torch_device)


PROPERTY = Property(
    "no-special-treatment", "the answer depends on the values of the inputs only", check, level=VALUES, outside=True
)
