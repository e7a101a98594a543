"""Draw faults of every class for every operator."""

from __future__ import annotations

import importlib
import pkgutil
from random import Random

from tests.zoo.thresholds import variants
from tests.zoo.thresholds.drawn import Drawn
from tests.zoo.thresholds.facts import FACTS, Facts
from tests.zoo.thresholds.rendering import text
from tests.zoo.thresholds.variant import VARIANTS, Variant

#: Faults of each class for each operator.
EACH = 2

for _module in sorted(info.name for info in pkgutil.iter_modules(variants.__path__)):
    importlib.import_module(f"{variants.__name__}.{_module}")

KINDS = tuple(dict.fromkeys(variant.kind for variant in VARIANTS))


def draw(seed: int) -> list[Drawn]:
    """The faults of this seed, in the order of classes and operators. The same seed gives the same faults."""
    rng = Random(seed)
    found: list[Drawn] = []
    for kind in KINDS:
        for facts in FACTS.values():
            found += [_drawn(rng, variant, facts) for variant in _chosen(rng, kind, facts.name, found)]
    return found


def _chosen(rng: Random, kind: str, operator: str, found: list[Drawn]) -> list[Variant]:
    """Different variants; where there is one only, it twice."""
    there = {drawn.variant for drawn in found}
    fitting = [v for v in VARIANTS if v.kind == kind and operator in v.operators and not (v.once and v.name in there)]
    return rng.sample(fitting, EACH) if len(fitting) >= EACH else fitting * EACH


def _drawn(rng: Random, variant: Variant, facts: Facts) -> Drawn:
    draft = variant.draft(rng, facts)
    source, honest = (text(f"{variant.kind}/{variant.name}", facts, draft.literals, faulty) for faulty in (True, False))
    return Drawn(facts.name, variant.kind, variant.name, draft.words, source, honest, draft.witness, draft.dtype)
