"""Draw faults of every operator: some for each, of different classes, and as many of one class as of another."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from itertools import islice
from math import prod
from random import Random

from harness.discovery import operators
from harness.judging.scenarios import elements
from tests.zoo.thresholds.drawn import Drawn
from tests.zoo.thresholds.every.classes import CLASSES, Plan
from tests.zoo.thresholds.every.form import Form, forms_of
from tests.zoo.thresholds.loading import loaded
from tests.zoo.thresholds.observing import differs, errors
from tests.zoo.thresholds.rendering import rendered

#: Faults of each operator.
EACH = 4
#: Product of the sizes of the witness at most, and elements of a tensor in between: the reference keeps some ten.
VOLUME, BETWEEN = 2**24, 2**25
#: How often a fault is drawn that does not show.
TRIES = 200


def draw_of_every_operator(seed: int) -> list[Drawn]:
    """The faults of this seed, in the order of operators. Each is wrong at its witness, where its honest twin is right.

    What no call can show is not drawn: a fault is kept only after both were called at its witness.
    """
    rng, found = Random(seed), list[Drawn]()
    dealt = Counter[str]()
    for name in sorted(operators()):
        kinds = sorted(CLASSES, key=lambda kind: (dealt[kind], rng.random()))
        shown = (drawn for kind in kinds if (drawn := _shown(rng, name, kind)))
        found += islice(shown, EACH)
        dealt.update(drawn.kind for drawn in found[-EACH:])
    return found


def _shown(rng: Random, name: str, kind: str) -> Drawn | None:
    """A fault of that class that shows; None if the operator has none, as a result without dimensions has no alias."""
    for _ in range(TRIES):
        form = rng.choice(forms_of(name))
        try:
            plan = rng.choice(CLASSES[kind])(rng, form)
        except (ValueError, IndexError):  # this form has nothing of the kind; a choice among none is an IndexError
            continue
        drawn = _drawn(plan, form, kind)
        if _fits(plan.witness.sizes, form) and _shows(drawn):
            return drawn
    return None


def _fits(sizes: Mapping[str, int], form: Form) -> bool:
    _, between = elements(form.contract, sizes)
    return prod(sizes.values()) <= VOLUME and between <= BETWEEN


def _drawn(plan: Plan, form: Form, kind: str) -> Drawn:
    facts = {
        "operator": form.contract.name,
        "source": form.source,
        "parameters": form.parameters,
        "names": form.names,
        **plan.literals,
    }
    source, honest = (rendered(plan.template, faulty=faulty, **facts) for faulty in (True, False))
    variant = plan.template.removeprefix("every/")
    words = f"{form.contract.form}: {plan.words}" if form.contract.form else plan.words
    return Drawn(form.contract.name, kind, variant, words, source, honest, plan.witness, plan.dtype)


def _shows(drawn: Drawn) -> bool:
    with loaded(drawn.operator, drawn.source) as fault, loaded(drawn.operator, drawn.honest) as honest:
        try:
            return not errors(drawn, honest) and differs(drawn, fault, honest)
        except (IndexError, ValueError):  # these values are none of this call, as of an index out of range
            return False
        except RuntimeError as error:  # gather says so by this type
            if "out of bounds" not in str(error):
                raise
            return False
