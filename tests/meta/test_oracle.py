"""Scenarios with the same values share one oracle, whatever their memory layout; with other values they do not."""

from __future__ import annotations

import pytest
import torch

from harness.discovery import operators
from harness.judging.oracle import expected
from harness.judging.scenario import CHANGING, COTANGENTS, LAYOUTS, Call, Scenario, realise
from harness.judging.scenarios import representative, smallest
from spec.contract import Operator
from spec.lltm import OPERATOR

FORMS = [form for operator in operators().values() for form in operator.every_form()]


def _same(one: Call, other: Call) -> bool:
    pairs = zip((*one.inputs, *one.cotangents), (*other.inputs, *other.cotangents), strict=True)
    return all(a is not None and b is not None and torch.equal(a, b) for a, b in pairs)


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.title)
def test_what_is_said_to_keep_the_values_keeps_them(form: Operator) -> None:
    case = representative(form)
    usual = realise(form, Scenario.of(case), torch.float32)
    for layout in LAYOUTS:
        laid_out = Scenario.of(case, layouts=tuple((arg.name, layout) for arg in form.inputs))
        assert layout in CHANGING or _same(realise(form, laid_out, torch.float32), usual), layout
    for kind in COTANGENTS:
        sent = Scenario.of(case, cotangents=tuple((arg.name, kind) for arg in form.outputs))
        assert kind in CHANGING or _same(realise(form, sent, torch.float32), usual), kind


def test_an_oracle_is_shared_by_what_has_its_values_and_by_nothing_else() -> None:
    usual = smallest(OPERATOR)
    case = {"sizes": usual.sizes}
    mine = expected(OPERATOR, usual, torch.float32)
    strided = Scenario(**case, layouts=(("input", "strided"),), cotangents=(("new_h", "offset"),))
    assert expected(OPERATOR, strided, torch.float32) is mine
    for other in (
        Scenario(**case, layouts=(("input", "expanded"),)),
        Scenario(**case, cotangents=(("new_h", "ones"),)),
        Scenario(**case, seed=1),
    ):
        assert expected(OPERATOR, other, torch.float32) is not mine
