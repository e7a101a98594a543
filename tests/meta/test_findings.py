"""Each script of docs/findings.md stands in the page, and prints what the page says with the torch that it names.

Figures may differ on a processor with other vector instructions, so the words are compared, and the number of figures.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from tests.meta.conftest import ROOT

PAGE = (ROOT / "docs" / "findings.md").read_text()
SCRIPTS = sorted((ROOT / "docs" / "findings").glob("*.py"))
#: The release of which the page speaks.
RELEASE = "2.13.0"


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_the_script_is_in_the_page(script: Path) -> None:
    assert f"```python\n{script.read_text().rstrip()}\n```" in PAGE
    assert f"torch {RELEASE}" in PAGE


@pytest.mark.skipif(not torch.__version__.startswith(RELEASE), reason=f"the page speaks of torch {RELEASE}")
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_it_prints_what_the_page_says(script: Path) -> None:
    done = subprocess.run(
        [sys.executable, script],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    assert _words(f"```text\n{done.stdout.rstrip()}\n```") in _words(PAGE)


def _words(text: str) -> str:
    return re.sub(r"\d+(\.\d+)?(e[+-]\d+)?", "#", text)
