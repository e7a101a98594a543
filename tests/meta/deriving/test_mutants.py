"""Mutants of right implementations, made mechanically: a derived contract notices each that is not equivalent."""

from __future__ import annotations

import pytest

from harness.report.cell import FAIL, NO_EVIDENCE
from tests.meta.deriving.mutated import REFERENCES, SOURCE, caught_by, contract, every_mutant
from tests.meta.tiers import ZOO, first_alone

#: Mutants that compute the same in every call of the contract: by what they are after the change, and why.
LAST = "the calls have two dimensions, so that dimension 1 is the last one"
EQUIVALENT = {
    "scale = torch.rsqrt((x * x).mean(1, keepdim=True) + 1e-6)": LAST,
    "powers = torch.exp(x - x.logsumexp(1, keepdim=True))": LAST,
    "return powers / powers.sum(1, keepdim=True)": LAST,
    "shifted = logits - logits.logsumexp(1, keepdim=True)": LAST,
    "return -shifted.gather(1, labels[:, None])[:, 0]": LAST,
    "return -shifted.gather(-1, labels[:, None])[:, -1]": "there is one column",
    "return powers": "they add up to 1 already, and what infinity makes of them is left open",
    "centred = x - x.mean(1, keepdim=True)": LAST,
    "deviation = torch.sqrt((centred * centred).mean(1, keepdim=True) + 1e-5)": LAST,
    "return x * torch.rsqrt((x * x).mean(1, keepdim=True) + 1e-6) * weight": LAST,
    "scores = q @ k.transpose(-2, -1) * q.shape[-1] ** -0.5": "two dimensions are exchanged, whichever is named first",
    "seen = torch.where(mask, scores, -10100.0)": "exp of either is 0 beside a score that is seen",
    "d_x = scale * (along - unit * (along * unit).mean(1, keepdim=True))": LAST,
}


@pytest.mark.parametrize("name", first_alone(REFERENCES, ZOO))
def test_every_mutant_is_noticed(name: str) -> None:
    unlike = frozenset({FAIL, NO_EVIDENCE})
    assert caught_by(name, SOURCE.read_text(), unlike) == "", "the implementation itself is right"
    for mutant in every_mutant()[name]:
        if mutant.after in EQUIVALENT:
            dims = len(contract(name).inputs[0].shape)
            assert EQUIVALENT[mutant.after] != LAST or dims == 2, f"{LAST}: not so of {name}"
        else:
            assert caught_by(name, mutant.text), f"{mutant.id}: {mutant.before} became {mutant.after}"


def test_there_are_many_and_each_equivalent_one_exists() -> None:
    found = every_mutant()
    assert all(len(mutants) > 10 for mutants in found.values())
    assert sum(map(len, found.values())) > 150
    changed = {mutant.after for mutants in found.values() for mutant in mutants}
    assert changed >= set(EQUIVALENT), f"no mutant: {set(EQUIVALENT) - changed}"
