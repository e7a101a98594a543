"""The package. It looks for a GPU when it is imported; without one `flag_gems` is None, and no cell is judged."""

from typing import Any

import torch

flag_gems: Any = None
try:
    import flag_gems as _found

    flag_gems = _found
except RuntimeError:  # "No device were detected on your machine"
    if torch.cuda.is_available():
        raise
