"""Times of candidates: no attack of `tests/zoo/gaming/timing_*.py` gains by them.

A candidate that is only right, or only quick, in the calls that are verified cannot be written: these are drawn after
their block has ended. So no attack here tries that.
"""

from __future__ import annotations

import random
import re
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor

from harness import discovery
from harness.bench import blocks, foreign, measurement
from harness.bench import record as record_file
from harness.bench.blocks import Ring, asking
from harness.bench.foreign import CandidateTimer
from harness.bench.measurement import Settings, measure
from harness.bench.record import SUSPECT, WRONG
from harness.candidate import candidate
from harness.cli import bench
from harness.errors import Unavailable
from harness.executing.timing import Header, Tensors, digest
from harness.judging.subject import Subject
from harness.measuring import ceilings
from harness.running.candidate_process import CandidateProcess, Limits
from harness.running.selection import Selection, slots
from spec.contract import BACKWARD, FORWARD, FORWARD_AND_BACKWARD, PHASES
from tests.meta.bench.here import Here
from tests.meta.tiers import WHOLE

GAMING = Path(__file__).parents[2] / "zoo" / "gaming"
LLTM = discovery.operator("lltm")
TUTORIAL = LLTM.case("tutorial")
#: Candidates that are timed together in processes.
TIMED = ("honest", "put_off", "patches_events", "slows_the_baseline")


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Short rings; a ring sets the number of threads."""
    threads = torch.get_num_threads()
    monkeypatch.setattr(blocks, "_LENGTH", 32)
    yield
    torch.set_num_threads(threads)


def _right(*inputs: Tensor) -> Any:
    return LLTM.forward(*inputs)


def _timer(
    function: Callable[..., Any] | Here | CandidateProcess, phase: str = FORWARD, operator: Any = LLTM
) -> CandidateTimer:
    process = function if isinstance(function, Here | CandidateProcess) else Here(function)
    case = next(case for case in operator.cases if "benchmark" in case.tags)
    ring = Ring(operator, case, torch.float32, "cpu", 1)
    subject = Subject(operator, "it", "cpu", torch.float32, process.function)
    timer = CandidateTimer(ring, phase, subject, process, asking(None), rounds=60)
    timer.begin(0.01, 60)
    return timer


def _attack(file: str, function: str) -> Callable[..., Any]:
    found: Callable[..., Any]
    found, _ = discovery.load_candidate(candidate(f"lltm={GAMING / f'timing_{file}.py'}:{function}"))
    return found


@pytest.mark.parametrize("operator", ["lltm", "layer_norm"])
@pytest.mark.parametrize("phase", PHASES)
def test_what_is_right_is_timed(operator: str, phase: str) -> None:
    contract = discovery.operator(operator)
    function = discovery.load_function(operator, "python-autograd", "cpu")
    timer = _timer(function, phase, contract)
    samples = [timer.sample() for _ in range(3)]
    assert timer.trouble is None
    assert all(sample > 1e-6 for sample in samples)


@pytest.mark.parametrize(
    ("file", "function", "says"),
    [
        ("pointer_cache", "pointer_cache", "new_h was"),
        ("pointer_cache", "weights_cache", "new_h was"),
        ("value_cache", "value_cache", "new_h was"),
        ("thread", "thread", "had another result|new_h was"),
        ("lazy", "lazy", "a result was a _Lazy, but should be a torch.Tensor"),
        ("super_batch", "super_batch", "new_h was|KeyError"),
        ("first_calls", "first_calls", "new_h was"),
        ("first_calls", "constant_later", "new_h was 0"),
        ("first_calls", "without_grad", "new_h was"),
        ("first_calls", "one_in_ten", "new_h was"),
        ("lower_precision", "lower_precision", "new_h was"),
        ("one_buffer", "one_buffer", "had another result when it returned than after its block"),
        ("impossible", "impossible", "new_h was"),
        ("waits_for_quiet", "waits_for_quiet", "new_h was 0"),
    ],
)
def test_what_is_wrong_in_timed_calls_is_seen(file: str, function: str, says: str) -> None:
    attack = _attack(file, function)
    try:
        timer = _timer(attack)
    except Exception as error:
        reason = str(error)
    else:
        for _ in range(60):
            assert timer.sample() >= 0
            if timer.trouble is not None:
                break
        assert timer.trouble is not None
        status, reason = timer.trouble
        assert status == WRONG
        assert reason.startswith("wrong while timed: ")
    assert re.search(says, reason), reason


def test_a_slow_candidate_with_one_buffer_is_seen() -> None:
    """A block of one call would not show that the next one overwrites its result."""
    attack = _attack("one_buffer", "one_buffer")

    def slow(*inputs: Tensor) -> Any:
        time.sleep(0.02)  # longer than a sample
        return attack(*inputs)

    timer = _timer(slow)
    assert timer.calls == 2
    for _ in range(60):
        timer.sample()
        if timer.trouble is not None:
            break
    assert timer.trouble is not None
    assert "had another result when it returned than after its block" in timer.trouble[1]


def test_a_result_that_is_another_one_later_is_seen() -> None:
    """The digests are those of the results as they were after the block."""
    process = Here(_right)
    timer = _timer(process)
    answer = process.timing.answer

    def changing(function: Any, asked: Header, tensors: Tensors) -> tuple[Header, Tensors]:
        header, found = answer(function, asked, tensors)
        if asked["do"] == "reveal":
            found = {name: y + 1 for name, y in found.items()}
        return header, found

    process.timing.answer = changing  # type: ignore[method-assign]
    timer.sample()
    assert timer.trouble is not None
    assert "had another result after its block than later" in timer.trouble[1]


@pytest.mark.parametrize("digests", [None, [], [[1]] * 40, [1] * 40])
def test_a_reply_that_is_none_is_no_result(digests: Any) -> None:
    process = Here(_right)
    timer = _timer(process)
    answer = process.timing.answer
    process.timing.answer = lambda *given: ({"digests": digests}, answer(*given)[1])  # type: ignore[method-assign]
    timer.sample()
    assert timer.trouble is not None
    assert "its process sent no digests of 2 results of each call" in timer.trouble[1]


def test_results_of_another_dtype_are_wrong() -> None:
    timer = _timer(lambda *inputs: tuple(y.double() for y in LLTM.forward(*inputs)))
    timer.sample()
    assert timer.trouble is not None
    assert "had a result of torch.float64, but should have torch.float32" in timer.trouble[1]


def test_times_that_can_be_believed_are_not_suspect() -> None:
    timer = _timer(_right)
    seconds = [timer.sample() for _ in range(9)]
    assert timer.suspicion(0.0, seconds[0]) == ""


def test_a_few_late_replies_are_not_suspect() -> None:
    """The half of few replies is late where other programs run, the half of many is not."""
    timer = _timer(_right)
    for late, suspect in (([0.0] * 2 + [0.05] * 2, False), ([0.05] * 4, True), ([0.0] * 6 + [0.05] * 24, True)):
        timer._timed, timer._committed = [0.0] * len(late), late
        assert timer.suspicion(0.0, 1.0).startswith("work went on after the reply") == suspect


@pytest.mark.parametrize(
    ("slow", "busy", "idle", "least", "says"),
    [
        ({}, 0, 0, 1.0, "a call took 0.5 s, but must take at least 0.9 s"),
        ({"commit": 0.05}, 0, 0, 0.0, "work went on after the reply: digests of the results took"),
        ({}, 0, 1, 0.0, "work went on after the reply: .* of processor time while nothing was asked"),
        ({}, 1, 0, 0.0, "more processors were used than the row says: .* of 1 thread"),
        # 2 s of processor time in all: what a busy machine makes of the blocks of some milliseconds stays far below.
        ({"refresh": 0.25}, 0.075, 0, 0.0, "work was done outside of the timed part: .* of processor time"),
    ],
)
def test_what_cannot_be_is_suspect(slow: dict[str, float], busy: float, idle: float, least: float, says: str) -> None:
    process = Here(_right)
    timer = _timer(process)
    process.slow, process.busy, process.idle = slow, busy, idle
    for _ in range(9):  # medians are compared, and other programs may hold up a few of them
        timer.sample()
    assert timer.trouble is None
    if "commit" not in slow:  # on a machine with too much to do every reply is late, which is told first
        timer._committed = [0.0 for _ in timer._committed]
    assert re.match(says, timer.suspicion(least, 0.5)), timer.suspicion(least, 0.5)


def test_no_call_is_made_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """Within a block no entry is used again, and each block has other values and other companions."""
    ring = Ring(LLTM, TUTORIAL, torch.float32, "cpu", 1)
    # Of pairs of plans that are drawn, one in 512 moves this input by whole entries, to the same values.
    monkeypatch.setattr(ring, "draw", random.Random(0))
    first, second = ring.plan(ring.length), ring.plan(ring.length)
    assert all(sorted(order) == list(range(ring.length)) for order in first.orders)
    assert first.orders != second.orders
    inputs = {digest(ring.call(plan, k, FORWARD).inputs[0]) for plan in (first, second) for k in range(ring.length)}
    assert len(inputs) == 2 * ring.length


@pytest.mark.parametrize("phase", PHASES)
def test_the_judge_knows_the_inputs_of_each_call(phase: str) -> None:
    given: list[tuple[Tensor, ...]] = []

    def function(*inputs: Tensor) -> Any:
        given.append(tuple(tensor.detach().clone() for tensor in inputs))
        return LLTM.forward(*inputs)

    ring, ask = Ring(LLTM, TUTORIAL, torch.float32, "cpu", 1), asking(function)
    ring.give(ask, phase)
    plan = ring.plan(5)
    ring.refresh(ask, plan, phase)
    ring.block(ask, plan, phase)
    assert len(given) == 5
    for number, inputs in enumerate(given):
        assert all(map(torch.equal, inputs, ring.call(plan, number, phase).inputs))
    results = {FORWARD: 2, BACKWARD: 5, FORWARD_AND_BACKWARD: 7}[phase]
    header, _ = ask({"do": "commit"}, {})
    assert [len(digests) for digests in header["digests"]] == [results] * 7


def test_slow_calls_are_left_out() -> None:
    timer = _timer(Here(_right))
    with pytest.raises(Unavailable, match=r"may take 1e-09 s: raise --longest to have it"):
        timer.begin(0.01, 1e-9)


def test_the_floor_is_the_best_of_the_rates() -> None:
    one = {"flops_per_second": 2.0, "copies": [[100, 10.0], [1000, 5.0], [10000, 1.0]]}
    other = {"flops_per_second": 4.0, "copies": [[10000, 2.0]]}
    assert ceilings.floor([one], 2000, 0) == 2000 / 5
    assert ceilings.floor([one], 300, 0) == 300 / 10
    assert ceilings.floor([one], 10**6, 0) == 10**6
    assert ceilings.floor([one, other], 10**6, 10**8) == 10**8 / 4


def test_a_call_takes_what_its_block_takes_beyond_an_empty_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """By a clock that goes on by 10 ms in each request, and by 1 ms in each call."""
    now = 0.0

    def passes(seconds: float) -> None:
        nonlocal now
        now += seconds

    def function(*inputs: Tensor) -> Any:
        passes(0.001)
        return LLTM.forward(*inputs)

    class Slow(Here):
        def ask(self, header: Header, tensors: Tensors, *, seconds: float) -> tuple[Header, Tensors]:
            passes(0.01)
            return super().ask(header, tensors, seconds=seconds)

    clock = SimpleNamespace(perf_counter=lambda: now, process_time=lambda: now)
    for module in (blocks, foreign):
        monkeypatch.setattr(module, "time", clock)
    ring = Ring(LLTM, TUTORIAL, torch.float32, "cpu", 1)
    candidate, nobody = Slow(function), Slow(None)
    subject = Subject(LLTM, "it", "cpu", torch.float32, function)
    timer = CandidateTimer(ring, FORWARD, subject, candidate, foreign._to(nobody), rounds=60)
    timer.begin(0.01, 60)
    assert timer.calls == ring.length, "a request takes far more than 1% of a block of 10 calls"
    assert [timer.sample() for _ in range(3)] == pytest.approx([0.001] * 3)


_WAITS = """
import time
from spec.lltm import forward
sleep = time.sleep
from tests.zoo.gaming import timing_clock_patched

