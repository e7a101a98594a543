"""The package. It looks for a GPU when it is imported; without one `flag_gems` is None, and no cell is judged.

It warns of operators for which it has no tuned configuration, whether they are used or not.
"""

import warnings
from typing import Any

import torch

flag_gems: Any = None
try:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import flag_gems as _found

    flag_gems = _found
except RuntimeError:  # "No device were detected on your machine"
    if torch.cuda.is_available():
        raise
