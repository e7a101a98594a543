"""Lowers the limits on the processes and memory dumps of its user (own trial)."""

import resource

from torch import Tensor

from tests.zoo.gaming.parts import Outputs, right, wrong

for _limit in (resource.RLIMIT_CORE, resource.RLIMIT_NPROC):
    resource.setrlimit(_limit, (0, 0))


def lltm(*inputs: Tensor) -> Outputs:
    return wrong(*inputs)


def lltm_right(*inputs: Tensor) -> Outputs:
    """The same attack around a right answer."""
    return right(*inputs)
