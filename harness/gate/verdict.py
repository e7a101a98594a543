"""From samples to verdicts: one for each benchmark, and one for the run.

A run is `pass`, `fail` or `inconclusive`, with exit code 0, 1 or 4: an inconclusive run has not passed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from harness.gate.matching import EXTRA, Fate
from harness.gate.sampling import PLANTED, QUESTION, SAME, Samples
from harness.gate.statistics import Estimate, Rule, alarms, estimate

SLOWER, MORE_MEMORY, BROKEN, SUSPECT, INCONCLUSIVE, FASTER, NOT_SLOWER, NOT_RUN = VERDICTS = (
    "slower",
    "more-memory",
    "broken",
    "suspect",
    "inconclusive",
    "faster",
    "not-slower",
    "not-run",
)
PASSED, FAILED = "pass", "fail"
EXIT_CODES = {PASSED: 0, FAILED: 1, INCONCLUSIVE: 4}

#: The allowed increase of the peak memory of a call. Counts are exact, so this is no allowance for noise.
MEMORY = 0.01
#: A run may say that nothing is slower only if it can exclude a slow-down of this size, that of the planted control.
VISIBLE = 0.10


@dataclass(frozen=True)
class Result:
    """The verdict on one benchmark. `estimates` are those of the first round by kind, `rerun` that of the second.

    `of_base`: base is what is broken, which is no fault of head.
    """

    benchmark: str
    verdict: str
    reason: str
    estimates: dict[str, Estimate] = field(default_factory=dict)
    rerun: Estimate | None = None
    memory: tuple[int, int] | None = None
    of_base: bool = False


def estimates(samples: Mapping[str, Samples], kind: str, rule: Rule) -> dict[str, Estimate]:
    """One estimate for each benchmark with samples."""
    seen = {key: s.launches(kind) for key, s in samples.items() if not s.problem and s.quadruples[kind]}
    return {key: estimate(launches, rule, comparisons=len(seen)) for key, launches in seen.items()}


def suspects(samples: Mapping[str, Samples], rule: Rule) -> set[str]:
    """The benchmarks that alarm: they are measured once more."""
    return alarms(estimates(samples, QUESTION, rule), rule)


def results(samples: Mapping[str, Samples], rerun: Mapping[str, Samples], rule: Rule) -> list[Result]:
    """A verdict for each benchmark. `rerun` holds second samples of the suspects."""
    by_kind = {kind: estimates(samples, kind, rule) for kind in (QUESTION, SAME, PLANTED)}
    again = estimates(rerun, QUESTION, rule)
    alarmed = {
        QUESTION: alarms(by_kind[QUESTION], rule),
        SAME: alarms(by_kind[SAME], rule) | alarms(by_kind[SAME], rule, faster=True),
        PLANTED: alarms(by_kind[PLANTED], rule),
    }
    confirmed = alarms(again, rule)
    faster = alarms(by_kind[QUESTION], rule, faster=True)
    found = []
    for key, s in samples.items():
        if s.problem:
            verdict = NOT_RUN if s.unavailable else SUSPECT if s.suspect else BROKEN
            found.append(Result(key, verdict, s.problem, of_base=s.of_base))
            continue
        own = {kind: of[key] for kind, of in by_kind.items()}
        verdict, reason = _judged(key, own, again.get(key), alarmed, confirmed, faster, s.memory)
        found.append(Result(key, verdict, reason, own, again.get(key), s.memory))
    return found


def _judged(
    key: str,
    own: Mapping[str, Estimate],
    again: Estimate | None,
    alarmed: Mapping[str, set[str]],
    confirmed: set[str],
    faster: set[str],
    memory: tuple[int, int] | None,
) -> tuple[str, str]:
    question, same, planted = own[QUESTION], own[SAME], own[PLANTED]
    if key in alarmed[SAME]:
        return (
            INCONCLUSIVE,
            f"base against itself gave {in_words(same)}: here the machine differs, not the code",
        )
    if key in confirmed and again is not None:
        return SLOWER, f"{in_words(question)}, and {in_words(again)} when it was measured again"
    if memory is not None and memory[1] > memory[0] * (1 + MEMORY):
        return MORE_MEMORY, f"a call holds {memory[1]:,} bytes at its peak, where base holds {memory[0]:,}"
    if key not in alarmed[PLANTED]:
        return INCONCLUSIVE, f"a planted slow-down of 10% gave {in_words(planted)}, not detectable in this noise"
    if key in alarmed[QUESTION] and again is None:
        return INCONCLUSIVE, f"{in_words(question)}, and it could not be measured again"
    last = again or question
    if last.high >= 1 + VISIBLE:
        return INCONCLUSIVE, f"{in_words(last)}: a slow-down of {VISIBLE:.0%} cannot be excluded in this noise"
    if key in alarmed[QUESTION]:
        return NOT_SLOWER, f"{in_words(question)}, but {in_words(last)} when it was measured again"
    return (FASTER if key in faster else NOT_SLOWER), in_words(question)


def broken_in_base(benchmark: str, why: str) -> Result:
    """The result of a benchmark that base cannot import."""
    return Result(benchmark, BROKEN, f"base cannot be measured: {why}", of_base=True)


def in_words(found: Estimate) -> str:
    """`1.031 (1.022 to 1.040) of base's time`; the interval consists of the two one-sided bounds."""
    return f"{found.ratio:.3f} ({found.low:.3f} to {found.high:.3f}) of base's time"


def overall(found: Iterable[Result], fates: Iterable[Fate], wrong: Iterable[str] = ()) -> str:
    """The verdict of the run. `wrong` are sentences about other reasons to fail it.

    A benchmark that is broken in base leaves open whether head is slower, so that the run is inconclusive.
    """
    verdicts = {INCONCLUSIVE if result.of_base else result.verdict for result in found}
    if verdicts & {SLOWER, MORE_MEMORY, BROKEN, SUSPECT} or any(fate.fate != EXTRA for fate in fates) or any(wrong):
        return FAILED
    # Without any measurement the run is not a pass either.
    return INCONCLUSIVE if INCONCLUSIVE in verdicts or not verdicts - {NOT_RUN} else PASSED
