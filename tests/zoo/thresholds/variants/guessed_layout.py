"""A layout is guessed from sizes: where two are in some ratio, a matrix is read as its transpose, or reshaped."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from random import Random

from tests.zoo.thresholds.drawn import Witness
from tests.zoo.thresholds.facts import Facts
from tests.zoo.thresholds.variant import Draft, log_uniform, variant

RATIOS = (Fraction(1), Fraction(2), Fraction(3), Fraction(1, 2), Fraction(4))


def _in_ratio(rng: Random, facts: Facts, one: str, other: str, spelled: tuple[str, str] | None = None) -> Draft:
    """Sizes with `one` = ratio * `other`, from a least size on, and the condition in the source.

    `spelled` are the two sizes in the source, if they are not those of the public function.
    """
    ratio, least = rng.choice(RATIOS), log_uniform(rng, 3, 60)
    size = least * ratio.denominator
    sizes = facts.sizes(rng, **{other: size, one: int(size * ratio)})
    left, right = spelled or (facts.size[one], facts.size[other])
    times = f"{_times(ratio.denominator, left)} == {_times(ratio.numerator, right)}"
    words = f"where {one} is {_times_in_words(ratio)}{other}, and {other} is {size} or more"
    return Draft(words, {"condition": f"{times} and {right} >= {size}"}, Witness(sizes))


def _times(factor: int, size: str) -> str:
    return size if factor == 1 else f"{factor} * {size}"


def _times_in_words(ratio: Fraction) -> str:
    return "" if ratio == 1 else f"{ratio} "


@variant("guessed-layout")
def matrix_read_as_its_transpose(rng: Random, facts: Facts) -> Draft:
    name = rng.choice(list(facts.shapes))
    draft = _in_ratio(rng, facts, *facts.shapes[name])
    words = f"{name} is read as its transpose {draft.words}"
    return Draft(words, {**draft.literals, "name": name}, draft.witness)


@variant("guessed-layout")
def sizes_of_another_matrix(rng: Random, facts: Facts) -> Draft:
    """The ratio is between two sizes of which one may belong to another tensor."""
    name = rng.choice(list(facts.shapes))
    one, other = rng.sample(list(facts.size), 2)
    draft = _in_ratio(rng, facts, one, other)
    words = f"{name} is read as its transpose {draft.words}"
    return Draft(words, {**draft.literals, "name": name}, draft.witness)


@variant("guessed-layout", "lltm", "lltm_sequence")
def interleaved_gates(rng: Random, facts: Facts) -> Draft:
    draft = _in_ratio(rng, facts, "input_features", "state_size", ("features", "size"))
    return replace(draft, words=f"gates are taken for interleaved {draft.words}")


@variant("guessed-layout", "mlp")
def gradient_of_the_transpose(rng: Random, facts: Facts) -> Draft:
    draft = _in_ratio(rng, facts, "hidden_size", "input_features", ("rows", "columns"))
    return replace(draft, words=f"a gradient of weights is read as its transpose {draft.words}")