def waits(*inputs):
    timing_clock_patched._patch()
    sleep(0.005)
    return forward(*inputs)
"""


def test_the_clock_of_its_process_is_of_no_use_to_a_candidate(tmp_path: Path) -> None:
    """It waits, and replaces every clock that it can reach. A busy machine can only make a block longer."""
    file = tmp_path / "waits.py"
    file.write_text(_WAITS)
    process = CandidateProcess(candidate(f"lltm={file}:waits"), "cpu", Limits())
    try:
        process.declared()
        timer = _timer(process)
        for _ in range(3):
            timer.sample()
    finally:
        process.stop()
    assert timer.trouble is None
    assert min(timer._timed) >= timer.calls * 0.005


@pytest.fixture(scope="module")
def record() -> dict[str, Any]:
    """Candidates in processes of their own, beside a backend."""
    chosen = Selection(
        operators=("lltm",),
        backends=("python-autograd",),
        devices=("cpu",),
        dtypes=("float32",),
        candidates=tuple(f"lltm={GAMING / f'timing_{name}.py'}:{name}" for name in TIMED),
    )
    settings = Settings(rounds=9, block_seconds=0.01, longest=60, threads=(1,), cases=("tutorial",), phases=(FORWARD,))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ceilings, "measure", lambda *_: {"flops_per_second": 1e20, "copies": [[1024, 1e20]]})
        made = measure(slots(chosen), settings, lambda text: None)
    assert not any(f"timing_{attack}" in name for name in sys.modules for attack in TIMED)
    return made


@pytest.mark.long(WHOLE)
def test_what_is_right_has_times_beside_a_backend(record: dict[str, Any]) -> None:
    """What the attacks gain is measured by `tools.study.timing`, where the machine is quiet."""
    found = {row["backend"] for row in record["rows"]} - {"floor", "products-alone"}
    assert found == {*TIMED, "python-autograd"} - {"put_off"}


@pytest.mark.long(WHOLE)
def test_work_after_the_reply_is_suspect(record: dict[str, Any]) -> None:
    (entry,) = record["missing"]
    assert (entry["backend"], entry["status"]) == ("put_off", SUSPECT)
    assert entry["reason"].startswith("work went on after the reply: digests of the results took")
    assert not any(row["backend"] == "put_off" for row in record["rows"])


def test_a_suspect_time_is_exit_code_1(record: dict[str, Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(measurement, "measure", lambda *_, **__: record)
    chosen = ["--operator", "lltm", "--backend", "python-autograd", "-o", str(tmp_path / "bench.json")]
    assert bench.main(chosen) == 1
    record_file.read(tmp_path / "bench.json")
