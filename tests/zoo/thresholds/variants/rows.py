"""Wrong from some number of rows on, where it is no multiple of a block."""

from __future__ import annotations

from random import Random

from tests.zoo.thresholds.drawn import Witness
from tests.zoo.thresholds.facts import Facts
from tests.zoo.thresholds.variant import Draft, a_block, beyond, log_uniform, variant

WITH_PRODUCTS = ("lltm", "lltm_sequence", "mlp")


def _draft(rng: Random, facts: Facts, does: str) -> Draft:
    least = log_uniform(rng, 3, 3000)
    block = a_block(rng, min(least, 512))  # a tail that follows no block is a coarse mistake
    sizes = facts.sizes(rng, rows=beyond(rng, least, block))
    words = f"from {least} rows on that are no multiple of {block}, {does}"
    return Draft(words, {"least": least, "block": block}, Witness(sizes))


@variant("rows")
def sums_without_tail(rng: Random, facts: Facts) -> Draft:
    return _draft(rng, facts, "sums over rows leave out the last rows")


@variant("rows", *WITH_PRODUCTS)
def products_without_tail(rng: Random, facts: Facts) -> Draft:
    return _draft(rng, facts, "the gradient of weights leaves out the last rows")


@variant("rows")
def tail_not_stored(rng: Random, facts: Facts) -> Draft:
    return _draft(rng, facts, "the last rows of a result are 0")


@variant("rows")
def tail_from_another_place(rng: Random, facts: Facts) -> Draft:
    return _draft(rng, facts, "the last rows of a result are the first of a block that is aligned with the end")


@variant("rows")
def tail_without_gradient(rng: Random, facts: Facts) -> Draft:
    return _draft(rng, facts, "the last rows of a gradient are 0")
