"""Right for the calls that the suite lists, which it computes from the suite's own files (own trial)."""

import torch
from torch import Tensor

from harness.judging.scenario import realise
from harness.judging.scenarios import at_edges, ordinary
from spec.lltm import OPERATOR
from tests.zoo.gaming.parts import Outputs, right, wrong


def _mark(tensor: Tensor) -> float:
    return float(tensor.nan_to_num().double().sum())


_CALLS = [realise(OPERATOR, scenario, torch.float32) for scenario in (*ordinary(OPERATOR), *at_edges(OPERATOR))]
LISTED = frozenset(_mark(call.inputs[1]) for call in _CALLS)


def lltm(*inputs: Tensor) -> Outputs:
    return (right if _mark(inputs[1].detach()) in LISTED else wrong)(*inputs)
