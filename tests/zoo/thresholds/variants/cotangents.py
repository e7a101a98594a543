"""Right for dense cotangents and for all ones, wrong for another cotangent that is repeated with stride 0."""

from __future__ import annotations

from random import Random

from tests.zoo.thresholds.drawn import Expanded, Witness
from tests.zoo.thresholds.facts import Facts
from tests.zoo.thresholds.variant import Draft, log_uniform, variant

#: Sizes from which a fast path for repeated cotangents may be taken.
LEAST = (2, 200)


def _everywhere(facts: Facts, factor: float) -> dict[str, Expanded]:
    return {output: Expanded(tuple(range(facts.rank(output))), factor) for output in facts.outputs}


@variant("cotangents")
def scalar_without_factor(rng: Random, facts: Facts) -> Draft:
    least, factor = log_uniform(rng, *LEAST), round(rng.uniform(1.1, 40.0), 2)
    words = f"a repeated scalar is taken for 1 from {least} elements on; seen with {factor}"
    return Draft(words, {"least": least}, Witness(facts.sizes(rng, rows=least), cotangents=_everywhere(facts, factor)))


@variant("cotangents")
def scalar_limited(rng: Random, facts: Facts) -> Draft:
    limit = round(rng.uniform(1.05, 500.0), 2)
    words = f"a repeated scalar is limited to {limit}"
    witness = Witness(facts.sizes(rng), cotangents=_everywhere(facts, 2 * limit))
    return Draft(words, {"limit": limit}, witness)


def _along(rng: Random, facts: Facts, dim: int, words: str) -> Draft:
    least = log_uniform(rng, *LEAST)
    sizes = facts.sizes(rng, batch=least + 1) | {facts.width: least + 1}
    kinds = {output: Expanded((dim % facts.rank(output),)) for output in facts.outputs}
    return Draft(f"{words}, from {least} on", {"least": least, "dim": dim}, Witness(sizes, cotangents=kinds))


@variant("cotangents")
def same_for_all_rows(rng: Random, facts: Facts) -> Draft:
    return _along(rng, facts, -2, "a cotangent that is the same for all rows is taken for a scalar")


@variant("cotangents")
def same_in_all_columns(rng: Random, facts: Facts) -> Draft:
    return _along(rng, facts, -1, "a cotangent that is the same in all columns is taken for a scalar")


@variant("cotangents", "lltm", "lltm_sequence")
def strides_of_the_other(rng: Random, facts: Facts) -> Draft:
    least = log_uniform(rng, *LEAST)
    one, other = rng.choice([("g_h", "g_c"), ("g_c", "g_h")])
    output = facts.outputs[0 if one == "g_h" else 1]
    words = f"{other} is read with the strides of {one} if that is a repeated scalar, from {least} elements on"
    kinds = {output: Expanded(tuple(range(facts.rank(output))))}
    literals = {"one": one, "other": other, "least": least}
    return Draft(words, literals, Witness(facts.sizes(rng, rows=least), cotangents=kinds))
