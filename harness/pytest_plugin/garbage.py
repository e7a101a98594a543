"""No garbage is collected while torch and the judge are imported: it would take a tenth of that time and find nothing.

What was imported stays until the end, so neither this process nor its forks look at it again; `gc.collect`, which
hypothesis calls for each generator of random numbers, would take a fifth of a second.
"""

from __future__ import annotations

import gc

import pytest

gc.disable()


@pytest.hookimpl(tryfirst=True)
def pytest_configure() -> None:
    gc.freeze()
    gc.enable()
