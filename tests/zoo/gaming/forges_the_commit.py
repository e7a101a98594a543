"""Sets variables from which git and a report could take another commit (own trial)."""

import os

from torch import Tensor

from tests.zoo.gaming.parts import Outputs, right, wrong

for _name, _value in {"GIT_DIR": "/nonexistent", "GIT_COMMIT": "0" * 40, "GITHUB_SHA": "0" * 40}.items():
    os.environ[_name] = _value


def lltm(*inputs: Tensor) -> Outputs:
    return wrong(*inputs)


def lltm_right(*inputs: Tensor) -> Outputs:
    """The same attack around a right answer."""
    return right(*inputs)
