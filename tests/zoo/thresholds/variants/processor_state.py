"""A call leaves the processor in another state: denormal numbers are flushed, or rounding goes another way."""

from __future__ import annotations

from random import Random

from tests.zoo.thresholds.drawn import STATE, Witness
from tests.zoo.thresholds.facts import Facts
from tests.zoo.thresholds.variant import Draft, log_uniform, variant

#: `FE_` constants of fenv.h on x86-64 and on AArch64.
ROUNDING = {"UPWARD": (0x800, 0x400000), "DOWNWARD": (0x400, 0x800000), "TOWARDZERO": (0xC00, 0xC00000)}


def _somewhere(rng: Random, facts: Facts) -> tuple[str, str, dict[str, int]]:
    """A condition on some size in words and in the source, and sizes for which it holds."""
    symbol = rng.choice(list(facts.size))
    least = log_uniform(rng, 2, 40 if symbol == "steps" else 800)
    block = rng.choice((1, 1, 2, 3, 8))
    size = -(-least // block) * block
    words, condition = f"from {symbol} {least} on", f"{facts.size[symbol]} >= {least}"
    if block > 1:
        words, condition = f"{words} in multiples of {block}", f"{condition} and not {facts.size[symbol]} % {block}"
    return words, condition, facts.sizes(rng, **{symbol: size})


@variant("processor-state")
def denormals_flushed(rng: Random, facts: Facts) -> Draft:
    words, condition, sizes = _somewhere(rng, facts)
    words = f"{words}, denormal numbers are flushed to 0 after the call"
    return Draft(words, {"condition": condition}, Witness(sizes, sees=STATE))


@variant("processor-state")
def rounding_mode(rng: Random, facts: Facts) -> Draft:
    words, condition, sizes = _somewhere(rng, facts)
    mode = rng.choice(list(ROUNDING))
    x86, arm = ROUNDING[mode]
    literals = {"condition": condition, "mode": mode, "x86": f"{x86:#x}", "arm": f"{arm:#x}"}
    return Draft(f"{words}, rounding is {mode} after the call", literals, Witness(sizes, sees=STATE))


@variant("processor-state", once=True)
def denormals_flushed_in_openmp_threads(rng: Random, facts: Facts) -> Draft:
    words, condition, sizes = _somewhere(rng, facts)
    words = f"{words}, denormal numbers are flushed to 0 in OpenMP's threads after the call"
    return Draft(words, {"condition": condition}, Witness(sizes, sees=STATE))
