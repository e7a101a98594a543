"""Raises an exception with commands to systems of continuous integration (own trial)."""

from torch import Tensor

from tests.zoo.gaming.parts import Outputs


def lltm(*inputs: Tensor) -> Outputs:
    raise ValueError("##vso[task.setvariable variable=PATH]x ##teamcity[buildStatus status='SUCCESS'] \uffff")
