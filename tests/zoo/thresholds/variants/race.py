"""From some number of rows on, the result differs from call to call now and then."""

from __future__ import annotations

from random import Random

from tests.zoo.thresholds.drawn import CALLS, Witness
from tests.zoo.thresholds.facts import Facts
from tests.zoo.thresholds.variant import Draft, log_uniform, variant

#: Calls of a witness: all are right with a chance of 0.9^150, which is 1 in 7 million.
REPEATS = 150
SLOTS = ("_stored", "_row_gradient")


def _draft(rng: Random, facts: Facts, how: str) -> Draft:
    least, chance = log_uniform(rng, 3, 3000), round(rng.uniform(0.1, 0.5), 2)
    slot = rng.choice(SLOTS)
    literals = {
        "least": least,
        "chance": chance,
        "slot": slot,
        "seed": rng.randrange(10**6),
        "microseconds": 2000,
        "share": rng.choice((2, 3, 4, 8)),
    }
    where = "results" if slot == SLOTS[0] else "gradients"
    words = f"from {least} rows on, the last rows of {where} are 0 with a chance of {chance} {how}"
    return Draft(words, literals, Witness(facts.sizes(rng, rows=least), sees=CALLS, repeats=REPEATS))


@variant("race")
def by_a_generator(rng: Random, facts: Facts) -> Draft:
    return _draft(rng, facts, "by a random generator")


@variant("race")
def by_the_clock(rng: Random, facts: Facts) -> Draft:
    return _draft(rng, facts, "by the clock")


@variant("race")
def with_a_thread(rng: Random, facts: Facts) -> Draft:
    return _draft(rng, facts, "since a thread is not waited for")
